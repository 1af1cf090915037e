// Lesson 9: state that a graph updates. One step of k-means (Lloyd, 1982) labels each point by its nearest centre and
// moves the centres to the means of their points. The centres are an input that the graph updates: a run leaves the new
// ones in the caller's memory, so that a loop is a loop.
#include "allocations.h"
#include "check.h"
#include "tenon/tenon.h"

namespace {

constexpr std::int64_t kPoints = 3000, kCentres = 5, kDepth = 3;

// The same step by hand.
std::vector<double> moved(const std::vector<double>& points, const std::vector<double>& centres) {
  std::vector<double> sums(kCentres * kDepth), counts(kCentres);
  for (std::int64_t p = 0; p < kPoints; ++p) {
    std::int64_t nearest = 0;
    double least = INFINITY;
    for (std::int64_t c = 0; c < kCentres; ++c) {
      double distance = 0;
      for (std::int64_t d = 0; d < kDepth; ++d)
        distance += std::pow(
            points[static_cast<std::size_t>(p * kDepth + d)] - centres[static_cast<std::size_t>(c * kDepth + d)], 2);
      if (distance < least) least = distance, nearest = c;
    }
    ++counts[static_cast<std::size_t>(nearest)];
    for (std::int64_t d = 0; d < kDepth; ++d)
      sums[static_cast<std::size_t>(nearest * kDepth + d)] += points[static_cast<std::size_t>(p * kDepth + d)];
  }
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] /= std::fmax(1, counts[i / kDepth]);
  return sums;
}

}  // namespace

int main(int argc, char** argv) {
  const tenon::Device device(argc > 1 ? argv[1] : "cpu");  // or "cuda"
  tenon::Graph g("kmeans");
  const tenon::Dim n = g.dim("n", {.min = 1});
  const tenon::Tensor points = g.input("points", tenon::DType::f32, {n, kDepth});
  const tenon::Tensor centres = g.input("centres", tenon::DType::f32, {kCentres, kDepth});
  const tenon::Tensor away = points[{tenon::Range{}, tenon::newaxis}] - centres;  // [n, centres, depth]
  const tenon::Tensor labels = argmin(sum(away * away, -1), -1);
  const tenon::Tensor members = one_hot(labels, kCentres);  // [n, centres]
  const tenon::Tensor counts = maximum(sum(members, 0), 1.0);
  g.update(centres, tenon::einsum("nc,nd->cd", {members, points}) / counts[{tenon::Range{}, tenon::newaxis}]);
  g.output("labels", labels);
  const tenon::Executable step = tenon::compile(g, device);

  const tenon::Array data = tenon::Array::normal({kPoints, kDepth}, 1);
  const tenon::Array first = tenon::Array::normal({kCentres, kDepth}, 2);
  std::vector<double> expected = first.to_doubles();
  for (int i = 0; i < 20; ++i) expected = moved(data.to_doubles(), expected);

  const tenon::DeviceArray cloud = device.array(data), state = device.array(first);
  const tenon::DeviceArray nearest = device.empty({kPoints}, tenon::DType::i64);
  const tenon::Buffer inputs[] = {buffer_of(cloud), buffer_of(state)}, outputs[] = {buffer_of(nearest)};
  step.run(inputs, outputs);  // compiled here, and its memory taken
  const long before = allocations;
  for (int i = 1; i < 20; ++i) step.run(inputs, outputs);
  const long in_loop = allocations - before;
  std::printf("allocations in 19 steps: %ld\n", in_loop);
  return close("centres", state.to_host().to_doubles(), expected, 1e-4) && in_loop == 0 ? 0 : 1;
}

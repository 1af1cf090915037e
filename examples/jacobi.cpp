// Lesson 10: a loop over two buffers. Jacobi's iteration for a plate whose edge is held at 0 and whose middle is
// heated: each point becomes the mean of its four neighbours. A point needs its neighbours' old values, so that no step
// works in place: the buffers of input and output change places after each step, and nothing is copied. The host puts
// step after step on a stream and waits for the last alone.
#include <utility>

#include "allocations.h"
#include "check.h"
#include "tenon/tenon.h"

int main(int argc, char** argv) {
  const tenon::Device device(argc > 1 ? argv[1] : "cpu");  // or "cuda"
  constexpr std::int64_t kSize = 120;
  constexpr int kSteps = 1000;
  tenon::Graph g("jacobi");
  const tenon::Dim n = g.dim("n", {.min = 1});
  const tenon::Tensor x = g.input("x", tenon::DType::f32, {n, n}), heat = g.input("heat", tenon::DType::f32, {n, n});
  const tenon::Tensor p = pad(x, {1, 1}, {1, 1});
  const tenon::Range inside{1, n + 1}, above{0, n}, below{2, n + 2};
  g.output("y", 0.25 * (p[{above, inside}] + p[{below, inside}] + p[{inside, above}] + p[{inside, below}]) + heat);
  const tenon::Executable step = tenon::compile(g, device);

  tenon::Array host = tenon::Array::zeros({kSize, kSize});
  host.data<float>()[kSize / 2 * kSize + kSize / 2] = 1;
  const tenon::DeviceArray a = device.zeros({kSize, kSize}), b = a.clone(), heated = device.array(host);
  tenon::Buffer inputs[] = {buffer_of(a), buffer_of(heated)}, outputs[] = {buffer_of(b)};
  const tenon::Stream stream = device.stream();
  const auto advance = [&](int steps) {
    for (int i = 0; i < steps; ++i) {
      step.run_async(inputs, outputs, stream);
      std::swap(inputs[0], outputs[0]);
    }
    stream.wait();
  };
  advance(1);
  const long before = allocations;
  advance(kSteps - 1);
  const long in_loop = allocations - before;
  std::printf("allocations in %d steps: %ld\n", kSteps - 1, in_loop);

  std::vector<double> now(kSize * kSize), next(kSize * kSize);
  for (int i = 0; i < kSteps; ++i) {
    const auto at = [&](std::int64_t row, std::int64_t column) {
      const bool outside = row < 0 || column < 0 || row >= kSize || column >= kSize;
      return outside ? 0 : now[static_cast<std::size_t>(row * kSize + column)];
    };
    for (std::int64_t row = 0; row < kSize; ++row)
      for (std::int64_t column = 0; column < kSize; ++column)
        next[static_cast<std::size_t>(row * kSize + column)] =
            0.25 * (at(row - 1, column) + at(row + 1, column) + at(row, column - 1) + at(row, column + 1)) +
            (row == kSize / 2 && column == kSize / 2 ? 1 : 0);
    std::swap(now, next);
  }
  return close("temperature", (kSteps % 2 == 1 ? b : a).to_host().to_doubles(), now, 1e-4) && in_loop == 0 ? 0 : 1;
}

// Lesson 13: weights are given once. A model's arrays lie in a file, which is mapped; bound to the executable by their
// names they are read where they lie, what depends on them alone is computed once, and a run takes the rest.
#include <cstdio>

#include "allocations.h"
#include "check.h"
#include "tenon/tenon.h"

namespace {

constexpr std::int64_t kWidth = 64, kRows = 8;
constexpr const char* kFile = "tenon_example_weights.safetensors";

// A linear layer and a batch norm with the statistics of training.
tenon::Graph layer() {
  using tenon::DType;
  tenon::Graph g("layer");
  const tenon::Tensor x = g.input("x", DType::f32, {g.dim("rows"), kWidth});
  const auto vector = [&](const char* name) { return g.input(name, DType::f32, {kWidth}); };
  const tenon::Tensor w = g.input("fc_weight", DType::f32, {kWidth, kWidth}), b = vector("fc_bias");
  const tenon::Tensor mean = vector("norm_running_mean"), variance = vector("norm_running_var");
  const tenon::Tensor scale = vector("norm_weight") * rsqrt(variance + 1e-5);
  g.output("y", (linear(x, w, b) - mean) * scale + vector("norm_bias"));
  return g;
}

tenon::Weights trained() {
  const auto normal = [](std::int64_t seed) { return tenon::Array::normal({kWidth}, seed); };
  tenon::Array variance = normal(5);
  for (float& value : variance.data<float>()) value = 1 + value * value;
  return {{"fc.weight", tenon::Array::normal({kWidth, kWidth}, 1)},
          {"fc.bias", normal(2)},
          {"norm.weight", normal(3)},
          {"norm.bias", normal(4)},
          {"norm.running_var", variance},
          {"norm.running_mean", normal(6)},
          {"norm.num_batches_tracked", tenon::Array::from(std::vector<std::int64_t>{1000}, {})}};
}

std::vector<double> layer_loop(const tenon::Array& x, const tenon::Weights& weights) {
  const auto values = [&](const char* name) { return weights[name].array().to_doubles(); };
  const std::vector<double> in = x.to_doubles(), w = values("fc.weight"), b = values("fc.bias"),
                            scale = values("norm.weight"), shift = values("norm.bias"),
                            variance = values("norm.running_var"), mean = values("norm.running_mean");
  std::vector<double> y;
  for (std::size_t row = 0; row < kRows; ++row)
    for (std::size_t column = 0; column < kWidth; ++column) {
      double sum = b[column] - mean[column];
      for (std::size_t i = 0; i < kWidth; ++i) sum += in[row * kWidth + i] * w[column * kWidth + i];
      y.push_back(sum * scale[column] / std::sqrt(variance[column] + 1e-5) + shift[column]);
    }
  return y;
}

}  // namespace

int main() {
  save_safetensors(kFile, trained());
  const tenon::Weights weights = tenon::load_safetensors(kFile);
  std::remove(kFile);  // what is mapped stays

  const tenon::Executable run = tenon::compile(layer(), "cpu").bind(weights);
  std::puts(run.explain().c_str());  // what was computed once: the scale

  tenon::Array x = tenon::Array::normal({kRows, kWidth}, 7), y = tenon::Array::zeros({kRows, kWidth});
  const tenon::Buffer inputs[] = {buffer_of(x)}, outputs[] = {buffer_of(y)};
  run.run(inputs, outputs);
  const long before = allocations;
  for (int step = 0; step < 10; ++step) run.run(inputs, outputs);
  const long in_loop = allocations - before;
  std::printf("allocations in 10 runs: %ld\n", in_loop);
  const bool right = close("y", y.to_doubles(), layer_loop(x, weights), 1e-4);
  return right && in_loop == 0 ? 0 : 1;
}

// Lesson 3: narrow types. Tensors of bf16 are read and written as bf16, but computed in f32: rounding happens where a
// value is stored, not at every operator.
#include "check.h"
#include "tenon/tenon.h"

int main() {
  constexpr std::int64_t kRows = 50, kWidth = 768;
  tenon::Graph g("layer_norm");
  const tenon::Tensor x = g.input("x", tenon::DType::bf16, {kRows, kWidth});
  const tenon::Tensor residual = g.input("residual", tenon::DType::bf16, {kRows, kWidth});
  const tenon::Tensor weight = g.input("weight", tenon::DType::bf16, {kWidth});
  const tenon::Tensor bias = g.input("bias", tenon::DType::bf16, {kWidth});
  // Two results from one pass: the sum is needed again further down a network.
  const tenon::Tensor sum = (x + residual).named("sum");
  g.output("y", layer_norm(sum, weight, bias));
  g.output("sum", sum);

  const tenon::Executable run = tenon::compile(g);
  const auto random = [](std::vector<std::int64_t> shape, std::int64_t seed) {
    return tenon::Array::normal(std::move(shape), seed, tenon::DType::bf16);
  };
  const std::vector<tenon::Array> inputs{random({kRows, kWidth}, 1), random({kRows, kWidth}, 2), random({kWidth}, 3),
                                         random({kWidth}, 4)};
  const std::vector<tenon::Array> results = run(inputs);

  const auto a = inputs[0].to_doubles(), b = inputs[1].to_doubles(), w = inputs[2].to_doubles(),
             c = inputs[3].to_doubles();
  std::vector<double> expected_sum, expected;
  for (std::size_t i = 0; i < a.size(); ++i) expected_sum.push_back(a[i] + b[i]);
  for (std::int64_t row = 0; row < kRows; ++row) {
    const double* v = expected_sum.data() + row * kWidth;
    double mean = 0, variance = 0;
    for (std::int64_t i = 0; i < kWidth; ++i) mean += v[i] / kWidth;
    for (std::int64_t i = 0; i < kWidth; ++i) variance += (v[i] - mean) * (v[i] - mean) / kWidth;
    for (std::int64_t i = 0; i < kWidth; ++i) {
      const auto at = static_cast<std::size_t>(i);
      expected.push_back((v[i] - mean) / std::sqrt(variance + 1e-5) * w[at] + c[at]);
    }
  }
  const bool right = close("layer_norm", results[0].to_doubles(), expected, 0.02) &&  // bf16 has 8 significant bits
                     close("sum", results[1].to_doubles(), expected_sum, 0.004);
  return right ? 0 : 1;
}

// Lesson 6: one compile serves every batch size. A dimension may be a symbol; kernels take its value as an argument and
// are compiled once for each class of values (1, odd, even, a multiple of 4, 8 or 16), not for each value.
#include "check.h"
#include "tenon/tenon.h"

int main() {
  constexpr std::int64_t kWidth = 256;
  tenon::Graph g("rms_norm");
  const tenon::Dim rows = g.dim("rows", {.min = 1, .max = 65536});
  const tenon::Tensor x = g.input("x", tenon::DType::f32, {rows, kWidth});
  const tenon::Tensor weight = g.input("weight", tenon::DType::f32, {kWidth});
  g.output("y", rms_norm(x, weight));

  const tenon::Executable run = tenon::compile(g);
  const tenon::Array w = tenon::Array::normal({kWidth}, 1);
  const std::vector<double> ws = w.to_doubles();
  bool right = true;
  for (std::int64_t batch : {1, 7, 64, 1000, 7, 64}) {
    const tenon::Array input = tenon::Array::normal({batch, kWidth}, batch);
    const std::vector<float> y = run({input, w})[0].to<float>();

    const std::vector<double> values = input.to_doubles();
    std::vector<double> expected;
    for (std::int64_t row = 0; row < batch; ++row) {
      const double* v = values.data() + row * kWidth;
      double squares = 0;
      for (std::int64_t i = 0; i < kWidth; ++i) squares += v[i] * v[i];
      for (std::int64_t i = 0; i < kWidth; ++i)
        expected.push_back(v[i] / std::sqrt(squares / kWidth + 1e-6) * ws[static_cast<std::size_t>(i)]);
    }
    right = close(("batch " + std::to_string(batch)).c_str(), y, expected, 1e-5) && right;
    const tenon::ExecutableStats stats = run.stats();
    std::printf("  %d kernels in the plan, %d classes met, %d built, %d of them compiled\n", stats.kernels,
                stats.specializations, stats.builds, stats.compiles);
  }
  const tenon::ExecutableStats stats = run.stats();
  return right && stats.specializations == 4 && stats.builds == 4 * stats.kernels ? 0 : 1;
}

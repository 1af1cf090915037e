// Lesson 2: a reduction and what stands around it. Softmax reduces each row twice, maximum and sum, and still is one
// kernel: the row is read once and stays in registers.
#include "check.h"
#include "tenon/tenon.h"

int main() {
  constexpr std::int64_t kRows = 64, kColumns = 1000;
  tenon::Graph g("softmax");
  const tenon::Tensor x = g.input("x", tenon::DType::f32, {kRows, kColumns});
  // softmax(x) does the same; written out, it is found to be one kernel all the same.
  const tenon::Tensor weight = exp(x - max(x, -1, /*keepdims=*/true)).named("weight");
  g.output("y", weight / sum(weight, -1, true));

  const tenon::Executable run = tenon::compile(g);
  std::puts(run.plan().c_str());  // how the graph was cut into kernels
  const tenon::Array input = tenon::Array::normal({kRows, kColumns}, 2);
  const std::vector<float> y = run({input})[0].to<float>();

  const std::vector<double> values = input.to_doubles();
  std::vector<double> expected;
  for (std::int64_t row = 0; row < kRows; ++row) {
    const double* v = values.data() + row * kColumns;
    double total = 0;
    for (std::int64_t i = 0; i < kColumns; ++i) total += std::exp(v[i]);
    for (std::int64_t i = 0; i < kColumns; ++i) expected.push_back(std::exp(v[i]) / total);
  }
  return close("softmax", y, expected, 1e-6) && run.stats().kernels == 1 ? 0 : 1;
}

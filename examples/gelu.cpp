// Lesson 1: a chain of elementwise operators becomes one kernel: one read of x, one write of y, whatever its length.
#include "check.h"
#include "tenon/tenon.h"

int main() {
  // A graph is recorded by calling operators on tensors. Numbers take the dtype of the tensor beside them.
  tenon::Graph g("gelu");
  const tenon::Tensor x = g.input("x", tenon::DType::f32, {1000, 37});
  const tenon::Tensor inner = 0.7978845608028654 * (x + 0.044715 * x * x * x);
  g.output("y", 0.5 * x * (1 + tanh(inner)));
  std::puts(g.str().c_str());

  // "auto" takes a GPU where there is one, else the CPU.
  const tenon::Executable run = tenon::compile(g, "auto");
  std::printf("%d kernel on %s\n", run.stats().kernels, run.target().c_str());

  // Host arrays in, host arrays out. Programs that care for speed call run() on their own buffers (lesson 6).
  const tenon::Array input = tenon::Array::normal({1000, 37}, 1);
  const std::vector<float> y = run({input})[0].to<float>();

  std::vector<double> expected;
  for (double v : input.to_doubles())
    expected.push_back(0.5 * v * (1 + std::tanh(0.7978845608028654 * (v + 0.044715 * v * v * v))));
  return close("gelu", y, expected, 1e-5) && run.stats().kernels == 1 ? 0 : 1;
}

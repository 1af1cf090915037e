// Lesson 7: everything that is generated can be seen: the plan, why operators were not fused, and each kernel with its
// source, machine code, resources and launch. `tenon dump` and `tenon explain` show the same of a graph file.
#include <cstdio>

#include "tenon/tenon.h"

int main() {
  tenon::Graph g("scores");
  const tenon::Dim rows = g.dim("rows", {.min = 1});
  const tenon::Tensor x = g.input("x", tenon::DType::f32, {rows, 512});
  const tenon::Tensor w = g.input("w", tenon::DType::f32, {512, 128});
  g.output("y", log_softmax(matmul(x, w)));

  const tenon::Executable run = tenon::compile(g);
  std::printf("%s\n%s\n", run.plan().c_str(), run.explain().c_str());

  const std::vector<tenon::KernelInfo> kernels = run.kernels({{"rows", 1000}});
  for (const tenon::KernelInfo& kernel : kernels) {
    std::printf("== %s: %s, %s\n", kernel.name.c_str(), kernel.kernel_class.c_str(), kernel.schedule.c_str());
    std::printf("%s\nmoves at least %lld bytes; %zu bytes of machine code\n", kernel.launch.c_str(),
                static_cast<long long>(kernel.bytes), kernel.binary.size());
    std::printf("%s\n", kernel.source.substr(0, 2000).c_str());
  }
  bool complete = kernels.size() == static_cast<std::size_t>(run.stats().kernels) && !kernels.empty();
  for (const tenon::KernelInfo& kernel : kernels)
    complete = complete && !kernel.source.empty() && !kernel.binary.empty() && kernel.bytes > 0;
  return complete ? 0 : 1;
}

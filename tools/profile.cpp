// Memory for the run, a copy to compare with, and where the results go.
#include "tools/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "runtime/executable.h"
#include "runtime/memory.h"
#include "tools/command.h"

namespace tenon::tools {
namespace {

using runtime::Memory;

std::int64_t bytes_of(DType dtype, const std::vector<std::int64_t>& shape) {
  std::int64_t bytes = size_of(dtype);
  for (const std::int64_t extent : shape) bytes *= extent;
  return bytes;
}

// GB/s of the fastest of a few copies within the target, bytes read and written together.
double copy_gbps(const runtime::Backend& backend) {
  constexpr std::int64_t kBytes = std::int64_t{64} << 20;
  const Memory from = allocate(backend, kBytes), to = allocate(backend, kBytes);
  double fastest = 1e9;
  for (int i = 0; i < 8; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    backend.copy(to.get(), from.get(), kBytes, nullptr);
    backend.synchronize(nullptr);
    fastest = std::min(fastest, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return 2.0 * kBytes / fastest / 1e9;
}

}  // namespace

std::vector<runtime::KernelTimes> time_kernels(const Executable& executable, const std::vector<ir::HostArray>& inputs,
                                               const Bindings& bindings, double seconds) {
  const runtime::Backend& backend = *executable.impl().backend;
  const ir::Graph& graph = executable.impl().plan.graph;
  std::vector<Memory> memory;
  std::vector<Buffer> from, to;
  const auto add = [&](std::vector<Buffer>& buffers, DType dtype, const std::vector<std::int64_t>& shape) {
    memory.push_back(allocate(backend, bytes_of(dtype, shape)));
    buffers.push_back({memory.back().get(), dtype, shape});
  };
  std::vector<std::vector<std::int64_t>> shapes;
  for (const ir::HostArray& input : inputs) {
    shapes.push_back(input.shape);
    add(from, input.dtype, input.shape);
    backend.copy_in(from.back().data, input.bytes.data(), input.bytes.size(), nullptr);
  }
  const auto output_shapes = executable.output_shapes(shapes, bindings);
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) add(to, graph.type(graph.outputs[i]).dtype, output_shapes[i]);
  backend.synchronize(nullptr);
  return runtime::profile(executable, from, to, bindings, seconds);
}

void profile(const Executable& executable, const std::vector<ir::HostArray>& inputs, const Bindings& bindings,
             const ProfileArguments& arguments) {
  const auto kernels = time_kernels(executable, inputs, bindings, arguments.seconds);
  if (arguments.table) fmt::print("{}", runtime::profile_table(kernels, copy_gbps(*executable.impl().backend)));
  if (!arguments.trace.empty()) write_output(arguments.trace, runtime::chrome_trace(kernels, executable.target()));
}

}  // namespace tenon::tools

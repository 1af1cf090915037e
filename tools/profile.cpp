// Memory for the run, and the device's peak rates.
#include "tools/profile.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/executable.h"
#include "runtime/memory.h"
#include "tools/copy.h"

namespace tenon::tools {
namespace {

using runtime::Memory;

std::int64_t bytes_of(DType dtype, const std::vector<std::int64_t>& shape) {
  std::int64_t bytes = size_of(dtype);
  for (const std::int64_t extent : shape) bytes *= extent;
  return bytes;
}

// Enough to write over what the last-level cache holds.
std::int64_t flush_bytes(const codegen::Target& target) {
  constexpr std::int64_t kMost = std::int64_t{256} << 20;
  return target.kind == codegen::TargetKind::cpu ? std::min(2 * target.l3_bytes, kMost) : kMost;
}

// The rates of arithmetic that were kept for the device, or those that are assumed.
ir::CostModel peaks(const Executable::Impl& executable) {
  const runtime::Backend& backend = *executable.backend;
  ir::CostModel cost = executable.plan.cost;
  if (cost.device == backend.device_name()) return cost;
  cost.device += ", assumed (tenon calibrate measures)";
  return cost;
}

}  // namespace

runtime::Timings time_kernels(const Executable& executable, const std::vector<ir::HostArray>& inputs,
                              const Bindings& bindings, double seconds,
                              const std::vector<std::function<void()>>& beside) {
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
  for (const std::size_t output : ir::own_outputs(graph))
    add(to, graph.type(graph.outputs[output]).dtype, output_shapes[to.size()]);
  backend.synchronize(nullptr);
  return runtime::profile(executable, from, to, bindings, seconds, flush_bytes(backend.target()), beside);
}

runtime::Profile profile(const Executable& executable, const std::vector<ir::HostArray>& inputs,
                         const Bindings& bindings, const Options& options) {
  constexpr double kSeconds = 0.2;  // for each kernel
  constexpr std::int64_t kBytes = std::int64_t{256} << 20;
  const Executable::Impl& impl = executable.impl();
  const Copy copy(kBytes, impl.backend, options);
  runtime::Timings timings = time_kernels(executable, inputs, bindings, kSeconds, copy.works());
  ir::CostModel roof = peaks(impl);
  roof.bandwidth_gb_s = kBytes / CopyTimes(timings.beside).faster.median / 1e6;
  return runtime::describe(impl.plan, std::move(timings.kernels), roof,
                           fmt::format("{} ({})", executable.target(), impl.backend->device_name()));
}

}  // namespace tenon::tools

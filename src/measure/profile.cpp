// Memory for the run, and the device's peak rates.
#include "src/measure/profile.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/executable.h"
#include "runtime/memory.h"
#include "src/measure/copy.h"

namespace tenon::src {
namespace {

using runtime::Memory;

std::int64_t bytes_of(DType dtype, const std::vector<std::int64_t>& shape) {
  std::int64_t bytes = size_of(dtype);
  for (const std::int64_t extent : shape) bytes *= extent;
  return bytes;
}

// The rates of arithmetic that were kept for the device, or those that are assumed.
ir::CostModel peaks(const Executable::Impl& executable) {
  const runtime::Backend& backend = *executable.backend;
  ir::CostModel cost = executable.plan.cost;
  if (cost.device == backend.device_name()) return cost;
  cost.device += ", assumed (tenon calibrate measures)";
  return cost;
}

// A graph's inputs in the target's memory, and memory for its results.
struct OnTarget {
  OnTarget(const Executable& executable, const std::vector<ir::HostArray>& arrays, const Bindings& bindings)
      : backend(*executable.impl().backend) {
    const ir::Graph& graph = executable.impl().plan.graph;
    std::vector<std::vector<std::int64_t>> shapes;
    for (const ir::HostArray& array : arrays) {
      shapes.push_back(array.shape);
      add(inputs, array.dtype, array.shape);
      backend.copy_in(inputs.back().data, array.bytes.data(), array.bytes.size(), nullptr);
    }
    const auto output_shapes = executable.output_shapes(shapes, bindings);
    for (const std::size_t output : ir::own_outputs(graph))
      add(outputs, graph.type(graph.outputs[output]).dtype, output_shapes[outputs.size()]);
    backend.synchronize(nullptr);
  }

  const runtime::Backend& backend;
  std::vector<Buffer> inputs, outputs;

 private:
  void add(std::vector<Buffer>& buffers, DType dtype, const std::vector<std::int64_t>& shape) {
    memory_.push_back(allocate(backend, bytes_of(dtype, shape)));
    buffers.push_back({memory_.back().get(), dtype, shape});
  }

  std::vector<Memory> memory_;
};

}  // namespace

std::int64_t flush_bytes(const codegen::Target& target) {
  constexpr std::int64_t kMost = std::int64_t{256} << 20;
  return target.kind == codegen::TargetKind::cpu ? std::min(2 * target.l3_bytes, kMost) : kMost;
}

runtime::Timings time_kernels(const Executable& executable, const std::vector<ir::HostArray>& inputs,
                              const Bindings& bindings, double seconds) {
  const OnTarget there(executable, inputs, bindings);
  return runtime::profile(executable, there.inputs, there.outputs, bindings, seconds,
                          flush_bytes(there.backend.target()));
}

runtime::Profile profile(const Executable& executable, std::span<const Buffer> inputs, std::span<const Buffer> outputs,
                         const Bindings& bindings, const ProfileSettings& settings, const Options& options) {
  constexpr std::int64_t kBytes = std::int64_t{256} << 20;
  const Executable::Impl& impl = executable.impl();
  const Copy copy(kBytes, impl.backend, options);
  runtime::Timings timings =
      runtime::profile(executable, inputs, outputs, bindings, settings.seconds, settings.flush_bytes, copy.works());
  ir::CostModel roof = peaks(impl);
  roof.bandwidth_gb_s = kBytes / CopyTimes(timings.beside).faster.median / 1e6;
  return runtime::describe(impl.plan, std::move(timings.kernels), roof,
                           fmt::format("{} ({})", executable.target(), impl.backend->device_name()));
}

runtime::Profile profile(const Executable& executable, const std::vector<ir::HostArray>& inputs,
                         const Bindings& bindings, const Options& options) {
  const OnTarget there(executable, inputs, bindings);
  return profile(executable, there.inputs, there.outputs, bindings,
                 {.flush_bytes = flush_bytes(there.backend.target())}, options);
}

}  // namespace tenon::src

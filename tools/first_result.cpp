// See first_result.h.
#include "tools/first_result.h"

#include <chrono>
#include <vector>

#include "src/driver/pipeline.h"
#include "tools/bench_data.h"

namespace tenon::tools {
namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

// Memory for `values`, zeros.
std::vector<Buffer> zeros(const ir::Graph& graph, const std::vector<ir::ValueId>& values, const Bindings& bindings,
                          const runtime::Backend& backend, std::vector<Memory>& memory) {
  std::vector<Buffer> buffers;
  for (const ir::ValueId value : values) {
    Buffer buffer{nullptr, graph.type(value).dtype, {}};
    for (const Dim& extent : graph.type(value).shape) buffer.shape.push_back(extent.evaluate(bindings));
    memory.push_back(allocate(backend, bytes_of(buffer)));
    buffer.data = memory.back().get();
    backend.fill(buffer.data, 0, static_cast<std::size_t>(bytes_of(buffer)), nullptr);
    buffers.push_back(std::move(buffer));
  }
  return buffers;
}

}  // namespace

FirstResult first_result(const ir::Graph& graph, const Bindings& bindings, const std::string& target,
                         const Options& options) {
  FirstResult result;
  auto begin = Clock::now();
  const auto backend = src::open_backend(target, options);
  result.device_ms = ms_since(begin);
  std::vector<Memory> memory;
  const std::vector<Buffer> inputs = zeros(graph, graph.inputs, bindings, *backend, memory);
  std::vector<ir::ValueId> own;
  for (const std::size_t output : own_outputs(graph)) own.push_back(graph.outputs[output]);
  const std::vector<Buffer> outputs = zeros(graph, own, bindings, *backend, memory);
  backend->synchronize(nullptr);
  begin = Clock::now();
  const Executable executable = src::make_executable(src::plan(graph, *backend, options), backend, options);
  executable.run(inputs, outputs, bindings);
  result.first_ms = ms_since(begin);
  result.kernels = executable.stats().kernels;
  result.compiles = executable.stats().compiles;
  return result;
}

}  // namespace tenon::tools

// Compile, fill, run once on poisoned outputs, then measure. Fused and unfused plans get the same data.
#include "tools/bench_case.h"

#include <chrono>

#include "ir/interpret.h"
#include "ir/text.h"
#include "src/pipeline.h"
#include "tools/bench_data.h"
#include "tools/work.h"

namespace tenon::tools {
namespace {

using BackendPointer = std::shared_ptr<const runtime::Backend>;

Executable prepared(const ir::Graph& graph, const Bindings& bindings, const BackendPointer& backend,
                    const Options& options) {
  Executable executable = src::make_executable(src::plan(graph, *backend, options), backend, options);
  executable.prepare(bindings);
  return executable;
}

// The driver's copy, and a kernel that reads and writes as much: whichever is faster is what the memory can do.
void measure_copy(BenchResult& result, const BackendPointer& backend, const Options& options, const Stopwatch& time) {
  const std::int64_t words = result.bytes / 2 / 4;
  if (words == 0) return;
  const Memory from = allocate(*backend, words * 4), to = allocate(*backend, words * 4);
  backend->fill(from.get(), 1, static_cast<std::size_t>(words * 4), nullptr);
  result.copy = time([&] { backend->copy(to.get(), from.get(), static_cast<std::size_t>(words * 4), nullptr); });
  const ir::Graph invert = ir::parse("graph invert(x: i32[n]) {\n  y = bitwise_not(x)\n  return y\n}\n");
  const Executable kernel = prepared(invert, {{"n", words}}, backend, options);
  const Buffer in{from.get(), DType::i32, {words}}, out{to.get(), DType::i32, {words}};
  const Times by_kernel = time([&] { kernel.run_async({&in, 1}, {&out, 1}, nullptr, {{"n", words}}); });
  result.copied_by_kernel = by_kernel.median < result.copy.median;
  if (result.copied_by_kernel) result.copy = by_kernel;
}

std::vector<ir::HostArray> on_host(const runtime::Backend& backend, const std::vector<Buffer>& buffers) {
  std::vector<ir::HostArray> arrays;
  for (const Buffer& buffer : buffers) {
    arrays.push_back(ir::make_array(buffer.dtype, buffer.shape));
    backend.copy_out(arrays.back().bytes.data(), buffer.data, arrays.back().bytes.size(), nullptr);
  }
  backend.synchronize(nullptr);
  return arrays;
}

bool as_interpreted(const ir::Graph& graph, const Bindings& bindings, const runtime::Backend& backend,
                    const BenchData& data) {
  for (const ir::Comparison& comparison :
       ir::compare_with_interpreter(graph, on_host(backend, data.inputs), on_host(backend, data.outputs), bindings))
    if (!comparison.equal) return false;
  return true;
}

}  // namespace

BenchResult bench_case(const ir::Graph& graph, const Bindings& bindings, const BackendPointer& backend,
                       const Options& options, const BenchSettings& settings) {
  BenchResult result;
  result.graph = graph.name;
  result.bytes = unavoidable_bytes(graph, bindings);
  result.flops = contraction_flops(graph, bindings);
  const BenchData data = random_data(graph, bindings, backend, options);
  const auto begin = std::chrono::steady_clock::now();
  const Executable fused = prepared(graph, bindings, backend, options);
  result.build_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  result.kernels = fused.stats().kernels;
  result.compiles = fused.stats().compiles;
  const auto run = [&](const Executable& executable) {
    executable.run_async(data.inputs, data.outputs, nullptr, bindings);
  };
  result.unwritten = unwritten_elements(*backend, data.outputs, [&] { run(fused); });
  if (settings.check) {
    result.checked = true;
    result.equal = as_interpreted(graph, bindings, *backend, data);
  }
  if (!settings.save.empty()) save_data(*backend, data, settings.save, graph.name);
  const Stopwatch time(*backend, settings.seconds, settings.flush_bytes);
  result.times = time([&] { run(fused); });
  if (settings.unfused) {
    Options apart = options;
    apart.fuse = false;
    const Executable unfused = prepared(graph, bindings, backend, apart);
    result.unfused_kernels = unfused.stats().kernels;
    result.unfused = time([&] { run(unfused); });
  }
  measure_copy(result, backend, options, time);
  return result;
}

}  // namespace tenon::tools

// Compile, fill, run once on poisoned outputs, then measure. Fused and unfused plans get the same data.
#include "tools/bench_case.h"

#include <chrono>

#include "ir/interpret/interpret.h"
#include "src/driver/pipeline.h"
#include "src/measure/copy.h"
#include "src/measure/work.h"
#include "tools/bench_data.h"

namespace tenon::tools {
namespace {

using BackendPointer = std::shared_ptr<const runtime::Backend>;

Executable prepared(const ir::Graph& graph, const Bindings& bindings, const BackendPointer& backend,
                    const Options& options) {
  Executable executable = src::make_executable(src::plan(graph, *backend, options), backend, options);
  executable.prepare(bindings);
  return executable;
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

// A run compared with the interpreter. Results that update inputs are where these were.
void check(BenchResult& result, const ir::Graph& graph, const Bindings& bindings, const runtime::Backend& backend,
           const BenchData& data, const std::function<void()>& run) {
  result.checked = true;
  const std::vector<ir::HostArray> inputs = on_host(backend, data.inputs);
  run();
  std::vector<Buffer> outputs;
  auto own = data.outputs.begin();
  for (const int updated : graph.updates)
    outputs.push_back(updated < 0 ? *own++ : data.inputs[static_cast<std::size_t>(updated)]);
  for (const ir::Comparison& comparison :
       ir::compare_with_interpreter(graph, inputs, on_host(backend, outputs), bindings)) {
    result.equal = result.equal && comparison.equal;
    result.undecided += comparison.undecided;
    result.elements += comparison.elements;
  }
}

// What the planner counts of the plan that is measured.
void count_instructions(BenchResult& result, const ir::Graph& graph, const Bindings& bindings,
                        const BackendPointer& backend, Options options) {
  options.typical = bindings;
  const ir::Plan plan = src::plan(graph, *backend, options);
  for (const ir::Group& group : plan.groups) result.instructions += group.estimate.slots;
  result.gigaslots_s = plan.cost.gigaslots_s;
}

}  // namespace

BenchResult bench_case(const ir::Graph& graph, const Bindings& bindings, const BackendPointer& backend,
                       const Options& options, const BenchSettings& settings,
                       const std::function<void(const char*)>& say) {
  BenchResult result;
  result.graph = graph.name;
  result.bytes = src::unavoidable_bytes(graph, bindings);
  result.flops = src::contraction_flops(graph, bindings);
  say("building");
  count_instructions(result, graph, bindings, backend, options);
  const BenchData data = random_data(graph, bindings, backend, options);
  const auto begin = std::chrono::steady_clock::now();
  const Executable fused = prepared(graph, bindings, backend, options);
  result.build_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  result.kernels = fused.stats().kernels;
  result.compiles = fused.stats().compiles;
  const auto run = [&](const Executable& executable) {
    executable.run_async(data.inputs, data.outputs, nullptr, bindings);
  };
  if (settings.check) say("checking");
  if (settings.check) check(result, graph, bindings, *backend, data, [&] { run(fused); });
  say("timing");
  result.unwritten = unwritten_elements(*backend, data.outputs, [&] { run(fused); });
  if (!settings.save.empty()) save_data(*backend, data, settings.save, graph.name);
  const Stopwatch time(*backend, settings.seconds, settings.flush_bytes);
  const src::Copy copy(result.bytes, backend, options);
  std::vector<std::function<void()>> works = copy.works();
  works.push_back([&] { run(fused); });
  const std::vector<Times> times = time.taking_turns(works);
  const src::CopyTimes copied{std::span(times).first(2)};
  result.times = times[2];
  result.copied_by_kernel = copied.by_kernel;
  result.copy = copied.faster;
  if (settings.unfused) {
    say("building without fusion");
    Options apart = options;
    apart.fuse = false;
    const Executable unfused = prepared(graph, bindings, backend, apart);
    result.unfused_kernels = unfused.stats().kernels;
    say("timing without fusion");
    result.unfused = time([&] { run(unfused); });
  }
  return result;
}

}  // namespace tenon::tools

// Measuring from a program: whole runs, kernels, and what values are like.
#include "tenon/measure.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/executable.h"
#include "src/api/open_device.h"
#include "src/measure/copy.h"
#include "src/measure/observe.h"
#include "src/measure/profile.h"
#include "src/measure/work.h"

namespace tenon {
namespace {

// What runs work on: the caller's inputs but for those that the graph updates, which are copied, and results.
struct Operands {
  std::vector<DeviceArray> own;
  std::vector<Buffer> inputs, outputs;
  Bindings bindings;
};

Operands operands_of(const Executable& executable, const DeviceArrayRefs& inputs, const Bindings& bindings) {
  const Executable::Impl& impl = executable.impl();
  const ir::Graph& graph = impl.plan.graph;
  src::check_inputs(impl, inputs);
  Operands operands;
  operands.inputs = buffers_of(inputs);
  for (const int updated : graph.updates)
    if (updated >= 0) {
      const auto input = static_cast<std::size_t>(updated);
      operands.own.push_back(inputs[input].clone());
      operands.inputs[input] = operands.own.back().buffer();
    }
  std::vector<std::vector<std::int64_t>> shapes;
  for (std::size_t i = 0; i < inputs.size(); ++i) shapes.push_back(inputs[i].shape());
  operands.bindings = ir::bind_symbols(graph, impl.with_bound(shapes), bindings);
  const Device device = src::device_of(impl);
  const auto output_shapes = executable.output_shapes(shapes, bindings);
  for (std::size_t i = 0; i < output_shapes.size(); ++i) {
    operands.own.push_back(device.empty(output_shapes[i], graph.type(graph.outputs[impl.own_outputs[i]]).dtype));
    operands.outputs.push_back(operands.own.back().buffer());
  }
  return operands;
}

std::int64_t flush_bytes(const MeasureOptions& options, const codegen::Target& target) {
  return options.flush ? src::flush_bytes(target) : 0;
}

}  // namespace

Benchmark benchmark(const Executable& executable, const DeviceArrayRefs& inputs, const MeasureOptions& options,
                    const Bindings& bindings) {
  const Executable::Impl& impl = executable.impl();
  const Operands operands = operands_of(executable, inputs, bindings);
  Benchmark result;
  result.bytes = src::unavoidable_bytes(impl.plan.graph, operands.bindings);
  result.flops = src::contraction_flops(impl.plan.graph, operands.bindings);
  result.kernels = executable.stats().kernels;
  const src::Copy copy(result.bytes, impl.backend, default_options());
  std::vector<std::function<void()>> works = copy.works();
  works.push_back([&] { executable.run_async(operands.inputs, operands.outputs, nullptr, bindings); });
  const runtime::Stopwatch watch(*impl.backend, options.seconds, flush_bytes(options, impl.backend->target()));
  const std::vector<Times> times = watch.taking_turns(works);
  result.copy = src::CopyTimes(std::span(times).first(2)).faster;
  result.run = times[2];
  return result;
}

Profile profile(const Executable& executable, const DeviceArrayRefs& inputs, const MeasureOptions& options,
                const Bindings& bindings) {
  const Executable::Impl& impl = executable.impl();
  const Operands operands = operands_of(executable, inputs, bindings);
  const runtime::Profile measured =
      src::profile(executable, operands.inputs, operands.outputs, bindings,
                   {options.seconds, flush_bytes(options, impl.backend->target())}, default_options());
  Profile result;
  result.device = measured.device;
  result.copy_gb_s = measured.peaks.bandwidth_gb_s;
  for (const runtime::KernelProfile& kernel : measured.kernels) {
    result.run_ms = (kernel.kernel.begin_us + kernel.kernel.duration_us) / 1e3;
    result.kernels.push_back({kernel.kernel.name, kernel.kernel_class, kernel.operators, kernel.reads, kernel.writes,
                              kernel.kernel.times, kernel.bytes, kernel.roof.us() / 1e3, kernel.roof.bound()});
  }
  result.table = profile_table(measured);
  result.trace = chrome_trace(measured);
  return result;
}

std::vector<ValueSummary> summarize_values(const Graph& graph, const ArrayRefs& inputs,
                                           const std::vector<std::string>& names, const std::string& target,
                                           const Options& options) {
  const src::Observed observed = src::observe(graph.data(), names.empty() ? std::vector<std::string>{"all"} : names);
  const std::vector<Array> results = compile(Graph(observed.graph), target, options)(inputs);
  return src::summaries_of(observed, inputs, results);
}

std::string str(const std::vector<ValueSummary>& values) {
  if (values.empty()) return "";
  std::string text = fmt::format("{:<20} {:<24} {:>13} {:>13} {:>13} {:>13} {:>9} {:>9} {:>9}\n", "value", "type",
                                 "min", "max", "mean", "std", "NaN", "Inf", "zeros");
  for (const ValueSummary& value : values) {
    const Summary& s = value.summary;
    text += fmt::format("{:<20} {:<24} {:>13.6g} {:>13.6g} {:>13.6g} {:>13.6g} {:>9} {:>9} {:>9}\n", value.name,
                        fmt::format("{}[{}]", name_of(value.dtype), fmt::join(value.shape, ", ")), s.min, s.max, s.mean,
                        s.standard_deviation, s.nans, s.infinities, s.zeros);
  }
  return text;
}

}  // namespace tenon

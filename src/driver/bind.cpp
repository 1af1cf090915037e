// Names are matched, what depends on bound inputs alone is split off and run, and the rest becomes an executable that
// keeps what it reads of them in memory of its target.
#include "src/driver/bind.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ir/graph/host_memory.h"
#include "ir/graph/sizes.h"
#include "runtime/memory.h"
#include "src/driver/hoist.h"
#include "src/driver/pipeline.h"

namespace tenon::src {
namespace {

// A bound input: an array of the host that may have no memory of the target yet, or a buffer there.
struct Constant {
  const Weights::Entry* entry = nullptr;
  Buffer buffer;
  std::shared_ptr<const void> memory;
};

// The bytes of a shape that was checked where the array was made.
std::int64_t bytes_of(DType dtype, const std::vector<std::int64_t>& shape) {
  return ir::byte_count(dtype, shape).value();
}

// On a CPU an array is read where it lies, if kernels can.
void place(Constant& constant, const runtime::Backend& backend) {
  constexpr std::uintptr_t kAligned = 16;
  if (constant.entry == nullptr) return;
  const auto& [name, view, memory] = *std::exchange(constant.entry, nullptr);
  constant.buffer = {nullptr, view.dtype, view.shape};
  const bool on_host = backend.target().kind == codegen::TargetKind::cpu;
  if (on_host && reinterpret_cast<std::uintptr_t>(view.data) % kAligned == 0) {
    constant.buffer.data = const_cast<std::byte*>(view.data);  // NOLINT(*-const-cast): inputs are not written
    constant.memory = memory;
    return;
  }
  const std::int64_t bytes = bytes_of(view.dtype, view.shape);
  const runtime::Memory copy = runtime::allocate(backend, bytes);
  if (bytes > 0) backend.copy_in(copy.get(), view.data, static_cast<std::size_t>(bytes), nullptr);
  constant.buffer.data = copy.get();
  constant.memory = copy;
}

// Runs what is computed once; behind the constants of the graph that was cut come its results.
void run_once(const ir::SplitGraph& split, std::vector<Constant>& constants,
              const std::shared_ptr<const runtime::Backend>& backend, const Options& options) {
  if (split.once.outputs.empty()) return;
  std::vector<Buffer> inputs, outputs;
  for (const int input : split.once_inputs) {
    place(constants[static_cast<std::size_t>(input)], *backend);
    inputs.push_back(constants[static_cast<std::size_t>(input)].buffer);
  }
  for (const ir::ValueId output : split.once.outputs) {
    Constant& constant = constants.emplace_back();
    const ir::Type& type = split.once.type(output);
    for (const Dim& extent : type.shape) constant.buffer.shape.push_back(extent.evaluate({}));
    constant.buffer.dtype = type.dtype;
    const runtime::Memory memory = runtime::allocate(*backend, bytes_of(type.dtype, constant.buffer.shape));
    constant.buffer.data = memory.get();
    constant.memory = memory;
    outputs.push_back(constant.buffer);
  }
  Options once = options;
  once.replay = once.tune = false;
  const Executable executable = make_executable(plan(split.once, *backend, once), backend, once);
  executable.run(inputs, outputs);
}

void refuse_updates(const ir::Graph& graph, const std::vector<bool>& bound) {
  for (std::size_t i = 0; i < graph.updates.size(); ++i)
    if (const int input = graph.updates[i]; input >= 0 && bound[static_cast<std::size_t>(input)])
      throw Error(ErrorKind::argument,
                  fmt::format("input '{}' cannot be bound: result '{}' updates it in each run",
                              graph.value(graph.inputs[static_cast<std::size_t>(input)]).name, graph.outputs_names[i]),
                  {}, "give it to each call, and leave its name out of what is bound");
}

Executable bind_inputs(const ir::Graph& graph, const std::shared_ptr<const runtime::Backend>& backend,
                       const Options& options, const Executable::Impl& executable,
                       const std::vector<const Weights::Entry*>& found) {
  std::vector<Constant> constants(graph.inputs.size());
  std::vector<bool> bound(graph.inputs.size());
  for (std::size_t i = 0; i < constants.size(); ++i) {
    const std::size_t free = executable.free_inputs();
    if (i < free) constants[i].entry = found[i];
    if (i >= free) constants[i].buffer = executable.bound.buffers[i - free];
    if (i >= free) constants[i].memory = executable.bound.memory[i - free];
    bound[i] = i >= free || found[i] != nullptr;
  }
  refuse_updates(graph, bound);
  Hoisted hoisted = hoist(graph, bound, options, [&](const ir::Graph& each) { return plan(each, *backend, options); });
  for (const ir::SplitGraph& step : hoisted.steps) {
    run_once(step, constants, backend, options);
    std::vector<Constant> next(step.each.inputs.size() - step.each_bound.size());
    for (const int input : step.each_bound) next.push_back(constants[static_cast<std::size_t>(input)]);
    constants = std::move(next);
  }
  runtime::Bound result;
  for (std::size_t i = constants.size() - hoisted.steps.back().each_bound.size(); i < constants.size(); ++i) {
    place(constants[i], *backend);
    result.buffers.push_back(std::move(constants[i].buffer));
    result.memory.push_back(std::move(constants[i].memory));
  }
  backend->synchronize(nullptr);
  result.computed = executable.bound.computed + hoisted.text();
  return make_executable(std::move(hoisted.plan), backend, options, std::move(result),
                         binder(hoisted.graph(), backend, options));
}

// What callers give still.
ir::Graph without_bound(const ir::Graph& graph, const Executable::Impl& executable) {
  ir::Graph free = graph;
  free.inputs.resize(executable.free_inputs());
  return free;
}

}  // namespace

runtime::Binder binder(const ir::Graph& graph, const std::shared_ptr<const runtime::Backend>& backend,
                       const Options& options) {
  return [graph = std::make_shared<const ir::Graph>(graph), backend, options](
             const Executable::Impl& executable, const Weights& weights, const BindOptions& how) {
    const auto found = match_weights(without_bound(*graph, executable), weights, how.strict);
    return ir::with_host_memory(fmt::format("binding '{}'", graph->name),
                                [&] { return bind_inputs(*graph, backend, options, executable, found); });
  };
}

}  // namespace tenon::src

namespace tenon {

Executable Executable::bind(const Weights& weights, const BindOptions& options) const {
  if (!impl_->binder)
    throw Error(ErrorKind::unsupported, "an executable that was made of a plan alone binds no inputs", {},
                "compile the graph");
  return impl_->binder(*impl_, weights, options);
}

}  // namespace tenon

// Running: find the record for the sizes, fill in the pointers, launch. What is new is built on the way.
#include "runtime/executable.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/lower/alike.h"
#include "ir/graph/host_memory.h"
#include "ir/graph/sizes.h"
#include "ir/interpret/interpret.h"
#include "runtime/overlap.h"
#include "runtime/parallel.h"
#include "runtime/record.h"
#include "runtime/small_array.h"

namespace tenon {
namespace runtime {

ArenaPool::~ArenaPool() {
  for (const Arena& arena : arenas_) backend_.release(arena.memory);
}

ArenaPool::Arena* ArenaPool::take(std::int64_t bytes, void* stream) {
  if (bytes == 0) return nullptr;
  const std::lock_guard lock(mutex_);
  for (Arena& arena : arenas_)
    if (!arena.busy && arena.bytes >= bytes && arena.stream == stream) {
      arena.busy = true;
      return &arena;
    }
  std::list<Arena> surplus;
  std::size_t idle = 0;
  for (auto next = arenas_.begin(); next != arenas_.end();) {
    const auto arena = next++;
    if (!arena->busy && (arena->stream == stream || ++idle > kMostIdle)) surplus.splice(surplus.end(), arenas_, arena);
  }
  release(std::move(surplus));
  arenas_.push_back({backend_.allocate(static_cast<std::size_t>(bytes)), bytes, stream, true});
  if (zeroed_) backend_.fill(arenas_.back().memory, 0, static_cast<std::size_t>(bytes), stream);
  return &arenas_.back();
}

void ArenaPool::give_back(Arena* arena) {
  if (arena == nullptr) return;
  const std::lock_guard lock(mutex_);
  arena->busy = false;
  if (&arenas_.front() == arena) return;
  const auto place = std::find_if(arenas_.begin(), arenas_.end(), [&](const Arena& each) { return &each == arena; });
  arenas_.splice(arenas_.begin(), arenas_, place);
}

void ArenaPool::trim() {
  const std::lock_guard lock(mutex_);
  std::list<Arena> idle;
  for (auto next = arenas_.begin(); next != arenas_.end();)
    if (const auto arena = next++; !arena->busy) idle.splice(idle.end(), arenas_, arena);
  release(std::move(idle));
}

std::int64_t ArenaPool::bytes() const {
  const std::lock_guard lock(mutex_);
  std::int64_t bytes = 0;
  for (const Arena& arena : arenas_) bytes += arena.bytes;
  return bytes;
}

// A run that was put on a stream gives its arena back before it ends.
void ArenaPool::release(std::list<Arena> idle) {
  if (!idle.empty()) backend_.drain();
  for (const Arena& arena : idle) backend_.release(arena.memory);
}

namespace {

// The sets of groups that one launch runs: a CPU has no packs.
std::vector<std::vector<int>> sets_of(const ir::Plan& plan, const codegen::Target& target) {
  if (target.kind == codegen::TargetKind::cuda) return ir::launched_together(plan);
  std::vector<std::vector<int>> sets;
  for (int group = 0; group < static_cast<int>(plan.groups.size()); ++group) sets.push_back({group});
  return sets;
}

// The elements of `to` at the places that `some` have in `from`.
std::vector<int> same_places(std::vector<int> some, const std::vector<int>& from, const std::vector<int>& to) {
  for (int& each : some) each = to[static_cast<std::size_t>(std::find(from.begin(), from.end(), each) - from.begin())];
  return some;
}

FunctionCall call_of(const codegen::LaunchRule& rule, const PreparedFunction& prepared, bool early) {
  return {prepared.grid, rule.block, rule.shared_bytes, early, rule.together > 1, prepared.tensor_maps};
}

// Behind the shapes of the buffers may be those of bound inputs, which are always the same.
bool same_shapes(const std::vector<std::vector<std::int64_t>>& shapes, std::span<const Buffer> buffers) {
  return std::equal(buffers.begin(), buffers.end(), shapes.begin(),
                    [](const Buffer& buffer, const auto& shape) { return shape == buffer.shape; });
}

}  // namespace

}  // namespace runtime

Executable::Impl::Impl(ir::Plan the_plan, std::shared_ptr<const runtime::Backend> the_backend,
                       runtime::BuildGroups build, runtime::Bound the_bound)
    : plan(std::move(the_plan)),
      own_outputs(ir::own_outputs(plan.graph)),
      backend(std::move(the_backend)),
      build_groups(std::move(build)),
      bound(std::move(the_bound)),
      arenas(*backend) {}

void* Executable::Impl::resolve(const runtime::PointerSource& source, std::span<const Buffer> inputs,
                                std::span<const Buffer> outputs, const runtime::Workspace& workspace) const {
  using Kind = runtime::PointerSource::Kind;
  const auto at = static_cast<std::size_t>(source.at);
  const auto within = [&](void* memory) {  // there is none when every intermediate is empty
    return memory == nullptr ? nullptr : static_cast<std::byte*>(memory) + source.at;
  };
  switch (source.kind) {
    case Kind::input: return at < inputs.size() ? inputs[at].data : bound.buffers[at - inputs.size()].data;
    case Kind::output: return outputs[at].data;
    case Kind::arena: return within(workspace.arena());
    case Kind::zeroed: return within(workspace.zeroed());
  }
  return nullptr;
}

std::vector<std::vector<std::int64_t>> Executable::Impl::with_bound(
    std::vector<std::vector<std::int64_t>> input_shapes) const {
  for (const Buffer& buffer : bound.buffers) input_shapes.push_back(buffer.shape);
  return input_shapes;
}

void Executable::Impl::check_bound(const Bindings& bindings) const {
  for (std::size_t i = 0; i < bound.buffers.size(); ++i) {
    const ir::Value& input = plan.graph.value(plan.graph.inputs[free_inputs() + i]);
    const std::vector<std::int64_t>& shape = bound.buffers[i].shape;
    for (std::size_t axis = 0; axis < shape.size(); ++axis)
      if (const std::int64_t extent = input.type.shape[axis].evaluate(bindings); extent != shape[axis])
        throw Error(ErrorKind::argument,
                    fmt::format("axis {} of input '{}', which is bound, has {} elements, not {}", axis, input.name,
                                shape[axis], extent),
                    {}, "give the symbols the values that its shape says");
  }
}

std::int64_t Executable::Impl::bound_bytes() const {
  std::int64_t bytes = 0;
  for (const Buffer& buffer : bound.buffers) bytes += ir::byte_count(buffer.dtype, buffer.shape).value_or(0);
  return bytes;
}

namespace {

// What is kept for the next runs. A server that meets all sizes would otherwise keep kernels without end: six classes
// for each symbol, and some twenty for one that a product's result has.
constexpr std::size_t kMostClasses = 64, kMostRecords = 64;

}  // namespace

std::shared_ptr<const runtime::BuiltPlan> Executable::Impl::build(const codegen::Specialization& specialization) const {
  const std::lock_guard lock(build_mutex);
  const std::string key = specialization.key();
  if (const auto known = built.find(key); known != built.end()) {
    classes.splice(classes.begin(), classes, std::find(classes.begin(), classes.end(), key));
    return known->second;
  }
  auto fresh = std::make_shared<runtime::BuiltPlan>();
  fresh->specialization = specialization;
  fresh->launches = build_launches(specialization);
  if (classes.size() == kMostClasses) {
    if (built.at(classes.back()).use_count() == 1) backend->drain();  // its kernels may be running still
    built.erase(classes.back());
    classes.pop_back();
  }
  classes.push_front(key);
  return built[key] = std::move(fresh);
}

// Groups that are alike, those of equal layers, are built once.
std::vector<runtime::PlannedLaunch> Executable::Impl::build_launches(
    const codegen::Specialization& specialization) const {
  const std::vector<std::vector<int>> sets = runtime::sets_of(plan, backend->target());
  const std::vector<std::size_t> first = codegen::first_alike(plan, sets);
  std::vector<std::size_t> own;  // sets that no other before them is like
  for (std::size_t i = 0; i < sets.size(); ++i)
    if (first[i] == i) own.push_back(i);
  std::vector<std::vector<std::shared_ptr<const runtime::BuiltLaunch>>> launches(sets.size());
  runtime::for_each_in_parallel(own.size(),
                                [&](std::size_t i) { launches[own[i]] = build_groups(sets[own[i]], specialization); });
  std::vector<runtime::PlannedLaunch> planned;
  for (std::size_t i = 0; i < sets.size(); ++i)
    for (const auto& launch : launches[first[i]]) {
      planned.push_back({runtime::same_places(launch->launch.groups, sets[first[i]], sets[i]), launch});
      if (first[i] != i) continue;
      ++builds;
      compiles += launch->binary.compiled;
    }
  return planned;
}

std::shared_ptr<const runtime::LaunchRecord> Executable::Impl::record_for(const Bindings& bindings) const {
  {
    const std::shared_lock lock(records_mutex);
    for (const auto& record : records)
      if (record->bindings == bindings) return record;
  }
  check_bound(bindings);
  const auto record = ir::with_host_memory(fmt::format("the kernels of '{}'", plan.graph.name), [&] {
    return std::make_shared<const runtime::LaunchRecord>(
        runtime::make_record(*backend, plan, build(codegen::specialize(plan, bindings)), bindings));
  });
  const std::unique_lock lock(records_mutex);
  if (records.size() == kMostRecords) {
    if (records.front()->built.use_count() == 1) backend->drain();
    records.erase(records.begin());
  }
  records.push_back(record);
  return record;
}

std::shared_ptr<const runtime::LaunchRecord> Executable::Impl::record_for(std::span<const Buffer> inputs,
                                                                          const Bindings& bindings) const {
  {
    const std::shared_lock lock(records_mutex);
    for (auto record = records.rbegin(); record != records.rend(); ++record)
      if (runtime::same_shapes((*record)->input_shapes, inputs) &&
          (bindings.empty() || bindings == (*record)->bindings))
        return *record;
  }
  std::vector<std::vector<std::int64_t>> shapes;
  for (const Buffer& input : inputs) shapes.push_back(input.shape);
  return record_for(ir::bind_symbols(plan.graph, with_bound(std::move(shapes)), bindings));
}

std::shared_ptr<const runtime::LaunchRecord> Executable::Impl::tuned(
    const std::shared_ptr<const runtime::LaunchRecord>& record, std::span<const Buffer> inputs,
    std::span<const Buffer> outputs, void* stream) const {
  const std::string key = record->built->specialization.key();
  {
    const std::lock_guard lock(tune_mutex);
    if (tuned_classes.count(key)) return record;
    backend->synchronize(stream);
    tuner(*this, *record, inputs, outputs);
    tuned_classes.insert(key);
  }
  forget(key);
  return record_for(record->bindings);
}

void Executable::Impl::forget(const std::string& key) const {
  const std::lock_guard building(build_mutex);
  const std::unique_lock lock(records_mutex);
  built.erase(key);
  classes.remove(key);
  std::erase_if(records, [&](const auto& record) { return record->built->specialization.key() == key; });
}

void Executable::Impl::trim() const {
  backend->drain();
  {
    const std::lock_guard building(build_mutex);
    const std::unique_lock lock(records_mutex);
    built.clear();
    classes.clear();
    records.clear();
  }
  arenas.arenas.trim();
  arenas.zeroed.trim();
}

void Executable::Impl::launch_kernel(const runtime::PreparedLaunch& launch, std::span<const Buffer> inputs,
                                     std::span<const Buffer> outputs, const runtime::Workspace& workspace,
                                     void* stream) const {
  const runtime::NvtxRange range(nvtx, launch.built->source.entry);
  runtime::SmallArray<void*> pointers(launch.pointers.size());
  for (std::size_t i = 0; i < pointers.size(); ++i)
    pointers[i] = resolve(launch.pointers[i], inputs, outputs, workspace);
  runtime::LaunchCall call;
  call.kernel = launch.built->loaded.get();
  call.function = runtime::call_of(launch.built->source.launch, launch.function, launch.early);
  call.finish = runtime::call_of(launch.built->source.finish, launch.finish, launch.built->source.finish.dependent);
  call.pointers = {pointers.data(), pointers.size()};
  call.dims = launch.dims;
  backend->launch(call, stream);
}

void Executable::Impl::launch(const runtime::LaunchRecord& record, std::span<const Buffer> inputs,
                              std::span<const Buffer> outputs, void* stream) const {
  const runtime::Workspace workspace(arenas, record, stream);
  last_arena_bytes = record.arena_bytes;
  const bool worthwhile = record.launches.size() + record.copies.size() > 1;
  if (!replay || !worthwhile) return put(record, inputs, outputs, workspace, stream);
  std::vector<void*> pointers = {workspace.arena(), workspace.zeroed()};
  for (const Buffer& buffer : inputs) pointers.push_back(buffer.data);
  for (const Buffer& buffer : outputs) pointers.push_back(buffer.data);
  record.replays->run(
      *backend, std::move(pointers), [&](void* to) { put(record, inputs, outputs, workspace, to); }, stream);
}

void Executable::Impl::put(const runtime::LaunchRecord& record, std::span<const Buffer> inputs,
                           std::span<const Buffer> outputs, const runtime::Workspace& workspace, void* stream) const {
  for (const runtime::PreparedLaunch& launch : record.launches)
    launch_kernel(launch, inputs, outputs, workspace, stream);
  for (const runtime::PreparedCopy& copy : record.copies)
    backend->copy(resolve(copy.to, inputs, outputs, workspace), resolve(copy.from, inputs, outputs, workspace),
                  static_cast<std::size_t>(copy.bytes), stream);
}

namespace {

void check_buffer(const ir::Graph& graph, ir::ValueId value, const std::string& name, const Buffer& buffer,
                  const char* role) {
  const DType wanted = graph.type(value).dtype;
  if (buffer.dtype != wanted)
    throw Error(ErrorKind::argument,
                fmt::format("{} '{}' is {}, not {}", role, name, tenon::name_of(buffer.dtype), tenon::name_of(wanted)),
                {}, fmt::format("pass a {} buffer", tenon::name_of(wanted)));
  // Its shape is compared with the graph's, whose bytes are checked where extents are bound (ir/graph/bind.cpp).
  const bool filled = std::find(buffer.shape.begin(), buffer.shape.end(), 0) == buffer.shape.end();
  if (filled && reinterpret_cast<std::uintptr_t>(buffer.data) % 16 != 0)
    throw Error(ErrorKind::argument, fmt::format("{} '{}' is not aligned to 16 bytes", role, name), {},
                "allocate it with that alignment");
  if (filled && buffer.data == nullptr)
    throw Error(ErrorKind::argument, fmt::format("{} '{}' has no memory", role, name), {}, "pass a buffer of its size");
}

void check_count(std::size_t given, std::size_t wanted, const char* role) {
  if (given != wanted)
    throw Error(ErrorKind::argument, fmt::format("{} {} buffers given, the graph has {}", given, role, wanted), {},
                "pass one for each, in the graph's order");
}

std::string shape_text(const std::vector<std::int64_t>& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

}  // namespace

std::shared_ptr<const runtime::LaunchRecord> Executable::Impl::admit(std::span<const Buffer> inputs,
                                                                     const Bindings& bindings) const {
  const ir::Graph& graph = plan.graph;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    check_buffer(graph, graph.inputs[i], graph.value(graph.inputs[i]).name, inputs[i], "input");
  return record_for(inputs, bindings);
}

void Executable::Impl::start(std::shared_ptr<const runtime::LaunchRecord> record, std::span<const Buffer> inputs,
                             std::span<const Buffer> outputs, void* stream) const {
  const ir::Graph& graph = plan.graph;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::string& name = graph.outputs_names[own_outputs[i]];
    check_buffer(graph, graph.outputs[own_outputs[i]], name, outputs[i], "output");
    if (outputs[i].shape != record->output_shapes[i])
      throw Error(ErrorKind::argument,
                  fmt::format("output '{}' has shape {}, not {}", name, shape_text(outputs[i].shape),
                              shape_text(record->output_shapes[i])),
                  {}, "Executable::output_shapes gives the shapes for these inputs");
  }
  const bool in_place = runtime::check_overlaps(graph, *record, inputs, outputs);
  // A tuner runs the graph again and again, which would update the inputs each time.
  if (tuner && !in_place) record = tuned(record, inputs, outputs, stream);
  launch(*record, inputs, outputs, stream);
}

void Executable::run_async(std::span<const Buffer> inputs, std::span<const Buffer> outputs, void* stream,
                           const Bindings& bindings) const {
  const runtime::NvtxRange range(impl_->nvtx, impl_->plan.graph.name);
  check_count(inputs.size(), impl_->free_inputs(), "input");
  check_count(outputs.size(), impl_->own_outputs.size(), "output");
  impl_->start(impl_->admit(inputs, bindings), inputs, outputs, stream);
}

void Executable::run(std::span<const Buffer> inputs, std::span<const Buffer> outputs, const Bindings& bindings) const {
  run_async(inputs, outputs, nullptr, bindings);
  impl_->backend->synchronize(nullptr);
}

void Executable::trim() const { impl_->trim(); }

void Executable::prepare(const Bindings& bindings) const {
  ir::check_bindings(impl_->plan.graph, bindings);
  impl_->record_for(bindings);
}

std::vector<std::vector<std::int64_t>> Executable::output_shapes(
    const std::vector<std::vector<std::int64_t>>& input_shapes, const Bindings& bindings) const {
  const ir::Graph& graph = impl_->plan.graph;
  const Bindings bound = ir::bind_symbols(graph, impl_->with_bound(input_shapes), bindings);
  std::vector<std::vector<std::int64_t>> shapes;
  for (const std::size_t output : impl_->own_outputs) {
    shapes.emplace_back();
    for (const Dim& extent : graph.type(graph.outputs[output]).shape) shapes.back().push_back(extent.evaluate(bound));
  }
  return shapes;
}

ExecutableStats Executable::stats() const {
  const std::lock_guard lock(impl_->build_mutex);
  const std::size_t kernels = runtime::sets_of(impl_->plan, impl_->backend->target()).size();
  return {static_cast<int>(kernels),
          static_cast<int>(impl_->built.size()),
          impl_->builds,
          impl_->compiles,
          impl_->last_arena_bytes,
          impl_->arenas.arenas.bytes() + impl_->arenas.zeroed.bytes(),
          impl_->bound_bytes()};
}

std::string Executable::plan() const { return ir::print(impl_->plan); }
std::string Executable::explain() const { return impl_->bound.computed + ir::explain(impl_->plan); }
std::string Executable::target() const {
  return impl_->backend->target().kind == codegen::TargetKind::cpu ? "cpu" : impl_->backend->target().arch;
}

}  // namespace tenon

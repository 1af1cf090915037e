// From exact sizes to a launch record: grids, dims, pointers and the arena's layout.
#include "runtime/record.h"

#include <algorithm>

#include "runtime/arena.h"
#include "runtime/executable.h"
#include "runtime/overlap.h"
#include "runtime/updates.h"

namespace tenon::runtime {
namespace {

std::vector<std::int64_t> sizes_of(const Shape& shape, const Bindings& bindings) {
  std::vector<std::int64_t> sizes;
  for (const Dim& extent : shape) sizes.push_back(extent.evaluate(bindings));
  return sizes;
}

// Places every value that passes through memory: the caller's buffers where it is an input or output, else the arena.
// There is also the scratch memory of kernels.
class Places {
 public:
  Places(const ir::Plan& plan, const BuiltPlan& built, const Bindings& bindings, LaunchRecord& record)
      : graph_(plan.graph), bindings_(bindings), scratch_(built.launches.size()), zeroed_(built.launches.size()) {
    for (std::size_t i = 0; i < graph_.inputs.size(); ++i)
      places_[graph_.inputs[i]] = {PointerSource::Kind::input, static_cast<std::int64_t>(i)};
    for (std::size_t i = 0; i < graph_.outputs.size(); ++i) {
      const PointerSource output{PointerSource::Kind::output, static_cast<std::int64_t>(i)};
      const auto [place, fresh] = places_.emplace(graph_.outputs[i], output);
      if (!fresh) record.copies.push_back({place->second, output, bytes_of(graph_.outputs[i])});
    }
    lay_out_arena(plan, built, record);
  }

  PointerSource of(ir::ValueId value) const { return places_.at(value); }
  PointerSource scratch_of(std::size_t launch) const { return scratch_[launch]; }
  PointerSource zeroed_of(std::size_t launch) const { return zeroed_[launch]; }

 private:
  std::int64_t bytes_of(ir::ValueId value) const {
    const ir::Type& type = graph_.type(value);
    return element_count(type.shape).evaluate(bindings_) * size_of(type.dtype);
  }

  void lay_out_arena(const ir::Plan& plan, const BuiltPlan& built, LaunchRecord& record) {
    const std::vector<int> steps = ir::launch_steps(plan.groups.size(), plan.packs);
    std::map<ir::ValueId, Lifetime> live;
    for (std::size_t i = 0; i < plan.groups.size(); ++i) {
      for (ir::ValueId value : plan.groups[i].outputs)
        if (!places_.count(value)) live[value] = {bytes_of(value), steps[i], steps[i]};
      for (ir::ValueId value : plan.groups[i].inputs)
        if (const auto found = live.find(value); found != live.end()) found->second.last = steps[i];
    }
    std::vector<Lifetime> lifetimes;
    for (const auto& [value, lifetime] : live) lifetimes.push_back(lifetime);
    for (const PlannedLaunch& planned : built.launches) {
      const int step = steps[static_cast<std::size_t>(planned.groups.front())];
      lifetimes.push_back({planned.built->source.scratch_bytes.evaluate(bindings_), step, step});
    }
    // The launches of a run share what is zeroed: each leaves it as it was.
    for (std::size_t i = 0; i < built.launches.size(); ++i) {
      zeroed_[i] = {PointerSource::Kind::zeroed, 0};
      record.zeroed_bytes =
          std::max(record.zeroed_bytes, built.launches[i].built->source.zeroed_bytes.evaluate(bindings_));
    }
    const ArenaPlan arena = plan_arena(lifetimes);
    record.arena_bytes = arena.bytes;
    std::size_t next = 0;
    for (const auto& [value, lifetime] : live) places_[value] = {PointerSource::Kind::arena, arena.offsets[next++]};
    for (PointerSource& place : scratch_) place = {PointerSource::Kind::arena, arena.offsets[next++]};
  }

  const ir::Graph& graph_;
  const Bindings& bindings_;
  std::map<ir::ValueId, PointerSource> places_;
  std::vector<PointerSource> scratch_, zeroed_;  ///< by launch
};

bool writes(const codegen::Kernel& kernel, const Bindings& bindings) {
  return std::any_of(kernel.operands.begin(), kernel.operands.end(), [&](const codegen::Operand& operand) {
    return operand.written && element_count(operand.shape).evaluate(bindings) > 0;
  });
}

// A pack's blocks: none for members with no element to write.
void deal_blocks(PreparedLaunch& launch, const Bindings& bindings) {
  const BuiltLaunch& built = *launch.built;
  std::int64_t& grid = launch.function.grid = 0;
  for (std::size_t i = 0; i < built.launch.members.size(); ++i) {
    if (i > 0) launch.dims.push_back(grid);
    if (writes(built.launch.members[i], bindings)) grid += built.source.launch.members[i].evaluate(bindings);
  }
}

// `loaded`: none of what was compiled without a device, for which there is no driver to encode tensor maps either.
PreparedFunction prepare(const Backend& backend, const codegen::LaunchRule& rule, const LoadedKernel* loaded,
                         std::int64_t LoadedKernel::* resident_blocks, const Bindings& bindings) {
  PreparedFunction function{rule.grid_x.evaluate(bindings), {}};
  if (loaded == nullptr) return function;
  if (const std::int64_t most = loaded->*resident_blocks; rule.resident && most > 0)
    function.grid = std::min(function.grid, most / rule.together * rule.together);
  for (const codegen::TensorMap& map : rule.tensor_maps) function.tensor_maps.push_back(backend.encode(map, bindings));
  return function;
}

PreparedLaunch prepare_launch(const Backend& backend, const ir::Plan& plan, const BuiltPlan& built_plan,
                              std::size_t planned, const Places& places, const Bindings& bindings) {
  const BuiltLaunch& built = *built_plan.launches[planned].built;
  PreparedLaunch launch;
  launch.planned = planned;
  launch.built = &built;
  const LoadedKernel* loaded = built.loaded.get();
  launch.function = prepare(backend, built.source.launch, loaded, &LoadedKernel::resident_blocks, bindings);
  for (const std::string& dim : built.source.dims) launch.dims.push_back(bindings.at(dim));
  if (built.launch.members.size() > 1) deal_blocks(launch, bindings);
  for (const int number : built_plan.launches[planned].groups) {
    const ir::Group& group = plan.groups[static_cast<std::size_t>(number)];
    for (const auto* values : {&group.inputs, &group.outputs})
      for (const ir::ValueId value : *values) launch.pointers.push_back(places.of(value));
  }
  if (!built.source.finish_entry.empty())
    launch.finish = prepare(backend, built.source.finish, loaded, &LoadedKernel::finish_resident_blocks, bindings);
  if (!built.source.scratch_bytes.is(0)) launch.pointers.push_back(places.scratch_of(planned));
  if (!built.source.zeroed_bytes.is(0)) launch.pointers.push_back(places.zeroed_of(planned));
  return launch;
}

// Nothing is launched where there are no blocks, or no element to write.
bool empty(const PreparedLaunch& launch, const Bindings& bindings) {
  const auto& members = launch.built->launch.members;
  const bool any =
      std::any_of(members.begin(), members.end(), [&](const auto& member) { return writes(member, bindings); });
  return !any || launch.function.grid <= 0;
}

// Kernels that take the run's inputs for constant find them in memory when they begin: the first of the run then waits
// for all that is ahead of it, and no other begins before that one.
void decide_early(std::vector<PreparedLaunch>& launches) {
  const auto takes = [](const PreparedLaunch& launch) { return launch.built->source.launch.constant_inputs; };
  const bool waits = std::any_of(launches.begin(), launches.end(), takes);
  for (PreparedLaunch& launch : launches)
    launch.early = launch.built->source.launch.dependent && !(waits && &launch == &launches.front());
}

}  // namespace

LaunchRecord make_record(const Backend& backend, const ir::Plan& plan, std::shared_ptr<const BuiltPlan> built,
                         const Bindings& bindings, Updates updates) {
  LaunchRecord record;
  record.bindings = bindings;
  for (ir::ValueId input : plan.graph.inputs)
    record.input_shapes.push_back(sizes_of(plan.graph.type(input).shape, bindings));
  for (ir::ValueId output : plan.graph.outputs)
    record.output_shapes.push_back(sizes_of(plan.graph.type(output).shape, bindings));
  const Places places(plan, *built, bindings, record);
  for (std::size_t planned = 0; planned < built->launches.size(); ++planned) {
    PreparedLaunch launch = prepare_launch(backend, plan, *built, planned, places, bindings);
    if (!empty(launch, bindings)) record.launches.push_back(std::move(launch));
  }
  decide_early(record.launches);
  record.in_place = in_place_inputs(plan, record);
  if (updates == Updates::placed) place_updates(plan, record);
  record.built = std::move(built);
  return record;
}

}  // namespace tenon::runtime

// Chooses the schedule of a kernel by its class. The heuristics of each class are in codegen/schedule/<class>.cpp.
#include "codegen/schedule/schedule.h"

#include <algorithm>

#include "codegen/analysis/rounds.h"
#include "codegen/kernel/kernel.h"
#include "codegen/schedule/choices.h"
#include "ir/graph/check.h"

namespace tenon::codegen {
namespace {

Schedule choose_by_class(const Kernel& kernel, const Target& target) {
  if (target.kind == TargetKind::cpu) return choose_cpu_schedule(kernel, target);
  switch (kernel.kernel_class) {
    case ir::KernelClass::map: return choose_map_schedule(kernel, target);
    case ir::KernelClass::reduce: return choose_reduce_schedule(kernel, target);
    case ir::KernelClass::contract: return choose_contract_schedule(kernel, target);
    case ir::KernelClass::attend: return choose_attend_schedule(kernel, target);
  }
  TENON_CHECK(false, "unknown kernel class");
  return {};
}

// Fields that nothing else in a schedule rests on are taken out of what was chosen, so that one thing changes.
void take_out_hints(CachePolicy& cache, const Features& may) {
  cache.streaming = cache.streaming && may.streaming;
  cache.streaming_loads = cache.streaming_loads && may.streaming;
  cache.keep_reads = cache.keep_reads && may.keep_reads;
}

void take_out(MapSchedule& schedule, const Features& may) {
  take_out_hints(schedule.cache, may);
  schedule.interleave = schedule.interleave && may.interleave;
  schedule.interior = schedule.interior && may.interior;
  schedule.overlaps = schedule.overlaps && may.overlaps;
  if (!may.overlaps) schedule.strip = 1;
}

void take_out(ReduceSchedule& schedule, const Features& may) {
  take_out_hints(schedule.cache, may);
  schedule.late_stores = schedule.late_stores && schedule.cache.streaming && may.late_stores;
}

void take_out(ContractSchedule& schedule, const Features& may) {
  schedule.bounded = schedule.bounded && may.product_bounds;
  schedule.streaming_loads = schedule.streaming_loads && may.streaming;
}

void take_out(AttendSchedule& schedule, const Features& may) {
  schedule.block_mask = schedule.block_mask && may.block_mask;
  schedule.score_boxes = schedule.score_boxes && may.score_boxes;
}

// Of what other fields rest on. Rows with outer reductions have to be held.
bool respects_structure(const Schedule& schedule, const Features& may) {
  if (const auto* map = std::get_if<MapSchedule>(&schedule)) return may.overlaps || !map->staged;
  if (const auto* product = std::get_if<ContractSchedule>(&schedule))
    return may.split_f32 || product->loop != MainLoop::mma_3xtf32;
  const auto* reduce = std::get_if<ReduceSchedule>(&schedule);
  if (reduce == nullptr) return true;
  const PersistentBlocks* persistent = persistent_blocks(*reduce);
  return (may.online || !is_online(*reduce)) && (may.moments || !has_moments(*reduce)) &&
         (may.clusters || reduce->team.cluster == 1) && (may.grid_rows || reduce->team.grid == 1) &&
         (may.bulk_copies || persistent == nullptr || !persistent->bulk) && (may.hold_rows || !reduce->staged) &&
         (may.hold_rows || std::holds_alternative<Reread>(reduce->keep) || persistent != nullptr);
}

// What was chosen, without what is switched off, and with what follows from the rest.
Schedule completed(Schedule schedule, const Kernel& kernel, const Target& target) {
  std::visit([&](auto& s) { take_out(s, target.may); }, schedule);
  auto* reduce = std::get_if<ReduceSchedule>(&schedule);
  if (reduce != nullptr && target.kind == TargetKind::cuda && reduce->occupancy.least == 0)
    reduce->occupancy.least = blocks_with_registers(kernel, target, *reduce);
  return schedule;
}

}  // namespace

bool respects(const Schedule& schedule, const Features& may) {
  Schedule without = schedule;
  std::visit([&](auto& s) { take_out(s, may); }, without);
  return without == schedule && respects_structure(schedule, may);
}

Schedule choose_schedule(const Kernel& kernel, const Target& target) {
  return completed(choose_by_class(kernel, target), kernel, target);
}

std::vector<Schedule> candidate_schedules(const Kernel& kernel, const Target& target) {
  const Schedule chosen = choose_by_class(kernel, target);
  std::vector<Schedule> candidates = {completed(chosen, kernel, target)};
  const auto add = [&](const auto& alternatives) {
    for (const auto& alternative : alternatives) {
      const Schedule schedule = completed(alternative, kernel, target);
      if (respects(schedule, target.may) && verify(schedule, kernel, target).empty() &&
          std::find(candidates.begin(), candidates.end(), schedule) == candidates.end())
        candidates.push_back(schedule);
    }
  };
  if (target.kind == TargetKind::cpu) {
    add(cpu_alternatives(kernel, chosen));
    return candidates;
  }
  switch (kernel.kernel_class) {
    case ir::KernelClass::map: add(map_alternatives(kernel, std::get<MapSchedule>(chosen))); break;
    case ir::KernelClass::reduce: add(reduce_alternatives(kernel, target, std::get<ReduceSchedule>(chosen))); break;
    case ir::KernelClass::contract:
      add(contract_alternatives(kernel, target, std::get<ContractSchedule>(chosen)));
      break;
    case ir::KernelClass::attend: add(attend_alternatives(kernel, std::get<AttendSchedule>(chosen))); break;
  }
  return candidates;
}

Cut in_parts(int parts, RowMapping finish) { return parts > 1 ? Cut(Splits{parts, finish}) : Cut(WholeRows{}); }

void set_parts(ReduceSchedule& schedule, int parts) { schedule.cut = in_parts(parts, finish_of(schedule)); }

RowMapping finish_of(const ReduceSchedule& schedule) {
  const auto* splits = std::get_if<Splits>(&schedule.cut);
  return splits == nullptr ? RowMapping::thread : splits->finish;
}

Reread& reread(ReduceSchedule& schedule) { return std::get<Reread>(schedule.keep); }

bool holds_rows(const ReduceSchedule& schedule) { return held_elements(schedule) > 0; }

int held_elements(const ReduceSchedule& schedule) {
  if (const auto* registers = std::get_if<InRegisters>(&schedule.keep)) return registers->elements;
  if (const auto* shared = std::get_if<InShared>(&schedule.keep)) return shared->elements;
  return 0;
}

int shared_elements(const ReduceSchedule& schedule) {
  const auto* shared = std::get_if<InShared>(&schedule.keep);
  return shared == nullptr ? 0 : shared->shared;
}

bool is_online(const ReduceSchedule& schedule) {
  const auto* reread = std::get_if<Reread>(&schedule.keep);
  return reread != nullptr && reread->online;
}

bool has_moments(const ReduceSchedule& schedule) {
  const auto* reread = std::get_if<Reread>(&schedule.keep);
  const auto* shared = std::get_if<InShared>(&schedule.keep);
  return (reread != nullptr && reread->moments) || (shared != nullptr && shared->moments);
}

SharedSweeps shared_of(const ReduceSchedule& schedule) {
  return {.online = is_online(schedule), .moments = has_moments(schedule)};
}

int unroll_of(const ReduceSchedule& schedule) {
  const auto* reread = std::get_if<Reread>(&schedule.keep);
  return reread == nullptr ? 1 : reread->unroll;
}

int parts_of(const ReduceSchedule& schedule) {
  const auto* splits = std::get_if<Splits>(&schedule.cut);
  return splits == nullptr ? 1 : splits->parts;
}

const PersistentBlocks* persistent_blocks(const ReduceSchedule& schedule) {
  return std::get_if<PersistentBlocks>(&schedule.cut);
}

int team_size(const ReduceSchedule& schedule) {
  const RowTeam& team = schedule.team;
  switch (team.mapping) {
    case RowMapping::thread: return 1;
    case RowMapping::warp: return team.lanes;
    case RowMapping::block: return team.threads * team.cluster * team.grid;
    case RowMapping::column: return team.threads / team.columns;
  }
  return 1;
}

}  // namespace tenon::codegen

// Chooses the schedule of a kernel by its class, and prints schedules. The heuristics of each class are in
// codegen/schedule_<class>.cpp.
#include "codegen/schedule.h"

#include <fmt/format.h>

#include <set>

#include "codegen/kernel.h"
#include "codegen/schedule_choices.h"
#include "ir/check.h"

namespace tenon::codegen {
namespace {

const char* name_of(RowMapping mapping) {
  switch (mapping) {
    case RowMapping::thread: return "thread";
    case RowMapping::warp: return "warp";
    case RowMapping::block: return "block";
    case RowMapping::column: return "column";
  }
  return "";
}

const char* name_of(MainLoop loop) {
  switch (loop) {
    case MainLoop::simt: return "simt";
    case MainLoop::mma_sync: return "mma_sync";
    case MainLoop::cpu: return "cpu";
  }
  return "";
}

// " grain=65536", or nothing where the field has its default.
std::string unless(const char* name, std::int64_t value, std::int64_t fallback) {
  return value == fallback ? "" : fmt::format(" {}={}", name, value);
}

std::string text(const MapSchedule& s) {
  const std::string tile = s.tile_axis < 0
                               ? ""
                               : fmt::format(" tile_axis={} tile={}x{} tile_vector={}{}", s.tile_axis, s.tile_rows,
                                             s.tile_columns, s.tile_vector, s.tile_shift ? " tile_shift" : "");
  return fmt::format("map threads={} vector={}{} unroll={}{}{}{}{}{}{}{}", s.threads, s.vector, s.flat ? " flat" : "",
                     s.unroll, s.spread ? " spread" : "", s.interleave ? " interleave" : "", tile,
                     s.streaming ? " streaming" : "", s.streaming_loads ? " streaming_loads" : "",
                     s.keep_reads ? " keep_reads" : "", unless("grain", s.grain, 0));
}

std::string text(const ReduceSchedule& s) {
  return fmt::format(
      "reduce mapping={} threads={} vector={}{}{}{}{}{}{}{}{}{}{}{}{}{}{}{}{}{}{}{}{}", name_of(s.mapping), s.threads,
      s.vector, s.peeled ? " peeled" : "", s.mapping == RowMapping::warp ? fmt::format(" lanes={}", s.lanes) : "",
      unless("cluster", s.cluster, 1), unless("columns", s.columns, 32), unless("unroll", s.unroll, 1),
      s.online ? " online" : "", s.streaming ? " streaming" : "", s.streaming_loads ? " streaming_loads" : "",
      s.keep_reads ? " keep_reads" : "", s.persistent ? " persistent" : "", unless("row_elements", s.row_elements, 0),
      unless("shared_elements", s.shared_elements, 0), unless("resident", s.resident, 0),
      unless("at_most", s.at_most, 0), unless("grain", s.grain, 0), s.late_stores ? " late_stores" : "",
      unless("splits", s.splits, 1), unless("walkers", s.walkers, 0), unless("ahead", s.ahead, 0),
      s.bulk ? " bulk" : "");
}

std::string text(const ContractSchedule& s) {
  return fmt::format("contract loop={} tile={}x{}x{} warps={}x{} stages={} vector={},{}{}{}", name_of(s.loop), s.tile_m,
                     s.tile_n, s.tile_k, s.warps_m, s.warps_n, s.stages, s.vector_a, s.vector_b,
                     unless("micro_m", s.micro_m, 0), unless("micro_n", s.micro_n, 0));
}

std::string text(const AttendSchedule& s) {
  return fmt::format("attend loop={} tile_q={} tile_kv={} warps={} stages={} vector={}", name_of(s.loop), s.tile_q,
                     s.tile_kv, s.warps, s.stages, s.vector);
}

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
template <typename S>
void take_out_hints(S& schedule, const Features& may) {
  schedule.streaming = schedule.streaming && may.streaming;
  schedule.streaming_loads = schedule.streaming_loads && may.streaming;
  schedule.keep_reads = schedule.keep_reads && may.keep_reads;
}

void take_out(MapSchedule& schedule, const Features& may) {
  take_out_hints(schedule, may);
  schedule.interleave = schedule.interleave && may.interleave;
}

void take_out(ReduceSchedule& schedule, const Features& may) {
  take_out_hints(schedule, may);
  schedule.late_stores = schedule.late_stores && schedule.streaming && may.late_stores;
}

void take_out(ContractSchedule&, const Features&) {}
void take_out(AttendSchedule&, const Features&) {}

// Whether the schedule is one that is chosen with these features. Rows with outer reductions have to be held.
bool is_of(const Schedule& schedule, const Features& may) {
  const auto* reduce = std::get_if<ReduceSchedule>(&schedule);
  return reduce == nullptr ||
         ((may.online || !reduce->online) && (may.clusters || reduce->cluster == 1) &&
          (may.bulk_copies || !reduce->bulk) && (may.hold_rows || !reduce->persistent || reduce->walkers > 0));
}

}  // namespace

Schedule choose_schedule(const Kernel& kernel, const Target& target) {
  Schedule schedule = choose_by_class(kernel, target);
  std::visit([&](auto& s) { take_out(s, target.may); }, schedule);
  return schedule;
}

std::vector<Schedule> candidate_schedules(const Kernel& kernel, const Target& target) {
  std::vector<Schedule> candidates = {choose_schedule(kernel, target)};
  std::set<std::string> seen = {print(candidates[0])};
  const auto add = [&](const auto& alternatives) {
    for (const auto& alternative : alternatives) {
      Schedule schedule = alternative;
      std::visit([&](auto& s) { take_out(s, target.may); }, schedule);
      if (is_of(schedule, target.may) && seen.insert(print(schedule)).second) candidates.push_back(schedule);
    }
  };
  if (target.kind == TargetKind::cpu) {
    add(cpu_alternatives(kernel, candidates[0]));
    return candidates;
  }
  switch (kernel.kernel_class) {
    case ir::KernelClass::map: add(map_alternatives(kernel, std::get<MapSchedule>(candidates[0]))); break;
    case ir::KernelClass::reduce:
      add(reduce_alternatives(kernel, target, std::get<ReduceSchedule>(candidates[0])));
      break;
    case ir::KernelClass::contract:
    case ir::KernelClass::attend: break;
  }
  return candidates;
}

std::string print(const Schedule& schedule) {
  return std::visit([](const auto& s) { return text(s); }, schedule);
}

}  // namespace tenon::codegen

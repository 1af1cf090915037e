// Schedules around the heuristics' choice for the CPU target, for a tuner: more and fewer tasks, since what a task
// computes between two looks at the queue is a trade of balance against the cost of a task, which depends on the
// machine; expressions in turns or not, which depends on how far its core looks ahead; rows stored late or not, which
// depends on its caches; rows that are cut where guards change; and tiles of keys that are tested or not, which depends
// on what the masks hold.
#include <algorithm>

#include "codegen/schedule/choices.h"

namespace tenon::codegen {
namespace {

template <typename S>
std::vector<Schedule> other_grains(const S& chosen) {
  std::vector<Schedule> alternatives;
  for (const std::int64_t grain : {chosen.grain / 4, chosen.grain * 4}) {
    S schedule = chosen;
    schedule.grain = grain;
    if (grain >= 1) alternatives.emplace_back(schedule);
  }
  return alternatives;
}

}  // namespace

std::vector<Schedule> cpu_alternatives(const Kernel& kernel, const Schedule& chosen) {
  if (const auto* map = std::get_if<MapSchedule>(&chosen)) {
    std::vector<Schedule> alternatives = other_grains(*map);
    MapSchedule other = *map;  // one vector after the other, or several in turns
    other.interleave = !map->interleave;
    other.unroll = map->interleave ? 1 : std::max(4, map->unroll);
    if (!map->tile) alternatives.emplace_back(other);
    MapSchedule whole = *map;  // rows that are not cut: short ones have little but ends
    whole.interior = !map->interior;
    alternatives.emplace_back(whole);
    return alternatives;
  }
  if (const auto* reduce = std::get_if<ReduceSchedule>(&chosen)) {
    std::vector<Schedule> alternatives = other_grains(*reduce);
    ReduceSchedule other = *reduce;
    other.late_stores = !reduce->late_stores;
    if (reduce->cache.streaming && stores_may_be_late(kernel, *reduce)) alternatives.emplace_back(other);
    return alternatives;
  }
  if (const auto* attend = std::get_if<AttendSchedule>(&chosen)) {
    AttendSchedule other = *attend;
    other.block_mask = false;
    return {other};
  }
  return {};
}

}  // namespace tenon::codegen

// Schedules around the heuristics' choice for the CPU target, for a tuner: more and fewer tasks. What a task computes
// between two looks at the queue is a trade of balance against the cost of a task, which depends on the machine.
#include "codegen/schedule_choices.h"

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

std::vector<Schedule> cpu_alternatives(const Schedule& chosen) {
  if (const auto* map = std::get_if<MapSchedule>(&chosen)) return other_grains(*map);
  if (const auto* reduce = std::get_if<ReduceSchedule>(&chosen)) return other_grains(*reduce);
  return {};
}

}  // namespace tenon::codegen

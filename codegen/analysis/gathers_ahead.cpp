// See gathers_ahead.h.
#include "codegen/analysis/gathers_ahead.h"

#include <algorithm>

#include "codegen/analysis/held.h"
#include "codegen/analysis/rounds.h"
#include "codegen/analysis/row_shape.h"

namespace tenon::codegen {
namespace {

// A place is one for all columns of a thread's vector, which lie along the last kept axis.
bool is_gather(const Kernel& kernel, const Instr& instr) {
  if (instr.kind != InstrKind::load || !instr.access.guards.empty()) return false;
  std::uint64_t reduced = 0, last_kept = 0;
  for (std::size_t axis = 0; axis < kernel.axes.size(); ++axis) {
    const std::uint64_t bit = std::uint64_t{1} << axis;
    if (kernel.axes[axis].reduced) {
      reduced |= bit;
    } else {
      last_kept = bit;
    }
  }
  const std::vector<int> values = instr.access.offset.values();
  const auto depends = [&](std::uint64_t axes) {
    return std::any_of(values.begin(), values.end(), [&](int id) { return (kernel.instr(id).depends & axes) != 0; });
  };
  return depends(reduced) && !depends(last_kept);
}

}  // namespace

bool gathers_along_rows(const Kernel& kernel) {
  const std::vector<const Instr*> loads = row_loads(kernel);
  return std::any_of(loads.begin(), loads.end(), [&](const Instr* load) { return is_gather(kernel, *load); });
}

std::vector<InstrId> loads_ahead(const Kernel& kernel, const ReduceSchedule& schedule) {
  if (schedule.team.mapping != RowMapping::column || schedule.peeled || !is_online(schedule))
    return gathers_ahead(kernel, schedule);
  std::vector<InstrId> loads;
  for (std::size_t id = 0; id < kernel.body.size(); ++id)
    if (is_plain_load(kernel, static_cast<InstrId>(id))) loads.push_back(static_cast<InstrId>(id));
  return loads;
}

std::vector<InstrId> gathers_ahead(const Kernel& kernel, const ReduceSchedule& schedule) {
  std::vector<InstrId> gathers;
  if (schedule.team.mapping != RowMapping::column || schedule.peeled || holds_rows(schedule) ||
      unroll_of(schedule) == 1 || has_moments(schedule) || is_online(schedule))
    return gathers;
  const Rounds rounds = rounds_of(kernel, shared_of(schedule));
  if (rounds.sweeps.size() != 1) return gathers;
  for (const InstrId id : rounds.sweeps[0].instrs)
    if (is_gather(kernel, kernel.instr(id))) gathers.push_back(id);
  return gathers;
}

}  // namespace tenon::codegen

// See read_once.h.
#include "codegen/analysis/read_once.h"

#include <algorithm>

#include "codegen/analysis/rounds.h"
#include "codegen/analysis/row_shape.h"

namespace tenon::codegen {
namespace {

bool varies_along_all(const Kernel& kernel, const Instr& instr, std::size_t first) {
  for (std::size_t axis = first; axis < kernel.axes.size(); ++axis)
    if (!kernel.axes[axis].extent.is(1) && (instr.depends >> axis & 1) == 0) return false;
  return true;
}

}  // namespace

std::vector<InstrId> loads_read_once(const Kernel& kernel, bool spread) {
  std::vector<int> uses(kernel.operands.size(), 0);
  for (const Instr& instr : kernel.body)
    if (instr.kind == InstrKind::load) ++uses[static_cast<std::size_t>(instr.access.operand)];
  std::vector<InstrId> loads;
  for (std::size_t id = 0; id < kernel.body.size(); ++id) {
    const Instr& instr = kernel.body[id];
    if (instr.kind == InstrKind::load && uses[static_cast<std::size_t>(instr.access.operand)] == 1 &&
        instr.access.offset.values().empty() && varies_along_all(kernel, instr, spread ? 1 : 0))
      loads.push_back(static_cast<InstrId>(id));
  }
  return loads;
}

bool may_keep_reads(const Kernel& kernel) {
  const auto gathers = [](const Instr& instr) {
    return instr.kind == InstrKind::load && !instr.access.offset.values().empty();
  };
  return std::none_of(kernel.body.begin(), kernel.body.end(), gathers);
}

bool may_keep_reads(const Kernel& kernel, const ReduceSchedule& schedule) {
  const bool alone = shared_elements(schedule) > 0 && schedule.occupancy.least == 1;
  const PersistentBlocks* persistent = persistent_blocks(schedule);
  const bool apart = persistent != nullptr && persistent->stages > 0 && !persistent->bulk;
  const bool held = schedule.staged || (schedule.vector > 1 && holds_rows(schedule));
  return held && schedule.team.mapping != RowMapping::column && schedule.team.cluster == 1 && schedule.team.grid == 1 &&
         !apart && !alone && stores_elements(kernel) && !loads_read_once(kernel).empty();
}

std::vector<InstrId> streamed_loads(const Kernel& kernel, const ReduceSchedule& schedule) {
  return schedule.cache.streaming_loads ? loads_read_once(kernel) : std::vector<InstrId>{};
}

bool may_stream_loads(const Kernel& kernel, const ReduceSchedule& schedule) {
  const bool once =
      std::holds_alternative<InRegisters>(schedule.keep) || rounds_of(kernel, shared_of(schedule)).sweeps.size() == 1;
  return once && !schedule.staged && !loads_read_once(kernel).empty();
}

}  // namespace tenon::codegen

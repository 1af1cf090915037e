// See rows_ring.h.
#include "codegen/analysis/rows_ring.h"

#include <algorithm>

#include "codegen/analysis/held.h"
#include "codegen/analysis/rounds.h"
#include "codegen/analysis/shared_rows.h"

namespace tenon::codegen {
namespace {

constexpr std::int64_t kArrivalBytes = 8;  // for each slot, where rows come whole

std::int64_t row_elements(const Kernel& kernel) {
  std::int64_t elements = 1;
  for (const Axis& axis : kernel.axes)
    if (axis.reduced) elements *= axis.extent.constant();  // of outer reductions, known (choose_outer_schedule)
  return elements;
}

bool varies_by_row(const Kernel& kernel, InstrId load) {
  std::uint64_t kept = 0;
  for (std::size_t axis = 0; axis < kernel.axes.size(); ++axis)
    if (!kernel.axes[axis].reduced) kept |= std::uint64_t{1} << axis;
  return (kernel.instr(load).depends & kept) != 0;
}

// The second buffers of reductions that take turns, at most, and what tells of arrivals.
std::int64_t turn_bytes(const Kernel& kernel, const ReduceSchedule& schedule) {
  const auto reductions = std::count_if(kernel.body.begin(), kernel.body.end(),
                                        [](const Instr& instr) { return instr.kind == InstrKind::reduce; });
  return reductions * 16 * (schedule.team.threads / 32) + (persistent_blocks(schedule)->stages + 1) * kArrivalBytes;
}

}  // namespace

bool has_ring(const ReduceSchedule& schedule) {
  const PersistentBlocks* persistent = persistent_blocks(schedule);
  return persistent != nullptr && (persistent->stages > 1 || persistent->bulk);
}

std::vector<InstrId> ring_loads(const Kernel& kernel) {
  const Rounds rounds = rounds_of(kernel);
  std::vector<InstrId> loads;
  if (!rounds.sweeps.empty()) loads = rounds.sweeps[0].instrs;
  for (const Held& held : held_values(kernel, rounds)) loads.push_back(held.value);
  std::erase_if(loads, [&](InstrId id) { return !is_plain_load(kernel, id) || !varies_by_row(kernel, id); });
  std::sort(loads.begin(), loads.end());
  loads.erase(std::unique(loads.begin(), loads.end()), loads.end());
  return loads;
}

std::int64_t slot_elements(const ReduceSchedule& schedule) {
  return std::int64_t{schedule.team.threads} * held_elements(schedule);
}

std::int64_t ring_load_bytes(const Kernel& kernel, const ReduceSchedule& schedule, InstrId load) {
  return (persistent_blocks(schedule)->stages + 1) * slot_elements(schedule) * held_size(kernel, load);
}

std::int64_t ring_bytes(const Kernel& kernel, const ReduceSchedule& schedule) {
  std::int64_t bytes = 0;
  if (has_ring(schedule))
    for (InstrId load : ring_loads(kernel)) bytes += ring_load_bytes(kernel, schedule, load);
  return bytes;
}

bool fits_ring(const Kernel& kernel, const ReduceSchedule& schedule, const Target& target) {
  const std::vector<InstrId> loads = ring_loads(kernel);
  const int blocks = (persistent_blocks(schedule)->blocks + target.multiprocessors - 1) / target.multiprocessors;
  return target.sm >= 80 && !loads.empty() &&
         (!persistent_blocks(schedule)->bulk || (target.may.bulk_copies && comes_whole(kernel, schedule))) &&
         std::all_of(loads.begin(), loads.end(), [&](InstrId load) { return whole_vectors(kernel, schedule, load); }) &&
         ring_bytes(kernel, schedule) + turn_bytes(kernel, schedule) <=
             shared_row_room(kernel, schedule, target, blocks);
}

bool comes_whole(const Kernel& kernel, const ReduceSchedule& schedule) {
  const auto whole = [&](InstrId load) {
    if (schedule.vector * held_size(kernel, load) != 16) return false;  // and so is what a row begins at
    std::int64_t stride = 1;
    for (std::size_t axis = kernel.axes.size(); axis-- > 0 && kernel.axes[axis].reduced;) {
      const Dim& extent = kernel.axes[axis].extent;
      const auto step = kernel.instr(load).access.offset.coefficient(static_cast<int>(axis));
      if (!step || (!step->is(stride) && !extent.is(1))) return false;
      stride *= extent.constant();
    }
    return true;
  };
  const std::vector<InstrId> loads = ring_loads(kernel);
  const Rounds rounds = rounds_of(kernel);
  return row_elements(kernel) > 0 && std::all_of(loads.begin(), loads.end(), whole) &&
         std::any_of(rounds.sweeps.begin(), rounds.sweeps.end(), [](const Sweep& s) { return !s.reduces.empty(); });
}

Access row_begin(const Kernel& kernel, InstrId load) {
  Access access = kernel.instr(load).access;
  std::vector<IndexTerm> terms;
  for (const IndexTerm& term : access.offset.terms())
    if (term.atom->kind != IndexAtom::Kind::axis || !kernel.axes[static_cast<std::size_t>(term.atom->id)].reduced)
      terms.push_back(term);
  access.offset = Index::sum(access.offset.constant(), std::move(terms));
  return access;
}

std::int64_t row_bytes(const Kernel& kernel, InstrId load) { return row_elements(kernel) * held_size(kernel, load); }

}  // namespace tenon::codegen

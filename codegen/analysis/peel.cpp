// See peel.h.
#include "codegen/analysis/peel.h"

#include "codegen/analysis/rounds.h"
#include "codegen/analysis/vectorize.h"

namespace tenon::codegen {

const Access* peel_reference(const Kernel& kernel) {
  const int axis = static_cast<int>(kernel.axes.size()) - 1;
  if (axis < 0 || !kernel.axes.back().reduced || (axis > 0 && kernel.axes[kernel.axes.size() - 2].reduced))
    return nullptr;
  const std::uint64_t bit = std::uint64_t{1} << axis;
  const Access* reference = nullptr;
  for (const Instr& instr : kernel.body) {
    if (instr.kind != InstrKind::load || (instr.depends & bit) == 0) continue;
    const bool along_row = axis == 0 || instr.depends != bit;  // a weight is the same for every row
    const bool known = instr.access.guards.empty() && instr.access.offset.values().empty();  // before anything is read
    if (known && along_row && !reference) reference = &instr.access;
  }
  if (!reference || bounds(reference->offset, kernel.context()).min < 0) return nullptr;
  for (const Instr& instr : kernel.body)
    if (instr.kind == InstrKind::load && (instr.depends & bit) != 0 &&
        peeled_width(instr.access, *reference, axis, 2, kernel) == 0)
      return nullptr;
  for (const Store& store : kernel.stores) {
    const bool element = (kernel.instr(store.value).depends & bit) != 0 || store.access.offset.depends_on(axis);
    if (element && peeled_width(store.access, *reference, axis, 2, kernel) == 0) return nullptr;
  }
  return reference;
}

const Access* column_reference(const Kernel& kernel, int vector, SharedSweeps shared) {
  if (has_outer(kernel) || kernel.axes.size() != 2 || kernel.axes[0].reduced || !kernel.axes[1].reduced) return nullptr;
  const Rounds rounds = rounds_of(kernel, shared);
  if (rounds.sweeps.size() != 1 || !rounds.sweeps[0].stores.empty()) return nullptr;
  const Access* reference = nullptr;
  for (InstrId id : rounds.sweeps[0].instrs) {
    const Instr& instr = kernel.instr(id);
    if (instr.kind != InstrKind::load || (instr.depends & 1) == 0) continue;
    if (reference == nullptr && (instr.depends & 2) != 0) reference = &instr.access;
    if (reference == nullptr || !instr.access.guards.empty() ||
        peeled_width(instr.access, *reference, 0, vector, kernel) != vector)
      return nullptr;
  }
  return reference != nullptr && reference->offset.values().empty() &&
                 bounds(reference->offset, kernel.context()).min >= 0
             ? reference
             : nullptr;
}

}  // namespace tenon::codegen

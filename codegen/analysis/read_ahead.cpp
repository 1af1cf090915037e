// See read_ahead.h.
#include "codegen/analysis/read_ahead.h"

#include <algorithm>

#include "codegen/analysis/scaled_scores.h"
#include "codegen/analysis/vectorize.h"
#include "codegen/kernel/uses.h"

namespace tenon::codegen {

InstrId read_ahead(const Kernel& kernel, const AttendParts& parts, const KeyMasks& masks) {
  constexpr int kPair = 2;
  // The last pair is whole: of an odd number of keys it would begin at an odd one, or reach behind the tensor.
  const bool whole_pairs =
      kernel.axes[static_cast<std::size_t>(parts.j)].extent.bounds(kernel.symbols).divisor % kPair == 0;
  const Region open = open_region(kernel, parts, masks);
  const auto draws = [&](InstrId id) { return kernel.instr(id).kind == InstrKind::random; };
  if (!masks.exact || std::any_of(open.begin(), open.end(), draws)) return -1;
  const auto found = std::find_if(open.begin(), open.end(), [&](InstrId id) {
    const Instr& instr = kernel.instr(id);
    return instr.kind == InstrKind::load && varies(kernel, id, parts.j) && element_bytes(kernel, instr.access) <= 2 &&
           instr.access.guards.empty() && instr.access.offset.values().empty() &&
           vector_width(instr.access, parts.j, kPair, kernel) == kPair && whole_pairs;
  });
  return found == open.end() ? -1 : *found;
}

}  // namespace tenon::codegen

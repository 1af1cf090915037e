// See read_ahead.h.
#include "codegen/analysis/read_ahead.h"

#include <algorithm>

#include "codegen/analysis/scaled_scores.h"
#include "codegen/analysis/vectorize.h"
#include "codegen/kernel/uses.h"

namespace tenon::codegen {
namespace {

// What the score where no mask hides it is computed from; nothing where something else than conditions hides some, or
// random numbers are drawn, whose functions have another form.
Region plain_score(const Kernel& kernel, const AttendParts& parts, const KeyMasks& masks) {
  const Region open = open_region(kernel, parts, masks);
  const auto draws = [&](InstrId id) { return kernel.instr(id).kind == InstrKind::random; };
  return masks.exact && std::none_of(open.begin(), open.end(), draws) ? open : Region{};
}

}  // namespace

InstrId read_ahead(const Kernel& kernel, const AttendParts& parts, const KeyMasks& masks) {
  constexpr int kPair = 2;
  // The last pair is whole: of an odd number of keys it would begin at an odd one, or reach behind the tensor.
  const bool whole_pairs =
      kernel.axes[static_cast<std::size_t>(parts.j)].extent.bounds(kernel.symbols).divisor % kPair == 0;
  const Region open = plain_score(kernel, parts, masks);
  const auto found = std::find_if(open.begin(), open.end(), [&](InstrId id) {
    const Instr& instr = kernel.instr(id);
    return instr.kind == InstrKind::load && varies(kernel, id, parts.j) && element_bytes(kernel, instr.access) <= 2 &&
           instr.access.guards.empty() && instr.access.offset.values().empty() &&
           vector_width(instr.access, parts.j, kPair, kernel) == kPair && whole_pairs;
  });
  return found == open.end() ? -1 : *found;
}

std::optional<BoxedScores> boxed_scores(const Kernel& kernel, const AttendParts& parts, const KeyMasks& masks) {
  for (const InstrId id : plain_score(kernel, parts, masks)) {
    const Instr& instr = kernel.instr(id);
    if (instr.kind != InstrKind::load || !varies(kernel, id, parts.j) || !varies(kernel, id, parts.i)) continue;
    const auto bytes = element_bytes(kernel, instr.access);
    std::string why_not;
    const auto box =
        box_access(kernel, {.value = id, .region = {}, .outer = parts.i, .depth = parts.j}, parts.batch, why_not);
    if (box && box->along_depth && bytes <= 4) return BoxedScores{id, static_cast<int>(bytes), *box};
  }
  return std::nullopt;
}

}  // namespace tenon::codegen

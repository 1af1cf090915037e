// See key_bounds.h.
#include "codegen/analysis/key_bounds.h"

#include <optional>

#include "codegen/kernel/uses.h"

namespace tenon::codegen {
namespace {

using ir::Op;

constexpr int kMostMasks = 8;  // one on the other

// Of the axes [batch…, i, e | j, d].
struct Positions {
  std::size_t i, j;
  explicit Positions(const Kernel& kernel) : i(kernel.axes.size() - 4), j(i + 2) {}
  std::uint64_t both() const { return std::uint64_t{1} << i | std::uint64_t{1} << j; }
  std::uint64_t batch() const { return (std::uint64_t{1} << i) - 1; }
};

// Nothing where it is no range of keys.
std::optional<KeyBound> key_bound(const PositionBound& bound, const Positions& at) {
  const std::int64_t i = bound.slopes[at.i], j = bound.slopes[at.j];
  if (j == 1) return KeyBound{true, -i, Dim(0) - bound.constant, bound.value, bound.sign > 0};
  if (j == -1) return KeyBound{false, i, bound.constant, bound.value, bound.sign < 0};
  return std::nullopt;
}

// Adds bounds that hold wherever the condition does; whether it holds wherever they do.
bool add_bounds(const Kernel& kernel, const MaskCondition& mask, std::vector<KeyBound>& bounds) {
  const Positions at(kernel);
  std::vector<PositionBound> found;
  bool all = add_position_bounds(kernel, mask, at.both(), at.batch(), found);
  for (const PositionBound& each : found) {
    const auto bound = key_bound(each, at);
    if (bound) bounds.push_back(*bound);
    all = all && bound;
  }
  return all;
}

// Whether the selection's other branch is kept where its condition holds; nothing where it is no mask.
std::optional<bool> mask_of(const Kernel& kernel, const Instr& instr) {
  if (instr.kind != InstrKind::map || instr.op != Op::where) return std::nullopt;
  if (is_minus_infinity(kernel, instr.args[2])) return true;
  return is_minus_infinity(kernel, instr.args[1]) ? std::optional(false) : std::nullopt;
}

}  // namespace

bool leaves_each_query_a_key(const Kernel& kernel, const MaskCondition& mask) {
  std::vector<KeyBound> bounds;
  if (!add_bounds(kernel, mask, bounds)) return false;
  const std::size_t i = kernel.axes.size() - 4;
  bounds.push_back({false, 0, Dim(0)});
  bounds.push_back({true, 0, kernel.axes[i + 2].extent - Dim(1)});
  // Both are straight lines: what holds for the first query and the last holds for all.
  const auto meet = [&](const KeyBound& lower, const KeyBound& upper) {
    for (const Dim& query : {Dim(0), kernel.axes[i].extent - Dim(1)}) {
      const Dim keys = upper.offset - lower.offset + query * Dim(upper.slope - lower.slope);
      if (keys.bounds(kernel.symbols).min < 0) return false;
    }
    return true;
  };
  for (const KeyBound& lower : bounds)
    for (const KeyBound& upper : bounds) {
      if (lower.value >= 0) return false;
      if (lower.upper || !upper.upper) continue;
      const bool ends = &lower == &bounds[bounds.size() - 2] && &upper == &bounds.back();  // of no keys nothing is seen
      if (!ends && !meet(lower, upper)) return false;
    }
  return true;
}

KeyMasks key_masks(const Kernel& kernel) {
  KeyMasks masks;
  masks.open = kernel.attention.score;
  InstrId score = kernel.attention.score;
  for (int depth = 0; depth < kMostMasks; ++depth) {
    const InstrId selection = behind_casts(kernel, score);
    const auto kept = mask_of(kernel, kernel.instr(selection));
    if (!kept) break;
    const std::vector<InstrId>& args = kernel.instr(selection).args;
    const MaskCondition condition{args[0], *kept};
    if (!add_bounds(kernel, condition, masks.bounds)) masks.others.push_back(condition);
    if (selection != score) masks.exact = false;  // a cast stands between
    score = args[*kept ? 1 : 2];
    if (selection == masks.open) masks.open = score;
  }
  return masks;
}

}  // namespace tenon::codegen

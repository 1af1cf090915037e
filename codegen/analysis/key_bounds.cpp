// See key_bounds.h.
#include "codegen/analysis/key_bounds.h"

#include <optional>

#include "codegen/kernel/uses.h"

namespace tenon::codegen {
namespace {

using ir::Op;

constexpr int kMostMasks = 8;  // one on the other

// An integer value as i_slope * i + j_slope * j + constant.
struct Affine {
  std::int64_t i = 0, j = 0;
  Dim constant;
};

std::optional<Affine> affine(const Index& index, int i, int j) {
  Affine sum;
  sum.constant = index.constant();
  for (const IndexTerm& term : index.terms()) {
    const bool known = term.atom->kind == IndexAtom::Kind::axis && term.coefficient.is_constant();
    if (!known || (term.atom->id != i && term.atom->id != j)) return std::nullopt;
    (term.atom->id == i ? sum.i : sum.j) += term.coefficient.constant();
  }
  return sum;
}

Affine combined(const Affine& a, const Affine& b, int sign) {
  return {a.i + sign * b.i, a.j + sign * b.j, a.constant + b.constant * Dim(sign)};
}

std::optional<Affine> affine(const Kernel& kernel, InstrId id, int i, int j) {
  const Instr& instr = kernel.instr(id);
  if (!is_integer(instr.dtype) || size_of(instr.dtype) < 4) return std::nullopt;
  if (instr.kind == InstrKind::index) return affine(instr.index, i, j);
  if (instr.kind == InstrKind::literal) {
    const auto value = std::visit([](auto v) { return static_cast<std::int64_t>(v); }, instr.literal);
    return Affine{0, 0, Dim(value)};
  }
  if (instr.kind != InstrKind::map) return std::nullopt;
  if (instr.op == Op::cast) return affine(kernel, instr.args[0], i, j);
  if (instr.op != Op::add && instr.op != Op::sub) return std::nullopt;
  const auto a = affine(kernel, instr.args[0], i, j), b = affine(kernel, instr.args[1], i, j);
  return a && b ? std::optional(combined(*a, *b, instr.op == Op::add ? 1 : -1)) : std::nullopt;
}

// difference <= 0, where the coefficient of j is 1 or -1.
std::vector<KeyBound> bound_from(const Affine& difference) {
  if (difference.j == 1) return {{true, -difference.i, Dim(0) - difference.constant}};
  if (difference.j == -1) return {{false, difference.i, difference.constant}};
  return {};
}

// a < b is a - b + 1 <= 0.
std::vector<KeyBound> comparison_bounds(const Affine& a, const Affine& b, Op op) {
  const auto at_most = [](const Affine& lesser, const Affine& greater, std::int64_t strict) {
    Affine difference = combined(lesser, greater, -1);
    difference.constant = difference.constant + Dim(strict);
    return bound_from(difference);
  };
  if (op == Op::less) return at_most(a, b, 1);
  if (op == Op::less_equal) return at_most(a, b, 0);
  if (op == Op::greater) return at_most(b, a, 1);
  if (op == Op::greater_equal) return at_most(b, a, 0);
  if (op != Op::equal) return {};
  std::vector<KeyBound> both = at_most(a, b, 0);
  const std::vector<KeyBound> other = at_most(b, a, 0);
  both.insert(both.end(), other.begin(), other.end());
  return both;
}

// The comparison that holds where `op` does not; not_equal, which bounds nothing, for the rest.
Op negated(Op op) {
  if (op == Op::less) return Op::greater_equal;
  if (op == Op::less_equal) return Op::greater;
  if (op == Op::greater) return Op::less_equal;
  if (op == Op::greater_equal) return Op::less;
  return op == Op::not_equal ? Op::equal : Op::not_equal;
}

// Adds bounds that hold wherever `condition` does (where it does not, if not `holds`); whether it holds wherever they
// do.
bool bound_condition(const Kernel& kernel, InstrId condition, bool holds, int i, int j, std::vector<KeyBound>& bounds) {
  const Instr& instr = kernel.instr(condition);
  if (instr.kind != InstrKind::map) return false;
  if (instr.op == Op::logical_not) return bound_condition(kernel, instr.args[0], !holds, i, j, bounds);
  if (instr.op == (holds ? Op::logical_and : Op::logical_or)) {
    const bool first = bound_condition(kernel, instr.args[0], holds, i, j, bounds);
    return bound_condition(kernel, instr.args[1], holds, i, j, bounds) && first;
  }
  if (instr.args.size() != 2) return false;
  const auto a = affine(kernel, instr.args[0], i, j), b = affine(kernel, instr.args[1], i, j);
  if (!a || !b) return false;
  const std::vector<KeyBound> found = comparison_bounds(*a, *b, holds ? instr.op : negated(instr.op));
  bounds.insert(bounds.end(), found.begin(), found.end());
  return !found.empty();
}

bool is_minus_infinity(const Kernel& kernel, InstrId id) {
  const Instr& instr = kernel.instr(behind_casts(kernel, id));
  if (instr.kind != InstrKind::literal || !is_real(instr.dtype)) return false;
  const auto value = std::visit([](auto v) { return static_cast<double>(v); }, instr.literal);
  return value < 0 && value * 2 == value && value != 0;
}

// Whether the selection's other branch is kept where its condition holds; nothing where it is no mask.
std::optional<bool> mask_of(const Kernel& kernel, const Instr& instr) {
  if (instr.kind != InstrKind::map || instr.op != Op::where) return std::nullopt;
  if (is_minus_infinity(kernel, instr.args[2])) return true;
  return is_minus_infinity(kernel, instr.args[1]) ? std::optional(false) : std::nullopt;
}

}  // namespace

KeyMasks key_masks(const Kernel& kernel) {
  const int i = static_cast<int>(kernel.axes.size()) - 4, j = i + 2;
  KeyMasks masks{{}, kernel.attention.score, true};
  InstrId score = kernel.attention.score;
  for (int depth = 0; depth < kMostMasks; ++depth) {
    const InstrId selection = behind_casts(kernel, score);
    const auto kept = mask_of(kernel, kernel.instr(selection));
    if (!kept) break;
    const std::vector<InstrId>& args = kernel.instr(selection).args;
    if (!bound_condition(kernel, args[0], *kept, i, j, masks.bounds)) masks.complete = false;
    if (selection != score) masks.complete = false;  // a cast stands between
    score = args[*kept ? 1 : 2];
    if (selection == masks.open) masks.open = score;
  }
  return masks;
}

}  // namespace tenon::codegen

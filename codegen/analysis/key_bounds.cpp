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

// Bounds that hold wherever `condition` does (where it does not, if not `holds`).
std::vector<KeyBound> condition_bounds(const Kernel& kernel, InstrId condition, bool holds, int i, int j) {
  const Instr& instr = kernel.instr(condition);
  if (instr.kind != InstrKind::map) return {};
  if (instr.op == Op::logical_not) return condition_bounds(kernel, instr.args[0], !holds, i, j);
  if (instr.op == (holds ? Op::logical_and : Op::logical_or)) {
    std::vector<KeyBound> bounds = condition_bounds(kernel, instr.args[0], holds, i, j);
    const std::vector<KeyBound> more = condition_bounds(kernel, instr.args[1], holds, i, j);
    bounds.insert(bounds.end(), more.begin(), more.end());
    return bounds;
  }
  if (instr.args.size() != 2) return {};
  const auto a = affine(kernel, instr.args[0], i, j), b = affine(kernel, instr.args[1], i, j);
  if (!a || !b) return {};
  return comparison_bounds(*a, *b, holds ? instr.op : negated(instr.op));
}

bool is_minus_infinity(const Kernel& kernel, InstrId id) {
  const Instr& instr = kernel.instr(behind_casts(kernel, id));
  if (instr.kind != InstrKind::literal || !is_real(instr.dtype)) return false;
  const auto value = std::visit([](auto v) { return static_cast<double>(v); }, instr.literal);
  return value < 0 && value * 2 == value && value != 0;
}

// Where `score` is not -inf: through casts and selections against -inf.
void mask_bounds(const Kernel& kernel, InstrId score, int i, int j, int depth, std::vector<KeyBound>& bounds) {
  const Instr& instr = kernel.instr(behind_casts(kernel, score));
  if (instr.kind != InstrKind::map || depth == 0) return;
  const auto add = [&](const std::vector<KeyBound>& found) { bounds.insert(bounds.end(), found.begin(), found.end()); };
  if (instr.op == Op::where) {
    if (is_minus_infinity(kernel, instr.args[2])) {
      add(condition_bounds(kernel, instr.args[0], true, i, j));
      mask_bounds(kernel, instr.args[1], i, j, depth - 1, bounds);
    } else if (is_minus_infinity(kernel, instr.args[1])) {
      add(condition_bounds(kernel, instr.args[0], false, i, j));
      mask_bounds(kernel, instr.args[2], i, j, depth - 1, bounds);
    }
  }
}

}  // namespace

std::vector<KeyBound> key_bounds(const Kernel& kernel) {
  std::vector<KeyBound> bounds;
  const int i = static_cast<int>(kernel.axes.size()) - 4, j = i + 2;
  mask_bounds(kernel, kernel.attention.score, i, j, kMostMasks, bounds);
  return bounds;
}

}  // namespace tenon::codegen

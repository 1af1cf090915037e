// See position_bounds.h.
#include "codegen/analysis/position_bounds.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace tenon::codegen {
namespace {

using ir::Op;

// Whether sums with the value stay in 64 bits.
bool is_small(const Instr& instr) {
  return instr.kind == InstrKind::index || (is_integer(instr.dtype) && size_of(instr.dtype) <= 4);
}

// The comparison that holds where `op` does not; not_equal, which bounds nothing, for the rest.
Op negated(Op op) {
  if (op == Op::less) return Op::greater_equal;
  if (op == Op::less_equal) return Op::greater;
  if (op == Op::greater) return Op::less_equal;
  if (op == Op::greater_equal) return Op::less;
  return op == Op::not_equal ? Op::equal : Op::not_equal;
}

class Search {
 public:
  Search(const Kernel& kernel, std::uint64_t positions, std::uint64_t batch)
      : kernel_(kernel), positions_(positions), batch_(batch) {}

  bool add(const MaskCondition& mask, std::vector<PositionBound>& bounds) const {
    const Instr& instr = kernel_.instr(mask.condition);
    if (instr.kind != InstrKind::map) return false;
    if (instr.op == Op::logical_not) return add({instr.args[0], !mask.holds}, bounds);
    if (instr.op == (mask.holds ? Op::logical_and : Op::logical_or)) {
      const bool first = add({instr.args[0], mask.holds}, bounds);
      return add({instr.args[1], mask.holds}, bounds) && first;
    }
    if (instr.args.size() != 2) return false;
    const auto a = affine(instr.args[0]), b = affine(instr.args[1]);
    if (!a || !b) return false;
    const std::vector<PositionBound> found = comparison(*a, *b, mask.holds ? instr.op : negated(instr.op));
    bounds.insert(bounds.end(), found.begin(), found.end());
    return !found.empty();
  }

 private:
  using Affine = PositionBound;  // the sum itself

  Affine constant(Dim value) const {
    return {std::vector<std::int64_t>(kernel_.axes.size(), 0), std::move(value), -1, 0};
  }

  std::optional<Affine> affine(const Index& index) const {
    Affine sum = constant(index.constant());
    for (const IndexTerm& term : index.terms()) {
      if (term.atom->kind != IndexAtom::Kind::axis || !term.coefficient.is_constant()) return std::nullopt;
      if ((positions_ >> term.atom->id & 1) == 0) return std::nullopt;
      sum.slopes[static_cast<std::size_t>(term.atom->id)] += term.coefficient.constant();
    }
    return sum;
  }

  std::optional<Affine> affine(InstrId id) const {
    const Instr& instr = kernel_.instr(id);
    if (!is_integer(instr.dtype) || size_of(instr.dtype) < 4) return std::nullopt;
    if (instr.kind == InstrKind::literal)
      return constant(Dim(std::visit([](auto v) { return static_cast<std::int64_t>(v); }, instr.literal)));
    if (instr.kind == InstrKind::index)
      if (const auto positions = affine(instr.index)) return positions;
    if ((instr.depends & ~batch_) == 0) {
      Affine value = constant(Dim(0));
      value.value = id, value.sign = 1;
      return value;
    }
    if (instr.kind != InstrKind::map) return std::nullopt;
    if (instr.op == Op::cast) return affine(instr.args[0]);
    if (instr.op != Op::add && instr.op != Op::sub) return std::nullopt;
    const auto a = affine(instr.args[0]), b = affine(instr.args[1]);
    if (!a || !b) return std::nullopt;
    // What is added wraps in its own dtype.
    for (const Affine& side : {*a, *b})
      if (side.value >= 0 && (size_of(instr.dtype) < 8 || !is_small(kernel_.instr(side.value)))) return std::nullopt;
    const auto sum = combined(*a, *b, instr.op == Op::add ? 1 : -1);
    return sum && fits(*sum, instr.dtype) ? sum : std::nullopt;
  }

  // Whether no sum wraps in the dtype; positions along axes and sizes that are unknown are as small as 32 bits hold.
  bool fits(const Affine& sum, DType dtype) const {
    constexpr std::int64_t kUnknown = 1 << 29;
    if (size_of(dtype) == 8) return true;
    const auto size = [&](const Dim& dim) {
      if (dim.is_constant()) return std::abs(static_cast<double>(dim.constant()));
      const SymbolBounds range = dim.bounds(kernel_.symbols);
      return static_cast<double>(std::min(kUnknown, std::max(range.max, -std::max(range.min, -kUnknown))));
    };
    double greatest = size(sum.constant);
    for (std::size_t axis = 0; axis < sum.slopes.size(); ++axis)
      greatest += std::abs(static_cast<double>(sum.slopes[axis])) * size(kernel_.axes[axis].extent);
    return greatest <= std::numeric_limits<std::int32_t>::max();
  }

  // One of them has no value.
  static std::optional<Affine> combined(const Affine& a, const Affine& b, int sign) {
    if (a.value >= 0 && b.value >= 0) return std::nullopt;
    Affine sum = a;
    for (std::size_t axis = 0; axis < sum.slopes.size(); ++axis) sum.slopes[axis] += sign * b.slopes[axis];
    sum.constant = a.constant + b.constant * Dim(sign);
    if (b.value >= 0) sum.value = b.value, sum.sign = sign * b.sign;
    return sum;
  }

  // a < b is a - b + 1 <= 0.
  static std::vector<PositionBound> comparison(const Affine& a, const Affine& b, Op op) {
    const auto at_most = [](const Affine& lesser, const Affine& greater, std::int64_t strict) {
      std::vector<PositionBound> bound;
      if (auto difference = combined(lesser, greater, -1)) {
        difference->constant = difference->constant + Dim(strict);
        bound.push_back(*difference);
      }
      return bound;
    };
    if (op == Op::less) return at_most(a, b, 1);
    if (op == Op::less_equal) return at_most(a, b, 0);
    if (op == Op::greater) return at_most(b, a, 1);
    if (op == Op::greater_equal) return at_most(b, a, 0);
    if (op != Op::equal) return {};
    std::vector<PositionBound> both = at_most(a, b, 0);
    const std::vector<PositionBound> other = at_most(b, a, 0);
    both.insert(both.end(), other.begin(), other.end());
    return both;
  }

  const Kernel& kernel_;
  std::uint64_t positions_, batch_;
};

}  // namespace

bool add_position_bounds(const Kernel& kernel, const MaskCondition& mask, std::uint64_t positions, std::uint64_t batch,
                         std::vector<PositionBound>& bounds) {
  return Search(kernel, positions, batch).add(mask, bounds);
}

}  // namespace tenon::codegen

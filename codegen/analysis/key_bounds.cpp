// See key_bounds.h.
#include "codegen/analysis/key_bounds.h"

#include <optional>

#include "codegen/kernel/uses.h"

namespace tenon::codegen {
namespace {

using ir::Op;

constexpr int kMostMasks = 8;  // one on the other

// An integer value as i_slope * i + j_slope * j + constant + sign * value.
struct Affine {
  std::int64_t i = 0, j = 0;
  Dim constant;
  InstrId value = -1;
  int sign = 0;
};

// Whether sums with the value stay in 64 bits.
bool is_small(const Instr& instr) {
  return instr.kind == InstrKind::index || (is_integer(instr.dtype) && size_of(instr.dtype) <= 4);
}

class Bounds {
 public:
  explicit Bounds(const Kernel& kernel)
      : kernel_(kernel),
        i_(static_cast<int>(kernel.axes.size()) - 4),
        j_(i_ + 2),
        batch_((std::uint64_t{1} << i_) - 1) {}

  // Adds bounds that hold wherever the condition does; whether it holds wherever they do.
  bool add(const MaskCondition& mask, std::vector<KeyBound>& bounds) const {
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
    const std::vector<KeyBound> found = comparison(*a, *b, mask.holds ? instr.op : negated(instr.op));
    bounds.insert(bounds.end(), found.begin(), found.end());
    return !found.empty();
  }

 private:
  std::optional<Affine> affine(const Index& index) const {
    Affine sum;
    sum.constant = index.constant();
    for (const IndexTerm& term : index.terms()) {
      if (term.atom->kind != IndexAtom::Kind::axis || !term.coefficient.is_constant()) return std::nullopt;
      if (term.atom->id != i_ && term.atom->id != j_) return std::nullopt;
      (term.atom->id == i_ ? sum.i : sum.j) += term.coefficient.constant();
    }
    return sum;
  }

  std::optional<Affine> affine(InstrId id) const {
    const Instr& instr = kernel_.instr(id);
    if (!is_integer(instr.dtype) || size_of(instr.dtype) < 4) return std::nullopt;
    if (instr.kind == InstrKind::literal) {
      const auto value = std::visit([](auto v) { return static_cast<std::int64_t>(v); }, instr.literal);
      return Affine{0, 0, Dim(value)};
    }
    if (instr.kind == InstrKind::index)
      if (const auto positions = affine(instr.index)) return positions;
    if ((instr.depends & ~batch_) == 0) return Affine{0, 0, Dim(0), id, 1};
    if (instr.kind != InstrKind::map) return std::nullopt;
    if (instr.op == Op::cast) return affine(instr.args[0]);
    if (instr.op != Op::add && instr.op != Op::sub) return std::nullopt;
    const auto a = affine(instr.args[0]), b = affine(instr.args[1]);
    if (!a || !b) return std::nullopt;
    // What is added wraps in its own dtype.
    for (const Affine& side : {*a, *b})
      if (side.value >= 0 && (size_of(instr.dtype) < 8 || !is_small(kernel_.instr(side.value)))) return std::nullopt;
    return combined(*a, *b, instr.op == Op::add ? 1 : -1);
  }

  // One of them has no value.
  static std::optional<Affine> combined(const Affine& a, const Affine& b, int sign) {
    if (a.value >= 0 && b.value >= 0) return std::nullopt;
    Affine sum{a.i + sign * b.i, a.j + sign * b.j, a.constant + b.constant * Dim(sign)};
    sum.value = a.value >= 0 ? a.value : b.value;
    sum.sign = a.value >= 0 ? a.sign : sign * b.sign;
    return sum;
  }

  // difference <= 0, where the coefficient of j is 1 or -1.
  static std::vector<KeyBound> bound_from(const Affine& difference) {
    if (difference.j == 1)
      return {{true, -difference.i, Dim(0) - difference.constant, difference.value, difference.sign > 0}};
    if (difference.j == -1) return {{false, difference.i, difference.constant, difference.value, difference.sign < 0}};
    return {};
  }

  // a < b is a - b + 1 <= 0.
  static std::vector<KeyBound> comparison(const Affine& a, const Affine& b, Op op) {
    const auto at_most = [](const Affine& lesser, const Affine& greater, std::int64_t strict) -> std::vector<KeyBound> {
      auto difference = combined(lesser, greater, -1);
      if (!difference) return {};
      difference->constant = difference->constant + Dim(strict);
      return bound_from(*difference);
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
  static Op negated(Op op) {
    if (op == Op::less) return Op::greater_equal;
    if (op == Op::less_equal) return Op::greater;
    if (op == Op::greater) return Op::less_equal;
    if (op == Op::greater_equal) return Op::less;
    return op == Op::not_equal ? Op::equal : Op::not_equal;
  }

  const Kernel& kernel_;
  int i_, j_;
  std::uint64_t batch_;
};

// Whether the selection's other branch is kept where its condition holds; nothing where it is no mask.
std::optional<bool> mask_of(const Kernel& kernel, const Instr& instr) {
  if (instr.kind != InstrKind::map || instr.op != Op::where) return std::nullopt;
  if (is_minus_infinity(kernel, instr.args[2])) return true;
  return is_minus_infinity(kernel, instr.args[1]) ? std::optional(false) : std::nullopt;
}

}  // namespace

bool leaves_each_query_a_key(const Kernel& kernel, const MaskCondition& mask) {
  std::vector<KeyBound> bounds;
  if (!Bounds(kernel).add(mask, bounds)) return false;
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
  const Bounds bounds(kernel);
  KeyMasks masks;
  masks.open = kernel.attention.score;
  InstrId score = kernel.attention.score;
  for (int depth = 0; depth < kMostMasks; ++depth) {
    const InstrId selection = behind_casts(kernel, score);
    const auto kept = mask_of(kernel, kernel.instr(selection));
    if (!kept) break;
    const std::vector<InstrId>& args = kernel.instr(selection).args;
    const MaskCondition condition{args[0], *kept};
    if (!bounds.add(condition, masks.bounds)) masks.others.push_back(condition);
    if (selection != score) masks.exact = false;  // a cast stands between
    score = args[*kept ? 1 : 2];
    if (selection == masks.open) masks.open = score;
  }
  return masks;
}

}  // namespace tenon::codegen

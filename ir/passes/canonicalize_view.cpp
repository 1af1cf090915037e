// Views and reductions: those that change nothing go, chains of one kind become one, views of constants are
// constants, and axes are written sorted, from the front and in full.
#include <algorithm>

#include "ir/graph/build.h"
#include "ir/graph/view.h"
#include "ir/ops/infer.h"
#include "ir/passes/canonical.h"

namespace tenon::ir {
namespace {

using Dims = std::vector<Dim>;
using Ints = std::vector<std::int64_t>;

constexpr std::int64_t kMaxStep = std::int64_t{1} << 31;  // products of steps stay within 64 bits

ValueId reshape(Canonical& c, ValueId x, const Draft& draft) {
  return c.append({Op::reshape, {x}, {{"shape", draft.type.shape}}, draft.type, draft.place});
}

std::optional<ValueId> canonical_reshape(Canonical& c, Draft& draft) {
  const ValueId x = draft.operands[0];
  if (c.type(x).shape == draft.type.shape) return x;
  if (const auto inner = c.under(Op::reshape, x)) return reshape(c, *inner, draft);
  draft.attrs.set("shape", draft.type.shape);
  return std::nullopt;
}

// Whether the axes that are not constant 1 keep their order: then no element moves.
bool moves_nothing(const std::vector<int>& perm, const Shape& shape) {
  int last = -1;
  for (int axis : perm) {
    if (shape[static_cast<std::size_t>(axis)].is(1)) continue;
    if (axis < last) return false;
    last = axis;
  }
  return true;
}

std::optional<ValueId> canonical_transpose(Canonical& c, Draft& draft) {
  const ValueId x = draft.operands[0];
  const int rank = static_cast<int>(c.type(x).shape.size());
  std::vector<int> perm = permutation(draft.attrs, rank);
  if (std::is_sorted(perm.begin(), perm.end())) return x;
  if (moves_nothing(perm, c.type(x).shape)) return reshape(c, x, draft);
  if (const auto inner = c.under(Op::transpose, x)) {
    const std::vector<int> first = permutation(c.producer(x).attrs, rank);
    for (int& axis : perm) axis = first[static_cast<std::size_t>(axis)];
    draft.operands = {*inner};
    draft.attrs.set("perm", Ints(perm.begin(), perm.end()));
    return c.append(draft);
  }
  draft.attrs.set("perm", Ints(perm.begin(), perm.end()));
  return std::nullopt;
}

std::optional<ValueId> canonical_broadcast(Canonical& c, Draft& draft) {
  const ValueId x = draft.operands[0];
  if (c.type(x).shape == draft.type.shape) return x;
  if (const auto inner = c.under(Op::broadcast_to, x)) {
    draft.operands = {*inner};
    return c.append(draft);
  }
  const Shape from = c.type(x).shape;
  const std::size_t added = draft.type.shape.size() - from.size();
  const bool grows =
      !std::equal(from.begin(), from.end(), draft.type.shape.begin() + static_cast<std::ptrdiff_t>(added)) ||
      std::any_of(draft.type.shape.begin(), draft.type.shape.begin() + static_cast<std::ptrdiff_t>(added),
                  [](const Dim& extent) { return !extent.is(1); });
  if (!grows) return reshape(c, x, draft);
  return std::nullopt;
}

// ---- slice, flip, pad, concat, take -------------------------------------------------------------------------------

bool reads_all(const SliceRange& range, const Dim& extent) {
  return range.start.is(0) && range.step == 1 && range.extent == extent;
}

bool is_constant(const std::vector<SliceRange>& ranges) {
  return std::all_of(ranges.begin(), ranges.end(), [](const SliceRange& range) {
    return range.start.is_constant() && range.extent.is_constant() && range.step >= -kMaxStep && range.step <= kMaxStep;
  });
}

// Attributes that resolve to `ranges` again, naming only the axes that are cut. For constant ranges.
Attrs spelled(const std::vector<SliceRange>& ranges, const Shape& shape) {
  Ints axes, steps;
  Dims starts, stops;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    SliceRange range = ranges[i];
    if (reads_all(range, shape[i])) continue;
    if (range.extent.constant() <= 1) range.step = 1;
    const std::int64_t last = range.start.constant() + (range.extent.constant() - 1) * range.step;
    const std::int64_t stop = range.extent.is(0) ? 0 : range.step > 0 ? last + 1 : last == 0 ? kSliceEnd : last - 1;
    axes.push_back(static_cast<std::int64_t>(i));
    starts.push_back(range.extent.is(0) ? Dim(0) : range.start);
    stops.push_back(Dim(stop));
    steps.push_back(range.step);
  }
  Attrs attrs{{"axis", axes}, {"start", starts}, {"stop", stops}};
  if (std::any_of(steps.begin(), steps.end(), [](std::int64_t step) { return step != 1; })) attrs.set("step", steps);
  return attrs;
}

// One slice for two: element i of the outer is element outer.start + i * outer.step of the inner.
std::vector<SliceRange> composed(const std::vector<SliceRange>& inner, const std::vector<SliceRange>& outer) {
  std::vector<SliceRange> ranges;
  for (std::size_t i = 0; i < inner.size(); ++i)
    ranges.push_back(
        {inner[i].start + outer[i].start * Dim(inner[i].step), inner[i].step * outer[i].step, outer[i].extent});
  return ranges;
}

std::optional<ValueId> canonical_slice(Canonical& c, Draft& draft) {
  const ValueId x = draft.operands[0];
  const Shape shape = c.type(x).shape;
  const std::vector<SliceRange> ranges = slice_ranges(draft.attrs, shape, c.graph().symbols);
  bool all = true;
  for (std::size_t i = 0; i < ranges.size(); ++i) all = all && reads_all(ranges[i], shape[i]);
  if (all) return x;
  const bool constant =
      std::all_of(shape.begin(), shape.end(), [](const Dim& d) { return d.is_constant(); }) && is_constant(ranges);
  if (!constant) return std::nullopt;
  if (const auto inner = c.under(Op::slice, x)) {
    const Shape from = c.type(*inner).shape;
    const std::vector<SliceRange> first = slice_ranges(c.producer(x).attrs, from, c.graph().symbols);
    const std::vector<SliceRange> both = composed(first, ranges);
    if (is_constant(first) && is_constant(both)) {
      draft.operands = {*inner};
      draft.attrs = spelled(both, from);
      return c.append(draft);
    }
  }
  draft.attrs = spelled(ranges, shape);
  return std::nullopt;
}

std::optional<ValueId> canonical_flip(Canonical& c, Draft& draft) {
  const ValueId x = draft.operands[0];
  Ints axes;
  for (int axis : flipped_axes(draft.attrs, static_cast<int>(draft.type.shape.size())))
    if (!draft.type.shape[static_cast<std::size_t>(axis)].is(1)) axes.push_back(axis);
  if (axes.empty()) return x;
  draft.attrs.set("axis", axes);
  const auto inner = c.under(Op::flip, x);
  return inner && c.producer(x).attrs == draft.attrs ? inner : std::nullopt;
}

std::optional<ValueId> canonical_pad(Canonical& c, Draft& draft) {
  for (std::string_view side : {"low", "high"})
    for (const Dim& amount : draft.attrs.get<Dims>(side))
      if (!amount.is(0)) return std::nullopt;
  (void)c;
  return draft.operands[0];
}

std::optional<ValueId> canonical_concat(Canonical& c, Draft& draft) {
  const int axis =
      normalize_axis(draft.attrs.get_or<std::int64_t>("axis", 0), static_cast<int>(draft.type.shape.size()));
  std::vector<ValueId> pieces;
  for (ValueId operand : draft.operands)
    if (!c.type(operand).shape[static_cast<std::size_t>(axis)].is(0)) pieces.push_back(operand);
  if (pieces.empty()) pieces.push_back(draft.operands[0]);
  if (pieces.size() == 1) return pieces[0];
  draft.operands = pieces;
  draft.attrs.set("axis", std::int64_t{axis});
  return std::nullopt;
}

void spell_take(Canonical& c, Draft& draft) {
  const int rank = static_cast<int>(c.type(draft.operands[0]).shape.size());
  draft.attrs.set("axis", std::int64_t{normalize_axis(draft.attrs.get_or<std::int64_t>("axis", 0), rank)});
}

// Every element of a view of a constant is that constant; pad and concat bring in others.
std::optional<ValueId> view_of_constant(Canonical& c, const Draft& draft) {
  if (draft.op == Op::pad || draft.op == Op::concat) return std::nullopt;
  if (draft.op == Op::take && !at_least(element_count(c.type(draft.operands[0]).shape), 1, c.graph().symbols))
    return std::nullopt;
  const auto value = c.constant(draft.operands[0]);
  return value ? std::optional(c.full(draft.type, *value, draft.place)) : std::nullopt;
}

}  // namespace

std::optional<ValueId> canonical_view(Canonical& c, Draft& draft) {
  if (auto known = view_of_constant(c, draft)) return known;
  if (draft.op == Op::reshape) return canonical_reshape(c, draft);
  if (draft.op == Op::transpose) return canonical_transpose(c, draft);
  if (draft.op == Op::broadcast_to) return canonical_broadcast(c, draft);
  if (draft.op == Op::slice) return canonical_slice(c, draft);
  if (draft.op == Op::flip) return canonical_flip(c, draft);
  if (draft.op == Op::pad) return canonical_pad(c, draft);
  if (draft.op == Op::concat) return canonical_concat(c, draft);
  if (draft.op == Op::take) spell_take(c, draft);
  return std::nullopt;
}

// A reduction over extents of 1 gives the one element, a real sum that element + 0 (0 + -0 is +0), an index 0.
std::optional<ValueId> canonical_reduce(Canonical& c, Draft& draft) {
  const ValueId x = draft.operands[0];
  const Shape& shape = c.type(x).shape;
  const Node node{draft.op, {}, draft.attrs, {}, {}};
  const std::vector<int> axes = reduced_axes(node, static_cast<int>(shape.size()));
  const bool trivial =
      std::all_of(axes.begin(), axes.end(), [&](int axis) { return shape[static_cast<std::size_t>(axis)].is(1); });
  if (trivial && info(draft.op).yields == Yields::Index) return c.full(draft.type, std::int64_t{0}, draft.place);
  if (trivial && info(draft.op).yields == Yields::Same && draft.type.dtype == c.type(x).dtype) {
    if (draft.op != Op::sum || !is_real(draft.type.dtype)) return reshape(c, x, draft);
    const ValueId zero = c.full({draft.type.dtype, {}}, 0.0, draft.place);
    return reshape(c, c.append(Op::add, {x, zero}, {}, draft.place), draft);
  }
  if (auto known = canonical_row_quantifier(c, draft)) return known;
  Attrs attrs{{"axis", Ints(axes.begin(), axes.end())}};
  for (const auto& [name, value] : draft.attrs.items())
    if (name != "axis") attrs.set(name, value);
  draft.attrs = attrs;
  return std::nullopt;
}

}  // namespace tenon::ir

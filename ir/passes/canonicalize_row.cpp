// Conditions that hold for whole rows are asked of the row. A weight of a softmax, exp(x - max) / sum, is NaN where the
// row's sum is NaN, or 0 where nothing guards the division, and so are all of its row; a row has an element other than
// -inf where its maximum is another. What exporters guard rows without keys by is then one number a row.
#include <cmath>

#include "ir/graph/build.h"
#include "ir/passes/canonical.h"

namespace tenon::ir {
namespace {

bool is_constant(const Canonical& c, ValueId value, double wanted) {
  const auto constant = c.constant(value);
  const double* real = constant ? std::get_if<double>(&*constant) : nullptr;
  return real != nullptr && *real == wanted;
}

ValueId behind_casts(const Canonical& c, ValueId value) {
  while (true) {
    const auto inner = c.under(Op::cast, value);
    if (!inner || !is_real(c.type(*inner).dtype) || !is_real(c.type(value).dtype)) return value;
    value = *inner;
  }
}

// `x` of where(x == at, instead, x); nothing for another value.
std::optional<ValueId> guarded(const Canonical& c, ValueId value, double at, double instead) {
  const Node& select = c.producer(value);
  if (select.op != Op::where || !is_constant(c, select.operands[1], instead)) return std::nullopt;
  const Node& test = c.producer(select.operands[0]);
  const bool same = test.op == Op::equal && test.operands[0] == select.operands[2];
  return same && is_constant(c, test.operands[1], at) ? std::optional(select.operands[2]) : std::nullopt;
}

// The reduction `op`, dimensions kept, that `value` is; null for another value.
const Node* reduction(const Canonical& c, Op op, ValueId value) {
  const Node& node = c.producer(behind_casts(c, value));
  return node.op == op && node.attrs.get_or<bool>("keepdims", false) ? &node : nullptr;
}

std::vector<int> axes_of(const Canonical& c, const Node& reduce) {
  return reduced_axes(reduce, static_cast<int>(c.type(reduce.operands[0]).shape.size()));
}

// Whether `weight` is exp(x - max(x)), or by 0 for a maximum of -inf, with the maximum over `axes`.
bool is_weight(const Canonical& c, ValueId weight, const std::vector<int>& axes) {
  const auto difference = c.under(Op::exp, weight);
  if (!difference || c.producer(*difference).op != Op::sub) return false;
  const std::vector<ValueId>& operands = c.producer(*difference).operands;
  const Node* maximum = reduction(c, Op::max, guarded(c, operands[1], -HUGE_VAL, 0).value_or(operands[1]));
  return maximum != nullptr && maximum->operands[0] == operands[0] && axes_of(c, *maximum) == axes &&
         c.type(operands[0]).shape == c.type(weight).shape;
}

// Whether a softmax's weight is NaN.
std::optional<ValueId> row_is_nan(Canonical& c, const Draft& draft) {
  const Node& share = c.producer(behind_casts(c, draft.operands[0]));
  if (share.op != Op::div) return std::nullopt;
  const ValueId divisor = share.operands[1];
  const auto guarded_sum = guarded(c, divisor, 0, 1);
  const Node* sum = reduction(c, Op::sum, guarded_sum.value_or(divisor));
  const ValueId weight = behind_casts(c, share.operands[0]);
  if (sum == nullptr || behind_casts(c, sum->operands[0]) != weight || !is_weight(c, weight, axes_of(c, *sum)))
    return std::nullopt;
  const Place place = draft.place;
  ValueId bad = c.append(Op::isnan, {divisor}, {}, place);
  if (!guarded_sum) {
    const ValueId zero = c.full({c.type(divisor).dtype, {}}, 0.0, place);
    bad = c.append(Op::logical_or, {bad, c.append(Op::equal, {divisor, zero}, {}, place)}, {}, place);
  }
  return c.broadcast(bad, draft);
}

}  // namespace

std::optional<ValueId> canonical_row_test(Canonical& c, const Draft& draft) {
  const std::vector<ValueId>& x = draft.operands;
  if (draft.op == Op::isnan) return row_is_nan(c, draft);
  return draft.op == Op::not_equal && x[0] == x[1] && is_real(c.type(x[0]).dtype) ? row_is_nan(c, draft) : std::nullopt;
}

std::optional<ValueId> canonical_row_quantifier(Canonical& c, const Draft& draft) {
  if (draft.op != Op::any && draft.op != Op::all) return std::nullopt;
  Op wanted = draft.op == Op::any ? Op::not_equal : Op::equal;
  ValueId condition = draft.operands[0];
  while (const auto opposite = c.under(Op::logical_not, condition)) {
    condition = *opposite;
    wanted = wanted == Op::equal ? Op::not_equal : Op::equal;
  }
  const Node test = c.producer(condition);
  if (test.op != wanted) return std::nullopt;
  const bool left = is_constant(c, test.operands[0], -HUGE_VAL);
  const ValueId x = test.operands[left ? 1 : 0], infinity = test.operands[left ? 0 : 1];
  if (!is_constant(c, infinity, -HUGE_VAL) || c.type(x).shape != c.type(condition).shape) return std::nullopt;
  const ValueId maximum = c.append(Op::max, {x}, draft.attrs, draft.place);
  const ValueId bound = c.full({c.type(x).dtype, {}}, -HUGE_VAL, draft.place);
  return c.append(draft.op == Op::any ? Op::not_equal : Op::equal, {maximum, bound}, {}, draft.place);
}

}  // namespace tenon::ir

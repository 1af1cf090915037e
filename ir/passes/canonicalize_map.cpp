// Algebra of maps, as tables: neutral and absorbing operands, functions that undo or repeat themselves. NaN, signed
// zeros and infinities keep their bits: x + 0 stays (-0 + 0 is +0), x - 0 and x + -0 go.
#include <bit>
#include <cmath>

#include "ir/graph/build.h"
#include "ir/passes/canonical.h"

namespace tenon::ir {
namespace {

enum class Side : std::uint8_t { right, both };
enum class Domain : std::uint8_t { real, other, any };  // other = integers and bool

// op(x, value) = x
struct Neutral {
  Op op;
  Side side;
  Domain domain;
  double value;
};

constexpr Neutral kNeutral[] = {
    {Op::add, Side::both, Domain::real, -0.0},       {Op::add, Side::both, Domain::other, 0},
    {Op::sub, Side::right, Domain::any, 0},          {Op::mul, Side::both, Domain::any, 1},
    {Op::div, Side::right, Domain::real, 1},         {Op::floor_div, Side::right, Domain::other, 1},
    {Op::pow, Side::right, Domain::any, 1},          {Op::logical_and, Side::both, Domain::other, 1},
    {Op::logical_or, Side::both, Domain::other, 0},  {Op::logical_xor, Side::both, Domain::other, 0},
    {Op::bitwise_or, Side::both, Domain::other, 0},  {Op::bitwise_xor, Side::both, Domain::other, 0},
    {Op::left_shift, Side::right, Domain::other, 0}, {Op::right_shift, Side::right, Domain::other, 0},
};

// op(x, value) = value
struct Absorbing {
  Op op;
  double value;
};

constexpr Absorbing kAbsorbing[] = {
    {Op::mul, 0},
    {Op::bitwise_and, 0},
    {Op::logical_and, 0},
    {Op::logical_or, 1},
};

constexpr Op kInvolutions[] = {Op::neg, Op::logical_not, Op::bitwise_not};                    // f(f(x)) = x
constexpr Op kIdempotent[] = {Op::abs, Op::sign, Op::floor, Op::ceil, Op::round, Op::trunc};  // f(f(x)) = f(x)
constexpr Op kSelecting[] = {Op::minimum,    Op::maximum,     Op::logical_and,                // f(x, x) = x
                             Op::logical_or, Op::bitwise_and, Op::bitwise_or};

template <std::size_t N>
bool contains(const Op (&ops)[N], Op op) {
  for (Op candidate : ops)
    if (candidate == op) return true;
  return false;
}

bool is_exactly(const Scalar& scalar, double value) {
  if (const auto* real = std::get_if<double>(&scalar))
    return std::bit_cast<std::uint64_t>(*real) == std::bit_cast<std::uint64_t>(value);
  if (const auto* integer = std::get_if<std::int64_t>(&scalar)) return static_cast<double>(*integer) == value;
  return std::get<bool>(scalar) == (value == 1);
}

bool applies(Domain domain, DType dtype) { return domain == Domain::any || (domain == Domain::real) == is_real(dtype); }

std::optional<ValueId> without_neutral(Canonical& c, const Draft& draft) {
  const DType dtype = draft.type.dtype;
  for (const Neutral& rule : kNeutral) {
    if (rule.op != draft.op || !applies(rule.domain, dtype)) continue;
    const auto right = c.constant(draft.operands[1]);
    if (right && is_exactly(*right, rule.value)) return c.broadcast(draft.operands[0], draft);
    const auto left = c.constant(draft.operands[0]);
    if (rule.side == Side::both && left && is_exactly(*left, rule.value)) return c.broadcast(draft.operands[1], draft);
  }
  return std::nullopt;
}

std::optional<ValueId> absorbed(Canonical& c, const Draft& draft) {
  if (is_real(draft.type.dtype)) return std::nullopt;
  for (const Absorbing& rule : kAbsorbing) {
    if (rule.op != draft.op) continue;
    for (ValueId operand : draft.operands)
      if (const auto value = c.constant(operand); value && is_exactly(*value, rule.value))
        return c.full(draft.type, *value, draft.place);
  }
  return std::nullopt;
}

std::optional<ValueId> without_repetition(Canonical& c, const Draft& draft) {
  if (contains(kInvolutions, draft.op)) return c.under(draft.op, draft.operands[0]);
  if (contains(kIdempotent, draft.op) && c.under(draft.op, draft.operands[0])) return draft.operands[0];
  if (contains(kSelecting, draft.op) && draft.operands[0] == draft.operands[1]) return draft.operands[0];
  return std::nullopt;
}

// ---- where --------------------------------------------------------------------------------------------------------

std::optional<ValueId> decided_where(Canonical& c, const Draft& draft) {
  const auto [condition, yes, no] = std::tuple(draft.operands[0], draft.operands[1], draft.operands[2]);
  if (const auto known = c.constant(condition)) return c.broadcast(std::get<bool>(*known) ? yes : no, draft);
  if (yes == no) return c.broadcast(yes, draft);
  if (const auto opposite = c.under(Op::logical_not, condition)) {
    Draft swapped = draft;
    swapped.operands = {*opposite, no, yes};
    return c.append(swapped);
  }
  return std::nullopt;
}

// ---- casts --------------------------------------------------------------------------------------------------------

// Whether every value of `from` is a value of `to`, of the same class (or any number for bool).
bool holds_all(DType to, DType from) {
  if (from == DType::bool_) return true;
  if (class_of(from) != class_of(to)) return false;
  if (is_f8(from)) return !is_f8(to) || from == to;
  if (from == DType::u8) return to != DType::i8;
  return size_of(to) > size_of(from) || to == from;
}

std::optional<ValueId> shorter_cast(Canonical& c, const Draft& draft) {
  const ValueId x = draft.operands[0];
  const DType to = draft.type.dtype;
  if (c.type(x).dtype == to && c.is_rounded(x)) return x;
  const auto inner = c.under(Op::cast, x);
  if (!inner || c.type(*inner).dtype == c.type(x).dtype || !holds_all(c.type(x).dtype, c.type(*inner).dtype))
    return std::nullopt;
  Draft direct = draft;
  direct.operands = {*inner};
  return c.append(direct);
}

std::optional<ValueId> shorter_bitcast(Canonical& c, const Draft& draft) {
  const ValueId x = draft.operands[0];
  if (c.type(x).dtype == draft.type.dtype && c.is_rounded(x)) return x;
  return std::nullopt;
}

// ---- x / 2^k ------------------------------------------------------------------------------------------------------

// Multiplying by the reciprocal of a power of two rounds as the division does, where the reciprocal is normal.
std::optional<ValueId> division_as_product(Canonical& c, const Draft& draft) {
  const DType dtype = draft.type.dtype;
  const auto divisor = c.constant(draft.operands[1]);
  if (!divisor || is_f8(dtype)) return std::nullopt;
  int exponent = 0;
  const double value = std::get<double>(*divisor);
  const int limit = dtype == DType::f16 ? 14 : dtype == DType::f64 ? 1000 : 120;
  if (std::fabs(std::frexp(value, &exponent)) != 0.5 || std::abs(exponent) > limit) return std::nullopt;
  const Type literal = c.type(draft.operands[1]);
  Draft product = draft;
  product.op = Op::mul;
  product.operands[1] = c.full(literal, 1 / value, draft.place);
  return c.append(product);
}

// ---- broadcasts ---------------------------------------------------------------------------------------------------

// A map broadcasts its operands itself: explicit broadcasts under it go, where the result keeps its shape without.
void drop_broadcasts(Canonical& c, Draft& draft) {
  for (ValueId& operand : draft.operands) {
    const auto source = c.under(Op::broadcast_to, operand);
    if (!source) continue;
    std::vector<Shape> shapes;
    for (const ValueId& other : draft.operands) shapes.push_back(c.type(&other == &operand ? *source : other).shape);
    if (broadcast(shapes) == draft.type.shape) operand = *source;
  }
}

}  // namespace

std::optional<ValueId> canonical_map(Canonical& c, Draft& draft) {
  drop_broadcasts(c, draft);
  if (draft.operands.size() == 2) {
    if (auto known = without_neutral(c, draft)) return known;
    if (auto known = absorbed(c, draft)) return known;
  }
  if (auto known = without_repetition(c, draft)) return known;
  if (auto known = canonical_row_test(c, draft)) return known;
  if (auto known = canonical_comparison(c, draft)) return known;
  if (draft.op == Op::where) return decided_where(c, draft);
  if (draft.op == Op::cast) return shorter_cast(c, draft);
  if (draft.op == Op::bitcast) return shorter_bitcast(c, draft);
  if (draft.op == Op::div) return division_as_product(c, draft);
  return std::nullopt;
}

}  // namespace tenon::ir

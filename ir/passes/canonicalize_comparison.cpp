// Comparisons of an integer that became a real are comparisons of the integer: whether a random number of 24 bits times
// 2^-24 is 0.1 or more. Only where the real is the integer exactly, but for a power of two.
#include <algorithm>
#include <cmath>

#include "ir/graph/build.h"
#include "ir/ops/formats.h"
#include "ir/passes/canonical.h"

namespace tenon::ir {
namespace {

struct Comparison {
  Op op, mirrored;                // a op b as b mirrored a
  double (*whole)(double bound);  // the integer that stands for a bound between two; null where there is none
};

constexpr Comparison kComparisons[] = {
    {Op::less, Op::greater, std::ceil},  {Op::less_equal, Op::greater_equal, std::floor},
    {Op::greater, Op::less, std::floor}, {Op::greater_equal, Op::less_equal, std::ceil},
    {Op::equal, Op::equal, nullptr},     {Op::not_equal, Op::not_equal, nullptr},
};

const Comparison* comparison(Op op) {
  const auto* const found = std::find_if(std::begin(kComparisons), std::end(kComparisons),
                                         [&](const Comparison& each) { return each.op == op; });
  return found == std::end(kComparisons) ? nullptr : found;
}

// A real that is `integer` times a power of two.
struct Scaled {
  ValueId integer;
  double scale;
};

// An upper bound of the magnitudes of an integer's elements.
double magnitude(const Canonical& c, ValueId integer) {
  const Node& node = c.producer(integer);
  if (node.op == Op::bitwise_and)
    for (const ValueId operand : node.operands)
      if (const auto mask = c.constant(operand); mask && std::get<std::int64_t>(*mask) >= 0)
        return static_cast<double>(std::get<std::int64_t>(*mask));
  const DType dtype = c.type(integer).dtype;
  return std::max(-static_cast<double>(min_value(dtype)), static_cast<double>(max_value(dtype)));
}

std::optional<Scaled> scaled_integer(const Canonical& c, ValueId value) {
  double scale = 1;
  ValueId real = value;
  if (const Node& product = c.producer(value); product.op == Op::mul && is_real(c.type(value).dtype)) {
    const auto right = c.constant(product.operands[1]), left = c.constant(product.operands[0]);
    if (!right && !left) return std::nullopt;
    int exponent = 0;
    scale = std::get<double>(right ? *right : *left);
    if (std::frexp(scale, &exponent) != 0.5) return std::nullopt;
    real = product.operands[right ? 0 : 1];
  }
  const auto integer = c.under(Op::cast, real);
  if (!integer || !is_integer(c.type(*integer).dtype) || !is_real(c.type(real).dtype)) return std::nullopt;
  const RealFormat format = real_format(c.type(real).dtype);
  const double largest = magnitude(c, *integer);
  const bool exact = largest <= std::ldexp(1.0, format.mantissa_bits + 1) && largest <= format.largest &&
                     largest * scale <= format.largest && scale >= std::ldexp(1.0, format.min_exponent);
  return exact ? std::optional(Scaled{*integer, scale}) : std::nullopt;
}

}  // namespace

std::optional<ValueId> canonical_comparison(Canonical& c, const Draft& draft) {
  const Comparison* compared = comparison(draft.op);
  if (compared == nullptr) return std::nullopt;
  const bool on_right = c.constant(draft.operands[1]).has_value();
  const ValueId literal = draft.operands[on_right ? 1 : 0];
  const auto bound = c.constant(literal);
  if (!on_right) compared = comparison(compared->mirrored);
  const auto scaled = scaled_integer(c, draft.operands[on_right ? 0 : 1]);
  if (!bound || !scaled) return std::nullopt;

  const double exactly = std::get<double>(*bound) / scaled->scale;
  const double whole = compared->whole != nullptr ? compared->whole(exactly) : exactly;
  const Type type{c.type(scaled->integer).dtype, c.type(literal).shape};
  const bool fits = whole == std::floor(whole) && std::fabs(whole) <= 0x1p31 &&
                    whole >= static_cast<double>(min_value(type.dtype)) &&
                    whole <= static_cast<double>(max_value(type.dtype));
  const std::vector<Shape> shapes{c.type(scaled->integer).shape, type.shape};
  if (!fits || broadcast(shapes) != draft.type.shape) return std::nullopt;
  Draft of_integers = draft;
  of_integers.op = compared->op;
  of_integers.operands = {scaled->integer, c.full(type, static_cast<std::int64_t>(whole), draft.place)};
  return c.append(of_integers);
}

}  // namespace tenon::ir

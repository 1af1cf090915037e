// Powers by small constants become products, roots and quotients, which cost an instruction or two where pow costs
// thirty. What pow says of zeros, infinities and NaN holds (docs/numerics.md); a finite result is within 3 units in the
// last place, and correctly rounded for the exponents 2 and -1.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "ir/graph/build.h"
#include "ir/ops/evaluate.h"
#include "ir/passes/passes.h"
#include "ir/passes/rewrite.h"

namespace tenon::ir {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::array kRealExponents = {-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0};
constexpr std::int64_t kGreatestExponent = 16;  // of integers: 6 products at most

// What every element of `value` is, as its dtype holds it.
std::optional<Scalar> constant_of(const Graph& graph, ValueId value) {
  const DType dtype = graph.type(value).dtype;
  while (graph.producer(value).op == Op::broadcast_to || graph.producer(value).op == Op::reshape)
    value = graph.producer(value).operands[0];
  const Node& node = graph.producer(value);
  if (node.op != Op::full) return std::nullopt;
  return convert(node.attrs.get<Scalar>("value"), is_real(dtype) ? DType::f64 : dtype, dtype);
}

// Builds a power of one base, of the power's shape.
class Power {
 public:
  Power(Graph& graph, ValueId base, const Place& place) : graph_(graph), base_(base), place_(place) {}

  // The base to a whole number n, by squaring: 0 to 16 of integers, 0 to 4 of reals.
  ValueId whole(ValueId base, std::int64_t n) {
    if (n == 0) return filled(1);
    if (n == 1) return base;
    if (n % 2 == 1) return product(whole(base, n - 1), base);
    const ValueId root = whole(base, n / 2);
    return product(root, root);
  }

  ValueId real(double exponent) {
    if (exponent == 0.5) return unless_minus_infinity(op(Op::sqrt, {positive_zero()}), kInfinity);
    if (exponent == -0.5) return unless_minus_infinity(op(Op::rsqrt, {positive_zero()}), 0);
    if (exponent == 1.5) return unless_minus_infinity(product(base_, op(Op::sqrt, {base_})), kInfinity);
    const auto n = static_cast<std::int64_t>(exponent);
    if (n >= 0) return whole(base_, n);
    return whole(op(Op::reciprocal, {base_}), -n);  // the reciprocal first: 1 / x^2 loses results below the normal ones
  }

 private:
  ValueId op(Op which, std::vector<ValueId> operands) {
    return append_one(graph_, which, std::move(operands), {}, place_);
  }
  ValueId product(ValueId a, ValueId b) { return op(Op::mul, {a, b}); }
  DType dtype() const { return graph_.type(base_).dtype; }
  ValueId literal(double value) { return append_literal(graph_, value, dtype(), place_); }
  ValueId filled(std::int64_t value) {
    const Scalar scalar = is_real(dtype()) ? Scalar(static_cast<double>(value)) : Scalar(value);
    return append_one(graph_, Op::full, {},
                      {{"shape", graph_.type(base_).shape}, {"value", scalar}, {"dtype", dtype()}}, place_);
  }

  // The base with +0 for -0: roots keep the sign, powers do not.
  ValueId positive_zero() { return op(Op::add, {base_, literal(0)}); }
  // A root of -inf is NaN, a power of it is not.
  ValueId unless_minus_infinity(ValueId root, double power) {
    return op(Op::where, {op(Op::equal, {base_, literal(-kInfinity)}), literal(power), root});
  }

  Graph& graph_;
  ValueId base_;
  const Place& place_;
};

bool is_cheap(double exponent) {
  return std::find(kRealExponents.begin(), kRealExponents.end(), exponent) != kRealExponents.end();
}

ValueId broadcast_base(Graph& graph, ValueId base, const Shape& shape, const Place& place) {
  if (graph.type(base).shape == shape) return base;
  return append_one(graph, Op::broadcast_to, {base}, {{"shape", shape}}, place);
}

// The power, where its exponent is one of those; -1 elsewhere. An f8e4m3 has no infinity to compare with.
ValueId expanded(Graph& graph, const Node& node, const std::vector<ValueId>& operands, const Type& type) {
  const std::optional<Scalar> exponent = constant_of(graph, operands[1]);
  if (!exponent) return -1;
  const double* real = std::get_if<double>(&*exponent);
  const std::int64_t* integer = std::get_if<std::int64_t>(&*exponent);
  const bool whole = integer != nullptr && *integer >= 0 && *integer <= kGreatestExponent;
  const bool cheap = real != nullptr && is_cheap(*real);
  const bool root = cheap && *real != std::trunc(*real);
  if (!whole && (!cheap || (root && type.dtype == DType::f8e4m3))) return -1;
  const ValueId base = broadcast_base(graph, operands[0], type.shape, node.place);
  Power power(graph, base, node.place);
  return whole ? power.whole(base, *integer) : power.real(*real);
}

}  // namespace

Graph expand_powers(const Graph& graph) {
  Rewrite rewrite(graph);
  for (const Node& node : graph.nodes) {
    const ValueId power =
        node.op == Op::pow ? expanded(rewrite.graph, node, rewrite.mapped(node.operands), graph.type(node.results[0]))
                           : -1;
    if (power < 0) {
      rewrite.copy(node);
    } else {
      rewrite.replace(node.results[0], power);
    }
  }
  return rewrite.finish();
}

}  // namespace tenon::ir

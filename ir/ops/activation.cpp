// Activations. Those whose constants every dtype holds stay in the operand's dtype: kernels compute 16-bit maps in f32
// and round when they store. The others are cast to f32 first, lest 0.044715 be rounded to 8 bits.
// No branch that `where` leaves untaken makes a NaN out of a number.
#include <fmt/format.h>

#include "ir/ops/composites.h"
#include "ir/ops/infer.h"

namespace tenon::ir {
namespace {

// log(1 + exp(x)) = max(x, 0) + log1p(exp(-|x|)): the exponential never overflows.
ValueId softplus_of(const Expansion& e, ValueId x) {
  const ValueId tail = e(Op::log1p, {e(Op::exp, {e(Op::neg, {e(Op::abs, {x})})})});
  return e(Op::add, {e(Op::maximum, {x, e.literal(0, x)}), tail});
}

// 1 + exp(-x)
ValueId sigmoid_denominator(const Expansion& e, ValueId x) {
  return e(Op::add, {e(Op::exp, {e(Op::neg, {x})}), e.literal(1, x)});
}

ValueId gelu_erf(const Expansion& e, ValueId x) {
  const ValueId scaled = e(Op::mul, {x, e.literal(0.70710678118654752440, x)});  // x / sqrt 2
  return e(Op::mul, {e(Op::mul, {x, e.literal(0.5, x)}), e(Op::add, {e(Op::erf, {scaled}), e.literal(1, x)})});
}

ValueId gelu_tanh(const Expansion& e, ValueId x) {
  const ValueId cube = e(Op::mul, {e(Op::mul, {x, x}), x});
  const ValueId inner = e(Op::add, {x, e(Op::mul, {cube, e.literal(0.044715, x)})});
  const ValueId bent = e(Op::tanh, {e(Op::mul, {inner, e.literal(0.79788456080286535588, x)})});  // sqrt(2 / pi)
  return e(Op::mul, {e(Op::mul, {x, e.literal(0.5, x)}), e(Op::add, {bent, e.literal(1, x)})});
}

}  // namespace

ValueId silu_of(const Expansion& e, ValueId x) { return e(Op::div, {x, sigmoid_denominator(e, x)}); }

std::vector<ValueId> expand_relu(const Expansion& e) {
  const ValueId x = e.operands[0];
  if (e.dtype(x) == DType::bool_)
    type_error(fmt::format("takes numbers, not {}", str(e.type(x))), "cast the operand: cast(x, dtype=f32)");
  return {e(Op::maximum, {x, e.literal(0, x)})};
}

std::vector<ValueId> expand_leaky_relu(const Expansion& e) {
  const ValueId x = e.widened(e.operands[0]);
  const ValueId scaled = e(Op::mul, {x, e.literal(e.attrs.get<double>("negative_slope"), x)});
  return {e.cast(e(Op::where, {e(Op::greater_equal, {x, e.literal(0, x)}), x, scaled}), e.dtype(e.operands[0]))};
}

std::vector<ValueId> expand_elu(const Expansion& e) {
  const ValueId x = e.widened(e.operands[0]), zero = e.literal(0, x);
  const ValueId curve =
      e(Op::mul, {e(Op::expm1, {e(Op::minimum, {x, zero})}), e.literal(e.attrs.get<double>("alpha"), x)});
  return {e.cast(e(Op::where, {e(Op::greater, {x, zero}), x, curve}), e.dtype(e.operands[0]))};
}

std::vector<ValueId> expand_gelu(const Expansion& e) {
  const ValueId x = e.widened(e.operands[0]);
  const std::string& form = e.attrs.get<std::string>("approximate");
  if (form != "none" && form != "tanh")
    type_error(fmt::format("approximate=\"{}\" is unknown", form), "use \"none\" or \"tanh\"");
  return {e.cast(form == "tanh" ? gelu_tanh(e, x) : gelu_erf(e, x), e.dtype(e.operands[0]))};
}

std::vector<ValueId> expand_silu(const Expansion& e) {
  e.require_real(e.operands[0]);
  return {silu_of(e, e.operands[0])};
}

std::vector<ValueId> expand_sigmoid(const Expansion& e) {
  e.require_real(e.operands[0]);
  return {e(Op::reciprocal, {sigmoid_denominator(e, e.operands[0])})};
}

std::vector<ValueId> expand_softplus(const Expansion& e) {
  e.require_real(e.operands[0]);
  return {softplus_of(e, e.operands[0])};
}

std::vector<ValueId> expand_mish(const Expansion& e) {
  const ValueId x = e.operands[0];
  e.require_real(x);
  return {e(Op::mul, {x, e(Op::tanh, {softplus_of(e, x)})})};
}

std::vector<ValueId> expand_swiglu(const Expansion& e) {
  e.require_real(e.operands[0]);
  return {e(Op::mul, {silu_of(e, e.operands[0]), e.operands[1]})};
}

}  // namespace tenon::ir

// The bodies of tenon/ops.h for composites: activations, normalisations, attention.
#include <fmt/format.h>

#include "src/api/recorder.h"
#include "tenon/ops.h"

namespace tenon {
namespace {

using ir::Attrs;
using ir::Op;
using src::record;
using src::record_one;

Attrs with_axes(const Axes& axes, Attrs rest = {}) {
  if (axes.list()) rest.set("axis", *axes.list());
  return rest;
}

// x and the operands after it that are there.
std::vector<Operand> with_optional(const Operand& x, std::initializer_list<std::optional<Tensor>> rest) {
  std::vector<Operand> operands{x};
  for (const std::optional<Tensor>& tensor : rest)
    if (tensor) operands.emplace_back(*tensor, x.location());
  return operands;
}

std::vector<Tensor> record_attention(const Operand& q, const Operand& k, const Operand& v,
                                     const AttentionOptions& options, bool lse) {
  std::vector<Operand> operands{q, k, v};
  if (options.bias) operands.emplace_back(*options.bias, q.location());
  Attrs attrs{{"causal", options.causal}, {"window", options.window}};
  if (options.scale) attrs.set("scale", *options.scale);
  attrs.set("softcap", options.softcap);
  attrs.set("lse", lse);
  if (options.dtype) attrs.set("dtype", *options.dtype);
  return record(Op::attention, operands, std::move(attrs));
}

}  // namespace

Tensor linear(const Operand& x, const Tensor& weight, const std::optional<Tensor>& bias, std::optional<DType> dtype) {
  Attrs attrs;
  if (dtype) attrs.set("dtype", *dtype);
  return record_one(Op::linear, with_optional(x, {weight, bias}), std::move(attrs));
}

Tensor relu(const Operand& x) { return record_one(Op::relu, {x}); }
Tensor leaky_relu(const Operand& x, double negative_slope) {
  return record_one(Op::leaky_relu, {x}, {{"negative_slope", negative_slope}});
}
Tensor elu(const Operand& x, double alpha) { return record_one(Op::elu, {x}, {{"alpha", alpha}}); }
Tensor gelu(const Operand& x, const std::string& approximate) {
  return record_one(Op::gelu, {x}, {{"approximate", approximate}});
}
Tensor silu(const Operand& x) { return record_one(Op::silu, {x}); }
Tensor sigmoid(const Operand& x) { return record_one(Op::sigmoid, {x}); }
Tensor softplus(const Operand& x) { return record_one(Op::softplus, {x}); }
Tensor mish(const Operand& x) { return record_one(Op::mish, {x}); }
Tensor swiglu(const Operand& gate, const Operand& up) { return record_one(Op::swiglu, {gate, up}); }

Tensor softmax(const Operand& x, const Axes& axis) { return record_one(Op::softmax, {x}, with_axes(axis)); }
Tensor log_softmax(const Operand& x, const Axes& axis) { return record_one(Op::log_softmax, {x}, with_axes(axis)); }

Tensor layer_norm(const Operand& x, const std::optional<Tensor>& weight, const std::optional<Tensor>& bias,
                  const Axes& axis, double eps) {
  if (bias && !weight)
    throw Error(ErrorKind::argument, "layer_norm: a bias without a weight", src::place_of(x.location()),
                "give a weight of ones, or add the bias to the result");
  return record_one(Op::layer_norm, with_optional(x, {weight, bias}), with_axes(axis, {{"eps", eps}}));
}
Tensor rms_norm(const Operand& x, const std::optional<Tensor>& weight, const Axes& axis, double eps) {
  return record_one(Op::rms_norm, with_optional(x, {weight}), with_axes(axis, {{"eps", eps}}));
}
Tensor cross_entropy(const Operand& logits, const Operand& targets, const std::string& reduction) {
  return record_one(Op::cross_entropy, {logits, targets}, {{"reduction", reduction}});
}

Tensor attention(const Operand& q, const Operand& k, const Operand& v, const AttentionOptions& options) {
  return record_attention(q, k, v, options, false).front();
}
AttentionResult attention_with_lse(const Operand& q, const Operand& k, const Operand& v,
                                   const AttentionOptions& options) {
  const std::vector<Tensor> results = record_attention(q, k, v, options, true);
  return {results[0], results[1]};
}

}  // namespace tenon

// Maps and reductions are made from their rows; the others are written out below, one line a call.
#include "tests/harness/sample_calls.h"

#include <fmt/format.h>

namespace tenon::ir {
namespace {

struct Call {
  Op op;
  const char* inputs;
  const char* call;
};

constexpr Call kCalls[] = {
    {Op::where, "a: bool[n, 4], b: f32[4], c: f32[]", "where(a, b, c)"},
    {Op::where, "a: bool[n, 4], b: i32[4]", "where(a, b, -7)"},
    {Op::cast, "a: f32[n, 4]", "cast(a, dtype=bf16)"},
    {Op::cast, "a: bool[n, 4]", "cast(a, dtype=f8e5m2)"},
    {Op::bitcast, "a: f32[n, 4]", "bitcast(a, dtype=i32)"},
    {Op::reshape, "a: f32[n, 4]", "reshape(a, shape=[2, -1])"},
    {Op::reshape, "a: f32[n, 4]", "reshape(a, shape=[2*n, 1, 2])"},
    {Op::reshape, "a: f32[1, 1]", "reshape(a, shape=[])"},
    {Op::transpose, "a: f32[n, 4]", "transpose(a)"},
    {Op::transpose, "a: f32[n, 4, 5]", "transpose(a, perm=[2, 0, 1])"},
    {Op::broadcast_to, "a: f32[4]", "broadcast_to(a, shape=[3, 4])"},
    {Op::slice, "a: f32[n, 4]", "slice(a, axis=1, start=[3], stop=[1], step=[-1])"},
    {Op::slice, "a: f32[8, 4]", "slice(a, start=[1, 1], step=[2, 2])"},
    {Op::flip, "a: f32[n, 4]", "flip(a)"},
    {Op::flip, "a: f32[n, 4]", "flip(a, axis=[0, -1])"},
    {Op::pad, "a: f32[n, 4]", "pad(a, low=[1, 0], high=[0, n])"},
    {Op::pad, "a: f32[n, 4]", "pad(a, low=[0, 0], high=[0, 1], value=-inf)"},
    {Op::pad, "a: i32[n, 4]", "pad(a, low=[0, 0], high=[0, 1], value=7)"},
    {Op::pad, "a: bool[n, 4]", "pad(a, low=[0, 0], high=[0, 1], value=true)"},
    {Op::concat, "a: f32[n, 4], b: f32[3, 4]", "concat(a, b, a)"},
    {Op::concat, "a: f32[n, 4]", "concat(a, axis=1)"},
    {Op::take, "a: f32[n, 4], i: i32[5, 6]", "take(a, i)"},
    {Op::take, "a: f32[n, 4]", "take(a, -1, axis=1)"},
    {Op::full, "", "full(shape=[2, 3], value=0.1, dtype=f32)"},
    {Op::full, "a: f32[n]", "full(shape=[n], value=nan, dtype=f16)"},
    {Op::full, "", "full(shape=[], value=-9223372036854775808, dtype=i64)"},
    {Op::full, "", "full(shape=[1], value=true, dtype=bool)"},
    {Op::iota, "", "iota(shape=[2, 3])"},
    {Op::iota, "a: f32[n]", "iota(shape=[n, n + 1], axis=1, dtype=f32)"},
    {Op::dim_value, "a: f32[n]", "dim_value(value=[n*n + 1])"},
    {Op::dim_value, "a: f32[n]", "dim_value(value=[n], dtype=f32)"},
    {Op::random_bits, "seed: i64", "random_bits(seed, shape=[4, 4])"},
    {Op::random_bits, "", "random_bits(7, shape=[4], stream=3, word=2)"},
    {Op::matmul, "a: f32[n, 4], b: f32[4, 5]", "matmul(a, b)"},
    {Op::matmul, "a: bf16[7, n, 4], b: bf16[4]", "matmul(a, b, dtype=f32)"},
    {Op::matmul, "a: f32[n, 4], b: f32[4, 5]", "matmul(a, b, tf32=true)"},
    {Op::expand_dims, "a: f32[n, 4]", "expand_dims(a, axis=[0, -1])"},
    {Op::squeeze, "a: f32[1, n, 1]", "squeeze(a)"},
    {Op::squeeze, "a: f32[1, n, 1]", "squeeze(a, axis=0)"},
    {Op::split, "a: f32[n, 4]", "split(a, sections=[1, 3], axis=1)"},
    {Op::split, "a: f32[4]", "split(a, sections=[4])"},
    {Op::stack, "a: f32[n, 4], b: f32[n, 4]", "stack(a, b, axis=-1)"},
    {Op::mean, "a: f32[n, 4]", "mean(a, axis=1, keepdims=true)"},
    {Op::var, "a: f32[n, 4]", "var(a, axis=[0, 1], ddof=1)"},
    {Op::logsumexp, "a: f32[n, 4]", "logsumexp(a, axis=0)"},
    {Op::softmax, "a: bf16[n, 4]", "softmax(a, axis=[0, 1])"},
    {Op::log_softmax, "a: f32[n, 4]", "log_softmax(a)"},
    {Op::layer_norm, "a: f16[n, 4], w: f16[4], b: f16[4]", "layer_norm(a, w, b, eps=0.001)"},
    {Op::layer_norm, "a: f32[n, 4]", "layer_norm(a)"},
    {Op::rms_norm, "a: f32[n, 4], w: f32[4]", "rms_norm(a, w)"},
    {Op::cross_entropy, "a: f32[n, 4], t: i64[n]", "cross_entropy(a, t, reduction=\"mean\")"},
    {Op::relu, "a: f32[n, 4]", "relu(a)"},
    {Op::leaky_relu, "a: f32[n, 4]", "leaky_relu(a, negative_slope=0.2)"},
    {Op::elu, "a: f32[n, 4]", "elu(a, alpha=2)"},
    {Op::gelu, "a: f32[n, 4]", "gelu(a, approximate=\"tanh\")"},
    {Op::silu, "a: f32[n, 4]", "silu(a)"},
    {Op::sigmoid, "a: f32[n, 4]", "sigmoid(a)"},
    {Op::softplus, "a: f32[n, 4]", "softplus(a)"},
    {Op::mish, "a: f32[n, 4]", "mish(a)"},
    {Op::swiglu, "a: f32[n, 4], b: f32[n, 4]", "swiglu(a, b)"},
    {Op::linear, "a: bf16[n, 4], w: bf16[5, 4], b: bf16[5]", "linear(a, w, b)"},
    {Op::random_uniform, "seed: i64", "random_uniform(seed, shape=[4], dtype=bf16)"},
    {Op::random_normal, "seed: i64", "random_normal(seed, shape=[4], stream=1)"},
    {Op::dropout, "a: f32[n, 4], seed: i64", "dropout(a, seed, p=0.1)"},
    {Op::attention, "q: f16[b, 8, s, 64], k: f16[b, 2, t, 64], v: f16[b, 2, t, 32]",
     "attention(q, k, v, causal=true, lse=true)"},
    {Op::attention, "q: f32[1, 2, 3, 4], k: f32[1, 2, 5, 4], v: f32[1, 2, 5, 4], bias: f32[3, 5]",
     "attention(q, k, v, bias, window=2, scale=0.5, softcap=30.0)"},
};

std::string graph_of(const std::string& inputs, const std::string& call, bool two_results) {
  const std::string names = two_results ? "y, z" : "y";
  return fmt::format("graph sample({}) {{\n  {} = {}\n  return {}\n}}\n", inputs, names, call, names);
}

// A call on operands a, b, c of `dtype`, and one with a literal in the last one's place.
void add_map_calls(const OpInfo& op, DType dtype, std::vector<std::string>& texts) {
  const std::string_view names[] = {"a", "b", "c"};
  std::string inputs, operands;
  for (int i = 0; i < op.operands; ++i) {
    inputs += fmt::format("{}{}: {}[n, 4]", i ? ", " : "", names[i], name_of(dtype));
    operands += fmt::format("{}{}", i ? ", " : "", names[i]);
  }
  texts.push_back(graph_of(inputs, fmt::format("{}({})", op.name, operands), false));
  if (op.operands < 2) return;
  operands.back() = '1';
  if (dtype == DType::bool_) operands.replace(operands.size() - 1, 1, "true");
  texts.push_back(graph_of(inputs, fmt::format("{}({})", op.name, operands), false));
}

void add_reduce_calls(const OpInfo& op, DType dtype, std::vector<std::string>& texts) {
  const std::string input = fmt::format("a: {}[n, 4, 5]", name_of(dtype));
  for (const char* attributes : {"", ", axis=1", ", axis=[0, -1], keepdims=true"})
    texts.push_back(graph_of(input, fmt::format("{}(a{})", op.name, attributes), false));
}

}  // namespace

std::vector<std::string> sample_calls(const OpInfo& op) {
  std::vector<std::string> texts;
  for (const Call& call : kCalls) {
    const std::string text = call.call;
    const bool two_results =
        text.find("lse=true") != std::string::npos || text.find("[1, 3], axis=1)") != std::string::npos;
    if (call.op == op.op) texts.push_back(graph_of(call.inputs, text, two_results));
  }
  if (!texts.empty()) return texts;
  for (DType dtype : kAllDTypes) {
    if (!accepts(op.accepts, dtype)) continue;
    if (op.kind == Kind::map) add_map_calls(op, dtype, texts);
    if (op.kind == Kind::reduce) add_reduce_calls(op, dtype, texts);
  }
  return texts;
}

}  // namespace tenon::ir

// Every op of the table has a C++ builder, and what it records is what the text form of the same call reads as.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "ir/ops/op.h"
#include "ir/text/text.h"
#include "tenon/tenon.h"

namespace tenon {
namespace {

using ir::Op;
using Inputs = std::map<std::string, Tensor>;
using Results = std::vector<Tensor>;

struct Call {
  Op op;
  std::string inputs;
  std::string call;
  std::function<Results(const Graph& g, Inputs& in)> build;
};

const Dim kN = Dim::symbol("n");

std::string text_of(const Call& call) {
  const bool two = call.call.find("lse=true") != std::string::npos || call.op == Op::split;
  const std::string names = two ? "y, z" : "y";
  return "graph sample(" + call.inputs + ") {\n  " + names + " = " + call.call + "\n  return " + names + "\n}\n";
}

void expect_same_as_text(const Call& call) {
  SCOPED_TRACE(call.call + " of " + call.inputs);
  const Graph expected = Graph::parse(text_of(call));
  Graph built("sample");
  Inputs inputs;
  for (const Port& input : expected.inputs())
    inputs[input.name] = built.input(input.name, input.value.dtype(), input.value.shape());
  const Results results = call.build(built, inputs);
  ASSERT_EQ(results.size(), expected.outputs().size());
  for (std::size_t i = 0; i < results.size(); ++i) built.output(i == 0 ? "y" : "z", results[i]);
  EXPECT_TRUE(ir::same(built.data(), expected.data())) << "built:\n" << built.str() << "expected:\n" << expected.str();
  EXPECT_EQ(built.data().nodes.back().op, call.op);
}

// ---- maps and reductions: from the table
// -----------------------------------------------------------------------------

using Builder = std::function<Tensor(const std::vector<Operand>&)>;
struct MapBuilder {
  Op op;
  Builder build;
};
struct ReduceBuilder {
  Op op;
  std::function<Tensor(const Tensor&, const Axes&, bool)> build;
};

// clang-format off
#define TENON_ARGUMENTS_1 x[0]
#define TENON_ARGUMENTS_2 x[0], x[1]
#define TENON_ARGUMENTS_3 x[0], x[1], x[2]
#define TENON_ROW_Same(name, arity) \
  {Op::name, [](const std::vector<Operand>& x) { return tenon::name(TENON_ARGUMENTS_##arity); }},
#define TENON_ROW_Boolean(name, arity) TENON_ROW_Same(name, arity)
#define TENON_ROW_Special(name, arity)
const std::vector<MapBuilder> kMaps{
#define TENON_MAP(name, arity, accepts, yields, ...) TENON_ROW_##yields(name, arity)
#include "ir/ops.def"
};
const std::vector<ReduceBuilder> kReductions{
#define TENON_REDUCE(name, ...) \
  {Op::name, [](const Tensor& x, const Axes& axis, bool keepdims) { return tenon::name(x, axis, keepdims); }},
#include "ir/ops.def"
};
// clang-format on

TEST(ApiOps, MapsRecordTheirOpOnEveryDTypeAndTakeLiterals) {
  const std::string names[] = {"a", "b", "c"};
  for (const MapBuilder& row : kMaps)
    for (DType dtype : kAllDTypes) {
      const ir::OpInfo& op = ir::info(row.op);
      if (!ir::accepts(op.accepts, dtype)) continue;
      for (bool literal : {false, true}) {
        if (literal && op.operands == 1) continue;
        std::string inputs, operands;
        for (int i = 0; i < op.operands; ++i) {
          inputs += (i ? ", " : "") + names[i] + ": " + std::string(name_of(dtype)) + "[n, 4]";
          const bool last = i + 1 == op.operands;
          operands +=
              (i ? ", " : "") + (literal && last ? std::string(dtype == DType::bool_ ? "true" : "1") : names[i]);
        }
        const auto build = [&](const Graph&, Inputs& in) -> Results {
          std::vector<Operand> x;
          for (int i = 0; i < op.operands; ++i) x.emplace_back(in[names[i]]);
          if (literal) x.back() = dtype == DType::bool_ ? Operand(true) : Operand(1);
          return {row.build(x)};
        };
        expect_same_as_text({row.op, inputs, std::string(op.name) + "(" + operands + ")", build});
      }
    }
}

TEST(ApiOps, ReductionsRecordTheirOpAxesAndKeepdims) {
  for (const ReduceBuilder& row : kReductions) {
    const std::string dtype = ir::info(row.op).accepts == ir::Accepts::Bool ? "bool" : "i32";
    const std::string name(ir::name_of(row.op)), inputs = "a: " + dtype + "[n, 4, 5]";
    const auto with = [&](const Axes& axis, bool keepdims) {
      return
          [&row, axis, keepdims](const Graph&, Inputs& in) -> Results { return {row.build(in["a"], axis, keepdims)}; };
    };
    expect_same_as_text({row.op, inputs, name + "(a)", with({}, false)});
    expect_same_as_text({row.op, inputs, name + "(a, axis=1)", with(1, false)});
    expect_same_as_text({row.op, inputs, name + "(a, axis=[0, -1], keepdims=true)", with({0, -1}, true)});
    expect_same_as_text({row.op, inputs, name + "(a, axis=[])", with(std::vector<std::int64_t>{}, false)});
  }
}

// ---- the rest: one call and more, each way an argument can be given
// ----------------------------------------------------

#define CALL(op, inputs, text, expression) \
  {Op::op, inputs, text,                   \
   []([[maybe_unused]] const Graph& g, [[maybe_unused]] Inputs& in) -> Results { return {expression}; }}

const std::vector<Call> kCalls{
    CALL(where, "a: bool[n, 4], b: f32[4], c: f32[]", "where(a, b, c)", where(in["a"], in["b"], in["c"])),
    CALL(where, "a: bool[n, 4], b: i32[4]", "where(a, b, -7)", where(in["a"], in["b"], -7)),
    CALL(where, "b: i32[4]", "where(true, b, -7)", where(true, in["b"], -7)),
    CALL(cast, "a: f32[n, 4]", "cast(a, dtype=bf16)", cast(in["a"], DType::bf16)),
    CALL(bitcast, "a: f32[n, 4]", "bitcast(a, dtype=i32)", bitcast(in["a"], DType::i32)),
    CALL(sum, "a: f16[n, 4]", "sum(a, axis=1, dtype=f32)", sum(in["a"], 1, false, DType::f32)),
    CALL(prod, "a: i8[n, 4]", "prod(a, keepdims=true, dtype=i64)", prod(in["a"], {}, true, DType::i64)),
    CALL(reshape, "a: f32[n, 4]", "reshape(a, shape=[2*n, -1])", reshape(in["a"], {2 * kN, -1})),
    CALL(reshape, "a: f32[1, 1]", "reshape(a, shape=[])", reshape(in["a"], {})),
    CALL(transpose, "a: f32[n, 4]", "transpose(a)", transpose(in["a"])),
    CALL(transpose, "a: f32[n, 4, 5]", "transpose(a, perm=[2, 0, 1])", transpose(in["a"], {2, 0, 1})),
    CALL(broadcast_to, "a: f32[4]", "broadcast_to(a, shape=[3, 4])", broadcast_to(in["a"], {3, 4})),
    CALL(slice, "a: f32[n, 4]", "slice(a, axis=1, start=[3], stop=[1], step=[-1])", slice(in["a"], 1, 3, 1, -1)),
    CALL(slice, "a: f32[n, 4]", "slice(a, axis=-1, start=[1], stop=[3])", slice(in["a"], -1, 1, 3)),
    CALL(slice, "a: f32[8, 4]", "slice(a, start=[1, 1], step=[2, 2])",
         slice(in["a"], {{1, std::nullopt, 2}, {.start = 1, .step = 2}})),
    CALL(flip, "a: f32[n, 4]", "flip(a)", flip(in["a"])),
    CALL(flip, "a: f32[n, 4]", "flip(a, axis=[0, -1])", flip(in["a"], {0, -1})),
    CALL(pad, "a: f32[n, 4]", "pad(a, low=[1, 0], high=[0, n])", pad(in["a"], {1, 0}, {0, kN})),
    CALL(pad, "a: bool[n, 4]", "pad(a, low=[0, 0], high=[0, 1], value=true)", pad(in["a"], {0, 0}, {0, 1}, true)),
    CALL(concat, "a: f32[n, 4], b: f32[3, 4]", "concat(a, b, a)", concat({in["a"], in["b"], in["a"]})),
    CALL(concat, "a: f32[n, 4]", "concat(a, axis=1)", concat({in["a"]}, 1)),
    CALL(take, "a: f32[n, 4], i: i32[5, 6]", "take(a, i)", take(in["a"], in["i"])),
    CALL(take, "a: f32[n, 4]", "take(a, -1, axis=1)", take(in["a"], -1, 1)),
    {Op::split, "a: f32[n, 4]", "split(a, sections=[1, 3], axis=1)",
     [](const Graph&, Inputs& in) { return split(in["a"], {1, 3}, 1); }},
    CALL(expand_dims, "a: f32[n, 4]", "expand_dims(a, axis=[0, -1])", expand_dims(in["a"], {0, -1})),
    CALL(squeeze, "a: f32[1, n, 1]", "squeeze(a)", squeeze(in["a"])),
    CALL(squeeze, "a: f32[1, n, 1]", "squeeze(a, axis=0)", squeeze(in["a"], 0)),
    CALL(stack, "a: f32[n, 4], b: f32[n, 4]", "stack(a, b, axis=-1)", stack({in["a"], in["b"]}, -1)),
    CALL(full, "", "full(shape=[2, 3], value=0.1, dtype=f32)", full(g, {2, 3}, 0.1, DType::f32)),
    CALL(full, "a: f32[n]", "full(shape=[n], value=true, dtype=bool)", full(g, {kN}, true, DType::bool_)),
    CALL(iota, "", "iota(shape=[2, 3])", iota(g, {2, 3})),
    CALL(iota, "a: f32[n]", "iota(shape=[n, n + 1], axis=1, dtype=f32)", iota(g, {kN, kN + 1}, 1, DType::f32)),
    CALL(dim_value, "a: f32[n]", "dim_value(value=[n*n + 1])", dim_value(g, kN* kN + 1)),
    CALL(dim_value, "a: f32[n]", "dim_value(value=[n], dtype=f32)", dim_value(g, kN, DType::f32)),
    CALL(random_bits, "seed: i64, a: f32[n]", "random_bits(seed, shape=[4, n])", random_bits(in["seed"], {4, kN})),
    CALL(random_bits, "seed: i64", "random_bits(seed, shape=[4], stream=3, word=2)",
         random_bits(in["seed"], {4}, 3, 2)),
    CALL(random_uniform, "seed: i64", "random_uniform(seed, shape=[4], dtype=bf16)",
         random_uniform(in["seed"], {4}, DType::bf16)),
    CALL(random_normal, "seed: i64", "random_normal(seed, shape=[4], stream=1)",
         random_normal(in["seed"], {4}, DType::f32, 1)),
    CALL(dropout, "a: f32[n, 4], seed: i64", "dropout(a, seed, p=0.1)", dropout(in["a"], in["seed"], 0.1)),
    CALL(dropout, "a: f32[n, 4]", "dropout(a, 42)", dropout(in["a"], 42)),
    CALL(matmul, "a: f32[n, 4], b: f32[4, 5]", "matmul(a, b)", matmul(in["a"], in["b"])),
    CALL(matmul, "a: bf16[7, n, 4], b: bf16[4]", "matmul(a, b, dtype=f32)", matmul(in["a"], in["b"], DType::f32)),
    CALL(matmul, "a: f32[n, 4], b: f32[4, 5]", "matmul(a, b, tf32=true)", matmul(in["a"], in["b"], {}, true)),
    CALL(linear, "a: bf16[n, 4], w: bf16[5, 4]", "linear(a, w)", linear(in["a"], in["w"])),
    CALL(linear, "a: bf16[n, 4], w: bf16[5, 4], b: bf16[5]", "linear(a, w, b, dtype=f32)",
         linear(in["a"], in["w"], in["b"], DType::f32)),
    CALL(mean, "a: f32[n, 4]", "mean(a, axis=1, keepdims=true)", mean(in["a"], 1, true)),
    CALL(var, "a: f32[n, 4]", "var(a, axis=[0, 1], ddof=1)", var(in["a"], {0, 1}, false, 1)),
    CALL(logsumexp, "a: f32[n, 4]", "logsumexp(a, axis=0)", logsumexp(in["a"], 0)),
    CALL(relu, "a: f32[n, 4]", "relu(a)", relu(in["a"])),
    CALL(leaky_relu, "a: f32[n, 4]", "leaky_relu(a, negative_slope=0.2)", leaky_relu(in["a"], 0.2)),
    CALL(elu, "a: f32[n, 4]", "elu(a, alpha=2)", elu(in["a"], 2)),
    CALL(gelu, "a: f32[n, 4]", "gelu(a)", gelu(in["a"])),
    CALL(gelu, "a: f32[n, 4]", "gelu(a, approximate=\"tanh\")", gelu(in["a"], "tanh")),
    CALL(silu, "a: f32[n, 4]", "silu(a)", silu(in["a"])),
    CALL(sigmoid, "a: f32[n, 4]", "sigmoid(a)", sigmoid(in["a"])),
    CALL(softplus, "a: f32[n, 4]", "softplus(a)", softplus(in["a"])),
    CALL(mish, "a: f32[n, 4]", "mish(a)", mish(in["a"])),
    CALL(swiglu, "a: f32[n, 4], b: f32[n, 4]", "swiglu(a, b)", swiglu(in["a"], in["b"])),
    CALL(softmax, "a: bf16[n, 4]", "softmax(a, axis=[0, 1])", softmax(in["a"], {0, 1})),
    CALL(softmax, "a: bf16[n, 4]", "softmax(a)", softmax(in["a"])),
    CALL(log_softmax, "a: f32[n, 4]", "log_softmax(a, axis=0)", log_softmax(in["a"], 0)),
    CALL(layer_norm, "a: f16[n, 4], w: f16[4], b: f16[4]", "layer_norm(a, w, b, eps=0.001)",
         layer_norm(in["a"], in["w"], in["b"], -1, 0.001)),
    CALL(layer_norm, "a: f32[n, 4]", "layer_norm(a)", layer_norm(in["a"])),
    CALL(rms_norm, "a: f32[n, 4], w: f32[n]", "rms_norm(a, w, axis=0)", rms_norm(in["a"], in["w"], 0)),
    CALL(cross_entropy, "a: f32[n, 4], t: i64[n]", "cross_entropy(a, t)", cross_entropy(in["a"], in["t"])),
    CALL(cross_entropy, "a: f32[n, 4], t: i64[n]", "cross_entropy(a, t, reduction=\"mean\")",
         cross_entropy(in["a"], in["t"], "mean")),
    CALL(attention, "q: f16[b, 8, s, 64], k: f16[b, 2, t, 64], v: f16[b, 2, t, 32]", "attention(q, k, v)",
         attention(in["q"], in["k"], in["v"])),
    CALL(attention, "q: f32[1, 2, 3, 4], k: f32[1, 2, 5, 4], v: f32[1, 2, 5, 4], bias: f32[3, 5]",
         "attention(q, k, v, bias, window=2, scale=0.5, softcap=30)",
         attention(in["q"], in["k"], in["v"], {.window = 2, .scale = 0.5, .softcap = 30, .bias = in["bias"]})),
    {Op::attention, "q: f16[8, s, 64], k: f16[8, t, 64], v: f16[8, t, 32]", "attention(q, k, v, causal=true, lse=true)",
     [](const Graph&, Inputs& in) -> Results {
       const AttentionResult result = attention_with_lse(in["q"], in["k"], in["v"], {.causal = true});
       return {result.output, result.lse};
     }},
};

TEST(ApiOps, OtherBuildersRecordTheirOpAndAttributes) {
  for (const Call& call : kCalls) expect_same_as_text(call);
}

TEST(ApiOps, EveryOpOfTheTableHasABuilder) {
  std::set<Op> built{Op::input};  // Graph::input
  for (const MapBuilder& row : kMaps) built.insert(row.op);
  for (const ReduceBuilder& row : kReductions) built.insert(row.op);
  for (const Call& call : kCalls) built.insert(call.op);
  for (const ir::OpInfo& op : ir::all_ops()) EXPECT_TRUE(built.count(op.op)) << op.name;
}

}  // namespace
}  // namespace tenon

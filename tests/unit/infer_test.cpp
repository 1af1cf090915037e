// What types operators yield: NumPy's rules on constant and symbolic extents. Graphs are built node by node here, so
// that these tests do not need the parser.
#include <gtest/gtest.h>

#include "ir/graph/build.h"
#include "ir/graph/view.h"

namespace tenon::ir {
namespace {

using Dims = std::vector<Dim>;
using Ints = std::vector<std::int64_t>;

const Dim kRows = Dim::symbol("rows");

Shape shape_of(std::initializer_list<Dim> extents) { return Shape(extents); }

std::string infer_text(Op op, const std::vector<Type>& operands, const Attrs& attrs = {}, const Symbols& symbols = {}) {
  std::string text;
  for (const Type& type : infer(op, operands, attrs, symbols)) text += (text.empty() ? "" : ", ") + str(type);
  return text;
}

Type f32(std::initializer_list<Dim> extents) { return {DType::f32, Shape(extents)}; }
Type bf16(std::initializer_list<Dim> extents) { return {DType::bf16, Shape(extents)}; }
Type i64(std::initializer_list<Dim> extents) { return {DType::i64, Shape(extents)}; }

std::string broadcast_text(const std::vector<Shape>& shapes) { return str(broadcast(shapes)); }

TEST(Broadcast, FollowsNumPy) {
  EXPECT_EQ(broadcast_text({{3, 1}, {1, 4}}), "[3, 4]");
  EXPECT_EQ(broadcast_text({{}, {5}}), "[5]");
  EXPECT_EQ(broadcast_text({{8, 1, 6, 1}, {7, 1, 5}}), "[8, 7, 6, 5]");
  EXPECT_EQ(broadcast_text({{0}, {1}}), "[0]");
  EXPECT_EQ(broadcast_text({{2, 1}, {1, 1}, {3}}), "[2, 3]");
  EXPECT_EQ(broadcast_text({{1, 1}, {}}), "[1, 1]");
}

TEST(Broadcast, EqualSymbolsMatchAndOneGivesWay) {
  EXPECT_EQ(broadcast_text({{kRows, 4}, {kRows, 1}}), "[rows, 4]");
  EXPECT_EQ(broadcast_text({{1, 4}, {kRows, 1}}), "[rows, 4]");
  EXPECT_EQ(broadcast_text({{kRows + 1}, {1 + kRows}}), "[rows + 1]");
  EXPECT_THROW(broadcast_text({{kRows}, {4}}), Error);
}

TEST(InferMap, KeepsTheDtypeAndBroadcastsTheShapes) {
  EXPECT_EQ(infer_text(Op::add, {bf16({kRows, 64}), bf16({64})}), "bf16[rows, 64]");
  EXPECT_EQ(infer_text(Op::less, {f32({2}), f32({})}), "bool[2]");
  EXPECT_EQ(infer_text(Op::where, {{DType::bool_, {4, 1}}, f32({}), f32({3})}), "f32[4, 3]");
  EXPECT_EQ(infer_text(Op::cast, {f32({2})}, {{"dtype", DType::f8e4m3}}), "f8e4m3[2]");
  EXPECT_EQ(infer_text(Op::bitcast, {f32({2})}, {{"dtype", DType::i32}}), "i32[2]");
  EXPECT_EQ(infer_text(Op::isnan, {f32({2})}), "bool[2]");
}

TEST(InferReduce, DropsOrKeepsTheReducedAxes) {
  EXPECT_EQ(infer_text(Op::sum, {f32({2, 3, 4})}), "f32[]");
  EXPECT_EQ(infer_text(Op::sum, {f32({2, 3, 4})}, {{"axis", std::int64_t{-1}}}), "f32[2, 3]");
  EXPECT_EQ(infer_text(Op::max, {f32({kRows, 3, 4})}, {{"axis", Ints{0, -1}}, {"keepdims", true}}), "f32[1, 3, 1]");
  EXPECT_EQ(infer_text(Op::argmax, {f32({2, 3})}, {{"axis", Ints{1}}}), "i64[2]");
  EXPECT_EQ(infer_text(Op::sum, {bf16({2, 3})}, {{"dtype", DType::f32}}), "f32[]");
  EXPECT_EQ(infer_text(Op::sum, {f32({2, 3})}, {{"axis", Ints{}}}), "f32[2, 3]");
}

TEST(InferView, ReshapesSymbolicExtents) {
  EXPECT_EQ(infer_text(Op::reshape, {f32({kRows, 12})}, {{"shape", Dims{kRows, 3, -1}}}), "f32[rows, 3, 4]");
  EXPECT_EQ(infer_text(Op::reshape, {f32({kRows, 4, 8})}, {{"shape", Dims{-1, 8}}}), "f32[4*rows, 8]");
  EXPECT_EQ(infer_text(Op::reshape, {f32({kRows * 6})}, {{"shape", Dims{kRows, 2, 3}}}), "f32[rows, 2, 3]");
  EXPECT_EQ(infer_text(Op::reshape, {f32({0, 4})}, {{"shape", Dims{-1, 4}}}), "f32[0, 4]");
  EXPECT_EQ(infer_text(Op::reshape, {f32({1})}, {{"shape", Dims{}}}), "f32[]");
}

TEST(InferView, SlicesByNumPysRules) {
  const auto slice = [](const Type& x, const Attrs& attrs, const Symbols& symbols = {}) {
    return infer_text(Op::slice, {x}, attrs, symbols);
  };
  EXPECT_EQ(slice(f32({10}), {{"start", Dims{2}}, {"stop", Dims{-1}}, {"step", Ints{3}}}), "f32[3]");
  EXPECT_EQ(slice(f32({10}), {{"step", Ints{-1}}}), "f32[10]");
  EXPECT_EQ(slice(f32({10}), {{"start", Dims{8}}, {"stop", Dims{-11}}, {"step", Ints{-4}}}), "f32[3]");
  EXPECT_EQ(slice(f32({10}), {{"start", Dims{7}}, {"stop", Dims{3}}}), "f32[0]");
  EXPECT_EQ(slice(f32({10}), {{"start", Dims{-100}}, {"stop", Dims{100}}}), "f32[10]");
  EXPECT_EQ(slice(f32({4, 6}), {{"axis", Ints{-1}}, {"start", Dims{1}}, {"stop", Dims{3}}}), "f32[4, 2]");
  EXPECT_EQ(slice(f32({kRows, 6}), {{"axis", Ints{0}}, {"stop", Dims{kRows}}}), "f32[rows, 6]");
  EXPECT_EQ(slice(f32({kRows}), {{"stop", Dims{-1}}}, {{"rows", {1, 100, 1}}}), "f32[rows + -1]");
  EXPECT_EQ(slice(f32({kRows}), {{"stop", Dims{5}}}, {{"rows", {5, 100, 1}}}), "f32[5]");
  EXPECT_EQ(slice(f32({kRows}), {{"step", Ints{2}}}), "f32[floordiv(rows + 1, 2)]");
  EXPECT_THROW(slice(f32({kRows}), {{"stop", Dims{5}}}), Error);
}

TEST(InferView, MovesJoinsPadsAndGathers) {
  EXPECT_EQ(infer_text(Op::transpose, {f32({2, 3, 4})}), "f32[4, 3, 2]");
  EXPECT_EQ(infer_text(Op::transpose, {f32({2, 3, 4})}, {{"perm", Ints{0, -1, 1}}}), "f32[2, 4, 3]");
  EXPECT_EQ(infer_text(Op::broadcast_to, {f32({1, 4})}, {{"shape", Dims{kRows, 3, 4}}}), "f32[rows, 3, 4]");
  EXPECT_EQ(infer_text(Op::concat, {f32({2, kRows}), f32({2, 3})}, {{"axis", std::int64_t{1}}}), "f32[2, rows + 3]");
  EXPECT_EQ(infer_text(Op::pad, {f32({kRows, 2})}, {{"low", Dims{1, 0}}, {"high", Dims{kRows, 3}}}),
            "f32[2*rows + 1, 5]");
  EXPECT_EQ(infer_text(Op::take, {f32({50, 8}), i64({kRows, 3})}), "f32[rows, 3, 8]");
  EXPECT_EQ(infer_text(Op::take, {f32({50, 8}), i64({})}, {{"axis", std::int64_t{-1}}}), "f32[50]");
}

TEST(InferMatmul, FollowsNumPysBatchingAndOneDimensionalOperands) {
  EXPECT_EQ(infer_text(Op::matmul, {f32({2, 3}), f32({3, 4})}), "f32[2, 4]");
  EXPECT_EQ(infer_text(Op::matmul, {f32({3}), f32({3})}), "f32[]");
  EXPECT_EQ(infer_text(Op::matmul, {f32({3}), f32({5, 3, 4})}), "f32[5, 4]");
  EXPECT_EQ(infer_text(Op::matmul, {f32({5, 2, 3}), f32({3})}), "f32[5, 2]");
  EXPECT_EQ(infer_text(Op::matmul, {bf16({kRows, 1, 2, 3}), bf16({7, 3, 4})}), "bf16[rows, 7, 2, 4]");
  EXPECT_EQ(infer_text(Op::matmul, {bf16({2, 3}), bf16({3, 4})}, {{"dtype", DType::f32}}), "f32[2, 4]");
  EXPECT_EQ(infer_text(Op::matmul, {{DType::f8e4m3, {2, 3}}, {DType::f8e5m2, {3, 4}}}), "f32[2, 4]");
}

struct CompositeCase {
  Op op;
  std::vector<Type> operands;
  Attrs attrs;
  std::string types;
};

class CompositeTypes : public testing::TestWithParam<CompositeCase> {};

TEST_P(CompositeTypes, AreThoseOfTheComposition) {
  const CompositeCase& c = GetParam();
  EXPECT_EQ(infer_text(c.op, c.operands, c.attrs), c.types);
}

const CompositeCase kComposites[] = {
    {Op::expand_dims, {f32({2, 3})}, {{"axis", Ints{0, -1}}}, "f32[1, 2, 3, 1]"},
    {Op::squeeze, {f32({1, kRows, 1})}, {}, "f32[rows]"},
    {Op::squeeze, {f32({1, kRows, 1})}, {{"axis", Ints{-1}}}, "f32[1, rows]"},
    {Op::split,
     {f32({2, 6})},
     {{"sections", Ints{1, 0, 5}}, {"axis", std::int64_t{1}}},
     "f32[2, 1], f32[2, 0], f32[2, 5]"},
    {Op::stack, {f32({2}), f32({2}), f32({2})}, {{"axis", std::int64_t{-1}}}, "f32[2, 3]"},
    {Op::mean, {bf16({kRows, 4})}, {{"axis", Ints{0}}}, "bf16[4]"},
    {Op::mean, {f32({2, 3})}, {{"keepdims", true}}, "f32[1, 1]"},
    {Op::var, {bf16({kRows, 4})}, {{"axis", Ints{1}}, {"ddof", std::int64_t{1}}}, "bf16[rows]"},
    {Op::logsumexp, {f32({2, 3, 4})}, {{"axis", Ints{0, 2}}}, "f32[3]"},
    {Op::logsumexp, {f32({2, 3, 4})}, {{"axis", Ints{1}}, {"keepdims", true}}, "f32[2, 1, 4]"},
    {Op::softmax, {bf16({kRows, 4})}, {}, "bf16[rows, 4]"},
    {Op::log_softmax, {f32({2, 3})}, {{"axis", Ints{0}}}, "f32[2, 3]"},
    {Op::layer_norm, {bf16({kRows, 8}), bf16({8}), bf16({8})}, {}, "bf16[rows, 8]"},
    {Op::layer_norm, {bf16({2, 8, 5}), f32({8})}, {{"axis", Ints{1}}}, "bf16[2, 8, 5]"},
    {Op::rms_norm, {f32({kRows, 8}), f32({8})}, {}, "f32[rows, 8]"},
    {Op::cross_entropy, {bf16({kRows, 50}), i64({kRows})}, {}, "bf16[rows]"},
    {Op::cross_entropy, {f32({kRows, 50}), {DType::i32, {kRows}}}, {{"reduction", std::string("mean")}}, "f32[]"},
    {Op::relu, {{DType::i32, {2}}}, {}, "i32[2]"},
    {Op::leaky_relu, {f32({2})}, {}, "f32[2]"},
    {Op::elu, {bf16({2})}, {{"alpha", 0.5}}, "bf16[2]"},
    {Op::gelu, {bf16({2})}, {{"approximate", std::string("tanh")}}, "bf16[2]"},
    {Op::gelu, {f32({2})}, {}, "f32[2]"},
    {Op::silu, {f32({2})}, {}, "f32[2]"},
    {Op::sigmoid, {f32({2})}, {}, "f32[2]"},
    {Op::softplus, {f32({2})}, {}, "f32[2]"},
    {Op::mish, {f32({2})}, {}, "f32[2]"},
    {Op::swiglu, {f32({2}), f32({3, 2})}, {}, "f32[3, 2]"},
    {Op::linear, {bf16({kRows, 3}), bf16({5, 3}), bf16({5})}, {}, "bf16[rows, 5]"},
    {Op::linear, {bf16({kRows, 3}), bf16({5, 3}), bf16({5})}, {{"dtype", DType::f32}}, "f32[rows, 5]"},
    {Op::random_uniform, {i64({})}, {{"shape", Dims{kRows, 2}}}, "f32[rows, 2]"},
    {Op::random_uniform, {i64({})}, {{"shape", Dims{3}}, {"dtype", DType::f64}}, "f64[3]"},
    {Op::random_normal, {i64({})}, {{"shape", Dims{3}}, {"dtype", DType::f16}}, "f16[3]"},
    {Op::random_normal, {i64({})}, {{"shape", Dims{3}}, {"dtype", DType::f64}}, "f64[3]"},
    {Op::dropout, {bf16({kRows, 4}), i64({})}, {{"p", 0.1}}, "bf16[rows, 4]"},
    {Op::attention, {bf16({2, 8, kRows, 64}), bf16({2, 8, 99, 64}), bf16({2, 8, 99, 32})}, {}, "bf16[2, 8, rows, 32]"},
    {Op::attention,
     {bf16({2, 8, 5, 64}), bf16({2, 2, kRows, 64}), bf16({2, 2, kRows, 64}), f32({8, 1, kRows})},
     {{"causal", true}, {"window", std::int64_t{7}}, {"softcap", 30.0}, {"lse", true}},
     "bf16[2, 8, 5, 64], f32[2, 8, 5]"},
    {Op::attention, {f32({8, 5, 4}), f32({1, 6, 4}), f32({1, 6, 4})}, {{"causal", true}}, "f32[8, 5, 4]"},
};

INSTANTIATE_TEST_SUITE_P(All, CompositeTypes, testing::ValuesIn(kComposites), [](const auto& param) {
  return std::string(name_of(param.param.op)) + "_" + std::to_string(param.index);
});

TEST(Append, DeclaresTheSymbolsOfInputs) {
  Graph graph;
  const ValueId x = append_input(graph, "x", DType::f32, shape_of({kRows, 4}));
  EXPECT_EQ(graph.symbols.count("rows"), 1u);
  EXPECT_EQ(graph.inputs, std::vector<ValueId>{x});
  EXPECT_EQ(graph.value(x).name, "x");
}

TEST(Append, OrdersAndTypesAttributes) {
  Graph graph;
  const ValueId x = append_input(graph, "x", DType::f32, shape_of({2, 4}));
  const ValueId s = append_one(graph, Op::sum, {x}, {{"keepdims", true}, {"axis", std::int64_t{1}}});
  const auto& items = graph.producer(s).attrs.items();
  ASSERT_EQ(items.size(), 2u);
  EXPECT_EQ(items[0].first, "axis");
  EXPECT_EQ(items[0].second, AttrValue(Ints{1}));
}

TEST(Append, LiteralsTakeOnlyValuesTheDtypeHolds) {
  Graph graph;
  EXPECT_EQ(str(graph.type(append_literal(graph, std::int64_t{-128}, DType::i8))), "i8[]");
  EXPECT_EQ(str(graph.type(append_literal(graph, 2.0, DType::i32))), "i32[]");
  EXPECT_EQ(str(graph.type(append_literal(graph, std::int64_t{3}, DType::f16))), "f16[]");
  EXPECT_THROW(append_literal(graph, 1.5, DType::i32), Error);
  EXPECT_THROW(append_literal(graph, std::int64_t{300}, DType::u8), Error);
  EXPECT_THROW(append_literal(graph, 1e6, DType::f16), Error);
  EXPECT_THROW(append_literal(graph, std::numeric_limits<double>::infinity(), DType::f8e4m3), Error);
  EXPECT_THROW(append_literal(graph, std::int64_t{1}, DType::bool_), Error);
}

}  // namespace
}  // namespace tenon::ir

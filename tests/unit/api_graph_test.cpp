// Recording graphs in C++: operators, numbers beside tensors, names, and what the graph then is as text and JSON.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "ir/text/text.h"
#include "tenon/tenon.h"

namespace tenon {
namespace {

struct Inputs {
  Tensor x, y, i, m;
};

// What the graph of one expression computes, as the text form writes it: "mul(x, 2.0)".
std::string recorded(const std::function<Tensor(const Inputs&)>& expression) {
  Graph g("sample");
  const Inputs in{g.input("x", DType::f32, {4, 6}), g.input("y", DType::f32, {6}), g.input("i", DType::i32, {4}),
                  g.input("m", DType::bool_, {4})};
  g.output("out", expression(in));
  const std::string text = g.str();
  const std::size_t begin = text.find(" = ") + 3;
  return text.substr(begin, text.find("\n  return") - begin);
}

TEST(ApiOperators, ArithmeticRecordsTheOpOfItsMeaning) {
  EXPECT_EQ(recorded([](const Inputs& in) { return in.x + in.y; }), "add(x, y)");
  EXPECT_EQ(recorded([](const Inputs& in) { return in.x - in.y; }), "sub(x, y)");
  EXPECT_EQ(recorded([](const Inputs& in) { return in.x * in.y; }), "mul(x, y)");
  EXPECT_EQ(recorded([](const Inputs& in) { return in.x / in.y; }), "div(x, y)");
  EXPECT_EQ(recorded([](const Inputs& in) { return in.x % in.y; }), "mod(x, y)");
  EXPECT_EQ(recorded([](const Inputs& in) { return -in.x; }), "neg(x)");
}

TEST(ApiOperators, ComparisonsGiveBoolTensors) {
  EXPECT_EQ(recorded([](const Inputs& in) { return in.x < in.y; }), "less(x, y)");
  EXPECT_EQ(recorded([](const Inputs& in) { return in.x <= in.y; }), "less_equal(x, y)");
  EXPECT_EQ(recorded([](const Inputs& in) { return in.x > in.y; }), "greater(x, y)");
  EXPECT_EQ(recorded([](const Inputs& in) { return in.x >= in.y; }), "greater_equal(x, y)");
  Graph g;
  EXPECT_EQ((g.input("x", DType::f16, {2}) < 1).dtype(), DType::bool_);
}

TEST(ApiOperators, BitOperatorsServeIntegersAndBools) {
  EXPECT_EQ(recorded([](const Inputs& in) { return in.i & 7; }), "bitwise_and(i, 7)");
  EXPECT_EQ(recorded([](const Inputs& in) { return in.m | false; }), "bitwise_or(m, false)");
  EXPECT_EQ(recorded([](const Inputs& in) { return in.i ^ in.i; }), "bitwise_xor(i, i)");
  EXPECT_EQ(recorded([](const Inputs& in) { return ~in.m; }), "bitwise_not(m)");
}

TEST(ApiOperators, NumbersStandOnEitherSideAndTakeTheTensorsDType) {
  EXPECT_EQ(recorded([](const Inputs& in) { return 1 - in.x; }), "sub(1.0, x)");
  EXPECT_EQ(recorded([](const Inputs& in) { return in.x * 0.1; }), "mul(x, 0.1)");
  EXPECT_EQ(recorded([](const Inputs& in) { return in.x * 0.1F; }), "mul(x, 0.1)");
  EXPECT_EQ(recorded([](const Inputs& in) { return 2.0 > in.i; }), "greater(2, i)");
  EXPECT_EQ(recorded([](const Inputs& in) { return where(in.m, in.i, -1); }), "where(m, i, -1)");
  EXPECT_EQ(recorded([](const Inputs& in) { return clamp(in.x, 0, 6); }), "clamp(x, 0.0, 6.0)");
}

TEST(ApiOperators, IntegersBeyondADoubleStayExact) {
  Graph g;
  const Tensor x = g.input("x", DType::i64, {2});
  g.output("y", x + 9007199254740993);
  EXPECT_NE(g.str().find("add(x, 9007199254740993)"), std::string::npos) << g.str();
}

TEST(ApiSlices, OpenEndsAndStepsReadAsNumPys) {
  Graph g;
  const Dim rows = g.dim("rows", {.min = 4});
  const Tensor x = g.input("x", DType::f32, {rows, 10});
  EXPECT_EQ(str(slice(x, {{2, std::nullopt}}).shape()), str(Shape{rows - 2, 10}));
  EXPECT_EQ(str(slice(x, {{}, {std::nullopt, -3}}).shape()), "[rows, 7]");
  EXPECT_EQ(str(slice(x, {{}, {.step = -3}}).shape()), "[rows, 4]");
  EXPECT_EQ(str(slice(x, {{0, 4}, {1, 9, 4}}).shape()), "[4, 2]");
  EXPECT_EQ(str(slice(x, 1, 2, 5).shape()), "[rows, 3]");
  EXPECT_EQ(str(slice(x, {}).shape()), "[rows, 10]");
}

TEST(ApiTensor, KnowsItsTypeAndKeepsItsGraphAlive) {
  Tensor y;
  {
    Graph g;
    y = exp(g.input("x", DType::bf16, {g.dim("n"), 3}));
  }
  EXPECT_EQ(y.dtype(), DType::bf16);
  EXPECT_EQ(str(y.shape()), "[n, 3]");
  EXPECT_EQ((y + 1).rank(), 2);
}

TEST(ApiNames, NamedValuesKeepTheirNamesInText) {
  Graph g("names");
  const Tensor x = g.input("x", DType::f32, {4});
  const Tensor h = exp(x).named("h");
  g.output("y", (h + 1).named("sum"));
  EXPECT_EQ(g.str(),
            "graph names(x: f32[4]) {\n"
            "  h: f32[4] = exp(x)\n"
            "  sum: f32[4] = add(h, 1.0)\n"
            "  return sum as y\n"
            "}\n");
}

TEST(ApiNames, NamingAgainReplacesTheNameAndFreesIt) {
  Graph g;
  const Tensor x = g.input("x", DType::f32, {4});
  const Tensor h = exp(x).named("h");
  EXPECT_NO_THROW(h.named("h"));
  h.named("k");
  EXPECT_NO_THROW(sin(x).named("h"));
}

Graph mlp() {
  Graph g("mlp");
  const Dim rows = g.dim("rows", {.min = 1, .max = 4096, .divisor = 8});
  const Tensor x = g.input("x", DType::bf16, {rows, 64});
  const Tensor w = g.input("w", DType::bf16, {256, 64});
  const Tensor gate = g.input("gate", DType::bf16, {rows, 256});
  const Tensor h = swiglu(gate, linear(x, w)).named("h");
  const auto parts = split(h, {128, 128}, -1);
  g.output("left", parts[0]);
  g.output("top", max(parts[1], -1, true));
  g.output("again", h);
  return g;
}

TEST(ApiGraph, TextAndJsonReadBackEqual) {
  const Graph g = mlp();
  EXPECT_TRUE(ir::same(Graph::parse(g.str()).data(), g.data())) << g.str();
  EXPECT_TRUE(ir::same(ir::parse_json(g.json()), g.data())) << g.json();
  EXPECT_NE(g.str().find("where rows in [1, 4096], rows % 8 == 0"), std::string::npos) << g.str();
}

TEST(ApiGraph, LoadReadsEitherForm) {
  const Graph g = mlp();
  const auto folder = std::filesystem::path(testing::TempDir());
  std::ofstream(folder / "api_mlp.tn") << g.str();
  std::ofstream(folder / "api_mlp.json") << g.json();
  EXPECT_TRUE(ir::same(Graph::load(folder / "api_mlp.tn").data(), g.data()));
  EXPECT_TRUE(ir::same(Graph::load(folder / "api_mlp.json").data(), g.data()));
}

TEST(ApiGraph, ListsItsInputsAndOutputs) {
  const Graph g = mlp();
  ASSERT_EQ(g.inputs().size(), 3U);
  EXPECT_EQ(g.inputs()[2].name, "gate");
  EXPECT_EQ(str(g.inputs()[2].value.shape()), "[rows, 256]");
  ASSERT_EQ(g.outputs().size(), 3U);
  EXPECT_EQ(g.outputs()[1].name, "top");
  EXPECT_EQ(str(g.outputs()[1].value.shape()), "[rows, 1]");
}

TEST(ApiGraph, ALoadedGraphCanBeExtended) {
  Graph g = Graph::parse("graph f(x: f32[4]) {\n  y = exp(x)\n  return y\n}\n");
  g.output("z", g.outputs()[0].value * g.inputs()[0].value);
  EXPECT_EQ(g.outputs().size(), 2U);
  EXPECT_TRUE(ir::same(Graph::parse(g.str()).data(), g.data())) << g.str();
}

TEST(ApiGraph, CopiesShareTheGraph) {
  Graph g;
  const Graph copy = g;
  g.output("x", g.input("x", DType::f32, {4}));
  EXPECT_EQ(copy.inputs().size(), 1U);
}

TEST(ApiGraph, ARefusedOperatorLeavesTheGraphUsable) {
  Graph g;
  const Tensor x = g.input("x", DType::f32, {4}), y = g.input("y", DType::f32, {5});
  EXPECT_THROW(x + y, Error);
  g.output("z", x + 1);
  EXPECT_EQ(g.str().find("add(x, y)"), std::string::npos);
  EXPECT_TRUE(ir::same(Graph::parse(g.str()).data(), g.data()));
}

}  // namespace
}  // namespace tenon

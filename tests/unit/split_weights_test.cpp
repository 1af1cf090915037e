// What is kept of inputs that are the same in every run, and the two graphs that the rest is cut into: text in, text
// out.
#include "ir/passes/split_weights.h"

#include <gtest/gtest.h>

#include "ir/graph/build.h"
#include "ir/interpret/interpret.h"
#include "ir/passes/passes.h"
#include "ir/text/text.h"

namespace tenon::ir {
namespace {

// Inputs whose names begin with w are bound.
std::vector<bool> bound_inputs(const Graph& graph) {
  std::vector<bool> bound;
  for (const ValueId input : graph.inputs) bound.push_back(graph.value(input).name[0] == 'w');
  return bound;
}

std::string kept_of(const std::string& text) {
  const Graph graph = run_passes(parse(text));
  std::string names;
  for (const ValueId value : worth_keeping(graph, bound_inputs(graph)))
    names += (names.empty() ? "" : " ") + display_name(graph, value);
  return names;
}

SplitGraph split(const Graph& graph) {
  const std::vector<bool> bound = bound_inputs(graph);
  SplitGraph split = split_weights(graph, bound, worth_keeping(graph, bound));
  verify(split.each);
  if (!split.once.outputs.empty()) verify(split.once);
  return split;
}

TEST(WorthKeeping, WhatIsNoLargerThanWhatItIsMadeOf) {
  EXPECT_EQ(kept_of("graph g(x: f32[n, 8], w: f32[8], wv: f32[8]) {\n s = mul(w, rsqrt(add(wv, 0.001)))\n"
                    "return mul(x, s) as y }"),
            "s");
  EXPECT_EQ(kept_of("graph g(x: f32[n, 8], w: f32[4, 8]) {\n s = sum(w, axis=0)\n return mul(x, s) as y }"), "s");
  EXPECT_EQ(kept_of("graph g(x: f16[n, 8], w: f32[8, 8]) {\n h = cast(w, dtype=f16)\n return matmul(x, h) as y }"),
            "h");
}

TEST(WorthKeeping, NothingThatOnlyMovesElementsOrMakesThemWider) {
  EXPECT_EQ(kept_of("graph g(x: f32[n, 8], w: f32[4, 8]) {\n t = transpose(w)\n return matmul(x, t) as y }"), "");
  EXPECT_EQ(kept_of("graph g(x: f32[n, 8], w: f16[8, 4]) {\n t = cast(w, dtype=f32)\n return matmul(x, t) as y }"), "");
  EXPECT_EQ(kept_of("graph g(x: f32[n, 8], w: i8[8, 4], ws: f32[4]) {\n t = mul(cast(w, dtype=f32), ws)\n"
                    "return matmul(x, t) as y }"),
            "");
}

TEST(WorthKeeping, OfWhatIsLargerThePartsThatAreNot) {
  EXPECT_EQ(kept_of("graph g(x: f32[8, 8], wa: f32[8], wb: f32[8]) {\n a = exp(wa)\n b = tanh(wb)\n"
                    "o = mul(expand_dims(a, axis=1), b)\n return mul(x, o) as y }"),
            "a b");
  EXPECT_EQ(kept_of("graph g(x: f32[n, 8], w: f16[8]) {\n s = exp(w)\n t = cast(s, dtype=f32)\n"
                    "return mul(x, t) as y }"),
            "s");
}

TEST(WorthKeeping, NothingBesideABoundInputThatIsReadAnyway) {
  EXPECT_EQ(kept_of("graph g(x: f32[n, 8], w: f32[8]) {\n s = exp(w)\n return add(mul(x, s), w) as y }"), "");
  EXPECT_EQ(kept_of("graph g(x: f32[n, 8], w: f32[8]) {\n s = exp(w)\n t = tanh(w)\n"
                    "return add(mul(x, s), t) as y }"),
            "");
}

TEST(WorthKeeping, NothingThatASymbolDecides) {
  EXPECT_EQ(kept_of("graph g(x: f32[n], w: f32[n]) {\n return mul(x, exp(w)) as y }"), "");
  EXPECT_EQ(
      kept_of("graph g(x: f32[n], w: f32[]) {\n s = mul(w, dim_value(value=[n], dtype=f32))\n return mul(x, s) as y }"),
      "");
}

TEST(WorthKeeping, NothingThatOnlyTheCallerNeeds) {
  EXPECT_EQ(kept_of("graph g(x: f32[n], w: f32[8]) {\n return exp(w) as s, exp(x) as y }"), "");
}

TEST(SplitWeights, CutsTheGraphAtWhatIsKept) {
  const SplitGraph cut = split(parse(
      "graph g(w: f32[8], x: f32[n, 8], wv: f32[8], wb: f32[8]) {\n"
      "  v = add(wv, 0.001)\n  r = rsqrt(v)\n  s = mul(w, r)\n  m = mul(x, s)\n  y = add(m, wb)\n  return y\n}\n"));
  EXPECT_EQ(print(cut.once),
            "graph g(w: f32[8], wv: f32[8]) {\n"
            "  v: f32[8] = add(wv, 0.001)\n  r: f32[8] = rsqrt(v)\n  s: f32[8] = mul(w, r)\n  return s\n}\n");
  EXPECT_EQ(print(cut.each),
            "graph g(x: f32[n, 8], wb: f32[8], s: f32[8]) {\n"
            "  m: f32[n, 8] = mul(x, s)\n  y: f32[n, 8] = add(m, wb)\n  return y\n}\n");
  EXPECT_EQ(cut.once_inputs, (std::vector<int>{0, 2}));
  EXPECT_EQ(cut.each_bound, (std::vector<int>{3, 4}));
}

TEST(SplitWeights, ValuesWithoutNamesGetSome) {
  const SplitGraph cut = split(parse("graph g(once0: f32[8], w: f32[8]) {\n  return mul(once0, exp(w)) as y\n}\n"));
  EXPECT_EQ(cut.once.outputs_names, std::vector<std::string>{"once1"});
  EXPECT_EQ(cut.each.value(cut.each.inputs[1]).name, "once1");
}

TEST(SplitWeights, WithNothingKeptBoundInputsComeLast) {
  const Graph graph = parse(
      "graph g(w: f32[8], a: f32[8], wb: f32[8], b: f32[8]) {\n"
      "  c = add(a, b)\n  d = mul(c, w)\n  return d into b, a as e, wb as f\n}\n");
  const SplitGraph cut = split_weights(graph, bound_inputs(graph), {});
  verify(cut.each);
  std::string names;
  for (const ValueId input : cut.each.inputs) names += cut.each.value(input).name + " ";
  EXPECT_EQ(names, "a b w wb ");
  EXPECT_EQ(cut.each.updates, (std::vector<int>{1, -1, -1}));
  EXPECT_EQ(cut.each_bound, (std::vector<int>{0, 2}));
  EXPECT_TRUE(cut.once.outputs.empty());
}

// The two graphs one after another mean what the graph does.
TEST(SplitWeights, TheTwoGraphsMeanTheOne) {
  const Graph graph = run_passes(
      parse("graph g(x: f32[3, 4], w: f32[4, 4], wl: f32[4], wv: f32[4]) {\n"
            "  n = layer_norm(x, wl, wv)\n  h = matmul(n, mul(exp(w), 0.5))\n  return softmax(h) as y, h\n}\n"));
  std::vector<HostArray> inputs;
  for (const ValueId input : graph.inputs) {
    std::vector<std::int64_t> shape;
    for (const Dim& extent : graph.type(input).shape) shape.push_back(extent.evaluate({}));
    inputs.push_back(make_array(DType::f32, shape));
    for (std::int64_t i = 0; i < element_count(inputs.back()); ++i)
      set_real(inputs.back(), i, 0.25 * static_cast<double>(i % 7) - 0.5);
  }
  const SplitGraph cut = split(graph);
  ASSERT_EQ(cut.once.outputs.size(), 1U);
  std::vector<HostArray> once, each{inputs[0]};
  for (const int input : cut.once_inputs) once.push_back(inputs[static_cast<std::size_t>(input)]);
  std::vector<HostArray> all = inputs;
  for (HostArray& kept : interpret(cut.once, once)) all.push_back(std::move(kept));
  for (const int input : cut.each_bound) each.push_back(all[static_cast<std::size_t>(input)]);
  const auto expected = interpret(graph, inputs), actual = interpret(cut.each, each);
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i)
    for (std::int64_t j = 0; j < element_count(expected[i]); ++j)
      EXPECT_NEAR(get_real(actual[i], j), get_real(expected[i], j), 1e-6);
}

}  // namespace
}  // namespace tenon::ir

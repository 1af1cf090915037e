// However many operands a graph has: a kernel takes a bounded number of pointers, and a bounded number of operators in
// turn.
#include <gtest/gtest.h>

#include <algorithm>

#include "ir/fusion/concats.h"
#include "ir/fusion/plan.h"
#include "ir/graph/build.h"
#include "ir/text/text.h"

namespace tenon::ir {
namespace {

Graph joined(int pieces) {
  Graph graph;
  std::vector<ValueId> operands;
  for (int i = 0; i < pieces; ++i)
    operands.push_back(append_input(graph, "x" + std::to_string(i), DType::f32, {Dim::symbol("n"), 4}));
  graph.symbols["n"] = {};
  append_output(graph, append_one(graph, Op::concat, operands, {{"axis", std::int64_t{0}}}), "y");
  return graph;
}

std::size_t most_pointers(const Plan& plan) {
  std::size_t most = 0;
  for (const Group& group : plan.groups) most = std::max(most, group.inputs.size() + group.outputs.size());
  return most;
}

TEST(CutConcats, JoinsEvenShares) {
  Graph graph;
  std::vector<ValueId> x;
  for (int i = 0; i < 7; ++i) x.push_back(append_input(graph, "x" + std::to_string(i), DType::f32, {2}));
  append_output(graph, append_one(graph, Op::concat, x), "y");
  const Graph cut = fusion::cut_concats(graph, 3);
  verify(cut);
  EXPECT_EQ(print(cut),
            R"(graph main(x0: f32[2], x1: f32[2], x2: f32[2], x3: f32[2], x4: f32[2], x5: f32[2], x6: f32[2]) {
  v0: f32[4] = concat(x0, x1)
  v1: f32[4] = concat(x2, x3)
  v2: f32[6] = concat(x4, x5, x6)
  y: f32[14] = concat(v0, v1, v2)
  return y
}
)");
}

TEST(CutConcats, LeavesShortOnesAlone) {
  const Graph graph = joined(12);
  EXPECT_EQ(print(fusion::cut_concats(graph, 12)), print(graph));
}

TEST(CutConcats, TakesAsManyLevelsAsItNeeds) {
  const Graph cut = fusion::cut_concats(joined(1000), 4);
  verify(cut);
  for (const Node& node : cut.nodes) EXPECT_LE(node.operands.size(), 4U);
}

TEST(Pointers, OfAKernelAreBoundedWhateverAConcatJoins) {
  for (const int pieces : {128, 129, 257, 600, 4096})
    for (const bool fuse : {true, false}) {
      PlanOptions options;
      options.fuse = fuse;
      const Plan plan = make_plan(joined(pieces), options);
      verify(plan);
      EXPECT_LE(most_pointers(plan), 129U) << pieces;
      EXPECT_EQ(plan.groups.size() == 1, pieces <= 128) << pieces;
    }
}

TEST(Pointers, OfNestedConcatsAreBounded) {
  Graph graph;
  std::vector<ValueId> rows;
  for (int i = 0; i < 100; ++i) {
    std::vector<ValueId> pieces;
    for (int j = 0; j < 100; ++j)
      pieces.push_back(append_input(graph, "x" + std::to_string(100 * i + j), DType::f32, {2}));
    rows.push_back(append_one(graph, Op::concat, pieces));
  }
  const ValueId all = append_one(graph, Op::concat, rows);
  append_output(graph, append_one(graph, Op::add, {all, append_one(graph, Op::flip, {all})}), "y");
  const Plan plan = make_plan(graph);
  verify(plan);
  EXPECT_LE(most_pointers(plan), 129U);
}

TEST(Pointers, OfAnAttentionAreBounded) {
  Graph graph;
  const auto input = [&](const std::string& name) { return append_input(graph, name, DType::f32, {32, 32}); };
  const ValueId q = input("q"), k = input("k"), v = input("v");
  ValueId scores = append_one(graph, Op::matmul, {q, append_one(graph, Op::transpose, {k})});
  for (int i = 0; i < 80; ++i) {  // masks, each of two pieces
    const ValueId a = append_input(graph, "a" + std::to_string(i), DType::f32, {32, 16});
    const ValueId b = append_input(graph, "b" + std::to_string(i), DType::f32, {32, 16});
    const ValueId mask = append_one(graph, Op::concat, {a, b}, {{"axis", std::int64_t{1}}});
    scores = append_one(graph, Op::add, {scores, mask});
  }
  append_output(graph, append_one(graph, Op::matmul, {append_one(graph, Op::softmax, {scores}), v}), "y");
  const Plan plan = make_plan(graph);
  verify(plan);
  EXPECT_LE(most_pointers(plan), 129U);
}

}  // namespace
}  // namespace tenon::ir

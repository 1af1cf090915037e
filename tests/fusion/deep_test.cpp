// Graphs as deep as they are large: 200,000 operators of which each needs the one before it. Nothing that looks at them
// may recurse along the graph.
#include <gtest/gtest.h>

#include "ir/fusion/dot.h"
#include "ir/fusion/plan.h"
#include "ir/graph/build.h"
#include "ir/interpret/interpret.h"
#include "ir/passes/passes.h"
#include "ir/text/text.h"

namespace tenon::ir {
namespace {

constexpr int kDeep = 200'000;

Graph chain_of_maps() {
  Graph graph;
  ValueId y = append_input(graph, "x", DType::f32, {4});
  for (int i = 0; i < kDeep; ++i) y = append_one(graph, i % 2 == 0 ? Op::sin : Op::tanh, {y});
  append_output(graph, y, "y");
  return graph;
}

// No two neighbours are one view.
Graph chain_of_views() {
  Graph graph;
  ValueId y = append_input(graph, "x", DType::f32, {4, 4});
  for (int i = 0; i < kDeep; ++i)
    y = i % 2 == 0 ? append_one(graph, Op::transpose, {y})
                   : append_one(graph, Op::flip, {y}, {{"axis", std::vector<std::int64_t>{0}}});
  append_output(graph, y, "y");
  return graph;
}

Graph chain_of_both() {
  Graph graph;
  ValueId y = append_input(graph, "x", DType::f32, {4, 4});
  for (int i = 0; i < kDeep; ++i)
    y = i % 50 == 0  ? append_one(graph, Op::sin, {y})
        : i % 2 == 0 ? append_one(graph, Op::transpose, {y})
                     : append_one(graph, Op::flip, {y}, {{"axis", std::vector<std::int64_t>{0}}});
  append_output(graph, y, "y");
  return graph;
}

Graph chain_of_softmaxes() {
  Graph graph;
  ValueId y = append_input(graph, "x", DType::f32, {4, 4});
  for (int i = 0; i < kDeep / 10; ++i)
    y = append_one(graph, Op::softmax, {y}, {{"axis", std::vector<std::int64_t>{i % 2}}});
  append_output(graph, y, "y");
  return graph;
}

class Deep : public testing::TestWithParam<Graph (*)()> {};

TEST_P(Deep, GraphsAreWrittenReadRewrittenPlannedExplainedAndInterpreted) {
  const Graph graph = GetParam()();
  EXPECT_EQ(parse(print(graph)).nodes.size(), graph.nodes.size());
  for (const bool fuse : {true, false}) {
    PlanOptions options;
    options.fuse = fuse;
    const Plan plan = make_plan(graph, options);
    verify(plan);
    EXPECT_FALSE(print(plan).empty());
    EXPECT_FALSE(dot(plan).empty());
    EXPECT_FALSE(explain(plan).empty() && plan.groups.size() > 1);
  }
  HostArray x = make_array(DType::f32, graph.type(graph.inputs[0]).shape.size() == 1 ? std::vector<std::int64_t>{4}
                                                                                     : std::vector<std::int64_t>{4, 4});
  EXPECT_EQ(interpret(graph, {x}).size(), 1U);
}

INSTANTIATE_TEST_SUITE_P(Chains, Deep,
                         testing::Values(chain_of_maps, chain_of_views, chain_of_both, chain_of_softmaxes));

}  // namespace
}  // namespace tenon::ir

// Large graphs are planned in time that grows about as their size does.
#include <gtest/gtest.h>

#include <ctime>
#include <iostream>

#include "ir/fusion/plan.h"
#include "ir/graph/build.h"
#include "tests/harness/large_graph.h"

namespace tenon::ir {
namespace {

// Processor seconds, so that a busy machine does not matter.
double planning_seconds(const Graph& graph) {
  const std::clock_t start = std::clock();
  const Plan plan = make_plan(graph);
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  verify(plan);
  return seconds;
}

class LargeGraphs : public testing::TestWithParam<double> {};

// An optimised build takes about a second (bench/results/planner.md). Sanitizers and debug builds get thirty; an
// algorithm that compares every pair of 20,000 nodes would take minutes.
TEST_P(LargeGraphs, OfTwentyThousandNodesArePlannedInSeconds) {
  const Graph graph = test::large_graph(7, 20000, GetParam());
  ASSERT_GE(graph.nodes.size(), 20000U);
  const double seconds = planning_seconds(graph);
  std::cout << graph.nodes.size() << " nodes, far " << GetParam() << ": " << seconds << " s\n";
  EXPECT_LT(seconds, 30);
}

TEST_P(LargeGraphs, TakeAboutTwiceTheTimeForTwiceTheNodes) {
  const double half = planning_seconds(test::large_graph(7, 8000, GetParam()));
  const double whole = planning_seconds(test::large_graph(7, 16000, GetParam()));
  EXPECT_LT(whole, 3.5 * half + 0.2) << half << " s for 8,000 nodes, " << whole << " s for 16,000";
}

// Each kernel around the value is looked at, and each has all the others as neighbours.
TEST(LargeGraph, WithThousandsOfReadersOfOneValueIsPlannedInSeconds) {
  Graph graph;
  const ValueId x = append_input(graph, "x", DType::f32, {256, 256});
  const ValueId shared = append_one(graph, Op::matmul, {x, x});
  for (int i = 0; i < 3000; ++i) {
    const std::vector<std::int64_t> axis{i % 2};
    const ValueId sum = append_one(graph, Op::sum, {append_one(graph, i % 4 < 2 ? Op::exp : Op::sin, {shared})},
                                   {{"axis", axis}, {"keepdims", true}});
    append_output(graph, append_one(graph, Op::matmul, {shared, append_one(graph, Op::sub, {shared, sum})}),
                  "y" + std::to_string(i));
  }
  EXPECT_LT(planning_seconds(graph), 30);
}

INSTANTIATE_TEST_SUITE_P(FarShares, LargeGraphs, testing::Values(0.02, 0.5, 1.0),
                         [](const auto& share) { return "Far" + std::to_string(static_cast<int>(share.param * 100)); });

}  // namespace
}  // namespace tenon::ir

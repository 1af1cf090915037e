// Large graphs are planned in time that grows about as their size does.
#include <gtest/gtest.h>

#include <ctime>

#include "ir/fusion/plan.h"
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
  EXPECT_LT(planning_seconds(graph), 30);
}

TEST_P(LargeGraphs, TakeAboutTwiceTheTimeForTwiceTheNodes) {
  const double half = planning_seconds(test::large_graph(7, 8000, GetParam()));
  const double whole = planning_seconds(test::large_graph(7, 16000, GetParam()));
  EXPECT_LT(whole, 3.5 * half + 0.2) << half << " s for 8,000 nodes, " << whole << " s for 16,000";
}

INSTANTIATE_TEST_SUITE_P(FarShares, LargeGraphs, testing::Values(0.02, 0.5, 1.0),
                         [](const auto& share) { return "Far" + std::to_string(static_cast<int>(share.param * 100)); });

}  // namespace
}  // namespace tenon::ir

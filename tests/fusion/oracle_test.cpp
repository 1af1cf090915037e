// The planner's cut against the exact optimum of the same cost model, on random graphs.
//   TENON_ORACLE_COUNT   how many graphs; default 200 (bench/results/planner.md records 1,000)
#include "tests/fusion/oracle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <random>

#include "ir/text/text.h"

namespace tenon::test {
namespace {

constexpr int kNodes = 14;

double ratio(std::uint64_t seed, int nodes, int window) {
  const ir::Graph graph = oracle_graph(seed, nodes);
  ir::PlanOptions options;
  options.find_attention = false;
  options.window = window;
  const ir::fusion::Context context(graph, options);
  return predicted_time(context, planned_partition(context)) / least_time(context);
}

struct Summary {
  double mean = 0, p95 = 0, least = 0, most = 0, optimal = 0;
};

Summary summary(std::vector<double> ratios) {
  std::sort(ratios.begin(), ratios.end());
  const auto count = static_cast<double>(ratios.size());
  Summary result;
  for (double ratio : ratios) {
    result.mean += ratio / count;
    result.optimal += (ratio < 1 + 1e-6 ? 100 : 0) / count;
  }
  result.p95 = ratios[ratios.size() * 95 / 100];
  result.least = ratios.front();
  result.most = ratios.back();
  return result;
}

Summary measure(std::uint64_t first, int count, int window) {
  std::vector<double> ratios;
  for (int i = 0; i < count; ++i) ratios.push_back(ratio(first + static_cast<std::uint64_t>(i), kNodes, window));
  const Summary result = summary(ratios);
  std::cout << count << " graphs of " << kNodes << " nodes from seed " << first << ", window " << window << ": mean "
            << result.mean << ", 95th percentile " << result.p95 << ", most " << result.most << ", optimal "
            << result.optimal << " %\n";
  return result;
}

TEST(Oracle, KnowsWhatASmallGraphCosts) {
  // One kernel cannot reduce both axes: it reads x and writes y and a sum, a second one reads y.
  const ir::Graph graph = ir::parse(
      "graph g(x: f32[4096, 4096]) {\n  y = exp(x)\n  a = sum(y, axis=0)\n  b = sum(y, axis=1)\n  return a, b\n}\n");
  ir::PlanOptions options;
  const ir::fusion::Context context(graph, options);
  const double copy = 4096.0 * 4096 * 4 / 3e6;  // microseconds for one pass over x
  EXPECT_NEAR(least_time(context), 3 * copy + 2 * options.cost.launch_us, 2);
}

int graph_count() {
  const char* text = std::getenv("TENON_ORACLE_COUNT");
  return text == nullptr ? 200 : std::atoi(text);
}

TEST(Oracle, PlansAreNearTheOptimum) {
  const Summary result = measure(0, graph_count(), ir::PlanOptions{}.window);
  EXPECT_LE(result.mean, 1.05);
  EXPECT_GE(result.optimal, 70);
  EXPECT_GE(result.least, 0.999) << "the oracle missed a kernel that the planner made";  // it keeps 8 ways of a set
}

TEST(Oracle, PlansOfFreshGraphsAreNearTheOptimum) {
  const std::uint64_t seed = 1000 + std::random_device{}() % 1000000000;
  SCOPED_TRACE("seeds from " + std::to_string(seed));
  const Summary result = measure(seed, 50, ir::PlanOptions{}.window);
  EXPECT_LE(result.mean, 1.15);  // few graphs scatter more than many
}

TEST(Oracle, WindowsImproveOnGreedyMerging) {
  EXPECT_LT(measure(0, 100, ir::PlanOptions{}.window).mean, measure(0, 100, 0).mean - 0.01);
}

}  // namespace
}  // namespace tenon::test

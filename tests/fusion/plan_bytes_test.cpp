// A plan read again is the plan that was written.
#include "ir/fusion/plan_bytes.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "ir/text/text.h"
#include "tests/harness/random_graph.h"

namespace tenon::ir {
namespace {

PlanOptions all_options() {
  PlanOptions options;
  options.mixed_order = options.pad_rows = options.turn_f8 = options.turn_few = options.split_depth =
      options.split_f32 = options.pair_products = options.split_pieces = true;
  return options;
}

void expect_the_same_again(const Graph& graph) {
  const Plan plan = make_plan(graph, all_options());
  const std::string bytes = to_bytes(plan);
  const auto again = plan_from_bytes(bytes);
  ASSERT_TRUE(again);
  EXPECT_EQ(to_bytes(*again), bytes);
  EXPECT_EQ(print(*again), print(plan));
  EXPECT_EQ(explain(*again), explain(plan));
  EXPECT_EQ(print_estimates(*again), print_estimates(plan));
  verify(*again);
}

TEST(PlanBytes, AreReadAgain) {
  for (const char* folder : {"/bench/cases/models", "/examples", "/tests/fusion"})
    for (const auto& entry : std::filesystem::directory_iterator(std::string(TENON_SOURCE_DIR) + folder)) {
      if (entry.path().extension() != ".tn") continue;
      SCOPED_TRACE(entry.path());
      expect_the_same_again(read_file(entry.path()));
    }
}

TEST(PlanBytes, OfRandomGraphsAreReadAgain) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    expect_the_same_again(test::random_case(seed).graph);
  }
}

TEST(PlanBytes, AreNoPlanWhereSomeAreMissingOrTooMany) {
  const std::string bytes = to_bytes(make_plan(parse(R"(graph g(x: f32[2*n + 1, 8], w: f32[n, 8]) {
  y = softmax(x)
  z = matmul(y, transpose(x, perm=[1, 0]))
  return z
}
)")));
  ASSERT_TRUE(plan_from_bytes(bytes));
  for (std::size_t count = 0; count < bytes.size(); ++count)
    EXPECT_FALSE(plan_from_bytes(std::string_view(bytes).substr(0, count))) << count;
  EXPECT_FALSE(plan_from_bytes(bytes + '\0'));
}

TEST(PlanBytes, OfWhatDecidesAPlanDiffer) {
  const Graph graph = parse("graph g(x: f32[n, 8]) {\n  y = mul(x, 2.0)\n  return y\n}\n");
  const PlanOptions options = all_options();
  const std::string bytes = to_bytes(graph, options);
  EXPECT_EQ(to_bytes(graph, options), bytes);
  EXPECT_NE(to_bytes(parse("graph g(x: f32[n, 8]) {\n  y = mul(x, 3.0)\n  return y\n}\n"), options), bytes);
  EXPECT_NE(to_bytes(parse("graph g(x: f32[m, 8]) {\n  y = mul(x, 2.0)\n  return y\n}\n"), options), bytes);
  PlanOptions other = options;
  other.window = 0;
  EXPECT_NE(to_bytes(graph, other), bytes);
  other = options;
  other.cost.launch_us *= 2;
  EXPECT_NE(to_bytes(graph, other), bytes);
  other = options;
  other.typical = {{"n", 7}};
  EXPECT_NE(to_bytes(graph, other), bytes);
}

}  // namespace
}  // namespace tenon::ir

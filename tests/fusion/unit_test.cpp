// The pieces of the planner on their own: digit arithmetic, convexity, and what verify() refuses.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "ir/fusion/layout.h"
#include "ir/fusion/order.h"
#include "ir/fusion/plan.h"
#include "ir/graph/build.h"
#include "ir/text/text.h"

namespace tenon::ir {
namespace {

using namespace fusion;

TEST(Layouts, SplitWhereExtentsDivide) {
  const Domain domain{{Dim::symbol("n"), 12}, 2};
  const auto parts = segments(domain.kept_layout(), {Dim::symbol("n") * Dim(3), 4});
  ASSERT_TRUE(parts.has_value());
  EXPECT_EQ((*parts)[0], (Layout{domain.whole(0), Digit{1, 4, 3, 2}}));
  EXPECT_EQ((*parts)[1], (Layout{Digit{1, 1, 4, 2}}));
}

TEST(Layouts, DoNotSplitUnevenly) {
  const Domain domain{{2, 3}, 2};
  EXPECT_FALSE(segments(domain.kept_layout(), {3, 2}).has_value());
}

TEST(Layouts, NeighboursOfOneAxisMerge) {
  EXPECT_EQ(normalized({Digit{0, 4, 3, 1}, Digit{0, 1, 4, 1}}), (Layout{Digit{0, 1, 12, 1}}));
}

TEST(Layouts, AlignATransposedUse) {
  const Domain host{{8, 5}, 2}, guest{{5, 8}, 2};
  const AxisMap map = align(host.kept_layout(), {guest.whole(1), guest.whole(0)}, guest);
  ASSERT_TRUE(map[0] && map[1]);
  EXPECT_EQ(*map[0], Layout{host.whole(1)});
  EXPECT_EQ(*map[1], Layout{host.whole(0)});
  EXPECT_EQ(substitute(guest.kept_layout(), guest, map), (Layout{host.whole(1), host.whole(0)}));
}

TEST(Layouts, CoverAnAxisOnlyWithAllItsDigits) {
  const Domain domain{{12}, 1};
  EXPECT_EQ(covered({Digit{0, 4, 3, 1}, Digit{0, 1, 4, 1}}, domain), 1U);
  EXPECT_FALSE(covered({Digit{0, 1, 4, 1}}, domain).has_value());
  EXPECT_FALSE(covered({domain.whole(0), domain.whole(0)}, domain).has_value());
}

class Convexity : public testing::Test {
 protected:
  // 0 -> 1 -> 2 -> 3, 0 -> 3, 4 alone
  std::vector<std::vector<int>> next_{{1, 3}, {2}, {3}, {}, {}};
  Order order_{{0, 1, 2, 3, 4}, 5};
  Order::Successors successors_ = [this](int cluster, const std::function<void(int)>& visit) {
    for (int next : next_[static_cast<std::size_t>(cluster)]) visit(next);
  };
};

TEST_F(Convexity, NeighboursMayMerge) { EXPECT_TRUE(order_.convex(0, 1, successors_)); }

TEST_F(Convexity, APathThroughAThirdForbids) { EXPECT_FALSE(order_.convex(0, 3, successors_)); }

TEST_F(Convexity, UnrelatedClustersMayMerge) { EXPECT_TRUE(order_.convex(4, 0, successors_)); }

TEST_F(Convexity, OrderHoldsAfterAMergeAcrossOthers) {
  ASSERT_TRUE(order_.convex(2, 4, successors_));
  order_.merge(2, 4);
  next_[2] = {3};
  EXPECT_LT(order_.position(1), order_.position(2));
  EXPECT_LT(order_.position(2), order_.position(3));
  EXPECT_FALSE(order_.convex(0, 3, successors_));
  ASSERT_TRUE(order_.convex(0, 1, successors_));
  order_.merge(0, 1);
  next_[0] = {2, 3};
  EXPECT_FALSE(order_.convex(0, 3, successors_));
  EXPECT_TRUE(order_.convex(0, 2, successors_));
}

Plan softmax_of_sum() {
  return make_plan(parse(R"(
    graph g(x: f32[n, 64], w: f32[64, 64]) {
      h = matmul(x, w)
      y = softmax(h)
      return y, h
    })"));
}

void expect_refused(const Plan& plan, const std::string& part) {
  try {
    verify(plan);
    FAIL() << "verify accepts " << print(plan);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::internal);
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST(VerifyPlan, AcceptsWhatThePlannerMakes) {
  const Plan plan = softmax_of_sum();
  ASSERT_EQ(plan.groups.size(), 2U);
  EXPECT_NO_THROW(verify(plan));
}

TEST(VerifyPlan, RefusesGroupsOutOfOrder) {
  Plan plan = softmax_of_sum();
  std::swap(plan.groups[0], plan.groups[1]);
  expect_refused(plan, "reads what no group before it wrote");
}

TEST(VerifyPlan, RefusesAMissingResult) {
  Plan plan = softmax_of_sum();
  plan.groups.pop_back();
  expect_refused(plan, "no group writes");
}

TEST(VerifyPlan, RefusesAMissingNode) {
  Plan plan = softmax_of_sum();
  plan.groups[1].nodes.pop_back();
  expect_refused(plan, "does not hold exactly the nodes");
}

TEST(VerifyPlan, RefusesAnInputThatIsNotNeeded) {
  Plan plan = softmax_of_sum();
  plan.groups[1].inputs.push_back(plan.graph.inputs[0]);
  expect_refused(plan, "inputs that it does not need");
}

TEST(VerifyPlan, RefusesAResultWrittenTwice) {
  Plan plan = softmax_of_sum();
  plan.groups.push_back(plan.groups.back());
  expect_refused(plan, "writes a value again");
}

TEST(VerifyPlan, RefusesAWrongClass) {
  Plan plan = softmax_of_sum();
  plan.groups[1].kernel_class = KernelClass::map;
  expect_refused(plan, "group 1");
}

TEST(VerifyPlan, RefusesALayoutThatLeavesPointsOut) {
  Plan plan = softmax_of_sum();
  plan.groups[0].layouts[0].pop_back();
  expect_refused(plan, "group 0");
}

TEST(PlanBytes, CountEachOperandOnce) {
  const Plan plan = softmax_of_sum();
  EXPECT_EQ(unavoidable_bytes(plan, plan.groups[1], {{"n", 10}}), 2 * 10 * 64 * 4);
}

TEST(Estimates, AddLaunchAndTheLongerOfMemoryAndCompute) {
  const Graph graph = parse("graph g(x: f32[3000, 1000]) {\n  y = neg(x)\n  return y\n}\n");
  const Plan plan = make_plan(graph);
  const Estimate& estimate = plan.groups[0].estimate;
  EXPECT_DOUBLE_EQ(estimate.bytes, 24e6);
  EXPECT_DOUBLE_EQ(estimate.memory_us, 8);
  EXPECT_NEAR(estimate.us, 10 + 0.05 * estimate.compute_us, 1e-9);
}

TEST(Estimates, FollowTheNumbersHandedIn) {
  const Graph graph = parse("graph g(x: f32[3000, 1000]) {\n  y = neg(x)\n  return y\n}\n");
  PlanOptions options;
  options.cost = cpu_cost_model(2);
  const Plan plan = make_plan(graph, options);
  EXPECT_DOUBLE_EQ(plan.groups[0].estimate.memory_us, 1000);
  EXPECT_NE(print_estimates(plan).find("predicted for a CPU with 2 cores: copy 24 GB/s, launch 5.0 us"),
            std::string::npos)
      << print_estimates(plan);
}

TEST(Estimates, DecideThePlan) {  // eight rows keep eight blocks busy: enough for a slow memory
  const Graph graph =
      parse("graph g(x: f32[8, 1000000]) {\n  y = div(x, sum(x, axis=1, keepdims=true))\n  return y\n}\n");
  PlanOptions fast, slow;
  fast.cost.block_gb_s = 10;
  fast.cost.grid_row_bytes = 0;
  slow.cost = fast.cost;
  slow.cost.bandwidth_gb_s = slow.cost.l2_bandwidth_gb_s = 50;
  EXPECT_EQ(make_plan(graph, fast).groups.size(), 2U);
  EXPECT_EQ(make_plan(graph, slow).groups.size(), 1U);
}

TEST(Estimates, PriceProductsByWhatComputesThem) {  // as codegen/analysis/tiling.cpp does: f32 runs on plain lanes
  const auto compute_us = [](const char* dtype, const char* how) {
    return make_plan(parse(fmt::format("graph g(a: {0}[4096, 4096], b: {0}[4096, 4096]) {{\n  y = matmul(a, b{1})\n  "
                                       "return y\n}}\n",
                                       dtype, how)))
        .groups[0]
        .estimate.compute_us;
  };
  const CostModel cost;
  const double flops = 2.0 * 4096 * 4096 * 4096;
  EXPECT_DOUBLE_EQ(compute_us("bf16", ""), flops / (cost.tensor_tflops * 1e6));
  EXPECT_DOUBLE_EQ(compute_us("f32", ""), flops / (cost.lane_tflops * 1e6));
  EXPECT_DOUBLE_EQ(compute_us("f32", ", tf32=true"), 2 * flops / (cost.tensor_tflops * 1e6));
  EXPECT_DOUBLE_EQ(compute_us("f64", ""), 2 * flops / (cost.lane_tflops * 1e6));
}

// Whether 64 rows of 17 MB, or 128, are read in one kernel or in two. Where all blocks can hold two of them it is one.
TEST(Estimates, PutFewLongRowsApartWhereThatIsFaster) {
  const auto kernels = [](int rows, const PlanOptions& options) {
    return make_plan(parse(fmt::format("graph g(x: f32[16, {}, 262144]) {{\n  y = sub(x, mean(x, axis=[0, 2], "
                                       "keepdims=true))\n  return y\n}}\n",
                                       rows)),
                     options)
        .groups.size();
  };
  PlanOptions options, wider;
  EXPECT_EQ(kernels(64, options), 1U);
  options.cost.grid_row_bytes = wider.cost.grid_row_bytes = 0;
  EXPECT_EQ(kernels(64, options), 2U);
  EXPECT_EQ(kernels(128, options), 1U);
  wider.cost.block_gb_s *= 2;
  EXPECT_EQ(kernels(64, wider), 1U);
}

// The statistics of 64 rows of 67 MB share their sweep, and greedy merging would go on from there.
TEST(Estimates, PutStatisticsOfFewLongRowsApart) {
  const Graph graph = parse(
      "graph g(x: f32[64, 64, 512, 512]) {\n  d = sub(x, mean(x, axis=[0, 2, 3], keepdims=true))\n"
      "  y = mul(d, rsqrt(add(var(x, axis=[0, 2, 3], keepdims=true), 1e-5)))\n  return y\n}\n");
  PlanOptions options;
  EXPECT_EQ(make_plan(graph, options).groups.size(), 2U);
  options.rows_apart = false;
  EXPECT_EQ(make_plan(graph, options).groups.size(), 1U);
}

TEST(Estimates, TurnResultsAcrossRowsApart) {
  const Graph graph = parse("graph g(x: f32[16384, 4096]) {\n  y = transpose(softmax(x, axis=1))\n  return y\n}\n");
  PlanOptions options;
  EXPECT_EQ(make_plan(graph, options).groups.size(), 2U);
  options.turned_apart = false;
  EXPECT_EQ(make_plan(graph, options).groups.size(), 1U);
  options.turned_apart = true;
  options.cost = cpu_cost_model(2);
  EXPECT_EQ(make_plan(graph, options).groups.size(), 1U);
}

// Columns: a block has a line of them, and two of these would read 1 MB each twice; what lies along rows has a block
// for each.
TEST(Estimates, PutFewColumnsApart) {
  const auto kernels = [](const char* text) { return make_plan(parse(text), {}).groups.size(); };
  EXPECT_EQ(kernels("graph g(x: bf16[262144, 256]) {\n  y = div(x, sum(x, axis=0))\n  return y\n}\n"), 2U);
  EXPECT_EQ(kernels("graph g(x: bf16[256, 32768]) {\n  y = div(x, sum(x, axis=1, keepdims=true))\n  return y\n}\n"),
            1U);
  EXPECT_EQ(kernels("graph g(x: bf16[1000, 262144]) {\n  y = div(x, sum(x, axis=0))\n  return y\n}\n"), 1U);
}

// A mean and the squares around it are one sweep where kernels have that, a maximum and its exponentials too.
TEST(Estimates, CountTheSweepsThatKernelsTake) {
  const auto kernels = [](const char* y, bool shared) {
    PlanOptions options;
    options.cost.online = options.cost.moments = shared;
    options.cost.grid_row_bytes = 0;
    return make_plan(parse(fmt::format("graph g(x: f32[16, 4194304]) {{\n  y = {}\n  return y\n}}\n", y)), options)
        .groups.size();
  };
  EXPECT_EQ(kernels("var(x, axis=1)", true), 1U);
  EXPECT_EQ(kernels("var(x, axis=1)", false), 2U);
  EXPECT_EQ(kernels("var(transpose(x, perm=[1, 0]), axis=0)", true), 1U) << "rows along memory, whatever their axis";
  EXPECT_EQ(kernels("logsumexp(x, axis=1)", true), 1U);
  EXPECT_EQ(kernels("logsumexp(x, axis=1)", false), 2U);
}

TEST(Estimates, CountTheSweepsDownColumns) {
  const auto kernels = [](const char* y) {
    return make_plan(parse(fmt::format("graph g(x: f32[4194304, 16]) {{\n  y = {}\n  return y\n}}\n", y)))
        .groups.size();
  };
  EXPECT_EQ(kernels("var(x, axis=0)"), 1U);
  EXPECT_EQ(kernels("logsumexp(x, axis=0)"), 1U);
}

// 67 MB rows: nothing holds one, so that one block would read it twice. All blocks hold eight of 4 MB, in groups that
// meet; four of a cluster hold one of 512 KB.
TEST(Estimates, CreditLongRowsWithTheBlocksThatReadThem) {
  const auto plan_of = [](int rows, int columns) {
    return make_plan(
        parse(fmt::format("graph g(x: f32[{}, {}]) {{\n  y = softmax(x)\n  return y\n}}\n", rows, columns)));
  };
  const CostModel cost;
  EXPECT_GT(plan_of(8, 1 << 24).groups.size(), 1U);
  const Plan meeting = plan_of(8, 1 << 20),
             odd = make_plan(parse("graph g(x: f32[999, 8, 1001]) {\n  y = sub(x, mean(x, "
                                   "axis=[0, 2], keepdims=true))\n  return y\n}\n"));
  ASSERT_EQ(meeting.groups.size(), 1U) << print(meeting);
  EXPECT_NEAR(meeting.groups[0].estimate.memory_us, 2 * 8 * 4.194304e6 / 3e6 + 4 * cost.meeting_us, 0.1);
  EXPECT_GT(odd.groups.size(), 1U) << "no vector divides the pieces of a row";
  const Plan clustered = plan_of(8, 1 << 17), short_rows = plan_of(4096, 1024);
  ASSERT_EQ(clustered.groups.size(), 1U) << print(clustered);
  EXPECT_NEAR(clustered.groups[0].estimate.memory_us, 2 * 8 * 0.524288e6 / (8 * 4 * cost.block_gb_s * 1e3), 0.1);
  EXPECT_NEAR(short_rows.groups[0].estimate.memory_us, 2 * 4 * 4096 * 1024 / 3e6, 0.1);
}

TEST(Estimates, PriceLoadsThatMoveAndConditions) {
  const auto slots = [](const char* y) {
    return make_plan(parse(fmt::format("graph g(x: f32[64, 1000]) {{\n  y = {}\n  return y\n}}\n", y)))
               .groups[0]
               .estimate.slots /
           64000;
  };
  const CostModel cost;
  EXPECT_DOUBLE_EQ(slots("neg(x)"), 2);
  EXPECT_DOUBLE_EQ(slots("neg(flip(x, axis=1))"), 1 + cost.moved_load_slots);
  EXPECT_DOUBLE_EQ(slots("neg(slice(pad(x, low=[0, 1], high=[0, 0]), axis=[1], start=[0], stop=[1000]))"),
                   1 + cost.guarded_load_slots);
  EXPECT_LT(slots("neg(slice(pad(x, low=[1, 0], high=[0, 0]), axis=[0], start=[0], stop=[64]))"),
            1 + cost.guarded_load_slots);
}

// Where no kernel asks masks of tiles of keys, what they compare is computed for each score, and stored instead.
TEST(Estimates, AMaskIsPricedAsItIsComputed) {
  const Graph graph = parse(R"(
    graph g(q: bf16[4, 12, 2048, 64], k: bf16[4, 12, 2048, 64], v: bf16[4, 12, 2048, 64], a: i32[4, 2048], b: i32[4, 2048]) {
      same = equal(reshape(a, shape=[4, 1, 2048, 1]), reshape(a, shape=[4, 1, 1, 2048]))
      later = less(reshape(b, shape=[4, 1, 2048, 1]), reshape(b, shape=[4, 1, 1, 2048]))
      s = matmul(q, transpose(k, perm=[0, 1, 3, 2]), dtype=f32)
      y = matmul(cast(softmax(where(logical_or(same, later), s, -inf)), dtype=bf16), v)
      return y
    })");
  PlanOptions options;
  const Plan tiles = make_plan(graph, options);
  EXPECT_EQ(tiles.groups.size(), 1U) << print(tiles);
  options.cost.tile_tests = false;
  const Plan scores = make_plan(graph, options);
  EXPECT_EQ(scores.groups.size(), 2U) << print(scores);
}

TEST(Estimates, AProductIsPricedForWhatMasksOfPositionsLeave) {
  PlanOptions options;
  options.cost.fed_elements_ns = 0;  // operands are computed in the product
  const auto share = [&](const std::string& body) {
    const Plan plan = make_plan(parse("graph g(a: bf16[1024, 1024], b: bf16[1024, 1024], c: bf16[1024, 1024]) {\n"
                                      "  i = iota(shape=[1024, 1024], axis=0)\n"
                                      "  j = iota(shape=[1024, 1024], axis=1)\n" +
                                      body + "}\n"),
                                options);
    return plan.groups.front().estimate.tensor_flops / 0x1p31;
  };
  EXPECT_EQ(share("y = matmul(a, b); return y"), 1);
  EXPECT_NEAR(share("y = where(greater_equal(i, j), matmul(a, b), 0); return y"), 0.5, 0.02);
  EXPECT_NEAR(share("y = where(less(add(i, 512), j), c, gelu(matmul(a, b))); return y"), 0.875, 0.02);
  EXPECT_NEAR(share("y = where(logical_and(less_equal(j, i), less(i, add(j, 256))), matmul(a, b), 0); return y"), 0.22,
              0.02);
  EXPECT_NEAR(share("y = matmul(where(greater_equal(i, j), a, 0), b); return y"), 0.5, 0.02);
  EXPECT_NEAR(share("y = matmul(where(less(i, j), 0, a), where(less(i, j), 0, b)); return y"), 1. / 6, 0.02);
  EXPECT_EQ(share("x = matmul(a, b); y = where(greater_equal(i, j), x, 0); z = tanh(x); return y, z"), 1);
  EXPECT_EQ(share("y = mul(cast(greater_equal(i, j), dtype=bf16), matmul(a, b)); return y"), 1);
  options.cost.product_bounds = false;
  EXPECT_EQ(share("y = where(greater_equal(i, j), matmul(a, b), 0); return y"), 1);
}

// A mask that is in memory, with the operand that it selects, bounds no product.
TEST(Estimates, AStoredOperandIsMultipliedWhole) {
  const Plan plan = make_plan(parse(R"(
    graph g(a: bf16[1024, 1024], b: bf16[1024, 1024]) {
      lower = where(greater_equal(iota(shape=[1024, 1024], axis=0), iota(shape=[1024, 1024], axis=1)), a, 0)
      y = matmul(lower, b)
      return y, lower
    })"));
  ASSERT_EQ(plan.groups.size(), 2U) << print(plan);
  EXPECT_EQ(plan.groups.back().estimate.tensor_flops, 0x1p31);
}

TEST(Estimates, AnOperandIsComputedInItsProductWhereThreadsBringItInTime) {
  PlanOptions options;
  const auto kernels = [&](const char* inputs, const char* product) {
    return make_plan(parse(fmt::format("graph g({}) {{\n  y = {}\n  return y\n}}\n", inputs, product)), options)
        .groups.size();
  };
  const char* const weights = "x: bf16[1024, 1024], w: i8[1024, 1024]";
  const char* const dequantised = "linear(x, cast(w, dtype=bf16))";
  options.cost.fed_elements_ns = 0.01;
  EXPECT_EQ(kernels(weights, dequantised), 2U);
  EXPECT_EQ(kernels("x: bf16[8, 128, 1024], w: i8[1024, 1024]", dequantised), 2U) << "rows of all batches";
  EXPECT_EQ(kernels("x: bf16[1024, 1024], w: bf16[1024, 1024]", "matmul(x, relu(w))"), 2U);
  EXPECT_EQ(kernels("x: bf16[1024, 1024], w: bf16[1024, 1023]", "matmul(x, relu(w))"), 1U) << "no box brings odd rows";
  EXPECT_EQ(kernels("x: f32[1024, 1024], w: f32[1024, 1024]", "matmul(x, relu(w))"), 1U) << "nor f32";
  EXPECT_EQ(kernels("x: bf16[8, 1, 1024], w: i8[1024, 1024]", dequantised), 1U) << "8 rows";
  EXPECT_EQ(kernels("x: bf16[1024, 1024], w: bf16[1024, 16]", "matmul(relu(x), w)"), 1U) << "16 columns";
  options.cost.fed_elements_ns = 1000;
  EXPECT_EQ(kernels(weights, dequantised), 1U);
  options.cost.fed_elements_ns = 0;
  EXPECT_EQ(kernels(weights, dequantised), 1U) << "boxes bring nothing";
}

// p and q are maps of x that the planner computes in one kernel, though q is needed last.
Graph late_sibling() {
  return parse(R"(
    graph g(x: f32[1024, 1024], w: f32[1024, 1024]) {
      p = exp(x)
      h = matmul(matmul(matmul(p, w), w), w)
      q = sin(x)
      y = matmul(h, q)
      return y
    })");
}

bool refused(const Plan& plan, Rule rule) {
  return std::any_of(plan.refusals.begin(), plan.refusals.end(),
                     [&](const Refusal& refusal) { return refusal.rule == rule; });
}

constexpr double kMatrix = 4.0 * 1024 * 1024;

TEST(LiveMemory, IsThatOfTheLongestLivedTogether) {
  const Plan plan = make_plan(late_sibling());
  EXPECT_EQ(plan.groups.size(), 5U) << print(plan);
  EXPECT_DOUBLE_EQ(plan.live_bytes, 3 * kMatrix);
}

TEST(LiveMemory, MergesBeyondTheLimitAreRefused) {
  PlanOptions options;
  options.max_live_bytes = 2 * kMatrix;
  const Plan plan = make_plan(late_sibling(), options);
  verify(plan);
  EXPECT_EQ(plan.groups.size(), 6U) << print(plan);
  EXPECT_DOUBLE_EQ(plan.live_bytes, 2 * kMatrix);
  EXPECT_TRUE(refused(plan, Rule::live_memory)) << explain(plan);
}

TEST(LiveMemory, KernelsRunInAnOrderThatFits) {
  const Graph graph = parse(R"(
    graph g(x: f32[1024, 1024], w: f32[1024, 1024]) {
      q = sin(x)
      h = matmul(matmul(matmul(x, w), w), w)
      y = matmul(h, q)
      return y
    })");
  PlanOptions options;
  EXPECT_DOUBLE_EQ(make_plan(graph, options).live_bytes, 3 * kMatrix);
  options.max_live_bytes = 2 * kMatrix;
  const Plan plan = make_plan(graph, options);
  verify(plan);
  EXPECT_DOUBLE_EQ(plan.live_bytes, 2 * kMatrix);
}

TEST(LiveMemory, AGraphThatDoesNotFitIsAnError) {
  PlanOptions options;
  options.max_live_bytes = kMatrix;
  try {
    make_plan(late_sibling(), options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::resource);
    EXPECT_NE(std::string(error.what()).find("keeps 8388.6 KB of intermediates alive at once"), std::string::npos)
        << error.what();
  }
}

// Two kernels that may be launched as one, and one that reads both.
Plan two_and_one() {
  return make_plan(parse(R"(
    graph g(x: f32[64, 100], y: f32[48, 100]) {
      a = sum(x, axis=1)
      b = sum(y, axis=1)
      c = sum(concat(a, b, axis=0))
      return c
    })"));
}

TEST(Packs, AreCountedAsOneLaunch) {
  const Plan plan = two_and_one();
  ASSERT_EQ(plan.packs, (std::vector<std::vector<int>>{{0, 1}})) << print(plan);
  EXPECT_EQ(launch_steps(plan.groups.size(), plan.packs), (std::vector<int>{0, 0, 1}));
  EXPECT_EQ(launched_together(plan), (std::vector<std::vector<int>>{{0, 1}, {2}}));
  EXPECT_NE(print_estimates(plan).find("kernels 0 1 in one launch: 2.0 us, 2.0 us less"), std::string::npos)
      << print_estimates(plan);
  EXPECT_NE(print_estimates(plan, {5, 0, 2}).find("2.0 us less; measured 5.0 us"), std::string::npos)
      << print_estimates(plan, {5, 0, 2});
}

TEST(Packs, OfWhatOneReadsOfTheOtherAreRefused) {
  Plan plan = two_and_one();
  plan.packs = {{1, 2}};
  expect_refused(plan, "a member that reads another's result");
  plan.packs = {{0, 2}};
  expect_refused(plan, "is not of neighbours");
  plan.packs = {{0}};
  expect_refused(plan, "has one member");
}

TEST(Packs, HaveAsManyMembersAsTheOptionsAllow) {
  Graph graph;
  for (int i = 0; i < 20; ++i) {
    const ValueId x = append_input(graph, "x" + std::to_string(i), DType::f32, {10 + i});
    append_output(graph, append_one(graph, Op::exp, {x}), "y" + std::to_string(i));
  }
  PlanOptions options;
  for (const int most : {1, 2, 8, 20}) {
    options.max_packed = most;
    const Plan plan = make_plan(graph, options);
    verify(plan);
    EXPECT_EQ(launched_together(plan).size(), static_cast<std::size_t>((20 + most - 1) / most)) << print(plan);
  }
  options.fuse = false;
  EXPECT_TRUE(make_plan(graph, options).packs.empty());
}

// Chains side by side keep the first sums of both.
TEST(Packs, KeepWithinTheMemoryLimit) {
  const Graph graph = parse(R"(
    graph g(x: f32[4096, 100], y: f32[4095, 100]) {
      a = sum(x, axis=1)
      b = sum(a)
      c = sum(y, axis=1)
      d = sum(c)
      return b, d
    })");
  const Plan packed = make_plan(graph);
  EXPECT_EQ(packed.packs.size(), 2U) << print(packed);
  EXPECT_DOUBLE_EQ(packed.live_bytes, 4 * (4096 + 4095));
  PlanOptions options;
  options.max_live_bytes = 4 * 5000;
  const Plan plan = make_plan(graph, options);
  verify(plan);
  EXPECT_TRUE(plan.packs.empty()) << print(plan);
  EXPECT_DOUBLE_EQ(plan.live_bytes, 4 * 4096);
}

TEST(PlanOptions, SiblingsCanBeLeftApart) {
  const Graph graph = parse("graph g(x: f32[100]) {\n  a = exp(x)\n  b = sin(x)\n  return a, b\n}\n");
  PlanOptions options;
  options.siblings = false;
  EXPECT_EQ(make_plan(graph, options).groups.size(), 2U);
  EXPECT_EQ(make_plan(graph).groups.size(), 1U);
}

TEST(PlanOptions, AttentionCanBeLeftUnfound) {
  const Graph graph = parse(
      "graph g(q: f32[64, 32], k: f32[32, 64], v: f32[64, 32]) {\n  y = matmul(softmax(matmul(q, k)), v)\n  return "
      "y\n}\n");
  PlanOptions options;
  options.find_attention = false;
  EXPECT_EQ(make_plan(graph, options).groups.size(), 3U);
  EXPECT_EQ(make_plan(graph).groups.size(), 1U);
}

}  // namespace
}  // namespace tenon::ir

// What the planner assumes of devices that were not measured.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/fusion/plan.h"
#include "ir/text/text.h"
#include "src/driver/cost_model.h"

namespace tenon::src {
namespace {

using codegen::cuda_target;

TEST(AssumedCost, OfAnH100IsTheCostModelItself) {
  ir::CostModel cost = assumed_cost_model(cuda_target("sm_90a"));
  EXPECT_EQ(cost.device, "H100 (assumed)");
  cost.device = ir::CostModel().device;
  EXPECT_EQ(cost, ir::CostModel());
}

TEST(AssumedCost, FollowsTheFactsOfTheDevice) {
  const ir::CostModel h100 = assumed_cost_model(cuda_target("sm_90a")), a100 = assumed_cost_model(cuda_target("sm_80"));
  EXPECT_EQ(a100.device, "A100 80GB (assumed)");
  EXPECT_NEAR(a100.bandwidth_gb_s, 1826, 1);  // of 2,039, as an H100 reaches 3,000 of 3,350
  EXPECT_EQ(a100.threads, 108 * 2048);
  EXPECT_EQ(a100.outer_blocks, 2 * 108);
  EXPECT_LT(a100.grid_row_bytes, h100.grid_row_bytes);
  EXPECT_EQ(assumed_cost_model(cuda_target("sm_75")).grid_row_bytes, 0);  // no asynchronous copies
  EXPECT_EQ(a100.row_blocks, 1);                                          // no clusters
  EXPECT_LT(a100.row_block_bytes, h100.row_block_bytes);
  EXPECT_LT(a100.tensor_tflops, h100.tensor_tflops / 2);
  const ir::CostModel h200 = assumed_cost_model(cuda_target("sm_90a", "NVIDIA H200"));
  EXPECT_GT(h200.bandwidth_gb_s, 1.4 * h100.bandwidth_gb_s);
  EXPECT_EQ(h200.gigaslots_s, h100.gigaslots_s);
  EXPECT_EQ(h200.l2_bandwidth_gb_s, h100.l2_bandwidth_gb_s);
}

ir::Estimate of_product(const char* dtype, const char* how, const std::string& arch) {
  ir::PlanOptions options;
  options.cost = assumed_cost_model(cuda_target(arch));
  return ir::make_plan(ir::parse(fmt::format("graph g(a: {0}[512, 512], b: {0}[512, 512]) {{\n  y = matmul(a, b{1})\n"
                                             "  return y\n}}\n",
                                             dtype, how)),
                       options)
      .groups[0]
      .estimate;
}

TEST(AssumedCost, ProductsArePricedOnLanesWhereTensorCoresDoNotTakeThem) {
  constexpr double kFlops = 2.0 * 512 * 512 * 512;
  for (const char* arch : {"sm_75", "sm_80", "sm_90a", "sm_120"}) {
    EXPECT_EQ(of_product("f32", "", arch).lane_flops, kFlops) << arch;
    EXPECT_EQ(of_product("f32", "", arch).tensor_flops, 0) << arch;
    EXPECT_EQ(of_product("f16", "", arch).tensor_flops, kFlops) << arch;
    EXPECT_EQ(of_product("f8e4m3", ", dtype=f32", arch).tensor_flops, kFlops) << arch;  // as f16
    EXPECT_EQ(of_product("f8e4m3", ", dtype=f16", arch).tensor_flops,
              arch == std::string("sm_90a") ? kFlops / 2 : kFlops)
        << arch;
  }
  EXPECT_EQ(of_product("bf16", "", "sm_75").lane_flops, kFlops);
  EXPECT_EQ(of_product("bf16", "", "sm_80").tensor_flops, kFlops);
  EXPECT_EQ(of_product("f32", ", tf32=true", "sm_75").lane_flops, kFlops);
  EXPECT_EQ(of_product("f32", ", tf32=true", "sm_80").tensor_flops, 2 * kFlops);
}

// A row of 600 KB fits the four blocks of a cluster on an H100; an A100 has none, and reads it twice where blocks of
// the grid may not hold it.
TEST(AssumedCost, APlanForAnA100IsNotMadeWithAnH100sNumbers) {
  const auto memory_us = [](const std::string& arch) {
    ir::PlanOptions options;
    codegen::Target target = cuda_target(arch);
    target.may.grid_rows = false;
    options.cost = assumed_cost_model(target);
    const ir::Plan plan =
        ir::make_plan(ir::parse("graph g(x: f32[4096, 150000]) {\n  y = softmax(x)\n  return y\n}\n"), options);
    double us = 0;
    for (const ir::Group& group : plan.groups) us += group.estimate.memory_us * plan.cost.bandwidth_gb_s;
    return us;
  };
  EXPECT_GT(memory_us("sm_80"), 1.4 * memory_us("sm_90a"));
}

}  // namespace
}  // namespace tenon::src

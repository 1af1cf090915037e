// What the planner counts on, that blocks of a grid hold rows (ir/fusion/long_rows.cpp), is what they are scheduled to
// hold (codegen/schedule/reduce_long_rows.cpp): a kernel planned so that reads its rows again takes many times what was
// predicted. The planner knows neither registers nor shared memory, so shapes are drawn.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "ir/fusion/plan.h"
#include "ir/text/text.h"
#include "tests/codegen/compile_everywhere.h"
#include "tests/harness/scheduled_kernel.h"

namespace tenon::codegen {
namespace {

constexpr int kDrawn = 400;

bool reads_again(const Kernel& kernel) {
  const auto* schedule = std::get_if<ReduceSchedule>(&kernel.schedule);
  if (schedule == nullptr) return true;
  const auto* again = std::get_if<Reread>(&schedule->keep);
  return again != nullptr && !again->online;
}

std::string drawn(std::mt19937_64& random) {
  const auto between = [&](double low, double high) {  // as likely in each octave
    return static_cast<std::int64_t>(std::exp2(std::uniform_real_distribution<double>(low, high)(random)));
  };
  const char* const dtypes[] = {"f32", "bf16", "f64"};
  const std::string dtype = dtypes[random() % 3];
  const std::int64_t rows = between(0, 8), length = between(17, 23) & ~std::int64_t{7};
  const std::string x = fmt::format("{}[{}, {}]", dtype, rows, length);
  switch (random() % 4) {
    case 0: return fmt::format("graph softmax(x: {}) {{\n  return softmax(x)\n}}", x);
    case 1:
      return fmt::format(R"(graph rms(x: {}) {{
  m = mean(mul(x, x), axis=1, keepdims=true)
  return mul(x, rsqrt(add(m, 1e-5)))
}})",
                         x);
    case 2:
      return fmt::format(R"(graph norm(x: {0}, y: {0}) {{
  h = add(x, y)
  c = sub(h, mean(h, axis=1, keepdims=true))
  v = mean(mul(c, c), axis=1, keepdims=true)
  return mul(c, rsqrt(add(v, 1e-5)))
}})",
                         x);
    default: return fmt::format("graph share(x: {}) {{\n  return div(x, sum(x, axis=1, keepdims=true))\n}}", x);
  }
}

TEST(GridRowsAgreement, WhatThePlannerCountsOnIsHeld) {
  const Target target = test::cuda_target_for("sm_90a");
  ir::PlanOptions without;
  without.cost.grid_row_bytes = 0;
  std::mt19937_64 random(20261128);
  int counted_on = 0;
  for (int i = 0; i < kDrawn; ++i) {
    const std::string text = drawn(random);
    const ir::Graph graph = ir::parse(text);
    const ir::Plan plan = ir::make_plan(graph);
    if (plan.groups.size() != 1 || ir::make_plan(graph, without).groups.size() == 1) continue;
    ++counted_on;
    EXPECT_FALSE(reads_again(test::scheduled_kernel(plan, 0, specialize(plan, {}), target))) << text;
  }
  EXPECT_GT(counted_on, kDrawn / 20);
}

}  // namespace
}  // namespace tenon::codegen

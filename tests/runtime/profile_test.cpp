// Profiles: what a target's timers say of each kernel, and the roof that it is compared with.
#include "runtime/profile.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "ir/text/text.h"
#include "runtime/executable.h"
#include "runtime/memory.h"
#include "src/driver/pipeline.h"
#include "tests/harness/targets.h"

namespace tenon::test {
namespace {

ir::CostModel peaks() {
  ir::CostModel peaks;
  peaks.device = "a device";
  peaks.bandwidth_gb_s = 100;
  peaks.gigaslots_s = 50;
  peaks.tensor_tflops = peaks.lane_tflops = 2;
  return peaks;
}

TEST(Roofline, IsTheLongerOfMemoryAndArithmetic) {
  ir::Estimate estimate;
  estimate.bytes = 1e6;  // 10 us
  estimate.slots = 1e5;  // 2 us
  EXPECT_DOUBLE_EQ(ir::roofline(peaks(), estimate).us(), 10);
  EXPECT_STREQ(ir::roofline(peaks(), estimate).bound(), "memory");
  estimate.slots = 1e6;  // 20 us
  EXPECT_DOUBLE_EQ(ir::roofline(peaks(), estimate).us(), 20);
  EXPECT_STREQ(ir::roofline(peaks(), estimate).bound(), "arithmetic");
  estimate.tensor_flops = 1e8;  // 50 us on other units
  EXPECT_DOUBLE_EQ(ir::roofline(peaks(), estimate).us(), 50);
  estimate.lane_flops = 1e8;  // and 50 on lanes, which some contractions need
  EXPECT_DOUBLE_EQ(ir::roofline(peaks(), estimate).us(), 100);
}

// The plan's own prediction stands on the same two times.
TEST(Roofline, IsWhatThePlannerPredictsWith) {
  ir::PlanOptions options;
  options.cost = peaks();
  const ir::Plan plan = ir::make_plan(ir::parse("graph g(x: f32[512, 512]) { y = exp(x)\n return y }"), options);
  const ir::Estimate& estimate = plan.groups.at(0).estimate;
  EXPECT_DOUBLE_EQ(ir::roofline(peaks(), estimate).memory_us, estimate.memory_us);
  EXPECT_DOUBLE_EQ(ir::roofline(peaks(), estimate).arithmetic_us, estimate.compute_us);
}

// A kernel that is bound by memory and one that is bound by arithmetic, with times made up.
runtime::Profile example() {
  ir::PlanOptions options;
  options.fuse = false;
  const ir::Plan plan = ir::make_plan(ir::parse(R"(graph two(x: f32[512, 512], w: f32[512, 512]) {
  h = neg(x)
  y = matmul(h, w)
  return y
})"),
                                      options);
  const Times first{0.045, 0.04, 0.06, 0.05, 0.04, 0.07, 100}, second{0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 5};
  return runtime::describe(plan, {{"map", {0}, first, 0, 48}, {"contract_matmul", {1}, second, 60, 180}}, peaks(),
                           "cpu (a device)");
}

TEST(Profile, IsATableWithALineForEachKernel) {
  EXPECT_EQ(profile_table(example()),
            "roof: copy 100.0 GB/s, measured now; 50 G instructions/s and 2 TFLOP/s, of a device\n"
            "kernel                           launches     mean us      min us      max us  share          bytes      "
            "GB/s  of roof  bound by\n"
            "0 map                                 100      50.000      40.000      70.000  20.0%        2097152      "
            "41.9    41.9%  memory\n"
            "1 contract_matmul                       5     200.000     200.000     200.000  80.0%        3145728      "
            "15.7    67.1%  arithmetic\n"
            "together 250.000 us; one whole run 240.000 us\n");
}

TEST(Profile, IsJsonForPrograms) {
  const auto profile = profile_json(example());
  EXPECT_EQ(profile["run_us"], 240);
  EXPECT_EQ(profile["roof"]["copy_gb_s"], 100);
  EXPECT_EQ(profile["kernels"][0]["launches"], 100);
  EXPECT_EQ(profile["kernels"][0]["max_us"], 70);
  EXPECT_EQ(profile["kernels"][1]["name"], "contract_matmul");
  EXPECT_EQ(profile["kernels"][1]["bound_by"], "arithmetic");
}

TEST(Profile, IsATraceThatSaysWhatEachKernelDoes) {
  const auto trace = nlohmann::json::parse(chrome_trace(example()));
  const auto& events = trace["traceEvents"];
  ASSERT_EQ(events.size(), 4U);
  EXPECT_EQ(events[0]["args"]["name"], "two on cpu (a device)");
  EXPECT_EQ(events[1]["args"]["name"], "kernels");
  EXPECT_EQ(events[2]["ph"], "X");
  EXPECT_EQ(events[2]["args"]["reads"], nlohmann::json({"x"}));
  EXPECT_EQ(events[2]["args"]["writes"], nlohmann::json({"h"}));
  EXPECT_EQ(events[3]["name"], "contract_matmul");
  EXPECT_EQ(events[3]["ts"], 60);
  EXPECT_EQ(events[3]["dur"], 180);
  EXPECT_EQ(events[3]["args"]["class"], "contract");
  EXPECT_EQ(events[3]["args"]["operators"], "matmul");
}

class ProfileOnTarget : public OnTarget {};

// Kernels one after another in one run; then each by itself, as often as it says.
TEST_P(ProfileOnTarget, TimesEachKernelByTheTargetsClock) {
  constexpr std::int64_t kBytes = 1024 * 1024 * 4;
  Options options;
  options.cache = options.fuse = false;
  const ir::Graph graph = ir::parse("graph g(x: f32[n, 1024]) { y = mul(x, sum(x, axis=0))\n return y }");
  const Executable executable =
      src::make_executable(src::plan(graph, *backend_of(GetParam()), options), backend_of(GetParam()), options);
  const runtime::Backend& backend = *backend_of(GetParam());
  const runtime::Memory x = runtime::allocate(backend, kBytes), y = runtime::allocate(backend, kBytes);
  backend.fill(x.get(), 0x3f, kBytes, nullptr);
  const Buffer input{x.get(), DType::f32, {1024, 1024}}, output{y.get(), DType::f32, {1024, 1024}};
  const auto [kernels, beside] = runtime::profile(executable, {&input, 1}, {&output, 1}, {}, 0.01, kBytes);
  ASSERT_EQ(kernels.size(), 2U);
  EXPECT_EQ(kernels[0].begin_us, 0);
  EXPECT_GE(kernels[1].begin_us, kernels[0].duration_us);
  for (const runtime::KernelTimes& kernel : kernels) {
    EXPECT_GT(kernel.duration_us, 0);
    EXPECT_GE(kernel.times.samples, 5);
    EXPECT_GT(kernel.times.min, 0);
    EXPECT_LE(kernel.times.min, kernel.times.mean);
    EXPECT_LE(kernel.times.mean, kernel.times.max);
    EXPECT_LT(kernel.times.min, 1000);  // milliseconds
  }
}

TENON_ON_EACH_TARGET(ProfileOnTarget);

}  // namespace
}  // namespace tenon::test

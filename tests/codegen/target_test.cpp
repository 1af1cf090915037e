// What is known of the devices that stand for their architectures, and that schedules follow it.
#include "codegen/target/target.h"

#include <gtest/gtest.h>

#include <map>

#include "codegen/kernel/kernel.h"
#include "ir/fusion/plan.h"
#include "ir/text/text.h"
#include "tests/codegen/compile_everywhere.h"
#include "tests/harness/scheduled_kernel.h"

namespace tenon::codegen {
namespace {

TEST(Target, ArchitecturesHoldTheThreadsAndBlocksThatTheirMultiprocessorsHave) {
  const std::map<std::string, std::pair<int, int>> expected{
      {"sm_75", {1024, 16}},  {"sm_80", {2048, 32}},   {"sm_86", {1536, 16}},  {"sm_89", {1536, 24}},
      {"sm_90a", {2048, 32}}, {"sm_100a", {2048, 32}}, {"sm_120", {1536, 24}},
  };
  for (const auto& [arch, numbers] : expected) {
    const Target target = cuda_target(arch);
    EXPECT_EQ(target.threads_per_multiprocessor, numbers.first) << arch;
    EXPECT_EQ(target.blocks_per_multiprocessor, numbers.second) << arch;
  }
}

TEST(Target, EveryArchitectureHasADeviceOfItsOwn) {
  for (const std::string& arch : cuda_architectures()) {
    const Target target = cuda_target(arch);
    EXPECT_EQ(target.arch, arch);
    EXPECT_TRUE(arch.starts_with("sm_" + std::to_string(target.sm))) << arch;
    EXPECT_FALSE(target.device.empty()) << arch;
    EXPECT_LE(target.shared_memory_per_block + target.reserved_shared_memory_per_block,
              target.shared_memory_per_multiprocessor)
        << arch;
  }
}

TEST(Target, DevicesOfOneArchitectureAreToldApartByTheirNames) {
  const Target h100 = cuda_target("sm_90a"), h200 = cuda_target("sm_90a", "NVIDIA H200");
  EXPECT_EQ(h100, cuda_target("sm_90a", "NVIDIA H100 80GB HBM3"));
  EXPECT_EQ(h100, cuda_target("sm_90a", "a device that no table has"));
  EXPECT_EQ(h100.multiprocessors, h200.multiprocessors);
  EXPECT_LT(h100.bandwidth_gb_s, h200.bandwidth_gb_s);
}

// The schedule of the only kernel of "graph g(<text>", whose text compiles.
std::string chosen(const std::string& text, const Target& target) {
  const ir::Plan plan = ir::make_plan(ir::parse("graph g(" + text + "\nreturn y }"), {});
  EXPECT_EQ(plan.groups.size(), 1U);
  const Kernel kernel = test::scheduled_kernel(plan, 0, unspecialized(plan), target);
  test::expect_compiles_for(emit_cuda(kernel, target), {target.arch});
  return print(kernel.schedule);
}

// 50 MB in and out: more than an H100 keeps, less than a device with four times its L2 does.
TEST(Target, WhatExceedsTheCachesFollowsTheL2) {
  const std::string relu = "x: f32[12582912]) { y = relu(x)";
  Target target = cuda_target("sm_90a");
  EXPECT_EQ(chosen(relu, target), "map threads=512 vector=4 unroll=2 streaming keep_reads");
  target.l2_bytes *= 4;
  EXPECT_EQ(chosen(relu, target), "map threads=256 vector=4 streaming_loads");
}

// 2 million elements are less than a wave of vectors of eight, but two where a multiprocessor holds half the threads.
TEST(Target, WavesFollowTheThreadsOfAMultiprocessor) {
  const std::string relu = "x: bf16[2000000]) { y = relu(x)";
  Target target = cuda_target("sm_90a");
  EXPECT_EQ(chosen(relu, target).find("unroll=4"), std::string::npos);
  target.threads_per_multiprocessor = 1024;
  EXPECT_NE(chosen(relu, target).find("unroll=4"), std::string::npos);
}

// Rows of odd length beside weights, in blocks of 64 threads.
TEST(Target, AMultiprocessorIsAskedForNoMoreThreadsThanItHolds) {
  for (const std::string& arch : cuda_architectures()) {
    const Target target = cuda_target(arch);
    const ir::Plan plan = ir::make_plan(
        ir::parse("graph g(x: bf16[32768, 2047], w: bf16[2047], b: bf16[2047]) { y = layer_norm(x, w, b)\nreturn y }"),
        {});
    const auto schedule =
        std::get<ReduceSchedule>(test::scheduled_kernel(plan, 0, unspecialized(plan), target).schedule);
    EXPECT_GT(schedule.occupancy.least, 0) << arch;
    EXPECT_LE(schedule.occupancy.least * schedule.team.threads, target.threads_per_multiprocessor) << arch;
    EXPECT_LE(schedule.occupancy.least, target.blocks_per_multiprocessor) << arch;
  }
}

}  // namespace
}  // namespace tenon::codegen

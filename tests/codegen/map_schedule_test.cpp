// The schedules that the heuristics choose for Map kernels on sm_90, as measured (bench/results/map-log.md).
#include <gtest/gtest.h>

#include <algorithm>

#include "codegen/kernel.h"
#include "ir/text.h"
#include "tests/codegen/compile_everywhere.h"

namespace tenon::codegen {
namespace {

// Of the graph as one kernel.
std::string chosen(const std::string& text) {
  const ir::Plan plan = ir::make_plan(ir::parse(text));
  EXPECT_EQ(plan.groups.size(), 1U) << print(plan);
  const Kernel kernel = lower(plan, 0, unspecialized(plan), test::cuda_target_for("sm_90a"));
  return print(kernel.schedule);
}

TEST(MapSchedule, OneAndTwoStreamsTakeSixteenBytesEach) {
  EXPECT_EQ(chosen("graph g(x: bf16[8192, 8192]) { y = tanh(x); return y }"),
            "map threads=256 vector=8 unroll=1 streaming");
  EXPECT_EQ(chosen("graph g(x: f32[8192, 8192]) { y = tanh(x); return y }"),
            "map threads=256 vector=4 unroll=1 streaming");
}

TEST(MapSchedule, ThreeStreamsOfTwoByteElementsBeyondTheCachesTakeEightBytesEach) {
  EXPECT_EQ(chosen("graph g(x: bf16[8192, 8192], z: bf16[8192, 8192]) { y = add(x, z); return y }"),
            "map threads=256 vector=4 unroll=1 streaming");
  EXPECT_EQ(chosen("graph g(x: f16[8192, 8192], z: f16[8192, 8192]) { y = mul(silu(x), z); return y }"),
            "map threads=256 vector=4 unroll=1 streaming");
  EXPECT_EQ(chosen("graph g(x: f32[8192, 8192], z: f32[8192, 8192]) { y = add(x, z); return y }"),
            "map threads=256 vector=4 unroll=1 streaming");
  // within the caches, and of unknown size
  EXPECT_EQ(chosen("graph g(x: bf16[2048, 2048], z: bf16[2048, 2048]) { y = add(x, z); return y }"),
            "map threads=256 vector=8 unroll=1");
  EXPECT_EQ(chosen("graph g(x: bf16[n, 2048], z: bf16[n, 2048]) { y = add(x, z); return y }"),
            "map threads=256 vector=8 unroll=1");
}

// A row of factors comes from the caches, and the turned half of a rotation from the lines that are there already.
TEST(MapSchedule, BroadcastAndShiftedOperandsAreNoStreams) {
  EXPECT_EQ(chosen("graph g(x: bf16[16384, 4096], b: bf16[4096], c: bf16[4096]) { y = add(mul(x, b), c); return y }"),
            "map threads=256 vector=8 unroll=1 streaming");
  EXPECT_EQ(chosen("graph g(x: bf16[128, 4096, 128], c: bf16[4096, 128], s: bf16[4096, 128]) {\n"
                   "  low = slice(x, axis=-1, start=[0], stop=[64])\n"
                   "  high = slice(x, axis=-1, start=[64], stop=[128])\n"
                   "  y = add(mul(x, c), mul(concat(neg(high), low, axis=-1), s))\n  return y\n}"),
            "map threads=256 vector=8 unroll=1 streaming");
}

std::string gather_and_add(int batch, int sequence, const std::string& shared) {
  const std::string b = std::to_string(batch), s = std::to_string(sequence);
  return "graph g(i: i64[" + b + ", " + s + "], t: bf16[50257, 1024], p: bf16[" + shared +
         "]) { y = add(take(t, i, axis=0), p); return y }";
}

TEST(MapSchedule, GathersBesideASharedTensorAreSpreadAlongTheBatch) {
  EXPECT_EQ(chosen(gather_and_add(16, 4096, "4096, 1024")), "map threads=128 vector=8 unroll=8 spread streaming");
  // as far as the batch goes
  EXPECT_EQ(chosen(gather_and_add(12, 4096, "4096, 1024")), "map threads=128 vector=8 unroll=4 spread streaming");
  EXPECT_EQ(chosen(gather_and_add(15, 4096, "4096, 1024")), "map threads=256 vector=8 unroll=1 streaming");
  // nothing shared but a row, or nothing at all; and too few blocks would be left
  EXPECT_EQ(chosen("graph g(i: i64[65536], t: bf16[50257, 1024]) { y = exp(take(t, i, axis=0)); return y }"),
            "map threads=256 vector=8 unroll=1 streaming");
  EXPECT_EQ(chosen(gather_and_add(16, 128, "128, 1024")), "map threads=256 vector=8 unroll=1");
}

// The tuner tries what the heuristics would have chosen otherwise, too.
TEST(MapSchedule, TheCandidatesOfSpreadVectorsHoldPlainOnes) {
  const ir::Plan plan = ir::make_plan(ir::parse(gather_and_add(16, 4096, "4096, 1024")));
  const Target target = test::cuda_target_for("sm_90a");
  std::vector<std::string> texts;
  for (const Schedule& candidate : candidate_schedules(lower(plan, 0, unspecialized(plan), target), target))
    texts.push_back(print(candidate));
  const auto tried = [&](const std::string& text) { return std::count(texts.begin(), texts.end(), text) == 1; };
  EXPECT_TRUE(tried("map threads=256 vector=8 unroll=1 streaming"));
  EXPECT_TRUE(tried("map threads=128 vector=8 unroll=4 spread streaming"));
  EXPECT_TRUE(tried("map threads=256 vector=8 unroll=8 spread streaming"));
}

}  // namespace
}  // namespace tenon::codegen

// Schedules of products: what the sizes decide.
#include <gtest/gtest.h>

#include <string>

#include "codegen/kernel/kernel.h"
#include "ir/fusion/plan.h"
#include "ir/text/text.h"
#include "tests/codegen/compile_everywhere.h"
#include "tests/harness/scheduled_kernel.h"

namespace tenon::codegen {
namespace {

// The schedule of a linear layer's kernel for `rows`, which are a symbol of the graph.
ContractSchedule layer_of(std::int64_t rows) {
  static const ir::Plan plan = ir::make_plan(ir::parse(R"(graph layer(x: bf16[rows, 4096], w: bf16[14336, 4096]) {
    y: bf16[rows, 14336] = linear(x, w)
    return y
  })"),
                                             {});
  const Target target = cuda_target("sm_90a");
  const Kernel kernel = test::scheduled_kernel(plan, 0, specialize(plan, {{"rows", rows}}), target);
  test::expect_compiles_for(emit_cuda(kernel, target), {target.arch});
  return std::get<ContractSchedule>(kernel.schedule);
}

// The schedule of bf16 x times w, which lie as they say: "[m, k]", or seen transposed.
ContractSchedule product_of(const std::string& x, const std::string& a, const std::string& w, const std::string& b) {
  const ir::Plan plan = ir::make_plan(
      ir::parse("graph g(x: bf16" + x + ", w: bf16" + w + ") { y = matmul(" + a + ", " + b + "); return y }"), {});
  const Kernel kernel = test::scheduled_kernel(plan, 0, specialize(plan, {}), cuda_target("sm_90a"));
  return std::get<ContractSchedule>(kernel.schedule);
}

// No product gained by blocks that share what they read, but a tuner may find one that does.
TEST(ContractSchedules, BlocksThatShareWhatTheyReadAreTheTuners) {
  const Target target = test::cuda_target_for("sm_90a");
  const ir::Plan plan = ir::make_plan(
      ir::parse("graph g(x: bf16[4096, 1000], w: bf16[4096, 1000]) {\n  y = matmul(x, transpose(w))\n  return y\n}"));
  const std::vector<Schedule> candidates =
      candidate_schedules(test::scheduled_kernel(plan, 0, unspecialized(plan), target), target);
  const auto shares = [](const Schedule& schedule) { return std::get<ContractSchedule>(schedule).cluster > 1; };
  EXPECT_FALSE(shares(candidates.front()));
  EXPECT_TRUE(std::any_of(candidates.begin(), candidates.end(), shares));
}

// 192 rows are three warpgroups': 192 x 14720 x 11392 took an H200 112 us so, and 132 by tiles of 256 rows. A depth is
// split where there are few tiles, not where batches would be added up by a kernel of their own.
TEST(ContractSchedules, TilesFitTheRowsAndTheMultiprocessors) {
  EXPECT_EQ(product_of("[192, 11392]", "x", "[14720, 11392]", "transpose(w)").tile_m, 192);
  EXPECT_GE(product_of("[290, 65536]", "x", "[768, 65536]", "transpose(w)").split_k, 8);
  EXPECT_EQ(product_of("[4096, 4096]", "x", "[4096, 4096]", "w").split_k, 1);
}

// Each tile has memory for the sums of its parts: as many tiles as there may be would take it without bounds.
TEST(ContractSchedules, ADepthIsSplitWhereTilesAreFewAtEverySize) {
  const Target target = cuda_target("sm_90a");
  const ir::Plan plan = ir::make_plan(
      ir::parse("graph g(x: bf16[rows, 65536], w: bf16[512, 65536]) {\n  y = matmul(x, transpose(w))\n  return y\n}"));
  const auto split_of = [&](std::int64_t rows) {
    const Kernel kernel = test::scheduled_kernel(plan, 0, specialize(plan, {{"rows", rows}}), target);
    const auto& schedule = std::get<ContractSchedule>(kernel.schedule);
    return schedule.loop == MainLoop::wgmma ? schedule.split_k : 1;
  };
  EXPECT_GT(split_of(200), 1);
  EXPECT_EQ(split_of(200000), 1);
}

TEST(ContractSchedules, RowsThatStreamsWouldLeaveMultiprocessorsWithoutGoToWarpgroups) {
  const auto loop_of = [](int rows, int columns, int depth) {
    const std::string m = std::to_string(rows), n = std::to_string(columns), k = std::to_string(depth);
    return product_of("[" + m + ", " + k + "]", "x", "[" + n + ", " + k + "]", "transpose(w)").loop;
  };
  EXPECT_EQ(loop_of(24, 14336, 4096), MainLoop::stream);
  EXPECT_EQ(loop_of(24, 1152, 7808), MainLoop::wgmma);
  EXPECT_EQ(loop_of(16, 1152, 7808), MainLoop::stream);
  EXPECT_EQ(loop_of(32, 14336, 4096), MainLoop::wgmma);
  // Streams read two bytes at a time of what lies across the depth.
  EXPECT_EQ(product_of("[7808, 16]", "transpose(x)", "[1152, 7808]", "transpose(w)").loop, MainLoop::wgmma);
}

// Each tile of a stream reads such rows two bytes at a time.
TEST(ContractSchedules, RowsAcrossTheDepthStreamBesideWideTiles) {
  EXPECT_EQ(product_of("[1728, 16]", "transpose(x)", "[3072, 1728]", "transpose(w)").tile_n, 32);
  EXPECT_EQ(product_of("[16, 1728]", "x", "[3072, 1728]", "transpose(w)").tile_n, 16);
}

// Boxes would write parts of sectors, in the last-level cache or, of a large result, in memory.
TEST(ContractSchedules, LargeResultsWhoseRowsBeginOffSectorsLeaveByLanes) {
  EXPECT_FALSE(product_of("[31867, 88]", "x", "[88, 2072]", "w").box_results);
  EXPECT_TRUE(product_of("[31867, 88]", "x", "[88, 2080]", "w").box_results);
  EXPECT_TRUE(product_of("[4096, 88]", "x", "[88, 2072]", "w").box_results);
}

// 30 columns fill no more of a tile of 128 columns than of one of 64.
TEST(ContractSchedules, TilesAreNoWiderThanTheResultTakes) {
  const ContractSchedule schedule = product_of("[24178, 8384]", "x", "[32, 8384]", "transpose(w)");
  EXPECT_EQ(schedule.loop, MainLoop::wgmma);
  EXPECT_EQ(schedule.tile_n, 64);
}

TEST(ContractSchedules, FewRowsAndManyHaveKernelsOfTheirOwnInOneExecutable) {
  EXPECT_EQ(layer_of(3).loop, MainLoop::stream);
  EXPECT_EQ(layer_of(16).loop, MainLoop::stream);
  EXPECT_EQ(layer_of(64).loop, MainLoop::wgmma);
  EXPECT_EQ(layer_of(64).tile_m, 64);
  EXPECT_EQ(layer_of(8191).loop, MainLoop::wgmma);
  EXPECT_GE(layer_of(8191).tile_m, 128);
}

TEST(ContractSchedules, RowsOfOneClassShareAKernel) {
  static const ir::Plan plan =
      ir::make_plan(ir::parse("graph g(x: bf16[m, 64], w: bf16[64, 32]) { y = matmul(x, w); return y }"), {});
  const auto key = [&](std::int64_t m) { return specialize(plan, {{"m", m}}).key(); };
  EXPECT_EQ(key(3), key(15));
  EXPECT_EQ(key(513), key(8191));
  EXPECT_NE(key(15), key(17));
  EXPECT_NE(key(511), key(513));
}

// A size that no product's result has decides nothing.
TEST(ContractSchedules, TheDepthOfAProductIsNoClassOfSizes) {
  static const ir::Plan plan =
      ir::make_plan(ir::parse("graph g(x: bf16[64, k], w: bf16[k, 32]) { y = matmul(x, w); return y }"), {});
  EXPECT_EQ(specialize(plan, {{"k", 3}}).key(), specialize(plan, {{"k", 8191}}).key());
}

}  // namespace
}  // namespace tenon::codegen

// Schedules of products: what the sizes decide.
#include <gtest/gtest.h>

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

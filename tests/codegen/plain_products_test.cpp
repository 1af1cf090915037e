// Products that no tensor cores take: tiles of plain multiply-adds, whose depth groups of warps divide where a
// multiprocessor has few tiles.
#include <gtest/gtest.h>

#include "codegen/schedule/schedule.h"
#include "ir/fusion/plan.h"
#include "ir/text/text.h"
#include "tests/codegen/cuda_numerics.h"
#include "tests/harness/scheduled_kernel.h"

namespace tenon::codegen {
namespace {

std::string chosen(const std::string& operands) {
  const ir::Plan plan = ir::make_plan(ir::parse("graph g(" + operands + ") { y = matmul(x, w); return y }"));
  Target target = test::cuda_target_for("sm_90a");
  target.may.split_f32 = false;
  return print(test::scheduled_kernel(plan, 0, unspecialized(plan), target).schedule);
}

TEST(PlainProducts, FewTilesAreDividedAmongGroupsOfWarps) {
  EXPECT_EQ(chosen("x: f32[24, 768], w: f32[768, 768]"),
            "contract loop=simt tile_m=16 tile_k=64 warps_m=1 warps_k=4 stages=3 vector_a=4 vector_b=4");
  EXPECT_EQ(chosen("x: f32[100, 777], w: f32[777, 3000]"),
            "contract loop=simt tile_m=16 tile_k=32 warps_m=1 warps_k=2 stages=3 vector_b=4");
  EXPECT_EQ(chosen("x: f32[24, 64], w: f32[64, 768]").find("warps_k"), std::string::npos) << "the depth is short";
  EXPECT_EQ(chosen("x: f64[4096, 512], w: f64[512, 4096]").find("warps_k"), std::string::npos)
      << "a multiprocessor has warps enough";
}

TEST(PlainProducts, AreRightWhereGroupsDivideTheDepth) {
  for (const int groups : {2, 4, 8}) {
    const auto divided = [&](const std::string& text, const Bindings& bindings = {}) {
      expect_right(text, bindings, [&](Kernel& kernel) {
        auto& schedule = std::get<ContractSchedule>(kernel.schedule);
        if (schedule.loop == MainLoop::mma_3xtf32)
          schedule = {.loop = MainLoop::simt, .vector_a = schedule.vector_a, .vector_b = schedule.vector_b};
        ASSERT_EQ(schedule.loop, MainLoop::simt);
        schedule.tile_k = 16 * groups;
        schedule.warps_k = groups;
      });
    };
    divided("graph g(x: f32[20, 300], w: f32[300, 70]) { y = matmul(x, w); return y }");
    divided("graph g(x: f64[3, 40, 77], w: f64[3, 66, 77]) { y = matmul(x, transpose(w, perm=[0, 2, 1])); return y }");
    divided("graph g(x: f32[n, k], w: f32[k, 64], b: f32[64]) { y = gelu(add(matmul(x, w), b)); return y }",
            {{"n", 37}, {"k", 90}});
    divided("graph g(x: f32[40, 0], w: f32[0, 64]) { y = matmul(x, w); return y }");
  }
}

}  // namespace
}  // namespace tenon::codegen

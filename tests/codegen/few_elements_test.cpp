// Reductions of a few neighbouring elements, which are maps over their rows.
#include "codegen/lower/few_elements.h"

#include <gtest/gtest.h>

#include "ir/text/text.h"
#include "tests/codegen/cuda_numerics.h"
#include "tests/harness/scheduled_kernel.h"

namespace tenon::codegen {
namespace {

std::string chosen(const std::string& graph) {
  const ir::Plan plan = ir::make_plan(ir::parse("graph g(" + graph + "; return y }"));
  return print(test::scheduled_kernel(plan, 0, unspecialized(plan), test::cuda_target_for("sm_90a")).schedule);
}

TEST(FewElements, BecomeVectorsOfSeveralRows) {
  EXPECT_EQ(chosen("x: f16[65536, 432, 2]) { y = max(x, axis=2)"), "map threads=256 vector=4 overlaps streaming");
  EXPECT_EQ(chosen("x: u8[2160, 3840, 3]) { y = mean(cast(x, dtype=f32), axis=2)").substr(0, 4), "map ");
  EXPECT_EQ(chosen("x: f32[4194304, 4]) { y = logsumexp(x, axis=1)").substr(0, 4), "map ");
}

TEST(FewElements, AreRowsWhereVectorsWouldNotDo) {
  const auto is_reduction = [](const std::string& graph) { return chosen(graph).substr(0, 7) == "reduce "; };
  EXPECT_TRUE(is_reduction("x: f32[65536, 8]) { y = sum(x, axis=1)")) << "a row is two vectors";
  EXPECT_TRUE(is_reduction("x: f32[65536, 3]) { y = sum(x, axis=1)")) << "no vector is whole rows";
  EXPECT_TRUE(is_reduction("x: f32[65536, 2]) { y = sum(mish(x), axis=1)")) << "elements are dear";
  EXPECT_TRUE(is_reduction("x: f16[65536, 3]) { y = softmax(x)")) << "elements are stored";
  EXPECT_TRUE(is_reduction("x: f16[65536, 3]) { y = argmax(x, axis=1)")) << "an index is found";
  EXPECT_TRUE(is_reduction("x: f32[512, 3, 4096]) { y = sum(x, axis=1)")) << "rows lie side by side";
  EXPECT_TRUE(is_reduction("x: f32[65536, 4]) { y = sum(dropout(x, 7), axis=1)")) << "four draws are one";
}

TEST(FewElements, AreRight) {
  expect_right("graph g(x: f16[77, 33, 2]) { y = max(x, axis=2); return y }");
  expect_right("graph g(x: f16[301, 3]) { y = sqrt(sum(mul(x, x), axis=1)); return y }");
  expect_right("graph g(x: bf16[500, 3], w: bf16[3]) { y = sum(mul(x, w), axis=1, keepdims=true); return y }");
  expect_right("graph g(x: f32[256, 4], z: f32[256]) { y = logsumexp(x, axis=1); return add(y, z), min(x, axis=1) }");
  expect_right("graph g(x: f64[65, 2]) { y = prod(x, axis=1); return y }");
  expect_right("graph g(x: i8[129, 3]) { y = sum(x, axis=1); v = sum(x, axis=1, dtype=i64); return y, v }");
  expect_right("graph g(x: bool[100, 3]) { y = any(x, axis=1); v = all(x, axis=1); return y, v }");
  expect_right("graph g(x: bf16[n, 3]) { y = var(x, axis=1); return y }", {{"n", 1023}});
  expect_right("graph g(x: f32[8, 50, 2]) { y = sum(transpose(x, perm=[1, 0, 2]), axis=2); return y }");
}

}  // namespace
}  // namespace tenon::codegen

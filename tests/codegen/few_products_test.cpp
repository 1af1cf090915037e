// Products of a few rows or columns in dtypes that tensor cores do not multiply: a Reduce kernel with a sum for each.
#include <gtest/gtest.h>

#include "ir/fusion/plan.h"
#include "ir/text/text.h"
#include "tests/codegen/cuda_numerics.h"
#include "tests/harness/scheduled_kernel.h"

namespace tenon::codegen {
namespace {

Kernel kernel_of(const std::string& text) {
  const ir::Plan plan = ir::make_plan(ir::parse(text));
  return test::scheduled_kernel(plan, 0, unspecialized(plan), test::cuda_target_for("sm_90a"));
}

std::ptrdiff_t sums_of(const Kernel& kernel) {
  return std::count_if(kernel.body.begin(), kernel.body.end(),
                       [](const Instr& instr) { return instr.kind == InstrKind::reduce; });
}

TEST(FewProducts, AreASumForEachRow) {
  const Kernel kernel = kernel_of("graph g(x: f32[3, 512], w: f32[512, 256]) { y = matmul(x, w); return y }");
  EXPECT_EQ(kernel.kernel_class, ir::KernelClass::reduce);
  EXPECT_EQ(sums_of(kernel), 3);
  EXPECT_EQ(kernel.stores.size(), 3U);
  std::ptrdiff_t loads = 0;  // a row each, and the matrix once
  for (const Instr& instr : kernel.body) loads += instr.kind == InstrKind::load;
  EXPECT_EQ(loads, 4);
}

TEST(FewProducts, MoreOfThemOrSmallOnesAreTiles) {
  for (const char* text : {"graph g(x: f32[17, 512], w: f32[512, 256]) { y = matmul(x, w); return y }",
                           "graph g(x: f32[4, 64], w: f32[64, 64]) { y = matmul(x, w); return y }",
                           "graph g(x: f32[12, 512], w: f32[512, 16384]) { y = matmul(x, w); return y }",
                           "graph g(x: f32[200, 512], w: f32[512, 4]) { y = matmul(x, w); return y }",
                           "graph g(x: bf16[4, 512], w: bf16[512, 256]) { y = matmul(x, w); return y }"})
    EXPECT_EQ(kernel_of(text).kernel_class, ir::KernelClass::contract) << text;
}

TEST(FewProducts, AcrossTheDepth) {
  expect_right("graph g(x: f32[2, 513], w: f32[513, 260]) { y = matmul(x, w); return y }");
  expect_right("graph g(x: f32[16, 300], w: f32[300, 256]) { y = matmul(x, w); return y }");
  expect_right("graph g(x: f64[8, 300], w: f64[300, 131]) { y = matmul(x, w); return y }");
}

TEST(FewProducts, AlongTheDepth) {
  expect_right("graph g(x: f32[7, 1024], w: f32[96, 1024]) { y = linear(x, w); return y }");
  expect_right("graph g(x: f64[2, 1023], w: f64[70, 1023]) { y = linear(x, w); return y }");
}

TEST(FewProducts, OfFewColumns) {
  expect_right("graph g(x: f32[200, 512], w: f32[4, 512]) { y = linear(x, w); return y }");
  expect_right("graph g(x: f32[512, 200], w: f32[512, 3]) { y = matmul(transpose(x), w); return y }");
}

TEST(FewProducts, WithWhatIsFusedAroundThem) {
  expect_right(R"(graph g(x: f32[4, 512], w: f32[512, 256], b: f32[256], s: f32[4, 1], r: f32[4, 256]) {
  y = matmul(mul(x, 0.5), neg(w))
  return add(gelu(mul(add(y, b), s)), r)
})");
}

TEST(FewProducts, OfBatches) {
  expect_right("graph g(x: f32[3, 2, 256], w: f32[3, 256, 300]) { y = matmul(x, w); return y }");
}

TEST(FewProducts, OfSymbolicShapes) {
  expect_right("graph g(x: f32[2, k], w: f32[k, n]) { y = matmul(x, w); return y }", {{"k", 700}, {"n", 77}});
}

}  // namespace
}  // namespace tenon::codegen

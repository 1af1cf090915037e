// Exponentials of which only 16-bit results are made are computed in fewer instructions (codegen/analysis/narrow.h).
#include <gtest/gtest.h>

#include "codegen/emit/source.h"
#include "ir/fusion/plan.h"
#include "ir/text/text.h"
#include "tests/codegen/compile_everywhere.h"
#include "tests/harness/scheduled_kernel.h"

namespace tenon::codegen {
namespace {

std::string cuda_of(const std::string& text) {
  const Target target = test::cuda_target_for("sm_90a");
  const ir::Plan plan = ir::make_plan(ir::parse("graph g(" + text + " }"), {});
  const Source source = emit_cuda(test::scheduled_kernel(plan, 0, unspecialized(plan), target), target);
  test::expect_compiles_for(source, {"sm_90a"});
  return source.text;
}

bool is_short(const std::string& text) {
  const std::string cuda = cuda_of(text);
  EXPECT_TRUE(cuda.find("exp(") != std::string::npos) << cuda;
  const bool narrow = cuda.find("= narrow_exp(") != std::string::npos;
  EXPECT_EQ(narrow, cuda.find("= exp(") == std::string::npos) << "some of each\n" << cuda;
  return narrow;
}

TEST(Narrow, ASoftmaxOfSixteenBits) {
  EXPECT_TRUE(is_short("x: bf16[64, 4096]) { y = softmax(x)\nreturn y"));
  EXPECT_TRUE(is_short("x: f16[64, 500]) { y = softmax(x)\nreturn y"));
  EXPECT_TRUE(is_short("x: f32[64, 4096]) { y = cast(softmax(x), dtype=bf16)\nreturn y"));
  EXPECT_FALSE(is_short("x: f32[64, 4096]) { y = softmax(x)\nreturn y"));
  EXPECT_FALSE(is_short("x: bf16[64, 4096]) { y = cast(softmax(cast(x, dtype=f32)), dtype=f64)\nreturn y"));
}

TEST(Narrow, ThroughProductsAndSelections) {
  EXPECT_TRUE(
      is_short("x: bf16[64, 4096], s: f32[64, 4096]) { y = cast(mul(softmax(cast(x, dtype=f32)), s), "
               "dtype=bf16)\nreturn y"));
  EXPECT_TRUE(is_short("x: bf16[64, 4096], m: bool[64, 4096]) { y = where(m, softmax(x), 0)\nreturn y"));
}

// What may cancel, or be seen in more bits, or decides something, has every bit.
TEST(Narrow, NotWhereMoreIsSeen) {
  EXPECT_FALSE(is_short("x: bf16[64, 4096]) { y = cast(sub(softmax(cast(x, dtype=f32)), 0.25), dtype=bf16)\nreturn y"));
  EXPECT_FALSE(is_short("x: bf16[64, 4096]) { y = log_softmax(x)\nreturn y"));
  EXPECT_FALSE(
      is_short("x: bf16[64, 4096]) { p = softmax(cast(x, dtype=f32))\ny = cast(p, dtype=bf16)\n"
               "return y, p"));
  EXPECT_FALSE(is_short("x: bf16[64, 4096]) { y = greater(softmax(cast(x, dtype=f32)), 0.5)\nreturn y"));
}

TEST(Narrow, IsSwitchedOffByTheTarget) {
  const ir::Plan plan = ir::make_plan(ir::parse("graph g(x: bf16[64, 4096]) { y = softmax(x)\nreturn y }"), {});
  Target target = test::cuda_target_for("sm_90a");
  EXPECT_NE(print(test::scheduled_kernel(plan, 0, unspecialized(plan), target)).find("= narrow exp("),
            std::string::npos);
  target.may.narrow = false;
  EXPECT_EQ(print(test::scheduled_kernel(plan, 0, unspecialized(plan), target)).find("narrow"), std::string::npos);
}

// An argument above 0 would overflow on the way.
TEST(Narrow, NotWithoutTheMaximum) {
  EXPECT_FALSE(is_short("x: bf16[64, 4096]) { e = exp(x)\ny = div(e, sum(e, axis=1, keepdims=true))\nreturn y"));
}

}  // namespace
}  // namespace tenon::codegen

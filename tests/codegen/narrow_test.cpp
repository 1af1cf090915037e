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

TEST(Narrow, ANumberOfSixteenBitsThatAnythingUses) {
  EXPECT_TRUE(is_short("x: bf16[64, 4096]) { e = exp(x)\ny = div(e, sum(e, axis=1, keepdims=true))\nreturn y"));
  EXPECT_TRUE(is_short("x: f16[4096]) { y = sub(exp(x), 1)\nreturn y"));
  EXPECT_FALSE(is_short(
      "x: f32[64, 4096]) { e = exp(x)\ny = cast(div(e, sum(e, axis=1, keepdims=true)), dtype=bf16)\nreturn y"));
  EXPECT_FALSE(is_short("x: f32[4096]) { y = cast(sub(exp(x), 1), dtype=f16)\nreturn y"));
  // a long sum shows where all numbers err to one side
  EXPECT_FALSE(is_short("x: bf16[64, 4096]) { y = sum(cast(exp(x), dtype=f32), axis=1)\nreturn y"));
}

std::string kernel_of(const std::string& text) {
  const ir::Plan plan = ir::make_plan(ir::parse("graph g(" + text + " }"), {});
  return print(test::scheduled_kernel(plan, 0, unspecialized(plan), test::cuda_target_for("sm_90a")));
}

void expect_in_kernel(const std::string& text, const std::string& wanted, bool there = true) {
  const std::string kernel = kernel_of(text);
  EXPECT_EQ(kernel.find(wanted) != std::string::npos, there) << wanted << "\n" << kernel;
}

// One function in place of several, for bf16 and f16; for f32 where it is as near as its parts.
TEST(Narrow, ActivationsAreFunctionsOfTheirOwn) {
  for (const auto& [call, function] :
       {std::pair{"sigmoid(x)", "narrow logistic reciprocal("}, std::pair{"silu(x)", "narrow logistic div("},
        std::pair{"gelu(x)", "narrow one_plus erf("},
        std::pair{"gelu(x, approximate=\"tanh\")", "narrow one_plus tanh("},
        std::pair{"mish(x)", "narrow of_softplus tanh("}, std::pair{"softplus(x)", "narrow log1p("},
        std::pair{"elu(x)", "narrow expm1("}}) {
    for (const char* dtype : {"bf16", "f16"})
      expect_in_kernel(std::string("x: ") + dtype + "[4096]) { y = " + call + "\nreturn y", function);
    expect_in_kernel(std::string("x: f32[4096]) { y = ") + call + "\nreturn y", "narrow", false);
    expect_in_kernel(std::string("x: bf16[4096]) { y = cast(") + call + ", dtype=f32)\nreturn y", "narrow log1p",
                     false);
  }
  for (const auto& [call, function] :
       {std::pair{"sigmoid(x)", " logistic reciprocal("}, std::pair{"silu(x)", " logistic div("},
        std::pair{"mish(x)", " of_softplus tanh("}, std::pair{"softplus(x)", " of_share log1p("}})
    expect_in_kernel(std::string("x: f32[4096]) { y = ") + call + "\nreturn y", function);
  expect_in_kernel("x: f64[4096]) { y = mish(x)\nreturn y", " of_softplus tanh(");
  expect_in_kernel("x: f64[4096]) { y = sigmoid(x)\nreturn y", " logistic", false);
  expect_in_kernel("x: f16[4096]) { y = div(x, add(1, exp(neg(x))))\nreturn y", "narrow logistic div(");
  // who else asks for a part of it gets that
  expect_in_kernel("x: bf16[4096]) { e = add(exp(x), 1)\ny = reciprocal(e)\nreturn y, e", "logistic", false);
  expect_in_kernel("x: f16[4096]) { t = tanh(x)\ny = add(t, 1)\nreturn y, t", "one_plus", false);
}

}  // namespace
}  // namespace tenon::codegen

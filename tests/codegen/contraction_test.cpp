// Which products become an fma with an addition or subtraction (codegen/lower/one_rounding.h), as kernels' text says
// it.
#include <gtest/gtest.h>

#include "codegen/kernel.h"
#include "ir/fusion/plan.h"
#include "ir/text.h"
#include "tests/codegen/compile_everywhere.h"

namespace tenon::codegen {
namespace {

int count(const std::string& text, const std::string& what) {
  int found = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

// The first kernel of a graph of a, b and c: f32[64, 512].
std::string kernel_of(const std::string& body) {
  const Target target = test::cuda_target_for("sm_90a");
  const ir::Plan plan =
      ir::make_plan(ir::parse("graph g(a: f32[64, 512], b: f32[64, 512], c: f32[64, 512]) {\n" + body + "\n}"), {});
  return print(lower(plan, 0, unspecialized(plan), target));
}

void expect_products(const std::string& body, int contracted, int rounded) {
  const std::string text = kernel_of(body);
  EXPECT_EQ(count(text, "= fma("), contracted) << text;
  EXPECT_EQ(count(text, "= rounded mul("), rounded) << text;
}

TEST(Contraction, OfAProductWithOneUse) {
  expect_products("return add(mul(a, b), c)", 1, 0);
  expect_products("return sub(c, neg(mul(a, b)))", 1, 0);
  expect_products("return sub(mul(a, b), mul(b, c))", 1, 0);
}

// A sum is rounded itself, so that nothing cancels the product exactly; its other uses see it rounded.
TEST(Contraction, OfAProductThatTheOtherOperandHoldsThroughSumsOnly) {
  expect_products("x = mul(a, b)\n return sub(x, sum(x, axis=1, keepdims=true)), exp(x)", 1, 1);
  expect_products("x = mul(a, b)\n return add(x, c), x", 1, 0);
}

TEST(Contraction, NotWhereTheOtherOperandHoldsTheProduct) {
  expect_products("x = mul(a, b)\n return sub(x, max(x, axis=1, keepdims=true))", 0, 1);
  expect_products("x = mul(a, b)\n return sub(x, where(greater(c, 0), x, c))", 0, 1);
  expect_products("x = mul(a, b)\n return sub(x, mul(x, c))", 1, 0);  // the product with c, which x does not hold
}

TEST(Contraction, NotBesideAQuotient) { expect_products("return add(mul(a, b), div(a, c))", 0, 1); }

}  // namespace
}  // namespace tenon::codegen

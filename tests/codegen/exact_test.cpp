// Integers that 16 bits hold are not rounded there (codegen/analysis/exact.h).
#include <gtest/gtest.h>

#include "codegen/emit/source.h"
#include "ir/fusion/plan.h"
#include "ir/text/text.h"
#include "tests/codegen/compile_everywhere.h"
#include "tests/harness/scheduled_kernel.h"

namespace tenon::codegen {
namespace {

// Whether the kernel rounds to bf16 or f16 before its stores.
bool rounds(const std::string& text) {
  const Target target = test::cuda_target_for("sm_90a");
  const ir::Plan plan = ir::make_plan(ir::parse("graph g(" + text + "\nreturn y }"), {});
  const Source source = emit_cuda(test::scheduled_kernel(plan, 0, unspecialized(plan), target), target);
  test::expect_compiles_for(source, {"sm_90a"});
  return source.text.find("_to_f32(f32_to_", source.text.find("__global__")) != std::string::npos;
}

TEST(Exact, IntegersOfEightBits) {
  EXPECT_FALSE(rounds("x: i8[4096]) { y = exp(cast(cast(x, dtype=bf16), dtype=f32))"));
  EXPECT_FALSE(rounds("x: u8[4096]) { y = exp(cast(cast(x, dtype=f16), dtype=f32))"));
  EXPECT_TRUE(rounds("x: i16[4096]) { y = exp(cast(cast(x, dtype=bf16), dtype=f32))"));
  EXPECT_TRUE(rounds("x: f32[4096]) { y = exp(cast(cast(x, dtype=bf16), dtype=f32))"));
}

// Quantized: NaN stays NaN, and what was limited has few bits.
TEST(Exact, WhatIsRoundedToAnIntegerAndLimited) {
  EXPECT_FALSE(rounds("x: bf16[4096]) { y = cast(clamp(round(x), -127, 127), dtype=i8)"));
  EXPECT_FALSE(rounds("x: bf16[4096]) { y = cast(maximum(minimum(neg(floor(x)), 256), 0), dtype=u8)"));
  EXPECT_TRUE(rounds("x: bf16[4096]) { y = cast(clamp(round(mul(x, 3.0)), -257, 257), dtype=i16)"));
  EXPECT_TRUE(rounds("x: bf16[4096]) { y = cast(clamp(mul(x, 3.0), -127, 127), dtype=i8)"));
  EXPECT_TRUE(rounds("x: bf16[4096]) { y = cast(clamp(round(mul(x, 3.0)), -0.5, 127), dtype=i8)"));
}

// A product takes its operands as they are stored: rounded, where that matters.
bool rounds_weights(const std::string& weights) {
  return rounds("x: bf16[1, 4096], q: u8[64, 4096]) { y = linear(x, " + weights + ", dtype=f32)");
}

TEST(Exact, WhatMasksAndShiftsLeave) {
  EXPECT_FALSE(rounds_weights("cast(q, dtype=bf16)"));
  EXPECT_FALSE(rounds_weights("sub(cast(bitwise_and(q, 15), dtype=bf16), 8)"));
  EXPECT_FALSE(rounds_weights("sub(cast(right_shift(q, 4), dtype=bf16), 8)"));
  EXPECT_FALSE(rounds_weights("cast(where(equal(q, 7), q, 1), dtype=bf16)"));
}

// 255 + 255 has nine bits, a half is no integer, and of a shift by any number nothing is known.
TEST(Exact, NotWhatMayNeedMoreBits) {
  EXPECT_TRUE(rounds_weights("add(cast(q, dtype=bf16), 255)"));
  EXPECT_TRUE(rounds_weights("sub(cast(q, dtype=bf16), 0.5)"));
  EXPECT_TRUE(rounds_weights("add(cast(right_shift(q, q), dtype=bf16), 8)"));
}

}  // namespace
}  // namespace tenon::codegen

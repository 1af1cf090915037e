// Kernels that read and write more than the caches hold have the L2 keep what they read: what is written then leaves it
// first (bench/results/map-log.md).
#include <gtest/gtest.h>

#include "codegen/kernel/kernel.h"
#include "ir/fusion/plan.h"
#include "ir/text/text.h"
#include "tests/codegen/compile_everywhere.h"
#include "tests/codegen/text_checks.h"
#include "tests/harness/scheduled_kernel.h"

namespace tenon::codegen {
namespace {

Source emitted(const std::string& text, const Target& target) {
  const ir::Plan plan = ir::make_plan(ir::parse("graph g(" + text + "\n  return y\n}"));
  EXPECT_EQ(plan.groups.size(), 1U);
  return emit_cuda(test::scheduled_kernel(plan, 0, unspecialized(plan), target), target);
}

bool keeps(const std::string& text, const Target& target = test::cuda_target_for("sm_90a")) {
  return test::kernel_part(emitted(text, target).text).find("_kept<") != std::string::npos;
}

TEST(KeepReads, OfStreamsThatExceedTheCaches) {
  EXPECT_TRUE(keeps("x: f32[8192, 8192]) { y = tanh(x)"));
  EXPECT_TRUE(keeps("x: bf16[8192, 8192]) { y = add(transpose(x), 1)"));
  EXPECT_TRUE(keeps("x: bf16[16384, 4096], w: bf16[4096], b: bf16[4096]) { y = layer_norm(x, w, b)"));
  EXPECT_FALSE(keeps("x: f32[1024, 1024]) { y = tanh(x)"));
}

TEST(KeepReads, NotWhereNothingIsWrittenOrPlacesAreLoadedOrMuchIsComputed) {
  EXPECT_FALSE(keeps("x: f32[16384, 16384]) { y = sum(x, axis=-1)"));
  EXPECT_FALSE(keeps("x: bf16[50257, 4096], i: i64[16384]) { y = take(x, i, axis=0)"));
  EXPECT_FALSE(keeps("x: f32[8192, 8192]) { y = add(sin(x), cos(add(x, 1)))"));
  EXPECT_TRUE(keeps("x: f32[8192, 8192]) { y = add(sin(x), cos(x))"));
}

TEST(KeepReads, IsSwitchedOffByTheTarget) {
  Target target = test::cuda_target_for("sm_90a");
  target.may.keep_reads = false;
  EXPECT_FALSE(keeps("x: f32[8192, 8192]) { y = tanh(x)", target));
  EXPECT_FALSE(keeps("x: f32[8192, 8192]) { y = tanh(x)", test::cuda_target_for("sm_75")));
}

// Rows of weights are shared by all blocks, and stay anyway.
TEST(KeepReads, OfRowsAndNotOfWhatTheyShare) {
  const Source source =
      emitted("x: bf16[16384, 4096], w: bf16[4096]) { y = rms_norm(x, w)", test::cuda_target_for("sm_90a"));
  test::expect_lines(source.text, {"load_kept<8, 8>(in0 +", "load<8, 8>(in1 +"});
  test::expect_compiles_everywhere(source);
}

// A load that a guard may forbid is one instruction and no branch.
TEST(KeepReads, GuardsArePartOfTheLoad) {
  const Source source = emitted(
      "x: bf16[65536, 128], c: bf16[65536, 128], s: bf16[65536, 128]) {\n"
      "  low = slice(x, axis=-1, start=[0], stop=[64])\n  high = slice(x, axis=-1, start=[64], stop=[128])\n"
      "  y = add(mul(x, c), mul(concat(neg(high), low, axis=-1), s))",
      test::cuda_target_for("sm_90a"));
  test::expect_lines(source.text,
                     {"load_kept<8, 8>(in0 + 128 * i0 + i1)", "load_kept<8, 8>(in0 + 128 * i0 + i1 + 64, i1 < 64)"});
  test::expect_compiles_everywhere(source);
}

// Copies into shared memory have no policy of their own: ptxas 13.0 makes illegal instructions of some.
TEST(KeepReads, OfCopiesIntoSharedMemoryIsAskedForApart) {
  const Source source = emitted("x: bf16[4096, 65536]) { y = softmax(x)", test::cuda_target_for("sm_90a"));
  test::expect_lines(source.text, {"copy_async_kept<16>("});
  EXPECT_EQ(source.text.find("cp.async.cg.shared.global.L2::cache_hint"), std::string::npos);
  test::expect_compiles_everywhere(source);
}

}  // namespace
}  // namespace tenon::codegen

// Random numbers of attention: in how many bits they are counted, which are drawn by fours, and that registers suffice.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "codegen/emit/cuda/emit.h"
#include "ir/fusion/plan.h"
#include "ir/text/text.h"
#include "tests/codegen/compile_everywhere.h"
#include "tests/codegen/text_checks.h"
#include "tests/harness/scheduled_kernel.h"

namespace tenon::test {
namespace {

// Attention of 64 heads with as many keys as queries; `weights` is how "weights" follow from "scores".
ir::Plan attention_plan(int queries, const std::string& weights) {
  return ir::make_plan(ir::parse(
      fmt::format("graph g(q: bf16[64, {0}, 128], k: bf16[64, {0}, 128], v: bf16[64, {0}, 128], seed: i64[]) {{\n"
                  "  rows = reshape(iota(shape=[{0}], dtype=i32), shape=[{0}, 1])\n"
                  "  causal = less_equal(iota(shape=[{0}], dtype=i32), rows)\n"
                  "  scores = mul(matmul(q, transpose(k, perm=[0, 2, 1]), dtype=f32), 0.09)\n"
                  "  {1}\n"
                  "  return matmul(cast(weights, dtype=bf16), v) as y\n}}",
                  queries, fmt::format(fmt::runtime(weights), queries))));
}

const char* const kDropout = "weights = dropout(softmax(scores), seed, p=0.1)";
const char* const kCausalDropout = "weights = dropout(softmax(where(causal, scores, -inf)), seed, p=0.1)";
const char* const kNoise =
    "weights = dropout(softmax(add(scores, random_uniform(seed, shape=[64, {0}, {0}], stream=3))), seed, p=0.1)";
const char* const kMaskAhead =
    "kept = greater(random_uniform(seed, shape=[64, {0}, {0}]), 0.5)\n"
    "  weights = where(kept, softmax(scores), 0.0)";

// Beside a selection of a weight, a product: it may not become a branch while products are under way.
const char* const kTwo =
    "weights = mul(dropout(softmax(scores), seed, p=0.1), random_uniform(seed, shape=[64, {0}, {0}], stream=5))";

codegen::Kernel attention_kernel_of(const ir::Plan& plan) {
  EXPECT_EQ(plan.groups.size(), 1u) << print(plan);
  return scheduled_kernel(plan, 0, codegen::unspecialized(plan), codegen::cuda_target("sm_90a"));
}

TEST(Draws, AreNoReasonForWideOffsets) {
  const auto expect = [](const ir::Plan& plan, bool wide_index, bool wide_random) {
    const codegen::Specialization now = codegen::unspecialized(plan);
    EXPECT_EQ(now.wide_index, wide_index) << print(plan);
    EXPECT_EQ(now.wide_random, wide_random) << print(plan);
  };
  expect(attention_plan(4096, kDropout), false, true);
  expect(attention_plan(2048, kDropout), false, false);
  expect(attention_plan(4096, kMaskAhead), false, true);
  expect(ir::make_plan(ir::parse("graph g(x: f32[1073741824], seed: i64) { y = dropout(x, seed, p=0.1); return y }")),
         true, true);
}

TEST(Draws, OfNeighbouringKeysShareABlock) {
  const codegen::Target target = codegen::cuda_target("sm_90a");
  const std::string text = emit_cuda(attention_kernel_of(attention_plan(4096, kDropout)), target).text;
  expect_lines(text, {"const philox_keys keys0 = v0;", "const auto factor = by_fours([&](int i, int four)",
                      "philox(keys0, 0, (u32)(", "4194304 * b0 + 1024 * i", "const int v1 = drawn[0];",
                      ">= 1677722;  // greater_equal"});
  EXPECT_EQ(text.find("random_element"), std::string::npos);
}

TEST(Draws, HaveTheirRegisters) {
  const codegen::Target target = codegen::cuda_target("sm_90a");
  for (const char* weights : {kDropout, kCausalDropout, kNoise, kMaskAhead, kTwo})
    for (const int queries : {4096, 4100}) {
      SCOPED_TRACE(fmt::format("{} of {}", weights, queries));
      const codegen::Kernel kernel = attention_kernel_of(attention_plan(queries, weights));
      EXPECT_EQ(std::get<codegen::AttendSchedule>(kernel.schedule).loop, codegen::MainLoop::wgmma);
      expect_compiles_for(emit_cuda(kernel, target), {"sm_90a"});
    }
}

}  // namespace
}  // namespace tenon::test

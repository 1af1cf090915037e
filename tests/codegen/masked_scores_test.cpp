// Masks of an attention, however they are written: they become selections of the score, which bounds and tile tests
// find.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "codegen/analysis/key_bounds.h"
#include "codegen/analysis/mask_text.h"
#include "codegen/analysis/scaled_scores.h"
#include "ir/text/text.h"
#include "tests/harness/scheduled_kernel.h"

namespace tenon::test {
namespace {

using codegen::KeyMasks;

// Attention whose "score" follows from "s" (scaled, in f32) by `lines`. There are a `bias` in bf16 and the conditions
// `causal`, `known` (lengths) and `same` (documents).
codegen::Kernel attention_with(const std::string& lines) {
  const ir::Plan plan = ir::make_plan(ir::parse(fmt::format(
      "graph g(q: bf16[4, 8, 1024, 64], k: bf16[4, 8, 1024, 64], v: bf16[4, 8, 1024, 64], bias: bf16[8, 1024, 1024],\n"
      "        length: i32[4, 1, 1, 1], row: i32[4, 1, 1024, 1], column: i32[4, 1, 1, 1024]) {{\n"
      "  i = iota(shape=[1024, 1], dtype=i32)\n"
      "  j = iota(shape=[1024], dtype=i32)\n"
      "  causal = less_equal(j, i)\n"
      "  known = less(j, length)\n"
      "  same = equal(row, column)\n"
      "  s = mul(matmul(q, transpose(k, perm=[0, 1, 3, 2]), dtype=f32), 0.125)\n"
      "  {}\n"
      "  return matmul(cast(softmax(score), dtype=bf16), v) as y\n}}",
      lines)));
  EXPECT_EQ(plan.groups.size(), 1u) << print(plan);
  return scheduled_kernel(plan, 0, codegen::unspecialized(plan), codegen::cuda_target("sm_90a"));
}

std::string masks_of(const codegen::Kernel& kernel) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kernel.operands.size(); ++i) names.push_back(kernel.operands[i].name);
  std::string text;
  for (const std::string& mask : mask_texts(kernel, names)) text += mask.substr(0, mask.find(':')) + "\n";
  return text;
}

const std::string kZero = "zero = full(shape=[], value=0, dtype=f32)\n";
const std::string kZeroMask = kZero + "mask = where(causal, zero, -inf)\n";
const std::string kNarrow = "mask = where(causal, full(shape=[], value=0, dtype=bf16), -inf)\n";

TEST(MaskedScores, AMaskAddedToABiasBoundsTheKeys) {
  for (const std::string& score : {
           kZeroMask + "score = add(s, mask)",
           kZeroMask + "score = add(s, add(cast(bias, dtype=f32), mask))",
           kZeroMask + "score = add(add(mask, cast(bias, dtype=f32)), s)",
           kZeroMask + "score = add(add(s, cast(bias, dtype=f32)), mask)",
           kZeroMask + "score = add(add(s, mask), cast(bias, dtype=f32))",
           kNarrow + "score = add(s, cast(add(bias, mask), dtype=f32))",
           std::string("score = add(s, where(causal, cast(bias, dtype=f32), -inf))"),
           std::string("score = add(s, where(greater(j, i), -inf, cast(bias, dtype=f32)))"),
       }) {
    const codegen::Kernel kernel = attention_with(score);
    EXPECT_EQ(masks_of(kernel), "key <= query\n") << score;
    const KeyMasks masks = key_masks(kernel);
    EXPECT_TRUE(masks.complete()) << score << "\n" << print(kernel);
    // Where no mask hides the key, nothing is left of the mask.
    for (const codegen::InstrId id : open_region(kernel, attend_parts(kernel), masks))
      EXPECT_NE(kernel.instr(id).op, ir::Op::where) << score << "\n" << print(kernel);
  }
}

TEST(MaskedScores, EachOfSeveralMasksIsFound) {
  const std::string both = "where(known, zero, -inf), where(causal, zero, -inf)";
  const std::string bounds = "key <= (a number of in{}) + -1\nkey <= query\n";
  EXPECT_EQ(masks_of(attention_with(kZero + "score = add(s, add(" + both + "))")),
            fmt::format(fmt::runtime(bounds), 2));
  EXPECT_EQ(masks_of(attention_with(kZero + "score = add(where(causal, s, -inf), add(cast(bias, dtype=f32), "
                                            "where(same, zero, -inf)))")),
            "key <= query\nequal of in3 and in4\n");
}

// The constant still goes into the exponent, and a product that a mask hid is rounded ahead of its sum.
TEST(MaskedScores, AreScaledAndRoundedAsWithoutTheMask) {
  const codegen::Kernel added = attention_with(kZeroMask + "score = add(s, mask)");
  EXPECT_FLOAT_EQ(scaled_scores(added, attend_parts(added), key_masks(added)).scale, 0.125F);
  const codegen::Kernel later = attention_with(kZeroMask + "score = add(add(s, mask), cast(bias, dtype=f32))");
  EXPECT_EQ(print(later).find("fma("), std::string::npos) << print(later);
  const codegen::Kernel at_once = attention_with(kZeroMask + "score = add(s, add(cast(bias, dtype=f32), mask))");
  EXPECT_NE(print(at_once).find("fma("), std::string::npos) << print(at_once);
}

// The lowest number hides a key where there is another whose score is none so low.
TEST(MaskedScores, TheLowestNumberHidesWhereEachQuerySeesAKey) {
  const std::string lowest = "-3.4028234663852886e38";
  for (const std::string& score : {
           "score = where(causal, s, " + lowest + ")",
           "score = where(greater(j, i), " + lowest + ", mul(tanh(s), 30.0))",
           kZero + "score = add(s, where(causal, zero, " + lowest + "))",
           std::string(
               "score = add(s, cast(where(causal, full(shape=[], value=0, dtype=bf16), -3.3895e38), dtype=f32))"),
       })
    EXPECT_EQ(masks_of(attention_with(score)), "key <= query\n") << score;
  EXPECT_EQ(masks_of(attention_with("near = logical_and(causal, greater(j, sub(i, 100)))\n"
                                    "score = where(near, s, -1e38)")),
            "key <= query\nkey >= query + -99\n");
}

TEST(MaskedScores, AnyOtherFiniteMaskIsNoSelection) {
  const std::string lowest = "-3.4028234663852886e38";
  for (const std::string& score : {
           "score = where(known, s, " + lowest + ")",                                 // perhaps no key
           "score = where(logical_and(causal, same), s, " + lowest + ")",             // bounds do not say all
           "score = where(less(j, i), s, " + lowest + ")",                            // the first query sees none
           "score = where(greater(j, add(i, 5)), s, " + lowest + ")",                 // the last one
           "score = where(causal, add(s, cast(bias, dtype=f32)), " + lowest + ")",    // the bias may be as low
           "score = where(causal, where(known, s, " + lowest + "), " + lowest + ")",  // so may the other mask
           kZero + "score = sub(s, where(causal, zero, " + lowest + "))",
           "score = tanh(where(causal, s, " + lowest + "))",
           std::string("score = where(causal, s, -1e9)"),
       })
    EXPECT_EQ(masks_of(attention_with(score)), "") << score;
}

}  // namespace
}  // namespace tenon::test

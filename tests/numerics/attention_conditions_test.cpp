// Conditions on a softmax's weights before the second product, as exporters write them: of a row without keys nothing
// is left, and of a row with a NaN.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>

#include "ir/fusion/plan.h"
#include "ir/text/text.h"
#include "tests/harness/guarded.h"
#include "tests/harness/targets.h"

namespace tenon::test {
namespace {

class AttentionConditions : public OnTarget {};

// One kernel or several, and right at rows without keys and with NaN and inf among the scores.
void check(const std::string& weights, bool one_kernel, const std::string& target) {
  for (const char* dtype : {"f32", "bf16"}) {
    const ir::Graph graph = ir::parse(fmt::format(
        R"(graph conditions(q: {0}[2, 33, 16], k: {0}[2, 40, 16], v: {0}[2, 40, 8], m: f32[33, 40]) {{
          s = add(mul(matmul(q, transpose(k, perm=[0, 2, 1]), dtype=f32), 0.25), m)
          top = max(s, axis=-1, keepdims=true)
          e = exp(sub(s, top))
          l = sum(e, axis=-1, keepdims=true)
          h = div(e, l)
          p = softmax(s, axis=-1)
          w = {1}
          y = matmul(cast(w, dtype={0}), v)
          return y
        }})",
        dtype, weights));
    std::vector<ir::HostArray> inputs = data_for(graph, {});
    constexpr double kInf = std::numeric_limits<double>::infinity();
    for (std::int64_t j = 0; j < 40; ++j) {
      ir::set_real(inputs[3], 3 * 40 + j, -kInf);
      if (j > 5) ir::set_real(inputs[3], 4 * 40 + j, -kInf);
    }
    ir::set_real(inputs[3], 7 * 40 + 2, std::numeric_limits<double>::quiet_NaN());
    ir::set_real(inputs[3], 8 * 40 + 39, kInf);
    if (target != "cuda_on_host") {
      expect_right_on(graph, target, inputs);
    } else if (std::string(dtype) == "bf16") {  // compiles for seconds
      for (const ir::Comparison& output :
           ir::compare_with_interpreter(graph, inputs, GuardedProgram(graph, target, true)(inputs)))
        EXPECT_TRUE(is_right(output)) << weights;
    }
    EXPECT_EQ(ir::make_plan(graph).groups.size() == 1, one_kernel) << weights;
  }
}

TEST_P(AttentionConditions, OfARow) {
  for (const char* weights :
       {"where(isnan(p), 0.0, p)", "where(isnan(h), 0.0, h)", "where(logical_not(isnan(h)), h, 0.0)",
        "where(not_equal(h, h), 0.0, h)", "where(any(not_equal(s, -inf), axis=-1, keepdims=true), h, 0.0)",
        "where(all(equal(s, -inf), axis=-1, keepdims=true), 0.0, h)",
        "where(logical_not(any(logical_not(equal(s, -inf)), axis=-1, keepdims=true)), 0.0, p)",
        "mul(where(isnan(h), 0.0, h), 1.25)", "div(where(equal(l, 0.0), 0.0, e), l)"})
    check(weights, true, GetParam());
}

// Conditions, factors and divisors that tell the scores of a row apart.
TEST_P(AttentionConditions, OfElementsAreKernelsOfTheirOwn) {
  if (GetParam() == "cuda_on_host") return;
  for (const char* weights :
       {"where(greater(s, 0.0), p, 0.0)", "where(isnan(s), 0.0, p)", "where(isnan(e), 0.0, div(e, l))", "mul(p, s)",
        "where(greater(p, 0.01), p, 0.0)", "mul(p, add(l, iota(shape=[40], dtype=f32)))"})
    check(weights, false, GetParam());
}

INSTANTIATE_TEST_SUITE_P(On, AttentionConditions, ::testing::Values("cpu", "cuda", "cuda_on_host"),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace tenon::test

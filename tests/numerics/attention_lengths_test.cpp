// Masks that compare keys with a number of each sequence: lengths, first keys, numbers that no sequence has.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>

#include "ir/text/text.h"
#include "tests/harness/guarded.h"
#include "tests/harness/targets.h"

namespace tenon::test {
namespace {

class AttentionLengths : public OnTarget {};

// On the host a GPU's kernels compile for seconds: fused only.
void expect_right(const ir::Graph& graph, const std::vector<ir::HostArray>& inputs, const std::string& target) {
  if (target != "cuda_on_host") return expect_right_on(graph, target, inputs);
  for (const ir::Comparison& output :
       ir::compare_with_interpreter(graph, inputs, GuardedProgram(graph, target, true)(inputs)))
    EXPECT_TRUE(is_right(output));
}

void check(const std::string& condition, const std::string& scores, const std::string& target) {
  const ir::Graph graph = ir::parse(fmt::format(
      R"(graph lengths(q: bf16[6, 2, 9, 16], k: bf16[6, 2, 70, 16], v: bf16[6, 2, 70, 8], numbers: i64[6]) {{
        i = iota(shape=[9, 1], dtype=i64)
        j = iota(shape=[70], dtype=i64)
        n = reshape(numbers, shape=[6, 1, 1, 1])
        seen = {}
        s = mul(matmul(q, transpose(k, perm=[0, 1, 3, 2]), dtype=f32), 0.25)
        p = softmax({}, axis=-1)
        y = matmul(cast(where(isnan(p), 0.0, p), dtype=bf16), v)
        return y
      }})",
      condition, scores));
  std::vector<ir::HostArray> inputs = data_for(graph, {});
  using Limits = std::numeric_limits<std::int64_t>;
  const std::int64_t numbers[] = {40, 0, 69, -1, Limits::min(), Limits::max()};
  for (std::int64_t b = 0; b < 6; ++b) ir::set_integer(inputs[3], b, numbers[b]);
  SCOPED_TRACE(condition);
  expect_right(graph, inputs, target);
}

TEST_P(AttentionLengths, BoundTheKeys) {
  for (const char* condition :
       {"less(j, n)", "less_equal(j, n)", "greater(j, n)", "logical_not(less_equal(n, j))",
        "less_equal(j, add(i, cast(cast(n, dtype=i32), dtype=i64)))",
        "logical_and(less(j, n), greater_equal(j, sub(cast(cast(n, dtype=i32), dtype=i64), 9)))"})
    check(condition, "where(seen, s, -inf)", GetParam());
}

TEST_P(AttentionLengths, MayBeAdded) {
  check("less(j, n)", "add(s, where(seen, full(shape=[], value=0.0, dtype=f32), -inf))", GetParam());
  check("greater(j, n)", "add(where(seen, full(shape=[], value=-inf, dtype=f32), 0.0), s)", GetParam());
}

TEST_P(AttentionLengths, MayBeAddedToABias) {
  const std::string mask = "where(seen, full(shape=[], value=0.0, dtype=f32), -inf)";
  const std::string bias = "mul(cast(sub(j, i), dtype=f32), 0.1)";
  check("less(j, n)", "add(s, add(" + bias + ", " + mask + "))", GetParam());
  check("greater(j, n)", "add(add(s, " + mask + "), " + bias + ")", GetParam());
}

// A query that sees no key has the mean of all values where a mask is finite.
TEST_P(AttentionLengths, MayBeFinite) {
  check("less(j, n)", "where(seen, s, -10000.0)", GetParam());
  check("less_equal(j, i)", "where(seen, s, -3.4028234663852886e38)", GetParam());
  check("less_equal(j, i)", "add(s, where(seen, full(shape=[], value=0.0, dtype=f32), -3.4028234663852886e38))",
        GetParam());
}

// A score that a mask hides may be infinite, and a bias no number: the mask is a selection, or the sum is NaN.
TEST_P(AttentionLengths, HideScoresThatAreNoNumbers) {
  for (const char* added : {"mask", "add(x4, mask)"}) {
    const ir::Graph graph = ir::parse(fmt::format(
        R"(graph hidden(x0: bf16[10, 4], x1: bf16[4, 27], x2: bool[10, 27], x3: bf16[27], x4: f32[27]) {{
          mask = where(x2, full(shape=[], value=0.0, dtype=f32), -inf)
          s = add(matmul(x0, x1, dtype=f32), {})
          e = exp(sub(s, max(s, axis=-1, keepdims=true)))
          p = div(e, sum(e, axis=-1, keepdims=true))
          y = matmul(cast(p, dtype=bf16), x3)
          return y
        }})",
        added));
    std::vector<ir::HostArray> inputs = data_for(graph, {});
    for (std::int64_t i = 0; i < 10; ++i) ir::set_integer(inputs[2], i * 27 + 5, 0);
    for (std::int64_t d = 0; d < 4; ++d) ir::set_real(inputs[1], d * 27 + 5, std::numeric_limits<double>::infinity());
    ir::set_real(inputs[4], 5, std::numeric_limits<double>::quiet_NaN());
    expect_right(graph, inputs, GetParam());
  }
}

INSTANTIATE_TEST_SUITE_P(On, AttentionLengths, ::testing::Values("cpu", "cuda", "cuda_on_host"),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace tenon::test

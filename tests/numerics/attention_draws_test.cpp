// Attention whose weights, or scores, draw random numbers: the same numbers as everywhere else.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/text/text.h"
#include "tests/harness/guarded.h"
#include "tests/harness/targets.h"

namespace tenon::test {
namespace {

class AttentionDraws : public OnTarget {};

// `weights`: how "p" follows from the scores "s".
ir::Graph graph_of(int heads, int queries, int keys, int depth, const std::string& weights) {
  return ir::parse(fmt::format(
      "graph draws(q: bf16[{0}, {1}, {3}], k: bf16[{0}, {2}, {3}], v: bf16[{0}, {2}, {3}], seed: i64[]) {{\n"
      "  seen = less_equal(iota(shape=[{2}], dtype=i32), add(iota(shape=[{1}, 1], dtype=i32), {4}))\n"
      "  s = mul(matmul(q, transpose(k, perm=[0, 2, 1]), dtype=f32), 0.1)\n"
      "  {5}\n"
      "  return matmul(cast(p, dtype=bf16), v) as y\n}}",
      heads, queries, keys, depth, keys - queries, fmt::format(fmt::runtime(weights), heads, queries, keys)));
}

const char* const kWeights[] = {
    "p = dropout(softmax(s), seed, p=0.1)",
    "p = dropout(softmax(where(seen, s, -inf)), seed, p=0.3, stream=7)",
    "p = dropout(softmax(add(s, random_uniform(seed, shape=[{0}, {1}, {2}], stream=2))), seed, p=0.5)",
    "p = mul(softmax(s), random_uniform(seed, shape=[{0}, {1}, {2}]))",
    "p = where(less(random_normal(seed, shape=[{0}, {1}, {2}]), 0.5), softmax(s), 0.0)",
};

void check(const ir::Graph& graph, const std::string& target) {
  const std::vector<ir::HostArray> inputs = data_for(graph, {});
  if (target != "cuda_on_host") return expect_right_on(graph, target, inputs);
  for (const ir::Comparison& output :
       ir::compare_with_interpreter(graph, inputs, GuardedProgram(graph, target, true)(inputs)))
    EXPECT_TRUE(is_right(output));
}

TEST_P(AttentionDraws, TheSameNumbers) {
  for (const char* weights : kWeights)
    for (const int keys : {72, 70}) {
      SCOPED_TRACE(fmt::format("{} keys, {}", keys, weights));
      check(graph_of(2, 66, keys, 32, weights), GetParam());
    }
}

// Enough for warpgroups.
TEST_P(AttentionDraws, TheSameNumbersInLargeTiles) {
  if (GetParam() != "cuda") GTEST_SKIP() << "has no warpgroups";
  for (const char* weights : {kWeights[0], kWeights[1], kWeights[3]}) {
    SCOPED_TRACE(weights);
    check(graph_of(6, 600, 600, 128, weights), GetParam());
  }
}

INSTANTIATE_TEST_SUITE_P(On, AttentionDraws, ::testing::Values("cpu", "cuda", "cuda_on_host"),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace tenon::test

// A value has one rounding for all its uses: what a maximum was taken of is what it is subtracted from, in one sweep of
// a row or in two, in one kernel or in two, stored or not.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ir/text/text.h"
#include "tests/harness/guarded.h"
#include "tests/harness/targets.h"

namespace tenon::test {
namespace {

class OneRounding : public OnTarget {
 protected:
  // The outputs by number, right and decided everywhere.
  std::vector<ir::HostArray> run(const std::string& text, double scale = 1) {
    const ir::Graph graph = ir::parse(text);
    const std::vector<ir::HostArray> inputs = data_for(graph, {}, 1, scale);
    std::vector<ir::HostArray> outputs = GuardedProgram(graph, GetParam(), true)(inputs);
    for (const ir::Comparison& output : ir::compare_with_interpreter(graph, inputs, outputs)) {
      EXPECT_TRUE(is_right(output)) << text;
      EXPECT_EQ(output.undecided, 0) << text;
    }
    return outputs;
  }

  static void expect_at_most(const ir::HostArray& values, double bound) {
    for (std::int64_t i = 0; i < ir::element_count(values); ++i) ASSERT_LE(ir::get_real(values, i), bound) << i;
  }
};

// Contracted, a product less its rounded self is up to half a unit: 2^26 here, and its exponential infinite.
TEST_P(OneRounding, TheMaximumOfAProduct) {
  run(R"(graph loss(a: f32[16, 300], b: f32[16, 300], t: i64[16]) {
    x = mul(mul(a, 3.5e7), mul(b, 3.5e7))
    y = mean(cross_entropy(x, t))
    p = softmax(x)
    return y, p
  })");
  for (const char* dtype : {"f32", "f64"})
    for (const char* product : {"mul(a, b)", "neg(mul(a, b))", "where(c, mul(a, b), -inf)"}) {
      const auto outputs = run(fmt::format(R"(graph product(a: {0}[16, 300], b: {0}[16, 300], c: bool[300]) {{
        x = {1}
        y = sub(x, max(x, axis=1, keepdims=true))
        z = max(y, axis=1)
        return y, z
      }})",
                                           dtype, product));
      for (const ir::HostArray& output : outputs) expect_at_most(output, 0);
    }
}

// A second kernel computes the product again, or reads it.
TEST_P(OneRounding, AProductOfTwoKernels) {
  const auto outputs = run(R"(graph two(a: f32[64, 512], b: f32[64, 512]) {
    x = mul(a, b)
    y = max(sub(x, max(x, axis=1, keepdims=true)), axis=0)
    z = sum(mul(x, x), axis=1)
    return y, z
  })");
  expect_at_most(outputs[0], 0);
}

TEST_P(OneRounding, AStoredProductAndTheMaximumOfItsLogSoftmax) {
  const auto outputs = run(R"(graph stored(a: bf16[64, 512], b: bf16[64, 512]) {
    x = mul(mul(a, 100.0), mul(b, 100.0))
    m = max(log_softmax(x), axis=0)
    return x, m
  })");
  expect_at_most(outputs[1], 0);
}

// What a stored maximum is, or a stored view, is one of the rounded elements.
TEST_P(OneRounding, StoredSelectionsAndViewsOfAValue) {
  const auto outputs = run(R"(graph stored(a: bf16[64, 512], b: bf16[64, 512]) {
    x = mul(mul(a, 100.0), mul(b, 100.0))
    top = max(x, axis=1, keepdims=true)
    y = sub(cast(x, dtype=f32), cast(top, dtype=f32))
    u = mul(a, b)
    v = transpose(u)
    z = sub(cast(u, dtype=f32), max(cast(u, dtype=f32), axis=1, keepdims=true))
    w = max(z, axis=0)
    return top, y, v, w
  })");
  expect_at_most(outputs[1], 0);
  expect_at_most(outputs[3], 0);
}

// The kernel that stores the view goes on with what it is made of.
TEST_P(OneRounding, AStoredViewOfAProduct) {
  const auto outputs = run(R"(graph viewed(a: f32[64, 16]) {
    x = transpose(mul(mul(a, 1e6), mul(a, 1e6)))
    y = reshape(sub(x, maximum(x, x)), shape=[1024])
    return x, y
  })");
  expect_at_most(outputs[1], 0);
}

TEST_P(OneRounding, ScoresOfAnAttention) {
  for (const char* dtype : {"f32", "bf16"})
    run(fmt::format(R"(graph scores(q: {0}[2, 33, 16], k: {0}[2, 40, 16], v: {0}[2, 40, 8]) {{
      y = attention(mul(q, 1e6), mul(k, 1e6), v, scale=0.37, causal=true)
      return y
    }})",
                    dtype));
}

INSTANTIATE_TEST_SUITE_P(On, OneRounding, ::testing::Values("cpu", "cuda", "cuda_on_host", "cpu_avx2", "cpu_sse"),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace tenon::test

// Sums of many equal terms, which rounding pushes the same way at each addition: naive ones drift off in proportion to
// their length (1e7 times 0.1 by 7e-4), those of blocks do not (docs/numerics.md).
#include <gtest/gtest.h>

#include <cmath>

#include "ir/text/text.h"
#include "tests/harness/guarded.h"
#include "tests/harness/targets.h"

namespace tenon::test {
namespace {

class CpuLongSums : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { require(GetParam()); }
};

constexpr double kTenth = 0.1F;

std::vector<ir::HostArray> all_equal(const ir::Graph& graph, double value, const Bindings& bindings) {
  std::vector<ir::HostArray> inputs = data_for(graph, bindings);
  for (ir::HostArray& input : inputs)
    for (std::int64_t i = 0; i < ir::element_count(input); ++i) ir::set_real(input, i, value);
  return inputs;
}

// The greatest relative error of all elements of all outputs, which should be `expected`.
double worst_error(const char* text, const std::string& target, double expected, const Bindings& bindings = {},
                   double value = kTenth) {
  const ir::Graph graph = ir::parse(text);
  double worst = 0;
  for (const ir::HostArray& output : GuardedProgram(graph, target, true)(all_equal(graph, value, bindings), bindings))
    for (std::int64_t i = 0; i < ir::element_count(output); ++i)
      worst = std::max(worst, std::fabs(ir::get_real(output, i) / expected - 1));
  return worst;
}

TEST_P(CpuLongSums, OfOneLongRow) {
  EXPECT_LT(worst_error("graph g(x: f32[10000000]) { y = sum(x); return y }", GetParam(), 1e7 * kTenth), 1e-6);
}

TEST_P(CpuLongSums, OfRows) {
  EXPECT_LT(
      worst_error("graph g(x: f32[n, 60007]) { y = sum(x, axis=1); return y }", GetParam(), 60007 * kTenth, {{"n", 7}}),
      1e-6);
  EXPECT_LT(
      worst_error("graph g(x: f32[4, n]) { y = sum(x, axis=1); return y }", GetParam(), 50000 * kTenth, {{"n", 50000}}),
      1e-6);
}

TEST_P(CpuLongSums, OfColumns) {
  EXPECT_LT(worst_error("graph g(x: f32[100000, 20]) { y = sum(x, axis=0); return y }", GetParam(), 1e5 * kTenth),
            1e-6);
  EXPECT_LT(worst_error("graph g(x: f32[2, 30000, 33]) { y = sum(x, axis=1); return y }", GetParam(), 30000 * kTenth),
            1e-6);
}

// Where the innermost loop is short, its runs are many.
TEST_P(CpuLongSums, OverAxesOfFewElements) {
  EXPECT_LT(worst_error("graph g(x: f32[30000, 6, 3]) { y = sum(x, axis=[0, 2]); return y }", GetParam(), 9e4 * kTenth),
            1e-6);
  EXPECT_LT(
      worst_error("graph g(x: f32[20000, 10, 5]) { y = sum(x, axis=[0, 1]); return y }", GetParam(), 2e5 * kTenth),
      1e-6);
}

// Mean and variance of what varies by a constant; the results' own elements beside the sum of a row, late or streamed.
TEST_P(CpuLongSums, BesideOtherResults) {
  EXPECT_LT(worst_error("graph g(x: f32[3, 300000]) { y = mean(x, axis=1); z = mul(x, 1.0); return y, z }", GetParam(),
                        kTenth),
            1e-6);
  EXPECT_LT(
      worst_error("graph g(x: f32[3, 400000]) { y = mul(softmax(x, axis=1), 40000.0); return y }", GetParam(), 0.1),
      1e-6);
}

// The sum so far and its blocks are rescaled when the maximum grows: by half at every 5000th element.
TEST_P(CpuLongSums, WhoseMaximumGrows) {
  const ir::Graph graph = ir::parse("graph g(x: f32[2, 200000]) { y = logsumexp(x, axis=1); return y }");
  std::vector<ir::HostArray> inputs = data_for(graph, {});
  double sum = 0;
  for (std::int64_t i = 0; i < ir::element_count(inputs[0]); ++i) {
    const double value = static_cast<float>(0.5 * static_cast<double>(i % 200000 / 5000));
    ir::set_real(inputs[0], i, value);
    if (i < 200000) sum += std::exp(value - 20);
  }
  for (const double y : {0, 1})
    EXPECT_NEAR(ir::get_real(GuardedProgram(graph, GetParam(), true)(inputs)[0], static_cast<std::int64_t>(y)),
                20 + std::log(sum), 4e-6);
}

// The last element is ten times as much as the others in the sum, which are rescaled when it comes.
TEST_P(CpuLongSums, OfExponentialsInTheSweepOfTheirMaximum) {
  EXPECT_LT(worst_error(R"(graph g(x: f32[3, 400000]) {
    c = where(equal(iota(shape=[400000]), 399999), add(x, 2.302585092994046), x)
    y = exp(sub(logsumexp(c, axis=1, keepdims=true), x))
    return y
  })",
                        GetParam(), 400009),
            3e-6);
}

TEST_P(CpuLongSums, OfInfinities) {
  const ir::Graph graph = ir::parse("graph g(x: f32[200000]) { y = sum(x); z = sum(neg(x)); return y, z }");
  std::vector<ir::HostArray> inputs = all_equal(graph, 1, {});
  ir::set_real(inputs[0], 77777, std::numeric_limits<double>::infinity());
  const std::vector<ir::HostArray> outputs = GuardedProgram(graph, GetParam(), true)(inputs);
  EXPECT_EQ(ir::get_real(outputs[0], 0), std::numeric_limits<double>::infinity());
  EXPECT_EQ(ir::get_real(outputs[1], 0), -std::numeric_limits<double>::infinity());
}

// Blocks of the depth have 256 terms.
TEST_P(CpuLongSums, OfProducts) {
  EXPECT_LT(worst_error("graph g(a: f32[3, 131072], b: f32[131072, 20]) { y = matmul(a, b); return y }", GetParam(),
                        131072 * kTenth * kTenth),
            4e-6);
  EXPECT_LT(worst_error("graph g(a: f32[9, n], b: f32[n, 50]) { y = matmul(a, b); return y }", GetParam(),
                        30001 * kTenth * kTenth, {{"n", 30001}}),
            4e-6);
}

TEST_P(CpuLongSums, OfAttention) {
  EXPECT_LT(
      worst_error("graph g(q: f32[1, 2, 5, 8], k: f32[1, 2, n, 8], v: f32[1, 2, n, 24]) { y = attention(q, k, v); "
                  "return y }",
                  GetParam(), kTenth, {{"n", 100000}}),
      2e-6);
}

INSTANTIATE_TEST_SUITE_P(On, CpuLongSums, ::testing::Values("cpu", "cpu_streaming", "cpu_avx2", "cpu_sse"),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace tenon::test

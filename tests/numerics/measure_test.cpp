// What a program can measure: whole runs, kernels, and what values are like.
#include "tenon/measure.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tenon/tenon.h"
#include "tests/harness/targets.h"

namespace tenon::test {
namespace {

class Measure : public OnTarget {
 protected:
  Measure() {
    options_.cache = false;
    quick_.seconds = 0.01;
  }
  Device device() const { return Device(GetParam(), options_); }

  Options options_ = default_options();
  MeasureOptions quick_;
};

TEST_P(Measure, RunsBesideACopyOfTheirBytes) {
  const Executable run = compile(Graph::parse("graph g(x: f32[n, 64], w: f32[64, 64]) {\n  y = relu(matmul(x, w))\n"
                                              "  return y\n}\n"),
                                 device());
  const DeviceArray x = device().zeros({1000, 64}), w = device().zeros({64, 64});
  const Benchmark result = benchmark(run, {x, w}, quick_);
  EXPECT_EQ(result.bytes, 4 * (2 * 1000 * 64 + 64 * 64));
  EXPECT_EQ(result.flops, 2.0 * 1000 * 64 * 64);
  EXPECT_EQ(result.kernels, 1);
  EXPECT_GT(result.run.min, 0);
  EXPECT_LE(result.run.min, result.run.median);
  EXPECT_LE(result.run.median, result.run.max);
  EXPECT_GE(result.run.samples, 5);
  EXPECT_GT(result.copy.median, 0);
  EXPECT_DOUBLE_EQ(result.copy_share(), result.copy.median / result.run.median);
}

TEST_P(Measure, LeavesStateAsItIs) {
  Graph g("count");
  const Tensor x = g.input("x", DType::i64, {});
  g.update(x, x + 1);
  const Executable run = compile(g, device());
  const DeviceArray state = device().zeros({}, DType::i64);
  benchmark(run, {state}, quick_);
  profile(run, {state}, quick_);
  EXPECT_EQ(state.to_host().item<std::int64_t>(), 0);
}

TEST_P(Measure, KernelsBesideTheRoof) {
  const Executable run = compile(Graph::parse("graph g(x: f32[512, 256]) {\n  h = softmax(x)\n"
                                              "  y = sum(h, axis=0)\n  return y\n}\n"),
                                 device());
  const Profile result = profile(run, {device().zeros({512, 256})}, quick_);
  ASSERT_EQ(result.kernels.size(), static_cast<std::size_t>(run.stats().kernels));
  const KernelProfile& first = result.kernels[0];
  EXPECT_EQ(first.kernel_class, "reduce");
  EXPECT_EQ(first.reads, (std::vector<std::string>{"x"}));
  EXPECT_GE(first.bytes, 4 * 512 * 256);
  EXPECT_GT(first.roof_ms, 0);
  EXPECT_GT(first.gb_s(), 0);
  EXPECT_TRUE(first.bound == "memory" || first.bound == "arithmetic");
  EXPECT_GT(result.copy_gb_s, 0);
  EXPECT_GT(result.run_ms, 0);
  EXPECT_NE(result.table.find(first.name), std::string::npos);
  EXPECT_TRUE(nlohmann::json::parse(result.trace).contains("traceEvents"));
}

TEST_P(Measure, ValuesOnTheWay) {
  const Graph g = Graph::parse("graph g(x: f32[4]) {\n  h = reciprocal(x)\n  y = sqrt(h)\n  return y\n}\n");
  const Array x = Array::from({0, 1, -4, 16}, {4});
  const std::vector<ValueSummary> all = summarize_values(g, {x}, {}, GetParam(), options_);
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].name, "x");
  EXPECT_EQ(all[0].summary.zeros, 1);
  EXPECT_EQ(all[1].name, "h");
  EXPECT_EQ(all[1].summary.infinities, 1);
  EXPECT_EQ(all[2].summary.nans, 1);
  EXPECT_EQ(summarize_values(g, {x}, {"y"}, GetParam(), options_)[0].summary.max, 1);
  EXPECT_NE(str(all).find("f32[4]"), std::string::npos);
  EXPECT_THROW(summarize_values(g, {x}, {"z"}, GetParam(), options_), Error);
}

TENON_ON_EACH_TARGET(Measure);

}  // namespace
}  // namespace tenon::test

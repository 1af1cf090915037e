// What an executable holds between runs: bounded, and freed on demand.
#ifdef TENON_WITH_CPU
#include <gtest/gtest.h>

#include <algorithm>

#include "tenon/tenon.h"

namespace tenon {
namespace {

Array counting(std::vector<std::int64_t> shape) {
  Array array = Array::zeros(std::move(shape));
  std::vector<float> values;
  for (std::int64_t i = 0; i < array.size(); ++i) values.push_back(static_cast<float>(i % 97) - 40);
  return Array::from(values, array.shape);
}

Graph two_kernels() {
  return Graph::parse(R"(graph g(x: f32[n, 64]) {
    h = softmax(x)
    y = matmul(h, transpose(h))
    return y
  })");
}

TEST(HeldMemory, IsThatOfTheLargestRun) {
  const Executable run = compile(two_kernels(), "cpu");
  std::int64_t largest = 0;
  for (const std::int64_t n : {8, 16, 32, 64, 48}) {
    run({counting({n, 64})});
    largest = std::max(largest, run.stats().arena_bytes);
  }
  EXPECT_GE(largest, 64 * 64 * 4);
  EXPECT_EQ(run.stats().held_bytes, largest);
}

TEST(HeldMemory, IsFreedByTrimAndTakenAgain) {
  const Executable run = compile(two_kernels(), "cpu");
  const std::vector<Array> x{counting({16, 64})};
  const std::vector<Array> before = run(x);
  EXPECT_GT(run.stats().held_bytes, 0);
  EXPECT_EQ(run.stats().specializations, 1);
  const int compiles = run.stats().compiles;
  run.trim();
  EXPECT_EQ(run.stats().held_bytes, 0);
  EXPECT_EQ(run.stats().specializations, 0);
  EXPECT_EQ(run(x)[0].bytes, before[0].bytes);
  EXPECT_EQ(run.stats().specializations, 1);
  EXPECT_EQ(run.stats().compiles, compiles) << "the kernel cache has them";
}

// Four symbols have 6^4 classes.
TEST(HeldMemory, IsThatOfAFewDimensionClasses) {
  const Graph g = Graph::parse("graph g(x: f32[a, b, c]) {\n  y = neg(x)\n  return y\n}\n");
  const Executable run = compile(g, "cpu");
  for (const std::int64_t a : {1, 2, 3, 4, 8})
    for (const std::int64_t b : {1, 2, 3, 4, 8})
      for (const std::int64_t c : {1, 2, 3, 4}) run.prepare({{"a", a}, {"b", b}, {"c", c}});
  EXPECT_EQ(run.stats().specializations, 64);
  const std::vector<Array> x{counting({1, 1, 1})};
  EXPECT_EQ(run(x)[0].to<float>()[0], 40);  // of a class that has been dropped
}

}  // namespace
}  // namespace tenon
#endif  // TENON_WITH_CPU

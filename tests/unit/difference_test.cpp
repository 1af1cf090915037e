// Arrays compared on the target: what counts as different.
#include "src/driver/difference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "runtime/memory.h"
#include "src/driver/pipeline.h"

#ifdef TENON_WITH_CPU
namespace tenon::test {
namespace {

template <typename T>
std::int64_t different(DType dtype, const std::vector<T>& actual, const std::vector<T>& expected) {
  const auto backend = src::open_backend("cpu", default_options());
  const auto placed = [&](const std::vector<T>& values) {
    const auto memory = runtime::allocate(*backend, static_cast<std::int64_t>(values.size() * sizeof(T)));
    if (!values.empty()) std::memcpy(memory.get(), values.data(), values.size() * sizeof(T));
    return memory;
  };
  const auto a = placed(actual), b = placed(expected);
  const std::vector<std::int64_t> shape = {static_cast<std::int64_t>(actual.size())};
  return src::count_different({a.get(), dtype, shape}, {b.get(), dtype, shape}, backend, default_options());
}

TEST(Difference, LeavesRoomForSumsInAnotherOrder) {
  EXPECT_EQ(different<float>(DType::f32, {1, 100, 0.001f}, {1, 100, 0.001f}), 0);
  EXPECT_EQ(different<float>(DType::f32, {1, 100.0001f, 0.00101f}, {1, 100, 0.001f}), 0) << "a little of the largest";
  EXPECT_EQ(different<float>(DType::f32, {1.001f, 100.1f, 0.01f}, {1, 100, 0.001f}), 3);
  EXPECT_EQ(different<double>(DType::f64, {1 + 1e-12, 2}, {1, 2}), 1);
}

// Of 1024 sums of a million f32 around 577, added by 256 threads and by 512, some lie 1e-3 apart.
TEST(Difference, LeavesRoomForLongSums) {
  EXPECT_EQ(different<float>(DType::f32, {1900, 0.002f}, {1900, 0.0f}), 0);
  EXPECT_EQ(different<float>(DType::f32, {1900, 0.02f}, {1900, 0.0f}), 1);
}

TEST(Difference, TakesNanAsNanAndInfinityAsItself) {
  const float nan = std::nanf(""), inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(different<float>(DType::f32, {nan, inf, -inf}, {nan, inf, -inf}), 0);
  EXPECT_EQ(different<float>(DType::f32, {1, inf, nan, 3, inf}, {nan, -inf, 1, inf, 3}), 5);
}

TEST(Difference, IsExactForIntegers) {
  EXPECT_EQ(different<std::int32_t>(DType::i32, {1, 2, 3}, {1, 2, 3}), 0);
  EXPECT_EQ(different<std::int32_t>(DType::i32, {1000000, 2, 4}, {1000001, 2, 3}), 2);
}

TEST(Difference, OfNothingIsNothing) { EXPECT_EQ(different<float>(DType::f32, {}, {}), 0); }

}  // namespace
}  // namespace tenon::test
#endif

// C++'s operators on tensors, and which calls with numbers compile to what.
#include <gtest/gtest.h>

#include "tests/unit/api_values.h"

namespace tenon {
namespace {

struct ApiOperatorValues : testing::Test {
  Graph g;
  Tensor x = g.input("x", DType::f32, {3});
  Tensor i = g.input("i", DType::i32, {3});
  Tensor m = g.input("m", DType::bool_, {3});
  Numbers of(const Tensor& y) { return value_of(g, y, {{1, -2, 4}, {5, 6, -7}, {1, 0, 1}}); }
};

TEST_F(ApiOperatorValues, CompoundAssignmentStandsForTheNewValue) {
  Tensor y = x;
  y += 1;
  y *= x;
  EXPECT_EQ(of(y), (Numbers{2, 2, 20}));
  y -= 2;
  y /= 4;
  EXPECT_EQ(of(y), (Numbers{0, 0, 4.5}));
  y %= 2;
  EXPECT_EQ(of(y), (Numbers{0, 0, 0.5}));
  EXPECT_EQ(of(x), (Numbers{1, -2, 4}));
}

TEST_F(ApiOperatorValues, CompoundAssignmentOfBits) {
  Tensor y = i;
  y &= 6;
  EXPECT_EQ(of(y), (Numbers{4, 6, 0}));
  y |= 1;
  y ^= 3;
  EXPECT_EQ(of(y), (Numbers{6, 4, 2}));
  y <<= 2;
  y >>= 1;
  EXPECT_EQ(of(y), (Numbers{12, 8, 4}));
  Tensor both = m;
  both &= x > 0;
  EXPECT_EQ(of(both), (Numbers{1, 0, 1}));
}

TEST_F(ApiOperatorValues, CompoundAssignmentWithItselfOrALargerShape) {
  Tensor y = x, column = g.input("c", DType::f32, {2, 1});
  y += y;
  column *= y;
  EXPECT_EQ(str(column.shape()), "[2, 3]");
  EXPECT_EQ(value_of(g, column, {{1, -2, 4}, {5, 6, -7}, {1, 0, 1}, {1, 10}}), (Numbers{2, -4, 8, 20, -40, 80}));
}

TEST_F(ApiOperatorValues, OtherHandlesKeepTheirValue) {
  Tensor y = x;
  const Tensor before = y;
  y += 1;
  EXPECT_EQ(of(before), (Numbers{1, -2, 4}));
}

TEST_F(ApiOperatorValues, ShiftsAreOfIntegers) {
  EXPECT_EQ(of(i << 1), (Numbers{10, 12, -14}));
  EXPECT_EQ(of(i >> 1), (Numbers{2, 3, -4}));
  EXPECT_EQ(of(1 << (i & 1)), (Numbers{2, 1, 2}));
}

TEST_F(ApiOperatorValues, LogicalOnesAreOfBools) {
  EXPECT_EQ(of(!m), (Numbers{0, 1, 0}));
  EXPECT_EQ(of(m && x > 2), (Numbers{0, 0, 1}));
  EXPECT_EQ(of(!m || x > 2), (Numbers{0, 1, 1}));
  EXPECT_EQ(of(m && true), (Numbers{1, 0, 1}));
}

TEST_F(ApiOperatorValues, EqualityIsElementwise) {
  EXPECT_EQ(of(x == 4), (Numbers{0, 0, 1}));
  EXPECT_EQ(of(-2 != x), (Numbers{1, 0, 1}));
  EXPECT_EQ((x == x).dtype(), DType::bool_);
}

TEST_F(ApiOperatorValues, WhereOfTwoNumbers) {
  EXPECT_EQ(of(where(m, 1.5, 0)), (Numbers{1.5, 0, 1.5}));
  EXPECT_EQ(where(m, 1.0, 0.0).dtype(), DType::f32);
  EXPECT_EQ(where(m, 1, 0.5).dtype(), DType::f32);
  EXPECT_EQ(where(m, 1, 0).dtype(), DType::i64);
  EXPECT_EQ(where(m, false, true).dtype(), DType::bool_);
  EXPECT_EQ(where(m, 1.0, 0.0, DType::bf16).dtype(), DType::bf16);
  EXPECT_EQ(of(where(m, 7, -7, DType::i8)), (Numbers{7, -7, 7}));
}

TEST_F(ApiOperatorValues, AnAxisIsAnyInteger) {
  const Tensor y = g.input("y", DType::f32, {3, 4, 5});
  const std::size_t first = 0, last = 2;
  EXPECT_EQ(str(sum(y, 0U).shape()), "[4, 5]");
  EXPECT_EQ(str(max(y, last).shape()), "[3, 4]");
  EXPECT_EQ(str(min(y, std::int8_t{-1}).shape()), "[3, 4]");
  EXPECT_EQ(str(mean(y, {first, last}).shape()), "[4]");
  EXPECT_EQ(str(mean(y, {first, -2}, true).shape()), "[1, 1, 5]");
  EXPECT_EQ(str(max(y, 0).shape()), "[4, 5]");  // NumPy's max: over axis 0
}

// What people write for maximum and minimum does not compile; nor does keepdims where the axis belongs.
template <typename T>
constexpr bool kReducesOver = requires(Tensor x, T axis) {
  max(x, axis);
  min(x, axis);
};
template <typename T>
constexpr bool kIsAxis = requires(Tensor x, T axis) { sum(x, axis); };

static_assert(kReducesOver<int> && kReducesOver<unsigned> && kReducesOver<std::size_t> && kReducesOver<Axes>);
static_assert(!kReducesOver<double> && !kReducesOver<float> && !kReducesOver<Tensor> && !kReducesOver<Operand>);
static_assert(kIsAxis<short> && kIsAxis<std::vector<std::int64_t>>);
static_assert(!kIsAxis<bool> && !kIsAxis<double> && !kIsAxis<char> && !kIsAxis<Tensor>);

}  // namespace
}  // namespace tenon

// Dimension arithmetic at the ends of the 64-bit range: the bounds stay true and nothing traps.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "tenon/error.h"
#include "tenon/shape.h"

namespace tenon {
namespace {

constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

TEST(DimTest, AnyIntegerIsADimension) {
  const std::vector<float> values(12);
  EXPECT_EQ(Dim(values.size()), Dim(12));
  EXPECT_EQ(Dim(3u) + Dim(4LL) + Dim(short{5}), Dim(12));
  EXPECT_EQ(Shape({values.size(), 3}), Shape({12, 3u}));
  EXPECT_EQ(Dim(), Dim(0));
  static_assert(!std::is_constructible_v<Dim, double> && !std::is_constructible_v<Dim, bool>);
  EXPECT_THROW(Dim(std::numeric_limits<std::uint64_t>::max()), Error);
}

TEST(DimTest, DivisionIsExact) {
  const Dim n = Dim::symbol("n"), m = Dim::symbol("m");
  EXPECT_EQ((6 * n + 4) / 2, 3 * n + 2);
  EXPECT_EQ(Dim(12) / 4U, Dim(3));
  EXPECT_EQ((8 * n * m - 4 * m) / 4, 2 * n * m - m);
  EXPECT_EQ((4 * n.floor_div(3)) / 4, n.floor_div(3));
  EXPECT_EQ(Dim(-6) / 3, Dim(-2));
  EXPECT_EQ(n / 1, n);
}

TEST(DimTest, BoundsOfTheLowestFactorHaveAnIntegerDivisor) {
  const Dim n = Dim::symbol("n");
  EXPECT_EQ((n * Dim(kMin)).bounds({}).divisor, std::int64_t{1} << 62);
  EXPECT_EQ((n * Dim(kMin) + Dim::symbol("m") * Dim(-12)).bounds({}).divisor, 4);
  EXPECT_EQ((Dim(kMin) - n).bounds({}).divisor, 1);  // trapped: kMin % -1
}

TEST(DimTest, ADivisorThatLeaves64BitsKeepsTheFactorsThatFit) {
  const Symbols symbols{{"n", {0, kMax, 3}}, {"m", {0, kMax, std::int64_t{1} << 40}}};
  const Dim product = Dim::symbol("n") * Dim::symbol("m") * Dim(std::int64_t{1} << 40);
  EXPECT_EQ(product.bounds(symbols).divisor, std::int64_t{3} << 40);
}

TEST(DimTest, ExactDivisionByMinusOneOfTheLowestIntegerIsNone) {
  EXPECT_EQ(Dim(kMin).exact_div(Dim(-1)), std::nullopt);
  EXPECT_EQ((Dim::symbol("n") * Dim(kMin)).exact_div(Dim(-1)), std::nullopt);
  EXPECT_EQ((Dim::symbol("n") * Dim(6)).exact_div(Dim(-1)), Dim::symbol("n") * Dim(-6));
}

TEST(DimTest, ExactDivisionFindsTheQuotientInAnyOrderOfTerms) {
  const Dim n = Dim::symbol("n"), r = Dim::symbol("r");
  EXPECT_EQ((r * n * (n + 1)).exact_div(n * r + r), n);  // the term that comes last in the text leads nothing
  EXPECT_EQ((n * r + r).exact_div(n + 1), r);
  EXPECT_EQ((n * n - 1).exact_div(n - 1), n + 1);
  EXPECT_EQ(((n + r) * (n - r) * (2 * n + 3)).exact_div(r - n), Dim(0) - (n + r) * (2 * n + 3));
  EXPECT_EQ((n * n).exact_div(n + 1), std::nullopt);
  EXPECT_EQ((n + r).exact_div(n * r), std::nullopt);
  EXPECT_EQ(Dim(6).exact_div(n), std::nullopt);
}

TEST(DimTest, ExactDivisionSaysNothingRatherThanLeaveTheLimits) {
  const Dim n = Dim::symbol("n"), r = Dim::symbol("r");
  Dim power(1);
  for (int i = 0; i < 32; ++i) power = power * n;
  EXPECT_EQ((power + r).exact_div(n - r), std::nullopt);
  EXPECT_EQ((n * n * Dim(kMax)).exact_div(n + kMax), std::nullopt);
}

// The quotient times the divisor leaves 64 bits here; what is left over does not.
TEST(DimTest, FloorDivisionNearTheLowestNumber) {
  const std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
  const Dim n = Dim::symbol("n");
  for (const std::int64_t divisor :
       {std::int64_t{3}, std::int64_t{1000}, std::int64_t{1} << 40, (std::int64_t{1} << 62) + 1}) {
    const Dim quotient = (n + Dim(lowest)).floor_div(divisor);
    for (const std::int64_t value : {0, 1, 7, 100000}) {
      const std::int64_t sum = lowest + value;
      const std::int64_t expected = sum / divisor - (sum % divisor != 0);
      EXPECT_EQ(quotient.evaluate({{"n", value}}), expected) << divisor << ", n = " << value;
    }
  }
}

}  // namespace
}  // namespace tenon

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

}  // namespace
}  // namespace tenon

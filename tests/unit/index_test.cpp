// Index arithmetic: what views turn into when loops run over the right axes.
#include "codegen/kernel/index.h"

#include <gtest/gtest.h>

namespace tenon::codegen {
namespace {

class IndexTest : public ::testing::Test {
 protected:
  Dim rows = Dim::symbol("rows"), cols = Dim::symbol("cols");
  std::vector<Axis> axes{{"i0", 8}, {"i1", 768}, {"i2", rows}, {"i3", cols}};
  Symbols symbols{{"rows", {}}, {"cols", {1, 4096, 8}}};
  IndexContext context{&axes, &symbols};
  Index i0 = Index::axis(0), i1 = Index::axis(1), i2 = Index::axis(2), i3 = Index::axis(3);
};

TEST_F(IndexTest, SumsAreCanonical) {
  EXPECT_EQ((i1 + i0 * 4 + i1).str(), "4*i0 + 2*i1");
  EXPECT_EQ(i0 + i1, i1 + i0);
  EXPECT_TRUE((i0 - i0).is_constant());
}

TEST_F(IndexTest, DivisionWithinRangeVanishes) {
  EXPECT_EQ(floor_div(i1, 768, context), Index(0));
  EXPECT_EQ(mod(i1, 768, context), i1);
  EXPECT_EQ(floor_div(i0 * 768 + i1, 768, context), i0);
  EXPECT_EQ(mod(i0 * 768 + i1, 768, context), i1);
}

TEST_F(IndexTest, SymbolicExtentsCancelToo) {
  const Index linear = i2 * cols + i3;
  EXPECT_EQ(floor_div(linear, cols, context), i2);
  EXPECT_EQ(mod(linear, cols, context), i3);
}

TEST_F(IndexTest, UnevenDivisionStays) {
  EXPECT_EQ(floor_div(i1, 100, context).str(), "((i1) / (100))");
  EXPECT_EQ(mod(i1, 100, context).str(), "((i1) % (100))");
}

TEST_F(IndexTest, NestedDivisionsMultiply) {
  EXPECT_EQ(floor_div(floor_div(i1, 10, context), 7, context), floor_div(i1, 70, context));
  EXPECT_EQ(mod(mod(i1, 70, context), 7, context), mod(i1, 7, context));
  EXPECT_EQ(floor_div(mod(i1, 70, context), 7, context), mod(floor_div(i1, 7, context), 10, context));
}

TEST_F(IndexTest, CommonFactorsCancel) {
  EXPECT_EQ(floor_div(i1 * 6, 4, context), floor_div(i1 * 3, 2, context));
  EXPECT_EQ(mod(i1 * 6 + Index(1), 4, context), mod(i1 * 3, 2, context) * 2 + Index(1));
}

// Digits below the divisor's scale never carry, wherever they come from: a window of an image, cut again.
TEST_F(IndexTest, WhatNeverCarriesLeavesADivision) {
  const std::vector<Axis> windows{{"b", 2}, {"m", 4}, {"n", 4}, {"s", cols}};
  const IndexContext in{&windows, &symbols};
  const Index b = Index::axis(0), m = Index::axis(1), n = Index::axis(2), s = Index::axis(3);
  EXPECT_EQ(floor_div(b * 4 + m * 8 + n, 16, in), floor_div(m, 2, in));
  EXPECT_EQ(mod(b * 4 + m * 8 + n, 16, in), mod(m, 2, in) * 8 + b * 4 + n);
  EXPECT_EQ(floor_div(b * 4 + m * 12 + n, 24, in).str(), "((i1) / (2))");
  EXPECT_EQ(floor_div(m * cols * 2 + b * cols + s, cols * 4, in), floor_div(m, 2, in));
  EXPECT_EQ(mod(m * cols * 2 + b * cols + s, cols * 4, in), mod(m, 2, in) * (cols * 2) + b * cols + s);
  EXPECT_EQ(floor_div(b * 8 + m * 8 + n, 16, in).str(), "((i0 + i1) / (2))");
  EXPECT_EQ(floor_div(m * 3 + n, 6, in).str(), "((3*i1 + i2) / (6))");  // n carries
}

TEST_F(IndexTest, DelinearizeThenLinearizeIsTheIdentity) {
  const std::vector<Index> parts = delinearize(i1, {3, 16, 16}, context);
  EXPECT_EQ(linearize(parts, {3, 16, 16}), i1);
  const std::vector<Index> uneven = delinearize(i1, {2, 24, 16}, context);
  EXPECT_EQ(linearize(uneven, {2, 24, 16}), i1);
}

TEST_F(IndexTest, BoundsUseTheSymbolsBounds) {
  EXPECT_EQ(bounds(i0 * 2 + Index(3), context).min, 3);
  EXPECT_EQ(bounds(i0 * 2 + Index(3), context).max, 17);
  EXPECT_EQ(bounds(i3, context).max, 4095);
  EXPECT_FALSE(proven_inside(i0 - Index(1), 8, context));
  EXPECT_TRUE(proven_inside(Index(7) - i0, 8, context));
  EXPECT_TRUE(proven_inside(i3, cols, context));
  EXPECT_FALSE(proven_inside(i3, rows, context));
}

TEST_F(IndexTest, CoefficientsOfPlainTermsOnly) {
  EXPECT_EQ(*(i0 * 4 + i1).coefficient(0), Dim(4));
  EXPECT_EQ(*(i0 * 4 + i1).coefficient(2), Dim(0));
  EXPECT_FALSE(mod(i1, 100, context).coefficient(1).has_value());
}

}  // namespace
}  // namespace tenon::codegen

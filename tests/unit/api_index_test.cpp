// x[...]: NumPy's basic indexing.
#include <gtest/gtest.h>

#include "tests/unit/api_values.h"

namespace tenon {
namespace {

struct ApiIndex : testing::Test {
  Graph g;
  Tensor x = g.input("x", DType::f32, {2, 3, 4});
  Numbers of(const Tensor& y) { return value_of(g, y, {counting(24)}); }
};

TEST_F(ApiIndex, AnIntegerPicksAnElementAndDropsTheAxis) {
  EXPECT_EQ(str(x[1].shape()), "[3, 4]");
  EXPECT_EQ(of(x[1][0]), (Numbers{12, 13, 14, 15}));
  EXPECT_EQ(of(x[-1][-2]), (Numbers{16, 17, 18, 19}));
  EXPECT_EQ(of(x[{1, -1, 2U}]), (Numbers{22}));
  EXPECT_EQ(str(x[{0, 0, 0}].shape()), "[]");
}

TEST_F(ApiIndex, ARangeKeepsTheAxis) {
  EXPECT_EQ(str(x[Range{1}].shape()), "[1, 3, 4]");
  EXPECT_EQ(of(x[{0, Range{1, 3}, Range{.step = -2}}]), (Numbers{7, 5, 11, 9}));
  EXPECT_EQ(of(x[{0, Range{-2}, 0}]), (Numbers{4, 8}));
  EXPECT_EQ(of(x[{Range{}, Range{.stop = -2}, 3}]), (Numbers{3, 15}));
  EXPECT_EQ(str(x[Range{5, 9}].shape()), "[0, 3, 4]");  // ranges are clipped
}

TEST_F(ApiIndex, AnEllipsisStandsForTheRest) {
  EXPECT_EQ(of(x[{ellipsis, 0}]), (Numbers{0, 4, 8, 12, 16, 20}));
  EXPECT_EQ(of(x[{1, ellipsis, -1}]), (Numbers{15, 19, 23}));
  EXPECT_EQ(str(x[{0, 0, ellipsis, 0}].shape()), "[]");
  EXPECT_EQ(str(x[ellipsis].shape()), "[2, 3, 4]");
}

TEST_F(ApiIndex, ANewAxisHasExtentOne) {
  EXPECT_EQ(str(x[newaxis].shape()), "[1, 2, 3, 4]");
  EXPECT_EQ(str(x[{ellipsis, newaxis}].shape()), "[2, 3, 4, 1]");
  EXPECT_EQ(str(x[{newaxis, 0, newaxis, Range{0, 2}}].shape()), "[1, 1, 2, 4]");
  EXPECT_EQ(of(x[{0, 0}][{newaxis}] + x[{0, 0}][{ellipsis, newaxis}]),
            (Numbers{0, 1, 2, 3, 1, 2, 3, 4, 2, 3, 4, 5, 3, 4, 5, 6}));
}

TEST_F(ApiIndex, WhatIsWholeRecordsNothing) {
  const std::string before = g.str();
  (void)x[{}];
  (void)x[{Range{}, ellipsis}];
  EXPECT_EQ(g.str(), before);
}

TEST_F(ApiIndex, AListMadeWhileTheProgramRuns) {
  std::vector<Index> indices(2, Index(Range{}));
  indices.emplace_back(1);
  EXPECT_EQ(of(x[indices]), (Numbers{1, 5, 9, 13, 17, 21}));
}

TEST(ApiIndexSymbolic, ElementsAndRangesOfSymbolicAxes) {
  Graph g;
  const Dim n = g.dim("n", {.min = 2, .max = 100});
  const Tensor x = g.input("x", DType::f32, {n, 2});
  const auto of = [&](const Tensor& y) { return value_of(g, y, {counting(10)}, {{"n", 5}}); };
  EXPECT_EQ(of(x[-1]), (Numbers{8, 9}));
  EXPECT_EQ(of(x[1]), (Numbers{2, 3}));
  EXPECT_EQ(of(x[{n - 2, 1}]), (Numbers{7}));
  EXPECT_EQ(str(x[Range{1}].shape()), "[n + -1, 2]");
}

TEST_F(ApiIndex, APartIsNoPlaceToAssignTo) {
  static_assert(!std::is_assignable_v<decltype(x[0]), Tensor>);
  static_assert(std::is_assignable_v<Tensor&, Tensor>);
}

}  // namespace
}  // namespace tenon

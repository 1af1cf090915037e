// tril, triu, one_hot and outer: what they compute.
#include <gtest/gtest.h>

#include "tests/unit/api_values.h"

namespace tenon {
namespace {

const Dim kN = Dim::symbol("n");

TEST(ApiMasks, TrianglesOfTheLastTwoAxes) {
  Graph g;
  const Tensor x = g.input("x", DType::f32, {2, 3}), m = g.input("m", DType::bool_, {2, 2, 2});
  const auto of = [&](const Tensor& y) { return value_of(g, y, {{1, 2, 3, 4, 5, 6}, {1, 1, 1, 1, 1, 1, 1, 1}}); };
  EXPECT_EQ(of(tril(x)), (Numbers{1, 0, 0, 4, 5, 0}));
  EXPECT_EQ(of(triu(x)), (Numbers{1, 2, 3, 0, 5, 6}));
  EXPECT_EQ(of(tril(x, 1)), (Numbers{1, 2, 0, 4, 5, 6}));
  EXPECT_EQ(of(tril(x, -1)), (Numbers{0, 0, 0, 4, 0, 0}));
  EXPECT_EQ(of(triu(x, 2)), (Numbers{0, 0, 3, 0, 0, 0}));
  EXPECT_EQ(of(triu(x, -1)), (Numbers{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(of(tril(x, std::numeric_limits<std::int64_t>::max())), (Numbers{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(of(tril(x, std::numeric_limits<std::int64_t>::min())), (Numbers{0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(of(triu(m)), (Numbers{1, 1, 0, 1, 1, 1, 0, 1}));
}

TEST(ApiMasks, TrianglesOfSymbolicExtents) {
  Graph g;
  const Tensor x = g.input("x", DType::i32, {kN, kN});
  EXPECT_EQ(value_of(g, tril(x), {{1, 2, 3, 4}}, {{"n", 2}}), (Numbers{1, 0, 3, 4}));
}

TEST(ApiMasks, OneHot) {
  Graph g;
  const Tensor i = g.input("i", DType::i32, {2, 2}), u = g.input("u", DType::u8, {1});
  const auto of = [&](const Tensor& y) { return value_of(g, y, {{0, 2, -1, 3}, {4}}); };
  EXPECT_EQ(of(one_hot(i, 3)), (Numbers{1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(str(one_hot(i, 3).shape()), "[2, 2, 3]");
  EXPECT_EQ(one_hot(i, 3, DType::bf16).dtype(), DType::bf16);
  EXPECT_EQ(of(one_hot(i[{0, 0}], 2, DType::bool_)), (Numbers{1, 0}));
  EXPECT_EQ(of(sum(one_hot(u, 600, DType::i64))), (Numbers{1}));  // 260 and 516 are other classes
  EXPECT_EQ(str(one_hot(i, kN + 1).shape()), "[2, 2, n + 1]");
}

TEST(ApiMasks, OuterProducts) {
  Graph g;
  const Tensor a = g.input("a", DType::f32, {2}), b = g.input("b", DType::f32, {3}),
               c = g.input("c", DType::f32, {2, 2});
  const auto of = [&](const Tensor& y) { return value_of(g, y, {{1, 2}, {3, 4, 5}, {1, 2, 3, 4}}); };
  EXPECT_EQ(of(outer(a, b)), (Numbers{3, 4, 5, 6, 8, 10}));
  EXPECT_EQ(str(outer(a, b).shape()), "[2, 3]");
  EXPECT_EQ(of(outer(c, a)), (Numbers{1, 2, 2, 4, 3, 6, 4, 8}));
  EXPECT_EQ(of(outer(a, 3)), (Numbers{3, 6}));
  EXPECT_EQ(str(outer(2, b).shape()), "[1, 3]");
}

}  // namespace
}  // namespace tenon

// einsum against a loop over all labels, and how it is recorded.
#include <gtest/gtest.h>

#include <map>

#include "tests/unit/api_values.h"

namespace tenon {
namespace {

using Terms = std::vector<std::string>;

std::size_t place_of(const std::string& term, const std::map<char, int>& index, const std::map<char, int>& extents) {
  std::size_t place = 0;
  for (char label : term)
    place = place * static_cast<std::size_t>(extents.at(label)) + static_cast<std::size_t>(index.at(label));
  return place;
}

// The sum over every label that `output` lacks, of the product of the operands' elements.
Numbers looped(const Terms& terms, const std::string& output, const std::map<char, int>& extents,
               const std::vector<Numbers>& operands) {
  std::map<char, int> index;
  std::size_t count = 1;
  for (char label : output) count *= static_cast<std::size_t>(extents.at(label));
  for (const std::string& term : terms)
    for (char label : term) index[label] = 0;
  Numbers result(count, 0);
  for (bool more = true; more;) {
    double product = 1;
    for (std::size_t i = 0; i < terms.size(); ++i) product *= operands[i][place_of(terms[i], index, extents)];
    result[place_of(output, index, extents)] += product;
    more = false;
    for (auto& [label, at] : index) {
      if (++at < extents.at(label)) {
        more = true;
        break;
      }
      at = 0;
    }
  }
  return result;
}

struct Case {
  Terms terms;
  std::string output;
};

const std::map<char, int> kExtents{{'a', 2}, {'b', 3}, {'c', 2}, {'i', 4}, {'j', 3}, {'k', 5}, {'l', 2}, {'m', 1}};

std::string spec_of(const Case& c) {
  std::string spec;
  for (const std::string& term : c.terms) spec += term + ",";
  spec.pop_back();
  return spec + "->" + c.output;
}

// Records the case for operands of `dtype` and gives the graph's result beside the loop's.
void expect_looped(const Case& c, DType dtype, bool symbolic) {
  SCOPED_TRACE(spec_of(c));
  Graph g;
  std::vector<Tensor> operands;
  std::vector<Numbers> values;
  Bindings bindings;
  for (const std::string& term : c.terms) {
    Shape shape;
    std::size_t count = 1;
    for (char label : term) {
      count *= static_cast<std::size_t>(kExtents.at(label));
      shape.push_back(symbolic ? Dim::symbol(std::string(1, label)) : Dim(kExtents.at(label)));
      if (symbolic) bindings[std::string(1, label)] = kExtents.at(label);
    }
    operands.push_back(g.input("x" + std::to_string(operands.size()), dtype, shape));
    values.emplace_back();
    for (std::size_t i = 0; i < count; ++i)
      values.back().push_back(static_cast<double>((i * 7 + operands.size()) % 5) - 2);
  }
  const Tensor y = einsum(spec_of(c), operands);
  EXPECT_EQ(y.dtype(), dtype);
  ASSERT_EQ(static_cast<std::size_t>(y.rank()), c.output.size());
  for (std::size_t i = 0; i < c.output.size(); ++i)
    EXPECT_TRUE(y.shape()[i] == (symbolic ? Dim::symbol(std::string(1, c.output[i])) : Dim(kExtents.at(c.output[i]))));
  EXPECT_EQ(value_of(g, y, values, bindings), looped(c.terms, c.output, kExtents, values));
}

const std::vector<Case> kCases{
    {{"ij"}, "ji"},
    {{"ijk"}, "j"},
    {{"ij"}, ""},
    {{"i"}, "i"},
    {{"ij", "jk"}, "ik"},
    {{"ij", "jk"}, "ki"},
    {{"ji", "kj"}, "ik"},
    {{"ij", "ij"}, ""},
    {{"i", "i"}, ""},
    {{"i", "i"}, "i"},
    {{"i", "j"}, "ij"},
    {{"i", "j"}, "ji"},
    {{"ij", "j"}, "i"},
    {{"j", "ij"}, "i"},
    {{"bij", "bjk"}, "bik"},
    {{"bij", "bjk"}, "kib"},
    {{"abij", "bajk"}, "abik"},
    {{"aibj", "kjb"}, "aki"},
    {{"abij", "abij"}, "ab"},
    {{"bi", "bj"}, "bij"},
    {{"ijk", "jil"}, "kl"},
    {{"ijk", "ljk"}, "il"},
    {{"ij", "kl"}, "ik"},
    {{"ij", "kl"}, ""},
    {{"ij", "jk", "kl"}, "il"},
    {{"ai", "bi", "ci"}, "abc"},
    {{"ij", "ik", "jk"}, "i"},
    {{"i", "i", "i", "i"}, "i"},
    {{"", "ij"}, "ij"},
    {{"im", "mj"}, "ij"},
};

TEST(ApiEinsum, IsTheLoopOverAllLabels) {
  for (const Case& c : kCases) expect_looped(c, DType::f32, false);
}

TEST(ApiEinsum, OfSymbolicExtents) {
  for (const Case& c : kCases) expect_looped(c, DType::f32, true);
}

TEST(ApiEinsum, OfIntegers) {
  for (const Case& c : kCases) expect_looped(c, DType::i32, false);
}

TEST(ApiEinsum, Diagonals) {
  for (const Case& c : {Case{{"ii"}, "i"}, Case{{"ii"}, ""}, Case{{"iji"}, "ji"}, Case{{"iijj"}, "ij"},
                        Case{{"aaccii"}, "ica"}, Case{{"iii", "ij"}, "j"}, Case{{"bii", "bi"}, "b"}})
    expect_looped(c, DType::f32, false);
}

TEST(ApiEinsum, MoreAxesThanABatchHas) {
  expect_looped({{"abcijlm", "abcijlm"}, "abcijlm"}, DType::f32, false);
  expect_looped({{"abcijlmk", "abcijlmk"}, "abcijlm"}, DType::f32, false);
}

struct ApiEinsumShapes : testing::Test {
  Graph g;
  Tensor x = g.input("x", DType::f32, {2, 1, 3, 4});
  Tensor w = g.input("w", DType::f32, {5, 4, 6});
  std::string shape_of(const std::string& spec) { return str(einsum(spec, {x, w}).shape()); }
  std::size_t count(const std::string& op) const {
    std::size_t count = 0;
    const std::string text = g.str();
    for (std::size_t at = 0; (at = text.find(" " + op + "(", at)) != std::string::npos; ++at) ++count;
    return count;
  }
};

TEST_F(ApiEinsumShapes, WithoutAnArrowLabelsThatOccurOnceAreTheResult) {
  EXPECT_EQ(str(einsum("zbca", {x}).shape()), "[4, 1, 3, 2]");
  EXPECT_EQ(shape_of("abij,kjl"), "[2, 1, 3, 5, 6]");
  EXPECT_EQ(str(einsum("ijkl,ijkl", {x, x}).shape()), "[]");
  EXPECT_EQ(str(einsum("Baij", {x}).shape()), "[2, 1, 3, 4]");  // capitals come first
}

TEST_F(ApiEinsumShapes, AnEllipsisStandsForTheRestAndBroadcasts) {
  EXPECT_EQ(shape_of("...ij, ...jk -> ...ik"), "[2, 5, 3, 6]");
  EXPECT_EQ(shape_of("...ij,...jk->ki..."), "[6, 3, 2, 5]");
  EXPECT_EQ(str(einsum("...->...", {x}).shape()), "[2, 1, 3, 4]");
  EXPECT_EQ(str(einsum("a...->...a", {x}).shape()), "[1, 3, 4, 2]");
}

TEST_F(ApiEinsumShapes, ExtentsOfOneBroadcast) {
  EXPECT_EQ(shape_of("abij,bjk->abik"), "[2, 5, 3, 6]");
  const Tensor a = g.input("a", DType::f32, {2, 1}), b = g.input("b", DType::f32, {3, 2});
  EXPECT_EQ(value_of(g, einsum("ij,jk->ik", {a, b}), {Numbers(24), Numbers(120), {1, 10}, {1, 2, 3, 4, 5, 6}}),
            (Numbers{9, 12, 90, 120}));
}

TEST_F(ApiEinsumShapes, TwoOperandsAreOneMatmul) {
  const Tensor q = g.input("q", DType::bf16, {2, 7, 8, 64}), k = g.input("k", DType::bf16, {2, 9, 8, 64});
  const Tensor scores = einsum("bqhd,bkhd->bhqk", {q, k}, DType::f32);
  EXPECT_EQ(scores.dtype(), DType::f32);
  EXPECT_EQ(str(scores.shape()), "[2, 8, 7, 9]");
  EXPECT_EQ(count("matmul"), 1U);
  EXPECT_EQ(count("transpose"), 2U);
  EXPECT_EQ(count("reshape"), 0U);  // the batch's axes stay apart, and the rest are matrices already
  g.output("scores", scores);
  EXPECT_NE(g.str().find("dtype=f32"), std::string::npos) << g.str();
}

TEST_F(ApiEinsumShapes, TheTransposedResultIsTheProductOfTheOthers) {
  const Tensor a = g.input("a", DType::f32, {3, 4}), b = g.input("b", DType::f32, {5, 4});
  einsum("ik,jk->ji", {a, b}, {}, /*tf32=*/true);
  EXPECT_EQ(count("matmul"), 1U);
  EXPECT_EQ(count("transpose"), 1U);
  EXPECT_NE(g.str().find("tf32=true"), std::string::npos) << g.str();
}

TEST_F(ApiEinsumShapes, DTypesAsMatmulHasThem) {
  const Tensor p = g.input("p", DType::f8e4m3, {3, 4}), q = g.input("q", DType::f8e5m2, {4, 3});
  EXPECT_EQ(einsum("ij,jk", {p, q}).dtype(), DType::f32);
  EXPECT_EQ(einsum("ij,jk,kl", {p, q, p}).dtype(), DType::f32);
  EXPECT_EQ(einsum("ij,ji->ij", {p, q}).dtype(), DType::f32);
  EXPECT_EQ(einsum("ij->i", {p}).dtype(), DType::f32);
  EXPECT_EQ(einsum("ij,jk", {p, q}, DType::f16).dtype(), DType::f16);
  const Tensor h = g.input("h", DType::bf16, {3, 4}), m = g.input("m", DType::bool_, {3, 4});
  EXPECT_EQ(einsum("ij->i", {h}, DType::f32).dtype(), DType::f32);
  EXPECT_EQ(einsum("ij,ij->ij", {h, h}, DType::f32).dtype(), DType::f32);
  EXPECT_EQ(einsum("ij->ji", {m}).dtype(), DType::bool_);
}

}  // namespace
}  // namespace tenon

// Comparison with the interpreter: results that another order or precision of the same operations gives pass; wrong
// ones, however little, do not.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "ir/interpret/interpret.h"
#include "ir/interpret/numerics.h"
#include "ir/ops/formats.h"
#include "ir/text/text.h"

namespace tenon::ir {
namespace {

HostArray random_array(DType dtype, std::vector<std::int64_t> shape, unsigned seed = 1) {
  HostArray array = make_array(dtype, std::move(shape));
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  for (std::int64_t i = 0; i < element_count(array); ++i) set_real(array, i, normal(random));
  return array;
}

Comparison compare(const std::string& text, const std::vector<HostArray>& inputs, const HostArray& actual) {
  return compare_with_interpreter(parse(text), inputs, {actual}).at(0);
}

// A result as f32 code gives it: computed by `f` on f32 elements.
template <typename F>
HostArray mapped(const HostArray& x, F f) {
  HostArray result = make_array(x.dtype, x.shape);
  for (std::int64_t i = 0; i < element_count(x); ++i) set_real(result, i, f(static_cast<float>(get_real(x, i))));
  return result;
}

TEST(Compare, SinglePrecisionArithmeticPasses) {
  const HostArray x = random_array(DType::f32, {2000});
  const HostArray y = mapped(x, [](float v) { return std::exp(v) * std::sin(v) - v / (1 + v * v); });
  const Comparison result =
      compare("graph f(x: f32[n]) { return sub(mul(exp(x), sin(x)), div(x, add(1, mul(x, x)))) }", {x}, y);
  EXPECT_TRUE(result.equal) << result.max_tolerance_ratio;
  EXPECT_EQ(result.elements, 2000);
  EXPECT_GT(result.max_abs_error, 0);
  EXPECT_LT(result.max_tolerance_ratio, 1);
  EXPECT_EQ(result.undecided, 0);
}

TEST(Compare, AWrongConstantIsCaught) {
  const HostArray x = random_array(DType::f32, {2000});
  const HostArray y = mapped(x, [](float v) { return std::exp(v) * 1.00001f; });
  const Comparison result = compare("graph f(x: f32[n]) { return exp(x) }", {x}, y);
  EXPECT_FALSE(result.equal);
  EXPECT_EQ(result.mismatches, 2000);
  EXPECT_EQ(result.first_mismatch, 0);
  EXPECT_GT(result.max_tolerance_ratio, 1);
}

// A run that rounds a maximum, but not what it was taken of, would find exponents of 2^26, and NaN possible.
TEST(Compare, AMaximumIsRoundedWithWhatItIsTakenOf) {
  const HostArray a = random_array(DType::f32, {8, 100}, 1), b = random_array(DType::f32, {8, 100}, 2);
  HostArray wrong = make_array(DType::f32, {8});
  for (std::int64_t i = 0; i < 8; ++i) set_real(wrong, i, std::nan(""));
  const Comparison result = compare(R"(graph f(a: f32[8, 100], b: f32[8, 100]) {
    x = mul(mul(a, 3.5e7), mul(b, 3.5e7))
    return max(softmax(x), axis=1)
  })",
                                    {a, b}, wrong);
  EXPECT_EQ(result.mismatches, 8);
  EXPECT_EQ(result.undecided, 0);
}

// tanh(-inf) is -1 in every disturbed run too.
TEST(Compare, LimitsAtInfinityAreExact) {
  HostArray x = make_array(DType::f32, {2});
  set_real(x, 0, -HUGE_VAL);
  set_real(x, 1, HUGE_VAL);
  const Comparison result = compare("graph f(x: f32[2]) { return gelu(x, approximate=\"tanh\") }", {x}, x);
  EXPECT_EQ(result.mismatches, 1);  // -inf times 0 is NaN
  EXPECT_EQ(result.first_mismatch, 0);
  EXPECT_EQ(result.undecided, 0);
}

TEST(Compare, OneWrongElementIsFound) {
  const HostArray x = random_array(DType::f32, {2000});
  HostArray y = mapped(x, [](float v) { return v * v; });
  set_real(y, 1234, get_real(y, 1234) * (1 + 1e-5));
  const Comparison result = compare("graph f(x: f32[n]) { return mul(x, x) }", {x}, y);
  EXPECT_FALSE(result.equal);
  EXPECT_EQ(result.mismatches, 1);
  EXPECT_EQ(result.first_mismatch, 1234);
}

TEST(Compare, CancellationIsAllowedItsLoss) {
  // (1 + x) - 1 has an absolute error of 2^-24 whatever x is; so may the result.
  HostArray x = random_array(DType::f32, {2000});
  for (std::int64_t i = 0; i < 2000; ++i) set_real(x, i, get_real(x, i) * 1e-5);
  const std::string text = "graph f(x: f32[n]) { return sub(add(1, x), 1) }";
  EXPECT_TRUE(compare(text, {x}, mapped(x, [](float v) { return (1 + v) - 1; })).equal);
  EXPECT_TRUE(compare(text, {x}, mapped(x, [](float v) { return v; })).equal);
  EXPECT_FALSE(compare(text, {x}, mapped(x, [](float v) { return v + 1e-5f; })).equal);
}

TEST(Compare, FusedAndUnfusedHalvesPass) {
  const HostArray x = random_array(DType::bf16, {2000});
  const std::string text = "graph f(x: bf16[n]) { return add(mul(exp(x), 3), x) }";
  const HostArray fused = mapped(x, [](float v) { return std::exp(v) * 3 + v; });
  const HostArray unfused = mapped(x, [](float v) {
    const double e = round_to(DType::bf16, std::exp(v));
    return round_to(DType::bf16, 3 * e) + v;
  });
  EXPECT_TRUE(compare(text, {x}, fused).equal);
  EXPECT_TRUE(compare(text, {x}, unfused).equal);
  EXPECT_FALSE(compare(text, {x}, mapped(x, [](float v) { return std::exp(v) * 3.2f + v; })).equal);
}

TEST(Compare, SumsInAnyOrderPass) {
  const HostArray x = random_array(DType::f32, {10000});
  const std::string text = "graph f(x: f32[n]) { return sum(x) }";
  float forward = 0, backward = 0;
  for (std::int64_t i = 0; i < 10000; ++i) forward += static_cast<float>(get_real(x, i));
  for (std::int64_t i = 10000; i-- > 0;) backward += static_cast<float>(get_real(x, i));
  HostArray y = make_array(DType::f32, {});
  for (const float sum : {forward, backward}) {
    set_real(y, 0, sum);
    EXPECT_TRUE(compare(text, {x}, y).equal);
  }
  set_real(y, 0, forward - static_cast<float>(get_real(x, 17)));  // one term left out
  EXPECT_FALSE(compare(text, {x}, y).equal);
}

TEST(Compare, MatmulToleratesSingleButNotTf32) {
  const HostArray a = random_array(DType::f32, {16, 512}, 1), b = random_array(DType::f32, {512, 16}, 2);
  const auto product = [&](auto round) {
    HostArray c = make_array(DType::f32, {16, 16});
    for (std::int64_t i = 0; i < 16; ++i)
      for (std::int64_t j = 0; j < 16; ++j) {
        float sum = 0;
        for (std::int64_t p = 0; p < 512; ++p) sum += round(get_real(a, i * 512 + p)) * round(get_real(b, p * 16 + j));
        set_real(c, i * 16 + j, sum);
      }
    return c;
  };
  const auto single = [](double x) { return static_cast<float>(x); };
  const auto tf32 = [](double x) {
    return static_cast<float>(std::ldexp(std::rint(std::ldexp(x, 11 - std::ilogb(x) - 1)), std::ilogb(x) - 10));
  };
  EXPECT_TRUE(compare("graph f(a: f32[m, k], b: f32[k, n]) { return matmul(a, b) }", {a, b}, product(single)).equal);
  EXPECT_FALSE(compare("graph f(a: f32[m, k], b: f32[k, n]) { return matmul(a, b) }", {a, b}, product(tf32)).equal);
  EXPECT_TRUE(
      compare("graph f(a: f32[m, k], b: f32[k, n]) { return matmul(a, b, tf32=true) }", {a, b}, product(tf32)).equal);
}

TEST(Compare, NaNAndInfinityMustStandWhereTheyShould) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  HostArray x = make_array(DType::f32, {4}), y = make_array(DType::f32, {4});
  const double inputs[] = {-1, 0, 1, 4}, outputs[] = {nan, inf, 1, 0.5};
  for (int i = 0; i < 4; ++i) {
    set_real(x, i, inputs[i]);
    set_real(y, i, outputs[i]);
  }
  const std::string text = "graph f(x: f32[n]) { return rsqrt(x) }";
  EXPECT_TRUE(compare(text, {x}, y).equal);
  for (const auto& [place, wrong] : {std::pair{0, 0.0}, {1, nan}, {1, -inf}, {2, nan}, {3, inf}}) {
    HostArray bad = y;
    set_real(bad, place, wrong);
    const Comparison result = compare(text, {x}, bad);
    EXPECT_EQ(result.mismatches, 1) << place;
    EXPECT_EQ(result.first_mismatch, place);
  }
}

// As bf16 the NaNs of f16 are great numbers of either sign (0x7e00, 0xfe00) or NaNs (0x7fff, 0xffff).
TEST(Compare, WhatTurnsOnTheBitsOfANaNIsUndecided) {
  HostArray x = make_array(DType::f16, {8}), y = make_array(DType::bool_, {8});
  for (int i = 0; i < 8; ++i) set_real(x, i, 2);
  for (const char* asked : {"less(b, 0)", "greater(b, 0)", "isnan(b)"})
    for (const bool answer : {false, true}) {
      for (int i = 0; i < 8; ++i) set_integer(y, i, answer);
      const Comparison result =
          compare(fmt::format("graph f(x: f16[n]) {{ b = bitcast(acos(x), dtype=bf16)\n return {} }}", asked), {x}, y);
      EXPECT_TRUE(result.equal) << asked << answer;
      EXPECT_GT(result.undecided, 0) << asked << answer;
    }
}

// Every one of many elements, with as few runs as the tests of operators take: a device's NaN is 0x7fff.
TEST(Compare, OfManyNaNsEachMayHaveAnyBits) {
  HostArray x = make_array(DType::f16, {20000}), y = make_array(DType::bf16, x.shape);
  for (std::int64_t i = 0; i < element_count(x); ++i) set_real(x, i, std::nan(""));
  const Graph graph = parse("graph f(x: f16[n]) { b = bitcast(x, dtype=bf16)\n return b }");
  for (const std::uint64_t bits : {0x7e00, 0xfe00, 0x7fff, 0xffff}) {
    for (std::int64_t i = 0; i < element_count(x); ++i) set_real(y, i, decode_real(DType::bf16, bits));
    EXPECT_TRUE(compare_with_interpreter(graph, {x}, {y}, {}, 2).at(0).equal) << bits;
  }
}

TEST(Compare, IntegersAndBoolsAreExact) {
  const HostArray x = random_array(DType::f32, {100});
  HostArray y = make_array(DType::bool_, {100});
  for (std::int64_t i = 0; i < 100; ++i) set_integer(y, i, get_real(x, i) > 0.5);
  const std::string text = "graph f(x: f32[n]) { return greater(x, 0.5) }";
  EXPECT_TRUE(compare(text, {x}, y).equal);
  set_integer(y, 7, 1 - get_integer(y, 7));
  EXPECT_EQ(compare(text, {x}, y).mismatches, 1);
}

TEST(Compare, ChoicesOnTheEdgeAreUndecided) {
  // sqrt(x)^2 lies within rounding of x: whether it is less is nobody's to say. Elsewhere it is.
  HostArray x = make_array(DType::f32, {3}), y = make_array(DType::bool_, {3});
  const double inputs[] = {2, 3, 5};
  for (int i = 0; i < 3; ++i) set_real(x, i, inputs[i]);
  const Comparison edge = compare("graph f(x: f32[n]) { r = sqrt(x)\n return less(mul(r, r), x) }", {x}, y);
  EXPECT_TRUE(edge.equal);
  EXPECT_EQ(edge.undecided, 3);
  const Comparison clear = compare("graph f(x: f32[n]) { r = sqrt(x)\n return less(mul(r, r), sub(x, 1)) }", {x}, y);
  EXPECT_TRUE(clear.equal);
  EXPECT_EQ(clear.undecided, 0);
}

TEST(Compare, ExactWholeNumbersAreDecided) {
  HostArray x = make_array(DType::f32, {3}), y = make_array(DType::bool_, {3});
  for (int i = 0; i < 3; ++i) {
    set_real(x, i, i);
    set_integer(y, i, 1);
  }
  const Comparison result =
      compare("graph f(x: f32[n]) { return equal(sub(add(mul(x, 2), 6), 6), mul(x, 2)) }", {x}, y);
  EXPECT_TRUE(result.equal);
  EXPECT_EQ(result.undecided, 0);
}

TEST(Compare, OverflowInAHalfStoredOnTheWayIsUndecided) {
  HostArray x = make_array(DType::f16, {1}), y = make_array(DType::f16, {1});
  set_real(x, 0, 60000);
  const std::string text = "graph f(x: f16[n]) { return div(mul(x, 2), 4) }";
  for (const double stored : {30000.0, std::numeric_limits<double>::infinity()}) {
    set_real(y, 0, stored);
    const Comparison result = compare(text, {x}, y);
    EXPECT_TRUE(result.equal);
    EXPECT_EQ(result.undecided, 1);
  }
}

// A NaN has to come of something: inf - inf where both products are stored, nothing where one is.
TEST(Compare, ANaNIsADifferenceUnlessARunShowsIt) {
  HostArray x = make_array(DType::f16, {1}), y = make_array(DType::f16, {1});
  set_real(x, 0, 60000);
  set_real(y, 0, std::numeric_limits<double>::quiet_NaN());
  const Comparison quotient = compare("graph f(x: f16[n]) { return div(mul(x, 2), 4) }", {x}, y);
  EXPECT_FALSE(quotient.equal);
  EXPECT_EQ(quotient.mismatches, 1);
  EXPECT_EQ(quotient.undecided, 0);
  const Comparison difference = compare("graph f(x: f16[n]) { return sub(mul(x, 2), mul(x, 1.5)) }", {x}, y);
  EXPECT_TRUE(difference.equal);
  EXPECT_EQ(difference.undecided, 1);
}

// Where no number of runs bounds the next, a NaN that none of them shows is still one.
TEST(Compare, ANaNNearAPoleIsADifference) {
  HostArray x = make_array(DType::f32, {1}), y = make_array(DType::f32, {1});
  set_real(x, 0, 1e-4);
  set_real(y, 0, std::numeric_limits<double>::quiet_NaN());
  const Graph graph = parse("graph f(x: f32[n]) { return reciprocal(sub(sub(add(1000, x), 1000), 1e-4)) }");
  EXPECT_FALSE(compare_with_interpreter(graph, {x}, {y}, {}, 48).at(0).equal);
  set_real(y, 0, -1e5);
  const Comparison number = compare_with_interpreter(graph, {x}, {y}, {}, 48).at(0);
  EXPECT_TRUE(number.equal);
}

// A value has one rounding for all its uses: exp(a b - max(a b)) is at most 1, whatever rounds the product.
TEST(Compare, AShiftByTheMaximumOfAnotherRoundingIsADifference) {
  const HostArray a = random_array(DType::f32, {16, 8}, 1), b = random_array(DType::f32, {16, 8}, 2);
  const Graph graph = parse(
      "graph f(a: f32[16, 8], b: f32[16, 8]) {\n"
      "  x = mul(mul(a, 1e6), mul(b, 1e6))\n"
      "  return exp(sub(x, max(x, axis=-1, keepdims=true)))\n}");
  std::vector<HostArray> results(2, make_array(DType::f32, {16, 8}));  // of the rounded product, of the exact one
  for (std::int64_t row = 0; row < 16; ++row) {
    const auto product = [&](std::int64_t i) {
      const std::int64_t at = row * 8 + i;
      return static_cast<double>(static_cast<float>(get_real(a, at) * 1e6)) * static_cast<float>(get_real(b, at) * 1e6);
    };
    float top = -std::numeric_limits<float>::infinity();
    for (std::int64_t i = 0; i < 8; ++i) top = std::max(top, static_cast<float>(product(i)));
    for (std::int64_t i = 0; i < 8; ++i) {
      set_real(results[0], row * 8 + i, std::exp(static_cast<float>(product(i)) - top));
      set_real(results[1], row * 8 + i, std::exp(static_cast<float>(product(i) - top)));
    }
  }
  EXPECT_TRUE(compare_with_interpreter(graph, {a, b}, {results[0]}, {}, 48).at(0).equal);
  const Comparison contracted = compare_with_interpreter(graph, {a, b}, {results[1]}, {}, 48).at(0);
  EXPECT_FALSE(contracted.equal);
  EXPECT_GT(contracted.mismatches, 8);
}

// The product with 0 is left out in some runs, as attention may; what is left overflows all the same, and inf - inf is
// NaN.
TEST(Compare, AProductThatOverflowsOnTheWayMayBeNaNBesideAZero) {
  HostArray a = make_array(DType::f32, {3}), b = make_array(DType::f32, {3, 1}), y = make_array(DType::f32, {1});
  const double left[] = {1e30, -1, 0}, right[] = {1e30, std::numeric_limits<double>::infinity(), 1};
  for (int i = 0; i < 3; ++i) {
    set_real(a, i, left[i]);
    set_real(b, i, right[i]);
  }
  const Graph graph = parse("graph f(a: f32[3], b: f32[3, 1]) { return matmul(a, b) }");
  for (const double sum : {-std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    set_real(y, 0, sum);
    const Comparison result = compare_with_interpreter(graph, {a, b}, {y}).at(0);
    EXPECT_TRUE(result.equal) << sum;
    EXPECT_EQ(result.undecided, 1);
  }
}

// z is stored in f16, where it has few digits, and the cast behind it has fewer: which way that rounds turns on z's
// rounding, for a few elements on the last hundredth of it. Many runs see that, and are needed for those elements only.
TEST(Compare, ARareRoundingOfASmallNumberIsFound) {
  constexpr int kCount = 20000;
  HostArray x = make_array(DType::f16, {kCount}), y = make_array(DType::f16, {kCount});
  std::mt19937 random(1);
  std::uniform_real_distribution<double> small(1e-2, 1e-1);
  for (int i = 0; i < kCount; ++i) {
    set_real(x, i, small(random));
    HostArray z = make_array(DType::f16, {1}), n = make_array(DType::f16, {1});
    set_real(z, 0, (static_cast<float>(get_real(x, i)) + 0.007f) * 3e-4f);
    set_real(n, 0, static_cast<float>(get_real(z, 0)) * 0.0713f);
    set_real(y, i, std::sqrt(static_cast<float>(get_real(n, 0))));
  }
  const std::string graph =
      "graph f(x: f16[n]) { return sqrt(cast(mul(cast(mul(add(x, 0.007), 3e-4), dtype=f32), 0.0713), dtype=f16)) }";
  const Comparison result = compare(graph, {x}, y);
  EXPECT_TRUE(result.equal) << result.mismatches;
  EXPECT_LT(result.undecided, 10);
  for (int i = 0; i < 100; ++i) set_real(y, i, 3 * get_real(y, i));
  EXPECT_GT(compare(graph, {x}, y).mismatches, 50);  // the others' roundings turn in too few runs to bound them
}

// -1e41 + 1e47 is inf - inf, or -inf where fma adds the second product to the first overflow: a row that sees nothing.
TEST(Compare, AProductThatOverflowsOnTheWayMayBeAnInfinityOfEitherSign) {
  HostArray a = make_array(DType::f32, {1, 2}), b = make_array(DType::f32, {2, 1}), y = make_array(DType::f32, {1, 1});
  set_real(a, 0, -1e30);
  set_real(a, 1, 1e30);
  set_real(b, 0, 1e11);
  set_real(b, 1, 1e17);
  const Graph graph = parse("graph f(a: f32[1, 2], b: f32[2, 1]) { return softmax(matmul(a, b)) }");
  for (const double weight : {0.0, std::numeric_limits<double>::quiet_NaN()}) {
    set_real(y, 0, weight);
    EXPECT_TRUE(compare_with_interpreter(graph, {a, b}, {y}, {}, 48).at(0).equal) << weight;
  }
}

// Every other score is -1e41 + 1e47, which may be -inf. The bound |row| |column| of those between is 1e60, their
// products are 0 and 1: where the others are -inf, all of them, they share the weight, and 0.25 is a multiple of it.
TEST(Compare, OnlyProductsThatOverflowThemselvesDoSoOnTheWay) {
  constexpr int kScores = 64;
  HostArray a = make_array(DType::f32, {1, 3}), b = make_array(DType::f32, {3, kScores});
  HostArray y = make_array(DType::f32, {1, kScores});
  const double row[] = {-1e30, 1e30, 1e-30}, great[] = {1e11, 1e17, 0}, one[] = {0, 0, 1e30};
  for (int q = 0; q < 3; ++q) {
    set_real(a, q, row[q]);
    for (int j = 0; j < kScores; ++j) set_real(b, q * kScores + j, (j % 2 == 0 ? great : one)[q]);
  }
  for (int j = 0; j < kScores; ++j) set_real(y, j, j % 2 == 0 ? std::numeric_limits<double>::quiet_NaN() : 0);
  const Graph graph = parse("graph f(a: f32[1, 3], b: f32[3, 64]) { return mod(0.25, softmax(matmul(a, b))) }");
  EXPECT_TRUE(compare_with_interpreter(graph, {a, b}, {y}, {}, 48).at(0).equal);
}

// -1e-30 * 1e-30 is -0, which may be multiplied by 1e20 then: the root of what should be negative.
TEST(Compare, AProductMayUnderflowOnTheWay) {
  HostArray x = make_array(DType::f32, {3}), y = make_array(DType::f32, {});
  const double factors[] = {-1e-30, 1e-30, 1e20};
  for (int i = 0; i < 3; ++i) set_real(x, i, factors[i]);
  const Graph graph = parse("graph f(x: f32[3]) { return rsqrt(prod(x)) }");
  for (const double root : {-std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    set_real(y, 0, root);
    EXPECT_TRUE(compare_with_interpreter(graph, {x}, {y}).at(0).equal) << root;
  }
  set_real(x, 0, 1e-30);  // it keeps its sign
  set_real(y, 0, std::numeric_limits<double>::quiet_NaN());
  EXPECT_FALSE(compare_with_interpreter(graph, {x}, {y}).at(0).equal);
}

// A plan that stores x^2 rounds it, and then its square.
TEST(Compare, PowersMayBeProductsThatAreRounded) {
  const HostArray x = random_array(DType::bf16, {3000});
  HostArray once = make_array(DType::bf16, {3000}), twice = once, same = make_array(DType::bool_, {3000});
  for (std::int64_t i = 0; i < 3000; ++i) {
    const double v = get_real(x, i);
    set_real(once, i, v * v);
    set_real(twice, i, get_real(once, i) * get_real(once, i));
    set_real(once, i, v * v * v * v);
    set_integer(same, i, get_real(once, i) == get_real(twice, i));
  }
  const Graph graph = parse("graph f(x: bf16[n], y: bf16[n]) { return equal(pow(x, 4), y) }");
  EXPECT_TRUE(compare_with_interpreter(graph, {x, once}, {same}).at(0).equal);
}

// Each product is 0.4 of the least number, and an fma adds none of them.
TEST(Compare, ProductsMayVanishBelowTheLeastNumber) {
  HostArray a = make_array(DType::f32, {1, 32}), b = make_array(DType::f32, {32, 1}),
            y = make_array(DType::f32, {1, 1});
  for (int i = 0; i < 32; ++i) {
    set_real(a, i, 0x1p-80);
    set_real(b, i, 0.4 * 0x1p-69);
  }
  const Graph graph = parse("graph f(a: f32[1, 32], b: f32[32, 1]) { return matmul(a, b) }");
  EXPECT_TRUE(compare_with_interpreter(graph, {a, b}, {y}).at(0).equal);
  set_real(y, 0, 128 * 0x1p-149);
  EXPECT_FALSE(compare_with_interpreter(graph, {a, b}, {y}).at(0).equal);
}

// Two elements of a row: 4e39 is -inf where the products overflow one after the other, 8e34 the number that it is.
TEST(Compare, OneElementMayOverflowOnTheWayBesideOneThatDoesNot) {
  HostArray a = make_array(DType::f32, {1, 2}), b = make_array(DType::f32, {2, 2}), y = make_array(DType::i64, {});
  set_real(a, 0, -1e20);
  set_real(a, 1, 1e20);
  const double columns[] = {1e20, -8e19, 4.1e19 + 1e20, -8e19 + 8e14};  // row by row
  for (int i = 0; i < 4; ++i) set_real(b, i, columns[i]);
  const Graph graph = parse("graph f(a: f32[1, 2], b: f32[2, 2]) { return argmax(matmul(a, b)) }");
  for (const int place : {0, 1}) {
    set_integer(y, 0, place);
    EXPECT_TRUE(compare_with_interpreter(graph, {a, b}, {y}, {}, 48).at(0).equal) << place;
  }
}

// A plan that stores v rounds it once, and nothing behind it: neither all of its operators nor none.
TEST(Compare, WhatTurnsOnOneStoredValueIsUndecided) {
  const std::string before = "graph before(y: f8e5m2[500]) {\n  v = sigmoid(y)\n  return v\n}";
  const std::string behind =
      "graph behind(x: f8e5m2[500], v: f8e5m2[500]) {\n  b = reciprocal(ceil(mod(x, v)))\n  return b\n}";
  const std::string whole =
      "graph whole(x: f8e5m2[500], y: f8e5m2[500]) {\n  b = reciprocal(ceil(mod(x, sigmoid(y))))\n  return b\n}";
  const HostArray x = random_array(DType::f8e5m2, {500}), y = random_array(DType::f8e5m2, {500}, 2);
  const HostArray v = interpret(parse(before), {y}).at(0);
  const HostArray b = interpret(parse(behind), {x, v}).at(0);
  EXPECT_TRUE(compare_with_interpreter(parse(whole), {x, y}, {b}, {}, 48).at(0).equal);
}

// Where the second operator's results are stored and the first's are not, these five terms cancel.
TEST(Compare, TermsThatMayCancelExactlyAreUndecidedAboutZero) {
  HostArray x = make_array(DType::f8e5m2, {1, 5}), w = make_array(DType::f8e5m2, {5, 1});
  const double of_x[] = {0.625, -0.078125, -0.21875, -0.09375, 0.625}, of_w[] = {-1.75, -0.125, 1.25, -0.75, 1};
  for (int i = 0; i < 5; ++i) {
    set_real(x, i, of_x[i]);
    set_real(w, i, of_w[i]);
  }
  const Graph graph = parse(
      "graph f(x: f8e5m2[1, 5], w: f8e5m2[5, 1]) {\n"
      "  y = cast(matmul(mul(sub(x, 1.375), 0.75), w, dtype=f32), dtype=bool)\n  return y\n}");
  for (const int nonzero : {0, 1}) {
    HostArray y = make_array(DType::bool_, {1, 1});
    set_integer(y, 0, nonzero);
    const Comparison result = compare_with_interpreter(graph, {x, w}, {y}, {}, 48).at(0);
    EXPECT_TRUE(result.equal);
    EXPECT_EQ(result.undecided, 1);
  }
}

// ---- disturbances -----------------------------------------------------------------------------------------------

TEST(Disturbance, IsRepeatableAndOppositeInPairs) {
  const Numerics even({.perturb_seed = 6}, 3), odd({.perturb_seed = 7}, 3), other({.perturb_seed = 8}, 3);
  int different = 0;
  for (std::int64_t i = 0; i < 1000; ++i) {
    const double noise = even.noise(i);
    EXPECT_GE(std::fabs(noise), 0.5);
    EXPECT_LE(std::fabs(noise), 1.0);
    EXPECT_EQ(odd.noise(i), -noise);
    different += other.noise(i) != noise;
  }
  EXPECT_GT(different, 990);
}

TEST(Disturbance, HasTheSizeOfTheTypesRounding) {
  const Numerics numerics({.perturb_seed = 0}, 0);
  for (std::int64_t i = 0; i < 1000; ++i) {
    const double third = std::fabs(numerics.settle(DType::f32, 1.0 / 3, Accuracy::correctly_rounded, i) - 1.0 / 3);
    EXPECT_GT(third, 0x1p-28);
    EXPECT_LE(third, 0x1p-26);  // half a unit in the last place of 1/3
    EXPECT_EQ(numerics.settle(DType::f32, 0.375, Accuracy::correctly_rounded, i), 0.375);  // f32 has it exactly
    EXPECT_NE(numerics.settle(DType::f32, 0.375, Accuracy::routine, i), 0.375);
    EXPECT_EQ(numerics.settle(DType::f32, 0, Accuracy::routine, i), 0);
    EXPECT_GT(std::fabs(numerics.settle(DType::bf16, 1.0 / 3, Accuracy::correctly_rounded, i) - 1.0 / 3), 0x1p-12);
  }
}

}  // namespace
}  // namespace tenon::ir

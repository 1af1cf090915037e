// The interpreter on small graphs in the text form, against numbers worked out by hand or by NumPy.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ir/interpret/interpret.h"
#include "ir/ops/random.h"
#include "ir/text/text.h"

namespace tenon::ir {
namespace {

using Values = std::vector<double>;
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

HostArray array(DType dtype, std::vector<std::int64_t> shape, const Values& values) {
  HostArray result = make_array(dtype, std::move(shape));
  EXPECT_EQ(element_count(result), static_cast<std::int64_t>(values.size()));
  for (std::size_t i = 0; i < values.size(); ++i) set_real(result, static_cast<std::int64_t>(i), values[i]);
  return result;
}

HostArray f32(std::vector<std::int64_t> shape, const Values& values) {
  return array(DType::f32, std::move(shape), values);
}

Values values(const HostArray& from) {
  Values result;
  for (std::int64_t i = 0; i < element_count(from); ++i) result.push_back(get_real(from, i));
  return result;
}

// The first result of the graph whose text follows "graph f".
Values run(const std::string& text, const std::vector<HostArray>& inputs, const InterpretOptions& options = {}) {
  return values(interpret(parse("graph f" + text), inputs, {}, options).at(0));
}

void expect_near(const Values& actual, const Values& expected, double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], tolerance) << i;
}

// ---- maps -------------------------------------------------------------------------------------------------------

TEST(InterpretMap, BroadcastsAsNumpy) {
  EXPECT_EQ(run("(x: f32[2, 1], y: f32[3]) { return add(mul(x, 10), y) }", {f32({2, 1}, {1, 2}), f32({3}, {1, 2, 3})}),
            (Values{11, 12, 13, 21, 22, 23}));
  EXPECT_EQ(run("(x: f32[], y: f32[2, 2]) { return sub(y, x) }", {f32({}, {1}), f32({2, 2}, {1, 2, 3, 4})}),
            (Values{0, 1, 2, 3}));
}

TEST(InterpretMap, AnOperandUsedAgainIsNotOverwritten) {
  EXPECT_EQ(run("(x: f32[2]) { a = mul(x, x)\n b = add(a, 1)\n return add(a, b) }", {f32({2}, {2, 3})}),
            (Values{9, 19}));
}

TEST(InterpretMap, IntegersStayExact) {
  HostArray big = make_array(DType::i64, {1});
  set_integer(big, 0, (std::int64_t{1} << 62) + 1);
  EXPECT_EQ(get_integer(interpret(parse("graph f(x: i64[1]) { return add(x, 1) }"), {big})[0], 0),
            (std::int64_t{1} << 62) + 2);
  EXPECT_EQ(run("(x: i8[2]) { return add(x, 100) }", {array(DType::i8, {2}, {27, 28})}), (Values{127, -128}));
}

TEST(InterpretMap, WhereAndComparisons) {
  EXPECT_EQ(run("(x: f32[3]) { return where(less(x, 2), -inf, x) }", {f32({3}, {1, 2, kNaN})})[0], -kInf);
  EXPECT_EQ(run("(x: i32[3]) { return where(greater_equal(x, 2), x, 0) }", {array(DType::i32, {3}, {1, 2, 3})}),
            (Values{0, 2, 3}));
}

// ---- where the interpreter rounds -------------------------------------------------------------------------------

TEST(InterpretRounding, IntermediatesKeepDoublePrecision) {
  // In f32 1 + 2^-30 is 1.
  EXPECT_EQ(run("(x: f32[1]) { return sub(add(x, 0x1p-30), 1) }", {f32({1}, {1})}), (Values{0x1p-30}));
  EXPECT_EQ(run("(x: f32[1]) { return sub(add(x, 0x1p-30), 1) }", {f32({1}, {1})}, {.round_every_op = true}),
            (Values{0}));
}

TEST(InterpretRounding, WrittenCastsAreKept) {
  EXPECT_EQ(run("(x: f32[1]) { return cast(cast(x, dtype=bf16), dtype=f32) }", {f32({1}, {1.001})}), (Values{1}));
  EXPECT_EQ(run("(x: f32[1]) { return cast(add(x, 0x1p-30), dtype=f64) }", {f32({1}, {1})}), (Values{1}));
}

TEST(InterpretRounding, DecisionsSeeRoundedValues) {
  EXPECT_EQ(run("(x: f32[1]) { return equal(add(x, 0x1p-30), 1) }", {f32({1}, {1})}), (Values{1}));
  EXPECT_EQ(run("(x: bf16[1]) { return greater(add(x, 0x1p-10), 1) }", {array(DType::bf16, {1}, {1})}), (Values{0}));
  EXPECT_EQ(run("(x: f32[1]) { return cast(sub(x, 0x1p-40), dtype=i32) }", {f32({1}, {3})}), (Values{3}));
  EXPECT_EQ(run("(x: f16[1]) { return isinf(mul(x, 2)) }", {array(DType::f16, {1}, {60000})}), (Values{1}));
}

TEST(InterpretRounding, ValuesStayInTheRangeOfTheComputeType) {
  EXPECT_EQ(run("(x: f32[1]) { return mul(mul(x, x), 0) }", {f32({1}, {1e30})}).size(), 1u);
  EXPECT_TRUE(std::isnan(run("(x: f32[1]) { return mul(mul(x, x), 0) }", {f32({1}, {1e30})})[0]));
  EXPECT_EQ(run("(x: f32[1]) { return mul(mul(x, x), 1e30) }", {f32({1}, {1e-30})}), (Values{0}));
  // f16 is computed in f32: 60000 * 2 / 4 does not overflow unless every op rounds.
  const std::string halves = "(x: f16[1]) { return div(mul(x, 2), 4) }";
  EXPECT_EQ(run(halves, {array(DType::f16, {1}, {60000})}), (Values{30000}));
  EXPECT_EQ(run(halves, {array(DType::f16, {1}, {60000})}, {.round_every_op = true}), (Values{kInf}));
}

TEST(InterpretRounding, BitcastSeesStorage) {
  EXPECT_EQ(run("(x: f32[2]) { return bitcast(x, dtype=i32) }", {f32({2}, {1, -0.0})}),
            (Values{1065353216, -2147483648.0}));
}

// ---- reductions -------------------------------------------------------------------------------------------------

TEST(InterpretReduce, OverAxes) {
  const HostArray x = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(run("(x: f32[2, 3]) { return sum(x, axis=0) }", {x}), (Values{5, 7, 9}));
  EXPECT_EQ(run("(x: f32[2, 3]) { return sum(x, axis=[-1], keepdims=true) }", {x}), (Values{6, 15}));
  EXPECT_EQ(run("(x: f32[2, 3]) { return prod(x) }", {x}), (Values{720}));
  EXPECT_EQ(run("(x: f32[2, 3]) { return argmax(x, axis=1) }", {x}), (Values{2, 2}));
  EXPECT_EQ(run("(x: f32[2, 3]) { return argmin(x) }", {x}), (Values{0}));
  EXPECT_EQ(run("(x: f32[2, 3]) { return mean(x, axis=1) }", {x}), (Values{2, 5}));
}

TEST(InterpretReduce, NaNWinsAndTiesGoToTheFirst) {
  EXPECT_TRUE(std::isnan(run("(x: f32[3]) { return max(x) }", {f32({3}, {1, kNaN, 3})})[0]));
  EXPECT_EQ(run("(x: f32[4]) { return argmax(x) }", {f32({4}, {1, kNaN, 3, kNaN})}), (Values{1}));
  EXPECT_EQ(run("(x: f32[4]) { return argmin(x) }", {f32({4}, {2, 1, 1, 2})}), (Values{1}));
}

TEST(InterpretReduce, EmptyOnesGiveTheIdentity) {
  EXPECT_EQ(run("(x: f32[2, 0]) { return sum(x, axis=1) }", {f32({2, 0}, {})}), (Values{0, 0}));
  EXPECT_EQ(run("(x: f32[0]) { return max(x) }", {f32({0}, {})}), (Values{-kInf}));
  EXPECT_EQ(run("(x: i8[0]) { return min(x) }", {array(DType::i8, {0}, {})}), (Values{127}));
}

TEST(InterpretReduce, IntegerSumsWrapUnlessWidened) {
  const HostArray x = array(DType::i8, {3}, {100, 100, 100});
  EXPECT_EQ(run("(x: i8[3]) { return sum(x) }", {x}), (Values{44}));
  EXPECT_EQ(run("(x: i8[3]) { return sum(x, dtype=i32) }", {x}), (Values{300}));
}

TEST(InterpretReduce, HalvesAddUpInSingle) {
  // 4096 ones: in f16 a running sum would stop at 2048.
  EXPECT_EQ(run("(x: f16[4096]) { return sum(x) }", {array(DType::f16, {4096}, Values(4096, 1))}), (Values{4096}));
}

// ---- views ------------------------------------------------------------------------------------------------------

TEST(InterpretView, IndexMaps) {
  const HostArray x = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(run("(x: f32[2, 3]) { return transpose(x) }", {x}), (Values{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(run("(x: f32[2, 3]) { return reshape(x, shape=[3, -1]) }", {x}), (Values{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(run("(x: f32[2, 3]) { return flip(x, axis=1) }", {x}), (Values{3, 2, 1, 6, 5, 4}));
  EXPECT_EQ(run("(x: f32[2, 3]) { return slice(x, axis=1, start=[1]) }", {x}), (Values{2, 3, 5, 6}));
  EXPECT_EQ(run("(x: f32[2, 3]) { return slice(x, axis=1, step=[-2]) }", {x}), (Values{3, 1, 6, 4}));
  EXPECT_EQ(run("(x: f32[2, 3]) { return pad(x, low=[1, 0], high=[0, 1], value=9) }", {x}),
            (Values{9, 9, 9, 9, 1, 2, 3, 9, 4, 5, 6, 9}));
  EXPECT_EQ(run("(x: f32[2, 3]) { return concat(x, x, axis=1) }", {x}), (Values{1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6}));
  EXPECT_EQ(run("(x: f32[2, 3]) { return broadcast_to(x, shape=[2, 2, 3]) }", {x}),
            (Values{1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6}));
}

TEST(InterpretView, TakeCountsNegativesFromTheEndAndClamps) {
  const HostArray x = f32({2, 3}, {1, 2, 3, 4, 5, 6}), i = array(DType::i32, {4}, {-1, -9, 9, 1});
  EXPECT_EQ(run("(x: f32[2, 3], i: i32[4]) { return take(x, i, axis=1) }", {x, i}), (Values{3, 1, 3, 2, 6, 4, 6, 5}));
  EXPECT_EQ(run("(x: f32[2, 3], i: i32[4]) { return take(x, i) }", {x, i}),
            (Values{4, 5, 6, 1, 2, 3, 4, 5, 6, 4, 5, 6}));
}

// ---- sources and random -----------------------------------------------------------------------------------------

TEST(InterpretSource, IotaRoundsToItsDtype) {
  EXPECT_EQ(run("(x: f32[1]) { return iota(shape=[2, 2], axis=-1) }", {f32({1}, {0})}), (Values{0, 1, 0, 1}));
  EXPECT_EQ(run("(x: f32[1]) { return iota(shape=[2050], dtype=f16) }", {f32({1}, {0})})[2049], 2048);
}

TEST(InterpretRandom, BitsAreThoseOfPhilox) {
  HostArray seed = make_array(DType::i64, {});
  set_integer(seed, 0, 42);
  const HostArray bits =
      interpret(parse("graph f(s: i64) { return random_bits(s, shape=[2, 3], stream=7) }"), {seed})[0];
  for (std::int64_t i = 0; i < 6; ++i)
    EXPECT_EQ(get_integer(bits, i), static_cast<std::int32_t>(random_bits(42, 7, static_cast<std::uint64_t>(i))));
}

// ---- matmul -----------------------------------------------------------------------------------------------------

Values naive(const Values& a, const Values& b, std::size_t m, std::size_t k, std::size_t n) {
  Values c(m * n);
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t p = 0; p < k; ++p)
      for (std::size_t j = 0; j < n; ++j) c[i * n + j] += a[i * k + p] * b[p * n + j];
  return c;
}

TEST(InterpretMatmul, OddSizesAcrossEveryBlockBoundary) {
  for (const auto& [m, k, n] :
       {std::array<std::size_t, 3>{1, 1, 1}, {5, 3, 9}, {4, 257, 8}, {131, 300, 515}, {3, 513, 7}}) {
    Values a(m * k), b(k * n);
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<double>(i * 7 % 11) - 5;
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<double>(i * 5 % 13) - 6;
    const auto dims = [](std::size_t r, std::size_t c) {
      return std::vector<std::int64_t>{static_cast<std::int64_t>(r), static_cast<std::int64_t>(c)};
    };
    EXPECT_EQ(run("(a: f32[m, k], b: f32[k, n]) { return matmul(a, b) }", {f32(dims(m, k), a), f32(dims(k, n), b)}),
              naive(a, b, m, k, n));
  }
}

TEST(InterpretMatmul, BroadcastsBatchesAndVectors) {
  const HostArray a = f32({2, 1, 2}, {1, 2, 3, 4}), b = f32({3, 2, 1}, {1, 1, 2, 2, 3, 3});
  EXPECT_EQ(run("(a: f32[2, 1, 1, 2], b: f32[3, 2, 1]) { return matmul(a, b) }", {f32({2, 1, 1, 2}, {1, 2, 3, 4}), b}),
            (Values{3, 6, 9, 7, 14, 21}));
  EXPECT_EQ(run("(a: f32[2, 1, 2], v: f32[2]) { return matmul(a, v) }", {a, f32({2}, {10, 1})}), (Values{12, 34}));
  EXPECT_EQ(run("(v: f32[2], b: f32[3, 2, 1]) { return matmul(v, b) }", {f32({2}, {10, 1}), b}), (Values{11, 22, 33}));
  EXPECT_EQ(run("(v: f32[2], w: f32[2]) { return matmul(v, w) }", {f32({2}, {1, 2}), f32({2}, {3, 4})}), (Values{11}));
}

TEST(InterpretMatmul, NothingToAddIsZero) {
  EXPECT_EQ(run("(a: f32[2, 0], b: f32[0, 2]) { return matmul(a, b) }", {f32({2, 0}, {}), f32({0, 2}, {})}),
            (Values{0, 0, 0, 0}));
  EXPECT_EQ(run("(a: f32[0, 2], b: f32[2, 2]) { return matmul(a, b) }", {f32({0, 2}, {}), f32({2, 2}, {1, 2, 3, 4})}),
            Values{});
}

// ---- composites and symbols -------------------------------------------------------------------------------------

TEST(InterpretComposite, SoftmaxAndGelu) {
  expect_near(run("(x: f32[n, 3]) { return softmax(x) }", {f32({1, 3}, {1, 2, 3})}),
              {0.09003057, 0.24472847, 0.66524096}, 1e-7);
  EXPECT_EQ(run("(x: f32[n, 2]) { return softmax(x) }", {f32({1, 2}, {-kInf, -kInf})}), (Values{0, 0}));
  expect_near(run("(x: f32[2]) { return gelu(x) }", {f32({2}, {1, -1})}), {0.84134475, -0.15865525}, 1e-7);
}

TEST(InterpretSymbols, MeanDividesByTheBoundExtent) {
  EXPECT_EQ(run("(x: f32[n]) { return mean(x) }", {f32({5}, {1, 2, 3, 4, 10})}), (Values{4}));
}

TEST(InterpretSymbols, SeveralResultsInOrder) {
  const auto results = interpret(parse("graph f(x: f32[n]) { a = exp(x)\n return x, a, x as again }"), {f32({1}, {0})});
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(values(results[0]), Values{0});
  EXPECT_EQ(values(results[1]), Values{1});
  EXPECT_EQ(values(results[2]), Values{0});
}

}  // namespace
}  // namespace tenon::ir

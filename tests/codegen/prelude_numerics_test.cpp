// The prelude's functions on the host, where they are plain C++: conversions against ir/formats on every pattern,
// integer arithmetic against ir/meaning.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "ir/ops/formats.h"
#include "ir/ops/meaning.h"
#include "tests/harness/cuda_shim.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-but-set-parameter"
namespace device {
// clang-format off: each needs those before it
#include "codegen/prelude/types.cuh"
#include "codegen/prelude/convert.cuh"
#include "codegen/prelude/math.cuh"
#include "codegen/prelude/narrow.cuh"
// clang-format on
}  // namespace device
#pragma GCC diagnostic pop

namespace tenon {
namespace {

using namespace device;  // NOLINT: the functions under test

// Every f32 that has 16 significant high bits, with low bits that make ties, near-ties and neither.
template <typename Check>
void for_many_floats(const Check& check) {
  for (std::uint32_t high = 0; high < 65536; ++high)
    for (const std::uint32_t low : {0x0000u, 0x0001u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu})
      check(__uint_as_float(high << 16 | low));
}

void expect_bits(DType dtype, double value, std::uint64_t bits) {
  if (std::isnan(ir::round_to(dtype, value))) {
    ASSERT_TRUE(std::isnan(ir::decode_real(dtype, bits))) << value;
  } else {
    ASSERT_EQ(ir::encode_real(dtype, value), bits) << name_of(dtype) << " of " << value;
  }
}

TEST(PreludeConversions, NarrowRealsAreRoundedAsTheFormatsSay) {
  for_many_floats([](float x) {
    expect_bits(DType::bf16, static_cast<double>(x), f32_to_bf16(x).bits);
    expect_bits(DType::f8e4m3, static_cast<double>(x), f32_to_f8e4m3(x).bits);
    expect_bits(DType::f8e5m2, static_cast<double>(x), f32_to_f8e5m2(x).bits);
  });
}

TEST(PreludeConversions, SmallIntegersAreExact) {
  for (int x = -32768; x < 32768; ++x) {
    EXPECT_EQ(small_to_f32(static_cast<i8>(x)), static_cast<float>(static_cast<i8>(x)));
    EXPECT_EQ(small_to_f32(static_cast<u8>(x)), static_cast<float>(static_cast<u8>(x)));
    EXPECT_EQ(small_to_f32(static_cast<i16>(x)), static_cast<float>(x));
  }
}

void expect_value(double expected, float actual) {
  if (std::isnan(expected)) {
    EXPECT_TRUE(std::isnan(actual));
  } else {
    EXPECT_EQ(__float_as_uint(static_cast<float>(expected)), __float_as_uint(actual));
  }
}

TEST(PreludeConversions, EveryPatternIsReadExactly) {
  for (unsigned bits = 0; bits < 256; ++bits) {
    expect_value(ir::decode_real(DType::f8e4m3, bits), f8e4m3_to_f32({static_cast<u8>(bits)}));
    expect_value(ir::decode_real(DType::f8e5m2, bits), f8e5m2_to_f32({static_cast<u8>(bits)}));
  }
  for (unsigned bits = 0; bits < 65536; ++bits)
    expect_value(ir::decode_real(DType::bf16, bits), bf16_to_f32({static_cast<u16>(bits)}));
}

TEST(PreludeConversions, WideSourcesAreRoundedOnce) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 200000; ++i) {
    // a double whose bits below a narrow format are 0, a half, or a little more or less
    const double base = std::ldexp(static_cast<double>(random() % 512) / 2, static_cast<int>(random() % 40) - 28);
    const double x = base * (1 + static_cast<double>(static_cast<int>(random() % 3) - 1) * 0x1p-40);
    expect_bits(DType::bf16, x, f32_to_bf16(f64_to_f32_odd(x)).bits);
    expect_bits(DType::f8e4m3, -x, f32_to_f8e4m3(f64_to_f32_odd(-x)).bits);
    const i64 n = static_cast<i64>(random() >> (random() % 63)) + (i % 2 == 0 ? 0 : -5);
    expect_bits(DType::bf16, ir::real_from_integer(DType::bf16, n), f32_to_bf16(i64_to_f32_odd(n)).bits);
  }
  expect_bits(DType::bf16, 1e300, f32_to_bf16(f64_to_f32_odd(1e300)).bits);
  expect_bits(DType::bf16, -INFINITY, f32_to_bf16(f64_to_f32_odd(-INFINITY)).bits);
}

template <typename I>
void expect_saturation(DType dtype) {
  for (const double x : {0.0,
                         -0.9,
                         0.9,
                         126.9,
                         127.0,
                         128.0,
                         -128.0,
                         -128.9,
                         -129.0,
                         255.5,
                         256.0,
                         32767.5,
                         1e5,
                         -1e5,
                         2147483647.0,
                         2147483648.0,
                         -2147483649.0,
                         9.2e18,
                         9.3e18,
                         -9.3e18,
                         double(INFINITY),
                         -double(INFINITY),
                         double(NAN)}) {
    EXPECT_EQ(ir::integer_from_real(dtype, x), saturate<I>(x)) << name_of(dtype) << " " << x;
    const auto narrow = static_cast<float>(x);
    EXPECT_EQ(ir::integer_from_real(dtype, static_cast<double>(narrow)), saturate<I>(narrow)) << name_of(dtype);
  }
}

TEST(PreludeConversions, IntegersSaturate) {
  expect_saturation<i8>(DType::i8);
  expect_saturation<u8>(DType::u8);
  expect_saturation<i16>(DType::i16);
  expect_saturation<int>(DType::i32);
  expect_saturation<i64>(DType::i64);
}

template <typename I>
void expect_integer_arithmetic(DType dtype) {
  const I values[] = {0,
                      1,
                      2,
                      3,
                      7,
                      static_cast<I>(-1),
                      static_cast<I>(-3),
                      static_cast<I>(ir::min_value(dtype)),
                      static_cast<I>(ir::max_value(dtype)),
                      31,
                      33,
                      63,
                      100};
  for (const I a : values)
    for (const I b : values) {
      const auto same = [&](std::int64_t expected, auto actual, const char* what) {
        EXPECT_EQ(ir::wrap(dtype, expected), static_cast<I>(actual)) << what << " " << +a << " " << +b;
      };
      same(ir::meaning::wrapping_add(a, b), wrapping_add(a, b), "add");
      same(ir::meaning::wrapping_sub(a, b), wrapping_sub(a, b), "sub");
      same(ir::meaning::wrapping_mul(a, b), wrapping_mul(a, b), "mul");
      same(ir::meaning::wrapping_abs(a), wrapping_abs(a), "abs");
      same(ir::meaning::floor_div(a, b), floor_div(a, b), "floor_div");
      same(ir::meaning::floor_mod(a, b), floor_mod(a, b), "floor_mod");
      same(ir::meaning::power(a, b), power(a, b), "power");
      same(ir::meaning::left_shift(a, b), left_shift(a, b), "left_shift");
      same(ir::meaning::right_shift(a, b), right_shift(a, b), "right_shift");
      same(ir::meaning::minimum(a, b), minimum(a, b), "minimum");
      same(ir::meaning::maximum(a, b), maximum(a, b), "maximum");
      same(ir::meaning::sign(a), sign(a), "sign");
    }
}

TEST(PreludeMath, IntegersWrapAsTheTableSays) {
  expect_integer_arithmetic<i8>(DType::i8);
  expect_integer_arithmetic<u8>(DType::u8);
  expect_integer_arithmetic<i16>(DType::i16);
  expect_integer_arithmetic<int>(DType::i32);
  expect_integer_arithmetic<i64>(DType::i64);
}

TEST(PreludeMath, RealsAgreeOnEdges) {
  const double values[] = {0.0, -0.0, 1, -1, 2.5, -7, INFINITY, -INFINITY, NAN};
  const auto same = [](double expected, double actual) {
    EXPECT_TRUE(std::isnan(expected) ? std::isnan(actual) : bits_as<u64>(expected) == bits_as<u64>(actual))
        << expected << " " << actual;
  };
  for (const double a : values)
    for (const double b : values) {
      same(ir::meaning::minimum(a, b), minimum(a, b));
      same(ir::meaning::maximum(a, b), maximum(a, b));
      same(ir::meaning::floor_div(a, b), floor_div(a, b));
      same(ir::meaning::floor_mod(a, b), floor_mod(a, b));
      same(ir::meaning::sign(a), sign(a));
      const auto x = static_cast<float>(a), y = static_cast<float>(b);
      same(static_cast<double>(ir::meaning::minimum(x, y)), static_cast<double>(minimum(x, y)));
      same(static_cast<double>(ir::meaning::floor_mod(x, y)), static_cast<double>(floor_mod(x, y)));
    }
}

// A share of a sum: as IEEE divides, or the number beside it where the dividend is so small that remainders underflow.
TEST(PreludeArithmetic, SharesAreQuotients) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<float> exponent(-149, 0), size(0, 20);
  for (int i = 0; i < 2000000; ++i) {
    const float a = std::exp2(exponent(random)), b = std::exp2(size(random));
    const float quotient = a / b, unit = std::nextafter(quotient, 2.0f) - quotient;
    ASSERT_LE(std::fabs(share_of(a, b) - quotient), a < 0x1p-100f ? unit : 0.0f) << a << " / " << b;
  }
  for (const float b : {1.0f, 3.0f, 131072.0f, 0x1p62f}) {
    EXPECT_EQ(share_of(0.0f, b), 0.0f);
    EXPECT_FALSE(std::signbit(share_of(0.0f, b)));
    EXPECT_EQ(share_of(1.0f, b), 1.0f / b);
    EXPECT_LE(std::fabs(share_of(0x1p-149f, b) - 0x1p-149f / b), 0x1p-149f);
    EXPECT_TRUE(std::isnan(share_of(NAN, b)));
  }
  EXPECT_TRUE(std::isnan(share_of(0.0f, NAN)));
  EXPECT_EQ(share_of(1.0, 3.0), 1.0 / 3.0);
}

// Exponentials and shares for 16 bits: to within 2^-17, down to the least subnormal number.
TEST(PreludeArithmetic, NarrowExponentialsAreCloseEnoughForSixteenBits) {
  for (float x = 0; x > -110; x = std::nextafter(x * 1.00001f, -INFINITY) - 1e-6f) {
    const double exact = std::exp(static_cast<double>(x));
    ASSERT_LE(std::fabs(static_cast<double>(narrow_exp(x)) - exact), exact * 0x1p-17 + 0x1p-149) << x;
  }
  EXPECT_EQ(narrow_exp(0.0f), 1.0f);
  EXPECT_EQ(narrow_exp(-INFINITY), 0.0f);
  EXPECT_TRUE(std::isnan(narrow_exp(NAN)));
  EXPECT_EQ(narrow_share(0.0f, 7.0f), 0.0f);
  EXPECT_TRUE(std::isnan(narrow_share(0.0f, NAN)));
  EXPECT_NEAR(narrow_share(0.3f, 7.0f), 0.3f / 7.0f, 0x1p-27f);
}

// ---- functions for results of 16 bits
// ----------------------------------------------------------------------------------

// What registers may hold of an f16 or a bf16 value: every number of both, and others beside those of bf16.
template <typename Check>
void for_each_argument(const Check& check) {
  for_many_floats(check);
  for (std::uint32_t bits = 0; bits < 65536; ++bits) check(host_f16_to_f32(static_cast<unsigned short>(bits)));
}

// Every side to which the approximate instructions may err together.
template <typename Run>
void with_each_approximation(const Run& run) {
  for (const int power : {-1, 0, 1})
    for (const int other : {-1, 0, 1}) {
      approximations = {.power = power, .log = power, .reciprocal = other, .root = other, .tanh = power};
      run();
    }
  approximations = {};
}

// `narrow` is within `bound` of the value of `exact`, down to subnormal numbers, and has its special values.
template <typename Narrow, typename Exact>
void expect_close(const char* name, double bound, const Narrow& narrow, const Exact& exact, float from = -INFINITY) {
  double worst = 0, at = 0;
  with_each_approximation([&] {
    for_each_argument([&](float x) {
      if (x < from) return;
      const double wanted = exact(static_cast<double>(x)), had = static_cast<double>(narrow(x));
      if (std::isnan(wanted)) {
        ASSERT_TRUE(std::isnan(had)) << name << " of " << x;
      } else if (std::isinf(static_cast<float>(wanted)) || wanted == 0) {
        ASSERT_EQ(had, static_cast<double>(static_cast<float>(wanted))) << name << " of " << x;
        ASSERT_TRUE(wanted != 0 || std::signbit(had) == std::signbit(wanted)) << name << " of " << x;
      } else {
        const double error = (std::fabs(had - wanted) - 0x1p-149) / std::fabs(wanted);
        if (!(error <= worst)) worst = error, at = static_cast<double>(x);
      }
    });
  });
  EXPECT_LE(worst, bound) << name << " of " << at << ": 2^" << std::log2(worst);
}

constexpr double kNarrow = 0x1p-16;

TEST(PreludeNarrow, LibraryFunctionsAreWithinTheirBound) {
  expect_close("exp", kNarrow, narrow_exp, [](double x) { return std::exp(x); });
  expect_close("expm1", kNarrow, narrow_expm1, [](double x) { return std::expm1(x); });
  expect_close("log", kNarrow, narrow_log, [](double x) { return std::log(x); });
  expect_close("log2", kNarrow, narrow_log2, [](double x) { return std::log2(x); });
  expect_close("log1p", kNarrow, narrow_log1p, [](double x) { return std::log1p(x); });
  expect_close("tanh", kNarrow, narrow_tanh, [](double x) { return std::tanh(x); });
  expect_close("tanh of bf16", 0x1.001p-11, coarse_tanh, [](double x) { return std::tanh(x); });
  expect_close("sqrt", 0x1p-22, narrow_sqrt, [](double x) { return std::sqrt(x); });
}

TEST(PreludeNarrow, ComposedFunctionsAreWithinTheirBound) {
  expect_close("logistic", kNarrow, logistic, [](double x) { return x > 88.7 ? 0 : 1 / (1 + std::exp(x)); });
  // down to where f32's own sum with 1 has long been 0
  expect_close("one_plus_tanh", kNarrow, one_plus_tanh, [](double x) { return 2 / (1 + std::exp(-2 * x)); }, -43);
  expect_close("one_plus_erf", kNarrow, one_plus_erf, [](double x) { return std::erfc(-x); }, -9);
  for (const auto& function : {one_plus_tanh, one_plus_erf}) EXPECT_EQ(function(-INFINITY), 0.0f);
  expect_close("tanh_of_softplus", kNarrow, tanh_of_softplus, [](double x) {
    const double n = std::expm1(std::log1p(std::exp(std::min(x, 100.0))) * 2);
    return std::isnan(x) ? x : n / (n + 2);
  });
}

// Of all magnitudes: the nearest quotient, or one beside it where the dividend is tiny or the quotient is not normal.
template <class F>
void expect_quotients_by_shared(int most, int tiny) {
  const auto same = [](F a, F b) { return a == b ? std::signbit(a) == std::signbit(b) : a != a && b != b; };
  const F infinity = std::numeric_limits<F>::infinity(), nan = std::numeric_limits<F>::quiet_NaN();
  std::vector<F> values{0, -F{0}, 1, -3, infinity, -infinity, nan, std::numeric_limits<F>::denorm_min()};
  for (int exponent = -most; exponent < most; exponent += most / 24)
    for (const double mantissa : {1.0, 1.2345678901234567, -1.9999998807907104})
      values.push_back(static_cast<F>(std::ldexp(mantissa, exponent)));
  for (const F a : values)
    for (const F b : values) {
      const F wanted = a / b, had = divide_by_shared(a, b);
      const bool normal = a == 0 || std::fabs(wanted) > std::numeric_limits<F>::min();
      const bool exact = normal && (a == 0 || std::fabs(a) >= std::ldexp(F{1}, tiny));
      if (exact || std::isnan(wanted) || std::isinf(wanted))
        EXPECT_TRUE(same(had, wanted)) << a << " / " << b << ": " << had << ", not " << wanted;
      else
        EXPECT_LE(std::fabs(had - wanted),
                  std::fabs(wanted) * std::numeric_limits<F>::epsilon() + std::numeric_limits<F>::denorm_min())
            << a << " / " << b;
    }
}

TEST(PreludeMath, QuotientsByOneDivisorAreTheNearestNumbers) {
  expect_quotients_by_shared<float>(126, -52);
  expect_quotients_by_shared<double>(1020, -560);
}

TEST(PreludeNarrow, ComposedFunctionsOfF32AreAsNearAsTheirParts) {
  expect_close("logistic", 0x1p-21, logistic_of_f32, [](double x) {
    const double e = std::exp(x);  // of f32, which ends
    return e > std::numeric_limits<float>::max() ? 0 : 1 / (1 + e);
  });
  expect_close("tanh_of_softplus", 0x1p-21, tanh_of_softplus_of_f32, [](double x) {
    const double n = std::expm1(std::log1p(std::exp(std::min(x, 100.0))) * 2);
    return std::isnan(x) ? x : n / (n + 2);
  });
  for_each_argument([](float x) {  // of f64, whose exact value long double stands for
    const double had = tanh_of_softplus_of_f64(static_cast<double>(x));
    const long double n = std::expm1(std::log1p(std::exp(std::min(static_cast<long double>(x), 100.0L))) * 2);
    const long double wanted = std::isnan(x) ? static_cast<long double>(x) : n / (n + 2);
    ASSERT_TRUE(std::isnan(wanted) ? std::isnan(had) : std::fabs(had - wanted) <= 0x1p-50L * wanted + 0x1p-1074L)
        << x << ": " << had;
  });
  expect_close(
      "log1p", 0x1p-22, [](float x) { return log1p_of_share(std::min(std::fabs(x), 1.0f)); },
      [](double x) { return std::log1p(std::min(std::fabs(x), 1.0)); });
}

}  // namespace
}  // namespace tenon

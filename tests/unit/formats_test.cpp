// Number formats, exhaustively: every bit pattern of the 8- and 16-bit reals, and roundings against a slow search.
#include "ir/ops/formats.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace tenon::ir {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

std::uint64_t patterns(DType dtype) { return std::uint64_t{1} << (size_of(dtype) * 8); }

class SmallFormat : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(All, SmallFormat, testing::Values(DType::f16, DType::bf16, DType::f8e4m3, DType::f8e5m2),
                         [](const auto& test) { return std::string(name_of(test.param)); });

TEST_P(SmallFormat, EveryBitPatternRoundTrips) {
  for (std::uint64_t bits = 0; bits < patterns(GetParam()); ++bits) {
    const double value = decode_real(GetParam(), bits);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(decode_real(GetParam(), encode_real(GetParam(), value))));
    } else {
      ASSERT_EQ(encode_real(GetParam(), value), bits) << value;
    }
  }
}

// The definition of rounding: the nearest of all finite values, ties to the even bit pattern.
class Reference {
 public:
  explicit Reference(DType dtype) : dtype_(dtype) {
    for (std::uint64_t bits = 0; bits < patterns(dtype) / 2; ++bits)
      if (const double value = decode_real(dtype, bits); std::isfinite(value)) values_.push_back(value);
    EXPECT_TRUE(std::is_sorted(values_.begin(), values_.end()));
  }
  double round(double value) const {
    const double magnitude = std::fabs(value);
    const auto above = std::lower_bound(values_.begin(), values_.end(), magnitude);
    // The last value and what would come after it if the format went on.
    const double beyond = 2 * values_.back() - values_[values_.size() - 2];
    const double high = above == values_.end() ? beyond : *above;
    if (high == magnitude) return value;
    const double low = *(above - 1);
    const auto low_index = static_cast<std::size_t>(above - 1 - values_.begin());
    const bool down = magnitude - low < high - magnitude || (magnitude - low == high - magnitude && low_index % 2 == 0);
    const double rounded = magnitude >= beyond ? beyond : down ? low : high;
    const double overflow = dtype_ == DType::f8e4m3 ? kNaN : kInf;
    return std::copysign(rounded == beyond ? overflow : rounded, value);
  }
  const std::vector<double>& values() const { return values_; }

 private:
  DType dtype_;
  std::vector<double> values_;
};

TEST_P(SmallFormat, MidpointsAndTheirNeighboursRoundToNearestEven) {
  const Reference reference(GetParam());
  const auto& values = reference.values();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double next = i + 1 < values.size() ? values[i + 1] : 2 * values[i] - values[i - 1];
    const double middle = values[i] + (next - values[i]) / 2;
    for (const double x : {middle, std::nextafter(middle, 0.0), std::nextafter(middle, kInf)})
      for (const double signed_x : {x, -x}) {
        const double expected = reference.round(signed_x), actual = round_to(GetParam(), signed_x);
        ASSERT_TRUE(std::isnan(expected) ? std::isnan(actual) : expected == actual)
            << signed_x << " gives " << actual << ", not " << expected;
        ASSERT_EQ(std::signbit(expected), std::signbit(actual));
      }
  }
}

TEST_P(SmallFormat, RandomDoublesRoundToTheNearestValue) {
  const Reference reference(GetParam());
  std::mt19937_64 random(1);
  for (int i = 0; i < 100000; ++i) {
    const double x = std::ldexp(static_cast<double>(random()), static_cast<int>(random() % 180) - 150);
    const double expected = reference.round(x), actual = round_to(GetParam(), x);
    ASSERT_TRUE(std::isnan(expected) ? std::isnan(actual) : expected == actual) << x;
  }
}

TEST(Formats, SinglePrecisionRoundsAsTheHostDoes) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 200000; ++i) {
    const double x =
        std::ldexp(static_cast<double>(static_cast<std::int64_t>(random())), static_cast<int>(random() % 300) - 230);
    const auto host = static_cast<float>(x);
    const double actual = round_to(DType::f32, x);
    ASSERT_TRUE(std::isnan(host) ? std::isnan(actual) : static_cast<double>(host) == actual) << x;
    if (std::isnan(host)) continue;
    ASSERT_EQ(encode_real(DType::f32, x), std::bit_cast<std::uint32_t>(host)) << x;
  }
  for (const double x : {0x1p-149, 0x1p-150, 0x1.8p-150, 0x1.fffffefp127, 0x1.ffffffp127, 0x1.fffffep-127})
    EXPECT_EQ(round_to(DType::f32, x), static_cast<double>(static_cast<float>(x))) << x;
}

TEST(Formats, KnownBitPatterns) {
  struct Row {
    DType dtype;
    double value;
    std::uint64_t bits;
  };
  const Row rows[] = {
      {DType::f16, 1.0, 0x3c00},      {DType::f16, -2.0, 0xc000},           {DType::f16, 65504.0, 0x7bff},
      {DType::f16, 65519.9, 0x7bff},  {DType::f16, 65520.0, 0x7c00},        {DType::f16, 0x1p-24, 0x0001},
      {DType::f16, 0x1p-25, 0x0000},  {DType::f16, -kInf, 0xfc00},          {DType::f16, -0.0, 0x8000},
      {DType::bf16, 1.0, 0x3f80},     {DType::bf16, 3.140625, 0x4049},      {DType::bf16, 0x1.ffp127, 0x7f80},
      {DType::bf16, kInf, 0x7f80},    {DType::f8e4m3, 1.0, 0x38},           {DType::f8e4m3, 448.0, 0x7e},
      {DType::f8e4m3, 464.0, 0x7e},   {DType::f8e4m3, 465.0, 0x7f},         {DType::f8e4m3, -kInf, 0xff},
      {DType::f8e4m3, 0x1p-9, 0x01},  {DType::f8e5m2, 1.0, 0x3c},           {DType::f8e5m2, 57344.0, 0x7b},
      {DType::f8e5m2, 61440.0, 0x7c}, {DType::f8e5m2, 61439.0, 0x7b},       {DType::f8e5m2, 0x1p-16, 0x01},
      {DType::f16, kNaN, 0x7e00},     {DType::bf16, kNaN, 0x7fc0},          {DType::f8e4m3, kNaN, 0x7f},
      {DType::f8e5m2, kNaN, 0x7e},    {DType::f64, 1.5, 0x3ff8000000000000}};
  for (const Row& row : rows) EXPECT_EQ(encode_real(row.dtype, row.value), row.bits) << name_of(row.dtype) << row.value;
}

TEST(Formats, RealsBecomeIntegersByTruncationAndSaturation) {
  struct Row {
    DType dtype;
    double value;
    std::int64_t expected;
  };
  const Row rows[] = {{DType::i8, 127.9, 127},
                      {DType::i8, 128.0, 127},
                      {DType::i8, -128.9, -128},
                      {DType::i8, -1.9, -1},
                      {DType::u8, -0.5, 0},
                      {DType::u8, -7.0, 0},
                      {DType::u8, 255.5, 255},
                      {DType::i32, 2147483647.5, 2147483647},
                      {DType::i32, kInf, 2147483647},
                      {DType::i32, -kInf, -2147483648},
                      {DType::i64, 0x1p63, std::numeric_limits<std::int64_t>::max()},
                      {DType::i64, -0x1p63, std::numeric_limits<std::int64_t>::min()},
                      {DType::i64, 0x1.fffffffffffffp62, 0x7ffffffffffffc00},
                      {DType::i64, kNaN, 0},
                      {DType::bool_, 0.25, 1},
                      {DType::bool_, -0.0, 0},
                      {DType::bool_, kNaN, 1}};
  for (const Row& row : rows) EXPECT_EQ(integer_from_real(row.dtype, row.value), row.expected) << row.value;
}

TEST(Formats, IntegersWrapAndBecomeTrue) {
  EXPECT_EQ(integer_from_integer(DType::i8, 200), -56);
  EXPECT_EQ(integer_from_integer(DType::u8, -1), 255);
  EXPECT_EQ(integer_from_integer(DType::i32, std::int64_t{1} << 32), 0);
  EXPECT_EQ(integer_from_integer(DType::bool_, 2), 1);
  EXPECT_EQ(wrap(DType::bool_, 2), 0);
  EXPECT_EQ(decode_integer(DType::bool_, 2), 1);
}

TEST(Formats, IntegersBecomeRealsInOneRounding) {
  // One above the midpoint of two f32 values: a first rounding to double would make it the midpoint.
  const std::int64_t above_middle = (std::int64_t{1} << 60) + (std::int64_t{1} << 36) + 1;  // f32 spacing is 2^37
  EXPECT_EQ(real_from_integer(DType::f32, above_middle), 0x1p60 + 0x1p37);
  EXPECT_EQ(real_from_integer(DType::f32, above_middle - 1), 0x1p60);
  EXPECT_EQ(real_from_integer(DType::f32, -above_middle), -0x1p60 - 0x1p37);
  EXPECT_EQ(real_from_integer(DType::f32, std::numeric_limits<std::int64_t>::min()), -0x1p63);
  EXPECT_EQ(real_from_integer(DType::f16, 70000), kInf);
  EXPECT_EQ(real_from_integer(DType::f16, 2049), 2048);
  EXPECT_TRUE(std::isnan(real_from_integer(DType::f8e4m3, 1000)));
  std::mt19937_64 random(3);
  for (int i = 0; i < 100000; ++i) {
    const auto x = static_cast<std::int64_t>(random()) >> (random() % 63);
    ASSERT_EQ(real_from_integer(DType::f32, x), static_cast<double>(static_cast<float>(x))) << x;
  }
}

TEST(Formats, UlpIsTheDistanceToTheNextNumber) {
  EXPECT_EQ(ulp(DType::f32, 1.0), 0x1p-23);
  EXPECT_EQ(ulp(DType::f32, -1.999), 0x1p-23);
  EXPECT_EQ(ulp(DType::f32, 0.0), 0x1p-149);
  EXPECT_EQ(ulp(DType::bf16, 1.0), 0x1p-7);
  EXPECT_EQ(ulp(DType::f64, 1.0), 0x1p-52);
  EXPECT_EQ(ulp(DType::f64, 0.0), 0x1p-1074);
  EXPECT_EQ(ulp(DType::f8e4m3, 448), 32);
}

}  // namespace
}  // namespace tenon::ir

// Conversions between storage bits and values, from the five facts of each format.
#include "ir/ops/formats.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "ir/graph/check.h"

namespace tenon::ir {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

int bits_of(DType dtype) { return static_cast<int>(size_of(dtype)) * 8; }

// 2^exponent, for exponents of normal doubles.
double power_of_two(int exponent) { return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52); }

// floor(log2(|value|)) of a finite value; -1023 for zero and subnormals, which is below every format's least.
int exponent_of(double value) { return static_cast<int>((std::bit_cast<std::uint64_t>(value) >> 52) & 0x7ff) - 1023; }

double round_finite(const RealFormat& format, double value) {
  const int exponent = std::max(exponent_of(value), format.min_exponent);
  const double quantum = power_of_two(exponent - format.mantissa_bits);
  const double rounded = std::rint(value / quantum) * quantum;  // a division by a power of two: exact
  if (std::fabs(rounded) <= format.largest) return rounded;
  return format.has_infinity ? std::copysign(kInfinity, value) : std::copysign(kNaN, value);
}

// Rounded to odd: the nearest double towards zero whose last bit is set when anything was lost, so that a later
// rounding to fewer bits acts as if on the exact value (Boldo & Melquiond, 2008).
double to_double_odd(std::int64_t value) {
  const bool negative = value < 0;
  std::uint64_t magnitude = negative ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
  const int excess = std::max(0, static_cast<int>(std::bit_width(magnitude)) - 53);
  const bool lost = (magnitude & ((std::uint64_t{1} << excess) - 1)) != 0;
  magnitude = (magnitude >> excess | (lost ? 1 : 0)) << excess;
  return negative ? -static_cast<double>(magnitude) : static_cast<double>(magnitude);
}

}  // namespace

RealFormat real_format(DType dtype) {
  switch (dtype) {
    case DType::f16: return {10, -14, 65504.0, true};
    case DType::bf16: return {7, -126, 0x1.fep127, true};
    case DType::f32: return {23, -126, 0x1.fffffep127, true};
    case DType::f64: return {52, -1022, std::numeric_limits<double>::max(), true};
    case DType::f8e4m3: return {3, -6, 448.0, false};
    case DType::f8e5m2: return {2, -14, 57344.0, true};
    case DType::bool_:
    case DType::i8:
    case DType::i16:
    case DType::i32:
    case DType::i64:
    case DType::u8: break;
  }
  TENON_CHECK(false, "not a real dtype: " + std::string(name_of(dtype)));
  return {};
}

double round_to(DType dtype, double value) {
  if (dtype == DType::f64 || std::isnan(value) || value == 0) return value;
  if (dtype == DType::f32) return static_cast<double>(static_cast<float>(value));
  const RealFormat format = real_format(dtype);
  if (std::isinf(value)) return format.has_infinity ? value : std::copysign(kNaN, value);
  return round_finite(format, value);
}

std::uint64_t encode_real(DType dtype, double value) {
  if (dtype == DType::f64) return std::bit_cast<std::uint64_t>(value);
  const RealFormat format = real_format(dtype);
  const int exponent_bits = bits_of(dtype) - 1 - format.mantissa_bits;
  const std::uint64_t sign = static_cast<std::uint64_t>(std::signbit(value)) << (bits_of(dtype) - 1);
  const std::uint64_t all_ones = ((std::uint64_t{1} << exponent_bits) - 1) << format.mantissa_bits;
  const double rounded = std::fabs(round_to(dtype, value));
  if (std::isnan(rounded))
    return sign | all_ones | (std::uint64_t{1} << (format.mantissa_bits - 1)) | (format.has_infinity ? 0 : 7);
  if (std::isinf(rounded)) return sign | all_ones;
  // Normal: exponent and mantissa side by side. Subnormal: the mantissa counts smallest subnormals.
  const int exponent = std::max(exponent_of(rounded), format.min_exponent);
  const auto mantissa = static_cast<std::uint64_t>(rounded / power_of_two(exponent - format.mantissa_bits));
  return sign | ((static_cast<std::uint64_t>(exponent - format.min_exponent) << format.mantissa_bits) + mantissa);
}

double decode_real(DType dtype, std::uint64_t bits) {
  if (dtype == DType::f64) return std::bit_cast<double>(bits);
  if (dtype == DType::f32) return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  const RealFormat format = real_format(dtype);
  const int exponent_bits = bits_of(dtype) - 1 - format.mantissa_bits;
  const std::uint64_t top_exponent = (std::uint64_t{1} << exponent_bits) - 1;
  const std::uint64_t mantissa_mask = (std::uint64_t{1} << format.mantissa_bits) - 1;
  const std::uint64_t mantissa = bits & mantissa_mask;
  const std::uint64_t exponent = (bits >> format.mantissa_bits) & top_exponent;
  const double sign = (bits >> (bits_of(dtype) - 1) & 1) != 0 ? -1 : 1;
  if (exponent == top_exponent && format.has_infinity) return std::copysign(mantissa == 0 ? kInfinity : kNaN, sign);
  if (exponent == top_exponent && mantissa == mantissa_mask) return std::copysign(kNaN, sign);
  const std::uint64_t significand = exponent == 0 ? mantissa : mantissa | (mantissa_mask + 1);
  const int scale = static_cast<int>(exponent == 0 ? 1 : exponent) - 1 + format.min_exponent - format.mantissa_bits;
  return sign * static_cast<double>(significand) * power_of_two(scale);
}

std::int64_t min_value(DType dtype) {
  if (dtype == DType::bool_ || dtype == DType::u8) return 0;
  return std::numeric_limits<std::int64_t>::min() >> (64 - bits_of(dtype));
}

std::int64_t max_value(DType dtype) {
  if (dtype == DType::bool_) return 1;
  return dtype == DType::u8 ? 255 : std::numeric_limits<std::int64_t>::max() >> (64 - bits_of(dtype));
}

std::int64_t wrap(DType dtype, std::int64_t value) {
  switch (dtype) {
    case DType::bool_: return value & 1;
    case DType::i8: return static_cast<std::int8_t>(value);
    case DType::i16: return static_cast<std::int16_t>(value);
    case DType::i32: return static_cast<std::int32_t>(value);
    case DType::i64: return value;
    case DType::u8: return static_cast<std::uint8_t>(value);
    case DType::f16:
    case DType::bf16:
    case DType::f32:
    case DType::f64:
    case DType::f8e4m3:
    case DType::f8e5m2: break;
  }
  TENON_CHECK(false, "not an integer dtype: " + std::string(name_of(dtype)));
  return 0;
}

std::int64_t decode_integer(DType dtype, std::uint64_t bits) {
  return dtype == DType::bool_ ? bits != 0 : wrap(dtype, static_cast<std::int64_t>(bits));
}

std::int64_t integer_from_real(DType dtype, double value) {
  if (dtype == DType::bool_) return value != 0;
  if (std::isnan(value)) return 0;
  // The greatest i64 is no double; 2^63 - 1 + 1 is. For the other dtypes max + 1 is exact too.
  if (value >= static_cast<double>(max_value(dtype)) + (dtype == DType::i64 ? 0 : 1)) return max_value(dtype);
  if (value <= static_cast<double>(min_value(dtype))) return min_value(dtype);
  return static_cast<std::int64_t>(value);
}

std::int64_t integer_from_integer(DType dtype, std::int64_t value) {
  return dtype == DType::bool_ ? value != 0 : wrap(dtype, value);
}

double real_from_integer(DType dtype, std::int64_t value) {
  return dtype == DType::f64 ? static_cast<double>(value) : round_to(dtype, to_double_odd(value));
}

double ulp(DType dtype, double value) {
  const RealFormat format = real_format(dtype);
  if (!std::isfinite(value)) return 0;
  const int exponent = std::max(exponent_of(value), format.min_exponent) - format.mantissa_bits;
  return exponent > -1023 ? power_of_two(exponent) : std::ldexp(1.0, exponent);
}

}  // namespace tenon::ir

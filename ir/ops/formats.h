// Number formats: every dtype's storage bits to and from double (reals) or int64 (integers and bool), and the
// conversions that `cast` means. All exact, or rounded once, to nearest even. The host's float and double are IEEE
// 754's.
#pragma once

#include <cstdint>

#include "tenon/dtype.h"

namespace tenon::ir {

/// A binary floating-point format. Sources: IEEE 754-2019 (f16, f32, f64); bf16 is f32 without its low 16 bits; f8e4m3
/// ("fn": no infinity, NaN is all ones) and f8e5m2: Micikevicius et al., "FP8 Formats for Deep Learning", 2022.
struct RealFormat {
  int mantissa_bits;  ///< stored, without the leading one
  int min_exponent;   ///< of the smallest normal number
  double largest;     ///< finite
  bool has_infinity;
};

/// Of a real dtype.
RealFormat real_format(DType dtype);

/// The value of the real dtype nearest to `value`, ties to even. Beyond the range: infinity, or NaN for f8e4m3.
double round_to(DType dtype, double value);
/// The storage bits of round_to(dtype, value); a NaN becomes the quiet NaN with the sign of `value`.
std::uint64_t encode_real(DType dtype, double value);
/// The value of storage bits, exactly.
double decode_real(DType dtype, std::uint64_t bits);

/// `value` modulo 2^bits in the integer dtype's range (two's complement); bool keeps the lowest bit.
std::int64_t wrap(DType dtype, std::int64_t value);
/// The least and greatest value of an integer dtype or bool.
std::int64_t min_value(DType dtype);
std::int64_t max_value(DType dtype);
/// The value of storage bits, exactly; for integers and bool (any bits but 0 are true).
std::int64_t decode_integer(DType dtype, std::uint64_t bits);

/// cast, real to integer or bool: truncated, saturated, NaN = 0; to bool: value != 0, so NaN is true.
std::int64_t integer_from_real(DType dtype, double value);
/// cast, integer to integer or bool: wrapped; to bool: value != 0.
std::int64_t integer_from_integer(DType dtype, std::int64_t value);
/// cast, integer or bool to real: rounded once.
double real_from_integer(DType dtype, std::int64_t value);

/// The distance from |value| to the next larger number of the real dtype (at least its smallest subnormal).
double ulp(DType dtype, double value);

}  // namespace tenon::ir

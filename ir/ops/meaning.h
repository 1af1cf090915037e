// The functions that the expressions of ops.def call, on double and float, and on int64 for integers and bool. What a
// device must compute stands here; codegen/prelude/math.cuh and codegen/emit/llvm/ops/ops.cpp say it again for theirs.
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>

namespace tenon::ir::meaning {

using std::acos;
using std::asin;
using std::atan;
using std::ceil;
using std::cos;
using std::cosh;
using std::erf;
using std::exp;
using std::exp2;
using std::expm1;
using std::fabs;
using std::floor;
using std::fma;
using std::isfinite;
using std::isinf;
using std::isnan;
using std::log;
using std::log1p;
using std::log2;
using std::rint;
using std::sin;
using std::sinh;
using std::sqrt;
using std::tan;
using std::tanh;
using std::trunc;

// ---- reals ------------------------------------------------------------------------------------------------------

/// The remainder with the sign of b, exactly (fmod is exact); NaN when b is 0 or a is infinite.
template <std::floating_point T>
T floor_mod(T a, T b) {
  const T rest = std::fmod(a, b);
  if (rest == 0) return std::copysign(rest, b);
  return (rest < 0) != (b < 0) ? rest + b : rest;
}

/// floor(a / b) of the exact quotient, as Python's and NumPy's: never floor of a rounded quotient. a / 0 is what
/// division gives (infinite or NaN); a zero quotient has the sign of a / b.
template <std::floating_point T>
T floor_div(T a, T b) {
  if (b == 0) return a / b;
  const T rest = std::fmod(a, b);
  T quotient = (a - rest) / b;
  if (rest != 0 && (rest < 0) != (b < 0)) quotient -= 1;
  return quotient == 0 ? std::copysign(quotient, a / b)
                       : std::rint(quotient);  // (a - rest) / b is whole up to rounding
}

/// As C's pow, a signalling NaN like a quiet one: to the power of 0 it is 1.
template <std::floating_point T>
T power(T a, T b) {
  return b == 0 ? T{1} : std::pow(a, b);
}

/// -1, 1, or a itself when it is a zero or NaN.
template <std::floating_point T>
T sign(T a) {
  return a > 0 ? T{1} : a < 0 ? T{-1} : a;
}

/// IEEE 754-2019 minimum: NaN if either is, -0 < +0.
template <std::floating_point T>
T minimum(T a, T b) {
  if (std::isnan(a) || std::isnan(b)) return a + b;
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}

/// IEEE 754-2019 maximum: NaN if either is, -0 < +0.
template <std::floating_point T>
T maximum(T a, T b) {
  if (std::isnan(a) || std::isnan(b)) return a + b;
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}

template <std::floating_point T>
T rsqrt(T a) {
  return 1 / std::sqrt(a);
}

// ---- integers and bool: 64 bits, modulo 2^64 --------------------------------------------------------------------

inline std::int64_t wrapping_add(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
inline std::int64_t wrapping_sub(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}
inline std::int64_t wrapping_mul(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}
inline std::int64_t wrapping_abs(std::int64_t a) { return a < 0 ? wrapping_sub(0, a) : a; }

/// Rounded towards -inf; 0 when b is 0; the least integer over -1 wraps to itself.
inline std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return wrapping_sub(0, a);
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

/// With the sign of b; 0 when b is 0.
inline std::int64_t floor_mod(std::int64_t a, std::int64_t b) {
  if (b == 0 || b == -1) return 0;
  const std::int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

/// Modulo 2^64; a negative exponent gives the truncated quotient: 0 unless a is 1 or -1.
inline std::int64_t power(std::int64_t a, std::int64_t b) {
  if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 == 0 ? 1 : -1) : 0;
  std::int64_t result = 1;
  for (; b > 0; b >>= 1, a = wrapping_mul(a, a))
    if ((b & 1) != 0) result = wrapping_mul(result, a);
  return result;
}

inline std::int64_t sign(std::int64_t a) { return (a > 0) - (a < 0); }
inline std::int64_t minimum(std::int64_t a, std::int64_t b) { return a < b ? a : b; }
inline std::int64_t maximum(std::int64_t a, std::int64_t b) { return a > b ? a : b; }

/// Narrower dtypes need no width: what is shifted out of theirs is cut off when the result is wrapped.
inline std::int64_t left_shift(std::int64_t a, std::int64_t b) {
  return b < 0 || b > 63 ? 0 : static_cast<std::int64_t>(static_cast<std::uint64_t>(a) << b);
}
inline std::int64_t right_shift(std::int64_t a, std::int64_t b) { return a >> (b < 0 || b > 63 ? 63 : b); }

}  // namespace tenon::ir::meaning

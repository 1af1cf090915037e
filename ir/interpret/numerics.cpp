// Rounding and stochastic disturbance of real results.
#include "ir/interpret/numerics.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "ir/ops/formats.h"

namespace tenon::ir {
namespace {

// The finaliser of SplitMix64 (Steele, Lea & Flood, "Fast Splittable Pseudorandom Number Generators", 2014).
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// The bound of the error of one rounding to `dtype` here; 0 where `value` needs none. f64 values carry the
// interpreter's own error, so there a whole unit is allowed and nothing counts as exact.
double rounding_error(DType dtype, double value) {
  if (dtype == DType::f64) return ulp(dtype, value);
  return round_to(dtype, value) == value ? 0 : ulp(dtype, value) / 2;
}

// The least number above 0.
double smallest(DType compute) {
  return compute == DType::f64 ? std::numeric_limits<double>::denorm_min()
                               : static_cast<double>(std::numeric_limits<float>::denorm_min());
}

constexpr Op kSelecting[] = {Op::neg, Op::abs, Op::where, Op::minimum, Op::maximum, Op::clamp, Op::max, Op::min};

}  // namespace

bool selects(Op op) { return std::find(std::begin(kSelecting), std::end(kSelecting), op) != std::end(kSelecting); }

double unit_roundoff(DType dtype) { return std::ldexp(0.5, -real_format(dtype).mantissa_bits); }

Numerics::Numerics(const InterpretOptions& options, NodeId node)
    : round_every_op_(options.round_every_op), disturbs_(options.perturb_seed.has_value()) {
  if (!disturbs_) return;
  // An eighth of many runs: what exact arithmetic, rounded, would give, such as the whole exponent that noise misses.
  quiet_ = *options.perturb_seed / 4 % 8 == 7;
  sign_ = *options.perturb_seed % 2 == 0 ? 1 : -1;
  key_ = mix(*options.perturb_seed / 2 ^ mix(static_cast<std::uint64_t>(node)));
  second_pair_ = *options.perturb_seed / 2 % 2 == 1;
  four_key_ = mix(*options.perturb_seed / 4 ^ mix(~static_cast<std::uint64_t>(node)));
  overflows_ = !quiet_ && (mix(key_) & 1) != 0;
  // Half of the runs that follow when the first do not explain a result: a fused plan rounds some values, those that it
  // stores, and not others, and what turns on one of them may need just that choice. There is none for what registers
  // hold rounded anyway: a sum and the maximum subtracted from it are never of two precisions.
  chooses_ = *options.perturb_seed / 8 % 2 == 1 && !quiet_;
  if (chooses_) round_every_op_ = (mix(key_) & 2) != 0;
}

double Numerics::noise(std::int64_t i) const {
  if (quiet_) return 0;
  const std::uint64_t bits = mix(key_ + static_cast<std::uint64_t>(i));
  const double magnitude = 0.5 + std::ldexp(static_cast<double>(bits >> 12), -53);
  return ((bits & 1) != 0 ? sign_ : -sign_) * magnitude;
}

std::uint64_t Numerics::storage_bits(DType dtype, double value, std::int64_t i) const {
  std::uint64_t bits = encode_real(dtype, value);
  if (!std::isnan(value) || !disturbs_ || quiet_) return bits;
  if (noise(i) > 0) bits ^= std::uint64_t{1} << (8 * size_of(dtype) - 1);
  const bool drawn = (mix(four_key_ + static_cast<std::uint64_t>(i)) & 1) != 0;
  if (drawn == second_pair_) bits |= (std::uint64_t{1} << real_format(dtype).mantissa_bits) - 1;
  return bits;
}

bool Numerics::cancels(std::int64_t i) const {
  const bool drawn = (mix(key_ + static_cast<std::uint64_t>(i)) & 2) != 0;
  return !quiet_ && drawn == (sign_ > 0);
}

double Numerics::keep(DType dtype, double value) const {
  if (round_every_op_ || (chooses_ && dtype == compute_type(dtype))) return round_to(dtype, value);
  if (dtype == DType::f64) return value;
  if (overflows_ && std::isfinite(value) && !std::isfinite(round_to(dtype, value))) return round_to(dtype, value);
  if (quiet_) return round_to(DType::f32, value);
  // Doubles hold more than f32 in precision, which is kept, and in range, which is not.
  const double magnitude = std::fabs(value);
  return magnitude < 0x1p-126 || magnitude > 0x1.fffffep127 ? round_to(DType::f32, value) : value;
}

double Numerics::settle(DType dtype, double value, Accuracy accuracy, std::int64_t i) const {
  if (!disturbs_ || value == 0 || !std::isfinite(value)) return keep(dtype, value);
  const DType compute = compute_type(dtype);
  double error = accuracy == Accuracy::routine ? 2 * ulp(compute, value) : rounding_error(compute, value);
  if (dtype != compute && !round_every_op_ && !chooses_) error += rounding_error(dtype, value);
  return keep(dtype, value + noise(i) * error);
}

double Numerics::narrow(DType dtype, double value, std::int64_t i) const {
  constexpr double kError = 0x1p-16;
  return !disturbs_ || round_to(dtype, value) == value ? value : value * (1 + noise(i) * kError);
}

// In some order terms of both signs overflow, or their products do; with fma, whose product has no range, the first
// infinity stays.
double Numerics::overflowed(double value, std::int64_t i) const {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (chooses_) {  // for each element alone
    const std::uint64_t drawn = mix(~key_ + static_cast<std::uint64_t>(i)) & 3;
    return drawn == 0 ? sign_ * kInfinity : drawn == 1 ? -sign_ * kInfinity : value;
  }
  if (second_pair_) return sign_ * kInfinity;
  return noise(i) > 0 ? std::numeric_limits<double>::quiet_NaN() : value;
}

double Numerics::underflowed(double value, std::int64_t i) const {
  if (!disturbs_ || quiet_) return value;
  const std::uint64_t drawn = chooses_ ? mix(~key_ + static_cast<std::uint64_t>(i)) >> 2 & 3 : second_pair_ ? 1 : 0;
  if (drawn == 0) return value;
  return drawn == 1 ? std::copysign(0, value) : value * (1 + noise(i));
}

double Numerics::settle_within(DType dtype, double value, double error, std::int64_t i) const {
  if (disturbs_ && std::isinf(error) && !quiet_) value = overflowed(value, i);
  if (!disturbs_ || !std::isfinite(value)) return keep(dtype, value);
  if (dtype != compute_type(dtype) && !round_every_op_ && !chooses_) error += rounding_error(dtype, value);
  if (error == 0 || !std::isfinite(error)) return keep(dtype, value);
  return keep(dtype, std::fabs(value) <= error && cancels(i) ? 0 : value + noise(i) * error);
}

double Numerics::sum_error(DType compute, std::int64_t terms, double magnitudes, double partial, std::int64_t chain) {
  // Some order of the terms overflows on the way.
  if (magnitudes > (compute == DType::f64 ? std::numeric_limits<double>::max() : std::numeric_limits<float>::max()))
    return std::numeric_limits<double>::infinity();
  const auto n = static_cast<double>(std::max<std::int64_t>(terms, 1));
  const double longest = std::min(n, static_cast<double>(chain));
  // Near the least number a product that an fma adds may be lost altogether, however many there are.
  const double lost = std::min(magnitudes, n / 2 * smallest(compute));
  return unit_roundoff(compute) * ((1 + std::log2(n) / 2) * magnitudes + std::sqrt(longest) / 2 * partial) + lost;
}

}  // namespace tenon::ir

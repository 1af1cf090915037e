// Logarithms of f32, written out as those of elementary.cpp. All rest on log(1 + m) = m + m^2 q(m) for -1/4 <= m < 1/2,
// where x = 2^n (1 + m): q is minimax in the relative error of the logarithm (5e-9).
#include <limits>

#include "codegen/emit/llvm/ops/binary32.h"
#include "codegen/emit/llvm/ops/ops.h"

namespace tenon::codegen::simd {
namespace {

constexpr double kQ[] = {-0.5,          0x1.5555a6p-2,  -0x1.000024p-2, 0x1.99685ap-3, -0x1.54f23ep-3,
                         0x1.2897b6p-3, -0x1.0d9002p-3, 0x1.abf6b6p-4,  -0x1.6fe64cp-5};
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

constexpr int kThreeQuarters = 0x3f400000, kFour = 0x40800000, kExponent = -0x800000;  // bits of 0.75 and 4; a mask

// 2^23 n of 2^n (1 + m) = x, -1/4 <= m < 1/2: what to take from the bits of a number to divide it by 2^n.
Value* exponent_bits(Unit& unit, Value* x) {
  auto& b = unit.b;
  Value* bits = bits_of(unit, x);
  return b.CreateAnd(b.CreateSub(bits, constant_like(bits, kThreeQuarters)), constant_like(bits, kExponent));
}

Value* number_of(Unit& unit, Value* exponent, Value* like) {
  return unit.b.CreateFMul(unit.b.CreateSIToFP(exponent, like->getType()), real_like(like, 0x1p-23));
}

// log(1 + m)
Value* near_one(Unit& unit, Value* m) {
  Value* q = real_like(m, kQ[8]);
  for (int i = 7; i >= 0; --i) q = fused_multiply_add(unit, q, m, real_like(m, kQ[i]));
  return fused_multiply_add(unit, unit.b.CreateFMul(q, m), m, m);
}

// `logarithm` of what lies between `pole` and infinity; at the pole -inf, and NaN below.
Value* from_pole(Unit& unit, Value* x, double pole, Value* logarithm) {
  auto& b = unit.b;
  const auto real = [&](double value) { return real_like(x, value); };
  Value* inside = b.CreateAnd(b.CreateFCmpOGT(x, real(pole)), b.CreateFCmpOLT(x, real(kInfinity)));
  Value* above = b.CreateSelect(b.CreateFCmpOEQ(x, real(kInfinity)), real(kInfinity), real(kNan));
  Value* other = b.CreateSelect(b.CreateFCmpOEQ(x, real(pole)), real(-kInfinity), above);
  return b.CreateSelect(inside, logarithm, other);
}

struct Parts {
  Value* n;
  Value* near;  // log(1 + m)
};

Parts parts_of(Unit& unit, Value* x) {
  auto& b = unit.b;
  Value* subnormal = b.CreateFCmpOLT(x, real_like(x, 0x1p-126));
  Value* normal = b.CreateSelect(subnormal, b.CreateFMul(x, real_like(x, 0x1p+23)), x);
  Value* exponent = exponent_bits(unit, normal);
  Value* m = b.CreateFSub(real_of(unit, b.CreateSub(bits_of(unit, normal), exponent)), real_like(x, 1));
  Value* n = number_of(unit, exponent, x);
  n = b.CreateSelect(subnormal, b.CreateFSub(n, real_like(x, 23)), n);
  return {n, near_one(unit, m)};
}

// log(1 + x) of x > -1 that is finite. 2^n is that of the rounded 1 + x, and m = x / 2^n + (1 / 2^n - 1) is not rounded
// before: what 1 + x loses is not missed.
Value* finite_log1p(Unit& unit, Value* x) {
  auto& b = unit.b;
  Value* exponent = exponent_bits(unit, b.CreateFAdd(x, real_like(x, 1)));
  Value* share = real_of(unit, b.CreateSub(bits_of(unit, x), exponent));
  Value* inverse = real_of(unit, b.CreateSub(constant_like(exponent, kFour), exponent));  // 4 / 2^n, never subnormal
  Value* m = b.CreateFAdd(share, fused_multiply_add(unit, inverse, real_like(x, 0.25), real_like(x, -1)));
  return plus_ln2(unit, near_one(unit, m), number_of(unit, exponent, x), 1);
}

}  // namespace

Value* emit_log(Unit& unit, Value* x) {
  const Parts parts = parts_of(unit, x);
  return from_pole(unit, x, 0, plus_ln2(unit, parts.near, parts.n, 1));
}

Value* emit_log2(Unit& unit, Value* x) {
  const Parts parts = parts_of(unit, x);
  return from_pole(unit, x, 0, fused_multiply_add(unit, parts.near, real_like(x, kLog2E), parts.n));
}

// The sign is that of x, at 0 too. SLEEF's routine for f64 gives up near overflow, where log(1 + x) is log(x).
Value* emit_log1p(Unit& unit, Value* x) {
  auto& b = unit.b;
  if (x->getType()->getScalarType()->isFloatTy())
    return from_pole(unit, x, -1, call_intrinsic(unit, "llvm.copysign", {finite_log1p(unit, x), x}));
  constexpr double kWideLn2 = 0x1.62e42fefa39efp-1;
  Value* large = b.CreateFCmpOGT(x, real_like(x, 0x1p600));
  Value* scaled = b.CreateSelect(large, b.CreateFMul(x, real_like(x, 0x1p-512)), x);
  Value* logarithm = call_sleef(unit, "log1p", {scaled});
  Value* of_large = b.CreateFAdd(logarithm, real_like(x, 512 * kWideLn2));
  Value* result = b.CreateSelect(large, of_large, logarithm);
  return b.CreateSelect(b.CreateFCmpOEQ(x, real_like(x, kInfinity)), x, result);
}

Value* emit_log1p_of_share(Unit& unit, Value* x) { return finite_log1p(unit, x); }

}  // namespace tenon::codegen::simd

// exp, expm1, tanh and erf of f32, written out so that the hot kernels (softmax, activations) make no calls. All rest
// on exp(r) = 1 + r + r^2 q(r) for |r| <= ln(2)/2, q interpolated at Chebyshev nodes (error 8e-9).
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

#include "codegen/emit/llvm/ops/binary32.h"
#include "codegen/emit/llvm/ops/ops.h"

namespace tenon::codegen::simd {
namespace {

constexpr double kQ[] = {0.5, 0x1.5554dcp-3, 0x1.555518p-5, 0x1.120c62p-7, 0x1.6d11fep-10};
// -log(1 - erf z) = z p(z) for 0 <= z <= 4: minimax in the relative error of erf (4e-9), its first coefficient in two
// parts.
constexpr double kErf[] = {0x1.20dd76p+0,  0x1.45f2fap-1,   0x1.a4fa5ep-4,  -0x1.39cdc6p-6, -0x1.505ff6p-13,
                           0x1.b50050p-10, -0x1.4bc9ecp-11, 0x1.ed6c58p-14, -0x1.3696b4p-17};
constexpr double kErfLow = -0x1.d0e246p-25;
constexpr double kRoundToInteger = 0x1.8p+23;  // adding it leaves an integer in the low bits

// x = n ln2 + r; `n` as a real and as integer bits.
struct Reduction {
  Value* n;
  Value* n_bits;
  Value* exp;  // of r
};

Reduction reduce(Unit& unit, Value* x) {
  auto& b = unit.b;
  const auto real = [&](double value) { return real_like(x, value); };
  Value* shifted = fused_multiply_add(unit, x, real(kLog2E), real(kRoundToInteger));
  Value* n = b.CreateFSub(shifted, real(kRoundToInteger));
  Value* r = fused_multiply_add(unit, n, real(-kLn2High), x);
  r = fused_multiply_add(unit, n, real(-kLn2Low), r);
  Value* q = real(kQ[4]);
  for (int i = 3; i >= 0; --i) q = fused_multiply_add(unit, q, r, real(kQ[i]));
  for (int i = 0; i < 2; ++i) q = fused_multiply_add(unit, q, r, real(1));
  return {n, b.CreateSub(bits_of(unit, shifted), bits_of(unit, real(kRoundToInteger))), q};
}

// 2^n as f32, -126 <= n <= 127.
Value* power_of_two(Unit& unit, Value* n) {
  auto& b = unit.b;
  Value* bits = b.CreateShl(b.CreateAdd(n, constant_like(n, 127)), constant_like(n, 23));
  return b.CreateBitCast(bits, vector_of(b.getFloatTy(), lanes_of(n)));
}

// mantissa * 2^n of 16 lanes: one instruction of AVX-512.
Value* scaled(Unit& unit, Value* mantissa, Value* n) {
  auto& b = unit.b;
  constexpr int kAllLanes = 0xffff, kCurrentRounding = 4;
  return b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_scalef_ps_512, {},
                           {mantissa, n, mantissa, b.getInt16(kAllLanes), b.getInt32(kCurrentRounding)});
}

// min(limit, x) and max(limit, x), in the form that keeps a NaN x and is one instruction.
Value* at_most(Unit& unit, Value* x, double limit) {
  return unit.b.CreateSelect(unit.b.CreateFCmpOLT(real_like(x, limit), x), real_like(x, limit), x);
}
Value* at_least(Unit& unit, Value* x, double limit) {
  return unit.b.CreateSelect(unit.b.CreateFCmpOGT(real_like(x, limit), x), real_like(x, limit), x);
}

Value* exp_in_range(Unit& unit, Value* x) {
  auto& b = unit.b;
  const Reduction parts = reduce(unit, x);
  if (unit.target.vector_bytes == 64 && lanes_of(x) == 16) return scaled(unit, parts.exp, parts.n);
  // 2^n in two factors: results may be subnormal or overflow, neither factor does.
  Value* half = b.CreateAShr(parts.n_bits, constant_like(parts.n_bits, 1));
  Value* rest = b.CreateSub(parts.n_bits, half);
  return b.CreateFMul(b.CreateFMul(parts.exp, power_of_two(unit, half)), power_of_two(unit, rest));
}

}  // namespace

Value* bits_of(Unit& unit, Value* real) {
  return unit.b.CreateBitCast(real, vector_of(unit.b.getInt32Ty(), lanes_of(real)));
}

Value* real_of(Unit& unit, Value* bits) {
  return unit.b.CreateBitCast(bits, vector_of(unit.b.getFloatTy(), lanes_of(bits)));
}

Value* plus_ln2(Unit& unit, Value* x, Value* n, double c) {
  if (has_fma(unit.target)) return fused_multiply_add(unit, n, real_like(x, c * kLn2), x);
  return fused_multiply_add(unit, n, real_like(x, c * kLn2Low),
                            fused_multiply_add(unit, n, real_like(x, c * kLn2High), x));
}

Value* fused_multiply_add(Unit& unit, Value* a, Value* b, Value* c) {
  return unit.b.CreateIntrinsic(llvm::Intrinsic::fmuladd, {a->getType()}, {a, b, c});
}

Value* emit_exp(Unit& unit, Value* x) { return exp_in_range(unit, at_least(unit, at_most(unit, x, 89), -104)); }

Value* emit_exp_at_most_one(Unit& unit, Value* x) { return exp_in_range(unit, at_least(unit, x, -104)); }

// The reciprocal is the same for a whole row; the remainder of the quotient by it makes that the nearest number
// (Markstein 1990; codegen/prelude/math.cuh has the reference).
Value* emit_share(Unit& unit, Value* a, Value* b) {
  auto& builder = unit.b;
  Value* inverse = builder.CreateFDiv(real_like(a, 1), b);
  Value* quotient = builder.CreateFMul(a, inverse);
  Value* remainder = fused_multiply_add(unit, builder.CreateFNeg(quotient), b, a);
  return fused_multiply_add(unit, remainder, inverse, quotient);
}

// Where SLEEF gives up (88 and 709), e^|x| / 2 = (e / 2) e with e = exp(|x| / 2).
Value* emit_hyperbolic(Unit& unit, std::string_view name, Value* x) {
  auto& b = unit.b;
  Value* magnitude = call_intrinsic(unit, "llvm.fabs", {x});
  const double limit = x->getType()->getScalarType()->isFloatTy() ? 80 : 700;
  Value* root = emit_spelled(unit, "sleef:exp", DType::f32, {b.CreateFMul(magnitude, real_like(x, 0.5))});
  Value* large = b.CreateFMul(b.CreateFMul(root, real_like(x, 0.5)), root);
  if (name == "sinh") large = call_intrinsic(unit, "llvm.copysign", {large, x});
  return b.CreateSelect(b.CreateFCmpOGT(magnitude, real_like(x, limit)), large, call_sleef(unit, name, {x}));
}

// x = n ln2 + r: 2^n expm1(r) + (2^n - 1), by halves, for 2^n may be beyond the range where the result is not.
Value* emit_expm1(Unit& unit, Value* x) {
  auto& b = unit.b;
  const auto real = [&](double value) { return real_like(x, value); };
  constexpr double kShift = kRoundToInteger + 126;  // leaves n + 126, the exponent of 2^n / 2, in the low bits
  Value* limited = at_least(unit, at_most(unit, x, 89), -18);
  Value* shifted = fused_multiply_add(unit, limited, real(kLog2E), real(kShift));
  Value* n = b.CreateFSub(shifted, real(kShift));
  Value* r = fused_multiply_add(unit, n, real(-kLn2Low), fused_multiply_add(unit, n, real(-kLn2High), limited));
  Value* q = real(kQ[4]);
  for (int i = 3; i >= 0; --i) q = fused_multiply_add(unit, q, r, real(kQ[i]));
  Value* expm1 = fused_multiply_add(unit, b.CreateFMul(r, r), q, r);
  Value* bits = bits_of(unit, shifted);
  Value* half = b.CreateBitCast(b.CreateShl(bits, constant_like(bits, 23)), x->getType());
  Value* result = fused_multiply_add(unit, half, expm1, b.CreateFSub(half, real(0.5)));
  return call_intrinsic(unit, "llvm.copysign", {b.CreateFMul(result, real(2)), x});
}

// e (e + 2) / (e (e + 2) + 2) with e = exp(x): 1 long before e e leaves the range.
Value* emit_tanh_of_softplus(Unit& unit, Value* x) {
  auto& b = unit.b;
  const bool is_float = x->getType()->getScalarType()->isFloatTy();
  Value* limited = at_most(unit, x, is_float ? 20 : 40);
  Value* e = is_float ? emit_exp(unit, limited) : call_sleef(unit, "exp", {limited});
  Value* n = b.CreateFMul(e, b.CreateFAdd(e, real_like(x, 2)));
  return b.CreateFDiv(n, b.CreateFAdd(n, real_like(x, 2)));
}

// With t = expm1(2|x|) / 2: tanh |x| = t / (t + 1), accurate down to 0; from |x| = 9.02 on it rounds to 1. Here
// 2|x| = n ln2 + 2h and expm1(2h) / 2 = h + 2 h^2 q(2h); n is small, so that with an fma one constant for ln2 does.
Value* emit_tanh(Unit& unit, Value* x) {
  auto& b = unit.b;
  const auto real = [&](double value) { return real_like(x, value); };
  constexpr double kShift = kRoundToInteger + 127;  // leaves n + 127, an exponent, in the low bits
  Value* magnitude = at_most(unit, call_intrinsic(unit, "llvm.fabs", {x}), 9.1);
  Value* shifted = fused_multiply_add(unit, magnitude, real(2 * kLog2E), real(kShift));
  Value* h = plus_ln2(unit, magnitude, b.CreateFSub(shifted, real(kShift)), -0.5);
  Value* q = real(2 * 16 * kQ[4]);
  for (int i = 3; i >= 0; --i) q = fused_multiply_add(unit, q, h, real((2 << i) * kQ[i]));
  Value* half_expm1 = fused_multiply_add(unit, b.CreateFMul(h, h), q, h);
  Value* bits = bits_of(unit, shifted);
  Value* scale = b.CreateBitCast(b.CreateShl(bits, constant_like(bits, 23)), x->getType());
  Value* t = fused_multiply_add(unit, scale, half_expm1, fused_multiply_add(unit, scale, real(0.5), real(-0.5)));
  Value* result = b.CreateFDiv(t, b.CreateFAdd(t, real(1)));
  return call_intrinsic(unit, "llvm.copysign", {result, x});
}

// erf |x| = -expm1(-y) with y = |x| p(|x|), accurate down to 0; from |x| = 3.92 on it rounds to 1. Here y = s - n ln2,
// n from 0 down to -26, and -expm1(-s) = s - s^2 q(-s).
Value* emit_erf(Unit& unit, Value* x) {
  auto& b = unit.b;
  const auto real = [&](double value) { return real_like(x, value); };
  constexpr double kShift = kRoundToInteger + 127;  // leaves n + 127, an exponent, in the low bits
  Value* magnitude = at_most(unit, call_intrinsic(unit, "llvm.fabs", {x}), 4);
  Value* p = real(kErf[8]);
  for (int i = 7; i >= 1; --i) p = fused_multiply_add(unit, p, magnitude, real(kErf[i]));
  p = fused_multiply_add(unit, p, magnitude, real(kErfLow));
  Value* y = fused_multiply_add(unit, magnitude, real(kErf[0]), b.CreateFMul(magnitude, p));
  Value* shifted = fused_multiply_add(unit, y, real(-kLog2E), real(kShift));
  Value* s = plus_ln2(unit, y, b.CreateFSub(shifted, real(kShift)), 1);
  Value* q = real(-kQ[4]);
  for (int i = 3; i >= 0; --i) q = fused_multiply_add(unit, q, s, real((i % 2 == 0 ? -1 : 1) * kQ[i]));
  Value* less = fused_multiply_add(unit, b.CreateFMul(s, s), q, s);
  Value* bits = bits_of(unit, shifted);
  Value* scale = b.CreateBitCast(b.CreateShl(bits, constant_like(bits, 23)), x->getType());
  Value* result = fused_multiply_add(unit, scale, less, b.CreateFSub(real(1), scale));
  return call_intrinsic(unit, "llvm.copysign", {result, x});
}

// Without the sign and the difference that keep tanh itself accurate near 0: five operations fewer. -2x = n ln2 + r
// with r = -2h; n is small where the result is not, as in a tanh.
Value* emit_one_plus_tanh(Unit& unit, Value* x) {
  auto& b = unit.b;
  const auto real = [&](double value) { return real_like(x, value); };
  constexpr double kShift = kRoundToInteger + 127;  // leaves n + 127, an exponent, in the low bits
  Value* vanishes = b.CreateFCmpOLT(x, real(-43));  // 0 behind 1e-37, as at -inf, which 0 times -inf shows
  x = at_least(unit, at_most(unit, x, 43), -43);
  Value* shifted = fused_multiply_add(unit, x, real(-2 * kLog2E), real(kShift));
  Value* h = plus_ln2(unit, x, b.CreateFSub(shifted, real(kShift)), 0.5);
  Value* q = real(4 * 16 * kQ[4]);  // expm1(-2h) = h (-2 + h q)
  for (int i = 3; i >= 0; --i) q = fused_multiply_add(unit, q, h, real((i % 2 == 0 ? 4 : -4) * (1 << i) * kQ[i]));
  Value* expm1 = b.CreateFMul(fused_multiply_add(unit, q, h, real(-2)), h);
  Value* bits = bits_of(unit, shifted);
  Value* scale = b.CreateBitCast(b.CreateShl(bits, constant_like(bits, 23)), x->getType());
  // No 1 is added to what is small, so that only the sum and the quotient round.
  Value* sum = b.CreateFDiv(real(2), fused_multiply_add(unit, scale, expm1, b.CreateFAdd(scale, real(1))));
  return b.CreateSelect(vanishes, real(0), sum);
}

}  // namespace tenon::codegen::simd

// Conversions between dtypes, rounded once to nearest even. They give the bits of ir/ops/formats.cpp.

//@ bf16_to_f32
// As two halves of a register, so that half of a loaded register takes one instruction to get there.
__device__ __forceinline__ float bf16_to_f32(bf16 x) {
#if __CUDA_ARCH__ >= 800
  float y;
  asm("{ .reg .b16 zero; mov.b16 zero, 0; mov.b32 %0, {zero, %1}; }" : "=f"(y) : "h"(x.bits));
  return y;
#else
  return __uint_as_float((u32)x.bits << 16);
#endif
}

//@ small_to_f32
// An integer of 8 or 16 bits becomes the low bits of 2^23, which is subtracted again: exact, and eight times as many in a
// clock as the instruction that converts.
__device__ __forceinline__ float small_to_f32(u8 x) { return __uint_as_float(0x4b000000u | x) - 8388608.0f; }
__device__ __forceinline__ float small_to_f32(i8 x) { return __uint_as_float(0x4b000080u ^ (u8)x) - 8388736.0f; }
__device__ __forceinline__ float small_to_f32(i16 x) { return __uint_as_float(0x4b008000u ^ (u16)x) - 8421376.0f; }

//@ f32_to_bf16
__device__ __forceinline__ bf16 f32_to_bf16(float x) {
  bf16 y;
#if __CUDA_ARCH__ >= 800
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
#else
  const u32 bits = __float_as_uint(x);
  const u32 rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
  y.bits = (u16)((bits & 0x7fffffffu) > 0x7f800000u ? (bits >> 16 & 0x8000u) | 0x7fc0u : rounded >> 16);
#endif
  return y;
}

//@ f32_to_small
// The magnitude of x in a format of `mantissa` stored bits and `exponent` exponent bits, not limited to its range.
// Normal numbers: rounded in place, then the exponent is rebased. Subnormal ones: an addition whose sum has the
// smallest subnormal as its last bit.
template <int exponent, int mantissa>
__device__ __forceinline__ u32 f32_to_small(float x) {
  constexpr int bias = (1 << (exponent - 1)) - 1;
  constexpr int dropped = 23 - mantissa;
  const u32 bits = __float_as_uint(x) & 0x7fffffffu;
  const u32 rounded = (bits + (1u << (dropped - 1)) - 1u + ((bits >> dropped) & 1u)) >> dropped;
  const u32 normal = rounded - ((127u - bias) << mantissa);
  const u32 one = (u32)(127 + 1 - bias + dropped) << 23;
  const u32 subnormal = __float_as_uint(__uint_as_float(bits) + __uint_as_float(one)) - one;
  return bits < ((u32)(128 - bias) << 23) ? subnormal : normal;
}

//@ f32_to_f8e4m3
// Beyond 448: NaN, which also stands for infinity.
__device__ __forceinline__ f8e4m3 f32_to_f8e4m3(float x) {
#if __CUDA_ARCH__ >= 890
  u16 bits;  // of 448 at most, or NaN
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(bits) : "f"(0.0f), "f"(x));
  return {(u8)(bits | (fabsf(x) > 464.0f ? 0x7f : 0))};
#else
  const u32 magnitude = f32_to_small<4, 3>(x);
  const u32 sign = __float_as_uint(x) >> 24 & 0x80u;
  return {(u8)(sign | (magnitude < 0x7fu ? magnitude : 0x7fu))};
#endif
}

//@ f32_to_f8e5m2
// Beyond 57344: infinity.
__device__ __forceinline__ f8e5m2 f32_to_f8e5m2(float x) {
#if __CUDA_ARCH__ >= 890
  u16 bits;  // of 57344 at most, or NaN
  asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(bits) : "f"(0.0f), "f"(x));
  return {(u8)(fabsf(x) >= 61440.0f ? (bits & 0x80) | 0x7c : bits)};
#else
  const u32 magnitude = x == x ? f32_to_small<5, 2>(x) : 0x7eu;
  const u32 sign = __float_as_uint(x) >> 24 & 0x80u;
  return {(u8)(sign | (x == x && magnitude > 0x7cu ? 0x7cu : magnitude))};
#endif
}

//@ f8e4m3_to_f32
__device__ __forceinline__ float f8e4m3_to_f32(f8e4m3 x) {
#if __CUDA_ARCH__ >= 890
  u32 pair;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pair) : "h"((u16)x.bits));
  return f16_to_f32({(u16)pair});
#else
  const float magnitude = __uint_as_float((x.bits & 0x7fu) << 20) * 0x1p120f;
  const u32 bits = (x.bits & 0x7fu) == 0x7fu ? 0x7fc00000u : __float_as_uint(magnitude);
  return __uint_as_float(bits | (x.bits & 0x80u) << 24);
#endif
}

//@ f8e5m2_to_f32
__device__ __forceinline__ float f8e5m2_to_f32(f8e5m2 x) {
#if __CUDA_ARCH__ >= 890
  u32 pair;
  asm("cvt.rn.f16x2.e5m2x2 %0, %1;" : "=r"(pair) : "h"((u16)x.bits));
  return f16_to_f32({(u16)pair});
#else
  const float magnitude = __uint_as_float((x.bits & 0x7fu) << 21) * 0x1p112f;
  const u32 special = (x.bits & 0x7fu) == 0x7cu ? 0x7f800000u : 0x7fc00000u;
  const u32 bits = (x.bits & 0x7cu) == 0x7cu ? special : __float_as_uint(magnitude);
  return __uint_as_float(bits | (x.bits & 0x80u) << 24);
#endif
}

//@ f64_to_f32_odd
// Towards zero, with the last bit set when anything was lost: rounding the result to 22 bits or fewer acts as if on x
// itself (Boldo & Melquiond, 2008).
__device__ __forceinline__ float f64_to_f32_odd(double x) {
  const float y = __double2float_rz(x);
  return (double)y == x || x != x ? y : __uint_as_float(__float_as_uint(y) | 1u);
}

//@ i64_to_f32_odd
// As f64_to_f32_odd.
__device__ __forceinline__ float i64_to_f32_odd(i64 x) {
  const float y = __ll2float_rz(x);
  return (i64)y == x ? y : __uint_as_float(__float_as_uint(y) | 1u);
}

//@ saturate
// A real as integer: truncated, limited to the range, NaN = 0. From f32 to 32 bits or fewer that is one instruction; those
// from f64 and to i64 make something else of NaN.
template <class I, class F>
__device__ __forceinline__ I saturate(F x) {
#ifdef __CUDA_ARCH__
  constexpr bool has_sign = (I)-1 < (I)0;
  if constexpr (sizeof(F) == 4 && sizeof(I) <= 4) {
    int y;
    if constexpr (sizeof(I) == 4) y = __float2int_rz(x);
    else if constexpr (sizeof(I) == 2) asm("cvt.rzi.s16.f32 %0, %1;" : "=r"(y) : "f"(x));
    else if constexpr (has_sign) asm("cvt.rzi.s8.f32 %0, %1;" : "=r"(y) : "f"(x));
    else asm("cvt.rzi.u8.f32 %0, %1;" : "=r"(y) : "f"(x));
    return (I)y;
  } else if constexpr (sizeof(I) == 8) {
    const i64 y = sizeof(F) == 4 ? __float2ll_rz((float)x) : __double2ll_rz(x);
    return x == x ? y : 0;
  } else {
    constexpr int bits = 8 * (int)sizeof(I) - (has_sign ? 1 : 0);
    constexpr int greatest = (int)(~0u >> (32 - bits)), least = has_sign ? -greatest - 1 : 0;
    const int y = __double2int_rz(x);
    return (I)(x == x ? min(max(y, least), greatest) : 0);
  }
#else
  constexpr bool has_sign = (I)-1 < (I)0;
  constexpr I greatest = (I)(~0ull >> (64 - 8 * (int)sizeof(I) + (has_sign ? 1 : 0)));
  constexpr I least = has_sign ? (I)(-greatest - 1) : (I)0;
  if (x != x) return 0;
  if (x >= (F)greatest + 1) return greatest;
  if (x <= (F)least) return least;
  return (I)x;
#endif
}

//@ bit_cast
// The same bits as another type.
template <class To, class From>
__device__ __forceinline__ To bit_cast(From x) {
  static_assert(sizeof(To) == sizeof(From), "bit_cast keeps the size");
  To y;
  memcpy(&y, &x, sizeof(To));
  return y;
}

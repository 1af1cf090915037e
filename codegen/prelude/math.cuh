// The functions that ops.def's expressions call beyond CUDA's own (exp, fma, isnan … are overloaded there). Integer
// ones work on int or i64, to which narrower types are promoted; a result is wrapped when it is given its dtype.

//@ to_unsigned
__device__ __forceinline__ u32 to_unsigned(int x) { return (u32)x; }
__device__ __forceinline__ u64 to_unsigned(i64 x) { return (u64)x; }

//@ wrapping_add
template <class A, class B>
__device__ __forceinline__ auto wrapping_add(A a, B b) {
  using C = decltype(a + b);
  return (C)(to_unsigned((C)a) + to_unsigned((C)b));
}

//@ wrapping_sub
template <class A, class B>
__device__ __forceinline__ auto wrapping_sub(A a, B b) {
  using C = decltype(a + b);
  return (C)(to_unsigned((C)a) - to_unsigned((C)b));
}

//@ wrapping_mul
template <class A, class B>
__device__ __forceinline__ auto wrapping_mul(A a, B b) {
  using C = decltype(a + b);
  return (C)(to_unsigned((C)a) * to_unsigned((C)b));
}

//@ wrapping_abs
template <class A>
__device__ __forceinline__ auto wrapping_abs(A a) {
  const auto x = +a;
  return x < 0 ? wrapping_sub(0, x) : x;
}

//@ low_byte
// The low byte of x as a signed one, by an instruction that the compiler does not take apart.
__device__ __forceinline__ i8 low_byte(int x) {
  int y;
  asm("cvt.s32.s8 %0, %1;" : "=r"(y) : "r"(x));
  return (i8)y;
}

//@ floor_div
// The floor of the exact quotient; a zero quotient has the sign of a / b. By 0: what division gives.
template <class F>
__device__ __forceinline__ F floor_div_real(F a, F b) {
  if (b == 0) return a / b;
  const F rest = fmod(a, b);
  F quotient = (a - rest) / b;
  if (rest != 0 && (rest < 0) != (b < 0)) quotient -= 1;
  return quotient == 0 ? copysign(quotient, a / b) : rint(quotient);
}
__device__ __forceinline__ float floor_div(float a, float b) { return floor_div_real(a, b); }
__device__ __forceinline__ double floor_div(double a, double b) { return floor_div_real(a, b); }
// By 0: 0. The least integer by -1 wraps to itself.
template <class A, class B>
__device__ __forceinline__ auto floor_div(A a, B b) {
  using C = decltype(a + b);
  const C x = a, y = b;
  if (y == 0) return (C)0;
  if (y == -1) return (C)wrapping_sub((C)0, x);
  return (C)(x / y - (x % y != 0 && (x < 0) != (y < 0)));
}

//@ floor_mod
// The remainder with the sign of b, exactly; NaN when b is 0 or a is infinite.
template <class F>
__device__ __forceinline__ F floor_mod_real(F a, F b) {
  const F rest = fmod(a, b);
  if (rest == 0) return copysign(rest, b);
  return (rest < 0) != (b < 0) ? rest + b : rest;
}
__device__ __forceinline__ float floor_mod(float a, float b) { return floor_mod_real(a, b); }
__device__ __forceinline__ double floor_mod(double a, double b) { return floor_mod_real(a, b); }
// By 0: 0.
template <class A, class B>
__device__ __forceinline__ auto floor_mod(A a, B b) {
  using C = decltype(a + b);
  const C x = a, y = b;
  if (y == 0 || y == -1) return (C)0;
  const C rest = x % y;
  return rest != 0 && (rest < 0) != (y < 0) ? (C)(rest + y) : rest;
}

//@ small_floor_div
// By a positive literal, of an integer that is at least -plus, a multiple of it. The quotient of their sum is a product,
// whose upper bits it is (codegen/analysis/small_quotient.h).
template <int divisor, int plus, u32 multiple, int shift>
__device__ __forceinline__ int small_floor_div(int x) {
  return (int)((u32)(x + plus) * multiple >> shift) - plus / divisor;
}

//@ small_floor_mod
// The remainder of the same.
template <int divisor, int plus, u32 multiple, int shift>
__device__ __forceinline__ int small_floor_mod(int x) {
  const u32 sum = (u32)(x + plus);
  return (int)(sum - (sum * multiple >> shift) * (u32)divisor);
}

//@ power
__device__ __forceinline__ float power(float a, float b) { return pow(a, b); }
__device__ __forceinline__ double power(double a, double b) { return pow(a, b); }
// By squaring, modulo 2^bits; a negative exponent gives 0 unless |a| is 1.
template <class A, class B>
__device__ __forceinline__ auto power(A a, B b) {
  using C = decltype(a + b);
  const C x = a, y = b;
  // Not by y % 2 == 0: CUDA 13.0's ptxas gives 1 for -1 to the power of an odd 64-bit y where both are ~z.
  if (y < 0) return (C)(x == 1 ? 1 : x == -1 ? 1 - 2 * (y & 1) : 0);
  C result = 1;
  C square = x;
  for (C rest = y; rest > 0; rest >>= 1) {
    if (rest & 1) result = wrapping_mul(result, square);
    square = wrapping_mul(square, square);
  }
  return result;
}

//@ sign
// A zero or NaN is its own sign.
template <class T>
__device__ __forceinline__ T sign(T a) {
  const auto x = +a;
  return x > 0 ? (T)1 : x < 0 ? (T)-1 : a;
}

//@ minimum
// IEEE 754-2019: NaN if either is, -0 < +0.
__device__ __forceinline__ double minimum(double a, double b) {
  if (a != a || b != b) return a + b;
  if (a == b) return signbit(a) ? a : b;
  return a < b ? a : b;
}
__device__ __forceinline__ float minimum(float a, float b) {
#if __CUDA_ARCH__ >= 800
  float y;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
#else
  if (a != a || b != b) return a + b;
  if (a == b) return signbit(a) ? a : b;
  return a < b ? a : b;
#endif
}
template <class T>
__device__ __forceinline__ T minimum(T a, T b) {
  return a < b ? a : b;
}

//@ maximum
// IEEE 754-2019: NaN if either is, -0 < +0.
__device__ __forceinline__ double maximum(double a, double b) {
  if (a != a || b != b) return a + b;
  if (a == b) return signbit(a) ? b : a;
  return a > b ? a : b;
}
__device__ __forceinline__ float maximum(float a, float b) {
#if __CUDA_ARCH__ >= 800
  float y;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
#else
  if (a != a || b != b) return a + b;
  if (a == b) return signbit(a) ? b : a;
  return a > b ? a : b;
#endif
}
template <class T>
__device__ __forceinline__ T maximum(T a, T b) {
  return a > b ? a : b;
}

//@ left_shift
// 0 when b is negative or not below the width.
template <class A, class B>
__device__ __forceinline__ auto left_shift(A a, B b) {
  using C = decltype(a + b);
  const C y = b;
  return y < 0 || y >= 8 * (int)sizeof(C) ? (C)0 : (C)(to_unsigned((C)a) << (int)y);
}

//@ right_shift
// Arithmetic; the sign fill when b is negative or not below the width.
template <class A, class B>
__device__ __forceinline__ auto right_shift(A a, B b) {
  using C = decltype(a + b);
  constexpr int last = 8 * (int)sizeof(C) - 1;
  const C y = b;
  return (C)((C)a >> (y < 0 || y > last ? last : (int)y));
}

//@ divide_by
// a / b for a normal b whose reciprocal, `inverse`, is normal too, rounded to the nearest: without the branch of a
// division. As in share_of the remainder makes the quotient by it the nearest number, or one beside it where a is below
// 2^-100 (in f64 2^-960) and the remainder underflows, or the quotient is not normal. Infinite quotients have none, and
// zeros keep their sign.
template <class F>
__device__ __forceinline__ F divide_by(F a, F b, F inverse) {
  const F quotient = a * inverse;
  const F nearest = fma(fma(-quotient, b, a), inverse, quotient);
  return fabs(nearest) > 0 ? nearest : quotient;
}

//@ divide_by_shared
// a / b where many a have the same b, whose reciprocal then is found once: rounded as divide_by does. Both are scaled so
// that b and its reciprocal are normal; a that leaves the range by it has a quotient that leaves it further.
__device__ __forceinline__ float divide_by_shared(float a, float b) {
  const float size = fabsf(b), scale = size > 0x1p100f ? 0x1p-48f : size < 0x1p-76f ? 0x1p48f : 1.0f;
  b *= scale;
  return divide_by(a * scale, b, 1.0f / b);
}
__device__ __forceinline__ double divide_by_shared(double a, double b) {
  const double size = fabs(b), scale = size > 0x1p800 ? 0x1p-400 : size < 0x1p-600 ? 0x1p400 : 1.0;
  b *= scale;
  return divide_by(a * scale, b, 1.0 / b);
}

//@ share_of
// a / b where a is from 0 to 1 and b at least 1, or one is NaN. The reciprocal is the same for a whole row; the
// quotient by it is within two units of the last place, and its remainder makes it the nearest number (Markstein,
// "Computation of elementary functions on the IBM RISC System/6000 processor", 1990), or one beside it where a is below
// 2^-100 and the remainder underflows.
__device__ __forceinline__ float share_of(float a, float b) {
  const float inverse = 1.0f / b;
  const float quotient = a * inverse;
  return fma(-fma(quotient, b, -a), inverse, quotient);
}
__device__ __forceinline__ double share_of(double a, double b) { return a / b; }

// Functions for results of 16 bits (codegen/analysis/narrow.h), and at the end some of f32: to within 2^-16 of their value
// where nothing else is said,
// by the approximate instructions, of which a multiprocessor has sixteen in a clock, and without a branch. Polynomials are
// minimax ones (Remez). Special values are those of ops.def's expressions.

//@ power_of_two
// 2^x to within 2^-22 of its value; 0 below 2^-126.
__device__ __forceinline__ float power_of_two(float x) {
  float y;
#ifdef __CUDA_ARCH__
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
#else
  y = host_power_of_two(x);
#endif
  return y;
}

//@ quick_log2
// log2(x) to within 2^-22 of its value; from 1/2 to 2 the error alone is at most 2^-22.
__device__ __forceinline__ float quick_log2(float x) {
  float y;
#ifdef __CUDA_ARCH__
  asm("lg2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
#else
  y = host_quick_log2(x);
#endif
  return y;
}

//@ log2_of_normal
// The same of what is no subnormal number, in three instructions less.
__device__ __forceinline__ float log2_of_normal(float x) {
  float y;
#ifdef __CUDA_ARCH__
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
#else
  y = host_quick_log2(flushed(x));
#endif
  return y;
}

//@ quick_reciprocal
// 1 / x to within 2^-23 of its value; 0 where that is below 2^-126.
__device__ __forceinline__ float quick_reciprocal(float x) {
  float y;
#ifdef __CUDA_ARCH__
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
#else
  y = host_quick_reciprocal(x);
#endif
  return y;
}

//@ narrow_sqrt
__device__ __forceinline__ float narrow_sqrt(float x) {
  float y;
#ifdef __CUDA_ARCH__
  asm("sqrt.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
#else
  y = host_quick_sqrt(x);
#endif
  return y;
}

//@ narrow_exp
// The square of its root: 2^n in one instruction gives no subnormal numbers, and half of n is within its range.
__device__ __forceinline__ float narrow_exp(float x) {
  const float root = power_of_two(x * 0.72134752f);
  return root * root;
}

//@ narrow_share
// As share_of, to within two units of the last place.
__device__ __forceinline__ float narrow_share(float a, float b) { return a * (1.0f / b); }

//@ narrow_div
// a / b to within two units of the last place. The reciprocal and its scaling are of b alone, so that quotients by one
// number share them, and no branch is taken for large and small numbers.
__device__ __forceinline__ float narrow_div(float a, float b) {
#ifdef __CUDA_ARCH__
  const float size = fabsf(b), scale = size > 0x1p126f ? 0.25f : size < 0x1p-126f ? 0x1p24f : 1.0f;
  return a * scale * quick_reciprocal(b * scale);
#else
  return a / b;
#endif
}

//@ nearest_div
// a / b rounded to the nearest, or the number beside it where it lies next to the middle of two or is not normal: a
// division without its branch, for the results of 16 bits of which a thread has a vector. Both are scaled so that the
// reciprocal is a normal number; what is of b alone quotients by one number share.
__device__ __forceinline__ float nearest_div(float a, float b) {
  const float size = fabsf(b), scale = size > 0x1p100f ? 0x1p-48f : size < 0x1p-76f ? 0x1p48f : 1.0f;
  b *= scale;
  return divide_by(a * scale, b, quick_reciprocal(b));
}

//@ logistic
// 1 / (1 + exp(x)), whose quarter keeps the reciprocal from subnormal numbers until exp(x) overflows.
__device__ __forceinline__ float logistic(float x) {
  return quick_reciprocal(power_of_two(fma(x, 1.44269504f, -2.0f)) + 0.25f) * 0.25f;
}

//@ narrow_log1p
__device__ __forceinline__ float narrow_log1p(float x) {
  const float near = x * fma(x, fma(x, fma(x, -0.25174714f, 0.33472873f), -0.49999595f), 0.99999879f);
  return fabsf(x) < 0.08f ? near : log2_of_normal(1.0f + x) * 0.69314718f;
}

//@ narrow_log
__device__ __forceinline__ float narrow_log(float x) {
  const float y = x - 1.0f;
  const float near = y * fma(y, fma(y, fma(y, -0.25174714f, 0.33472873f), -0.49999595f), 0.99999879f);
  return fabsf(y) < 0.08f ? near : quick_log2(x) * 0.69314718f;
}

//@ narrow_log2
__device__ __forceinline__ float narrow_log2(float x) {
  const float y = x - 1.0f;
  const float near = y * fma(y, fma(y, fma(y, -0.36319435f, 0.48291148f), -0.72134167f), 1.44269329f);
  return fabsf(y) < 0.08f ? near : quick_log2(x);
}

//@ narrow_expm1
__device__ __forceinline__ float narrow_expm1(float x) {
  const float near = x * fma(x, fma(x, fma(x, 0.04169923f, 0.16679692f), 0.49999983f), 0.99999975f);
  return fabsf(x) < 0.125f ? near : power_of_two(x * 1.44269504f) - 1.0f;
}

//@ score_tanh
// tanh(x) with an error of 2^-21 at most: for scores of an attention.
__device__ __forceinline__ float score_tanh(float x) {
  return fma(-2.0f, quick_reciprocal(power_of_two(x * 2.88539008f) + 1.0f), 1.0f);
}

//@ narrow_tanh
__device__ __forceinline__ float narrow_tanh(float x) {
  return fabsf(x) < 0.125f ? x * fma(x * x, -0.33126309f, 0.99999597f) : score_tanh(x);
}

//@ coarse_tanh
// To within 2^-11 of its value, a quarter of what bf16 rounds by: one instruction, and 1 where that is as near.
__device__ __forceinline__ float coarse_tanh(float x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 750
  return narrow_tanh(x);
#else
  float y;
#ifdef __CUDA_ARCH__
  asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
#else
  y = host_coarse_tanh(x);
#endif
  return fabsf(x) > 4.5f ? copysignf(1.0f, x) : y;
#endif
}

//@ one_plus_tanh
// 1 + tanh(x) = 2 / (1 + exp(-2 x)), which does not cancel.
__device__ __forceinline__ float one_plus_tanh(float x) {
  return quick_reciprocal(power_of_two(fma(x, -2.88539008f, -1.0f)) + 0.5f);
}

//@ one_plus_erf
// 1 + erf(x), which is erfc(|x|) left of 0: exp(-x²) times a polynomial in 1 / (1 + 0.44 |x|) (the form of Hastings,
// "Approximations for Digital Computers", 1955). The two do not cancel either.
__device__ __forceinline__ float one_plus_erf(float x) {
  const float r = quick_reciprocal(fma(fabsf(x), 0.44f, 1.0f)), s = x * 1.20112241f;
  const float p = fma(r, fma(r, fma(r, fma(r, fma(r, -0.14610544f, 0.35065172f), 0.04073209f), 0.26358578f), 0.24256969f),
                      0.24856100f);
  const float tail = power_of_two(-s * s) * (r * p);
  return x < 0.0f ? tail : 2.0f - tail;
}

//@ tanh_of_softplus
// tanh(log(1 + e)) = n / (n + 2), where n = e (e + 2) and e = exp(x): 1 long before n leaves the range.
__device__ __forceinline__ float tanh_of_softplus(float x) {
  const float e = narrow_exp(minimum(x, 20.0f)), n = e * (e + 2.0f);
  return n * quick_reciprocal(n + 2.0f);
}

//@ close_reciprocal
// 1 / x to within a unit of the last place, of what has a normal reciprocal.
__device__ __forceinline__ float close_reciprocal(float x) {
  const float y = quick_reciprocal(x);
  return fma(y, fma(-x, y, 1.0f), y);
}

//@ logistic_of_f32
// 1 / (1 + exp(x)) to within 2^-22: of the exponential that is at most 1, so that no quotient leaves the range. 0 where
// exp(x) is beyond f32, as written.
__device__ __forceinline__ float logistic_of_f32(float x) {
  const float e = exp(-fabsf(x)), share = close_reciprocal(1.0f + e);
  return x > 88.72283f ? 0.0f : x > 0.0f ? e * share : share;
}

//@ tanh_of_softplus_of_f32
// As tanh_of_softplus, to within 2^-21.
__device__ __forceinline__ float tanh_of_softplus_of_f32(float x) {
  const float e = exp(minimum(x, 20.0f)), n = e * (e + 2.0f);
  return n * close_reciprocal(n + 2.0f);
}

//@ tanh_of_softplus_of_f64
// As tanh_of_softplus, to within 2^-50.
__device__ __forceinline__ double tanh_of_softplus_of_f64(double x) {
  const double e = exp(minimum(x, 40.0)), n = e * (e + 2.0);
  return n / (n + 2.0);
}

//@ log1p_of_share
// log(1 + e) to within 2^-22, where e is from 0 to 1: 2 atanh(s), s = e / (2 + e), whose series in s^2 is a minimax one.
__device__ __forceinline__ float log1p_of_share(float e) {
  const float sum = 2.0f + e, inverse = quick_reciprocal(sum), near = e * inverse;
  const float s = fma(fma(-near, sum, e), inverse, near), t = s * s, twice = s + s;
  const float series = fma(fma(fma(t, 0.13425750f, 0.14118309f), t, 0.20003781f), t, 0.33333319f);
  return fma(twice * t, series, twice);
}

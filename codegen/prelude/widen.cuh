// 8-bit elements as the 16-bit ones that tensor cores multiply. Exact.

//@ widen
__device__ __forceinline__ void widen(f8e5m2 x, f16& y) { y.bits = (u16)(x.bits << 8); }
// The exponent moves up by a product with 256, which is right for subnormal elements too.
__device__ __forceinline__ void widen(f8e4m3 x, f16& y) {
  const u16 magnitude = (u16)((x.bits & 0x7f) << 7);
  u16 scaled;
  asm("{ .reg .b16 c; mov.b16 c, 0x5c00; mul.f16 %0, %1, c; }" : "=h"(scaled) : "h"(magnitude));
  y.bits = (u16)(((x.bits & 0x7f) == 0x7f ? 0x7fff : scaled) | (x.bits & 0x80) << 8);
}
__device__ __forceinline__ void widen(f8e4m3 x, bf16& y) { y.bits = (u16)(__float_as_uint(f8e4m3_to_f32(x)) >> 16); }
__device__ __forceinline__ void widen(f8e5m2 x, bf16& y) { y.bits = (u16)(__float_as_uint(f8e5m2_to_f32(x)) >> 16); }

//@ widened
template <class To, class From, int N>
__device__ __forceinline__ pack<To, N> widened(const pack<From, N>& x) {
  pack<To, N> y;
#pragma unroll
  for (int j = 0; j < N; ++j) widen(x[j], y[j]);
  return y;
}

// f16: the hardware converts on every architecture. Apart from convert.cuh, which also compiles for the host.

//@ f16_to_f32
__device__ __forceinline__ float f16_to_f32(f16 x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
}

//@ f32_to_f16
__device__ __forceinline__ f16 f32_to_f16(float x) {
  f16 y;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
  return y;
}

// What generated CUDA needs to compile and run as C++ on the host: its words and its intrinsics. Stands in front of a
// kernel's text (cuda_on_host.cpp), and in front of the prelude where that is tested alone.
#pragma once

#include <math.h>
#include <string.h>

#include <type_traits>
#include <utility>

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static
#define __align__(bytes) __attribute__((aligned(bytes)))

struct Dim3 {
  unsigned x = 0;
};
struct uint2 {
  unsigned x, y;
};
struct uint4 {
  unsigned x, y, z, w;
};

inline thread_local Dim3 threadIdx, blockIdx;

// Given by the harness: where the threads of a block meet, and what each offers in a shuffle.
inline void (*meet)() = nullptr;
inline unsigned long long* slots = nullptr;

inline void __syncthreads() { meet(); }

// Every thread of a block takes part in every shuffle, so that warps need no barrier of their own.
template <class T>
T __shfl_xor_sync(unsigned, T value, int mask) {
  static_assert(sizeof(T) <= 8, "a shuffle moves up to 8 bytes");
  memcpy(&slots[threadIdx.x], &value, sizeof(T));
  __syncthreads();
  memcpy(&value, &slots[threadIdx.x ^ static_cast<unsigned>(mask)], sizeof(T));
  __syncthreads();
  return value;
}

template <class To, class From>
To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof(To));
  return to;
}
inline unsigned __float_as_uint(float x) { return bits_as<unsigned>(x); }
inline float __uint_as_float(unsigned x) { return bits_as<float>(x); }
inline double __longlong_as_double(long long x) { return bits_as<double>(x); }

// Towards zero: one step back where rounding to nearest went away from it.
inline float __double2float_rz(double x) {
  const float y = static_cast<float>(x);
  return fabs(static_cast<double>(y)) > fabs(x) ? __uint_as_float(__float_as_uint(y) - 1) : y;
}
inline float __ll2float_rz(long long x) {
  const float y = static_cast<float>(x);
  return fabsl(static_cast<long double>(y)) > fabsl(static_cast<long double>(x))
             ? __uint_as_float(__float_as_uint(y) - 1)
             : y;
}

inline float rsqrt(float x) { return 1 / sqrtf(x); }
inline double rsqrt(double x) { return 1 / sqrt(x); }

template <class T>
void __stcs(T* p, T value) {
  memcpy(p, &value, sizeof(T));
}

// f16 in software, in place of the prelude's PTX.
inline float host_f16_to_f32(unsigned short bits) {
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  const float sign = (bits & 0x8000) != 0 ? -1.0f : 1.0f;
  if (exponent == 31) return mantissa == 0 ? sign * INFINITY : NAN;
  return sign * (exponent == 0 ? ldexpf(static_cast<float>(mantissa), -24)
                               : ldexpf(static_cast<float>(mantissa + 1024), exponent - 25));
}
inline unsigned short host_f32_to_f16(float x) {
  const unsigned sign = __float_as_uint(x) >> 16 & 0x8000;
  const double magnitude = fabs(static_cast<double>(x));
  if (x != x) return static_cast<unsigned short>(sign | 0x7e00);
  if (magnitude >= 65520) return static_cast<unsigned short>(sign | 0x7c00);
  int exponent = magnitude < 0x1p-14 ? -14 : ilogb(magnitude);
  double mantissa = nearbyint(ldexp(magnitude, 10 - exponent));
  if (mantissa >= 2048) mantissa /= 2, ++exponent;
  const unsigned field = mantissa < 1024 ? 0 : static_cast<unsigned>(exponent + 15) << 10;
  return static_cast<unsigned short>(sign | (field + (static_cast<unsigned>(mantissa) & 1023)));
}

// Calls kernel(pointers..., dims...).
template <class... Args, std::size_t... I>
void call(void (*kernel)(Args...), std::index_sequence<I...>, void* const* pointers, const long long* dims) {
  constexpr std::size_t pointer_count = (std::size_t{0} + ... + (std::is_pointer_v<Args> ? 1 : 0));
  const auto argument = [&](std::size_t which, auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    if constexpr (std::is_pointer_v<T>) {
      return static_cast<T>(pointers[which]);
    } else {
      return static_cast<T>(dims[which - pointer_count]);
    }
  };
  kernel(argument(I, static_cast<Args*>(nullptr))...);
}

struct HostThread {
  unsigned block, thread;
  void (*meet)();
  unsigned long long* slots;
};
template <class... Args>
void run_thread(void (*kernel)(Args...), const HostThread& self, void* const* pointers, const long long* dims) {
  blockIdx.x = self.block;
  threadIdx.x = self.thread;
  meet = self.meet;
  slots = self.slots;
  call(kernel, std::index_sequence_for<Args...>{}, pointers, dims);
}

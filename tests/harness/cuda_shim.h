// What generated CUDA needs to compile and run as C++ on the host: its words and its intrinsics. Stands in front of a
// kernel's text (cuda_on_host.cpp), and in front of the prelude where that is tested alone.
#pragma once

#include <math.h>
#include <string.h>

#include <thread>
#include <type_traits>
#include <utility>

#include "tests/harness/hopper_shim.h"

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __grid_constant__
#define __shared__ static
#define __builtin_assume(condition)
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
inline Dim3 gridDim;

// Given by the harness: where the threads of a block and those of a warp meet, and what each offers in a shuffle.
inline void (*meet)() = nullptr;
inline void (*meet_warp)(unsigned thread) = nullptr;
inline unsigned long long* slots = nullptr;
inline Hopper* hopper = nullptr;

inline void __syncthreads() { meet(); }
inline void __syncwarp() { meet_warp(threadIdx.x); }

inline unsigned atomicAdd(unsigned* place, unsigned x) { return __atomic_fetch_add(place, x, __ATOMIC_SEQ_CST); }
inline unsigned atomicExch(unsigned* place, unsigned x) { return __atomic_exchange_n(place, x, __ATOMIC_SEQ_CST); }

template <class T>
T __shfl_xor_sync(unsigned, T value, int mask) {
  static_assert(sizeof(T) <= 8, "a shuffle moves up to 8 bytes");
  memcpy(&slots[threadIdx.x], &value, sizeof(T));
  meet_warp(threadIdx.x);
  memcpy(&value, &slots[threadIdx.x ^ static_cast<unsigned>(mask)], sizeof(T));
  meet_warp(threadIdx.x);
  return value;
}

template <class T>
T __shfl_sync(unsigned, T value, int lane) {
  static_assert(sizeof(T) <= 8, "a shuffle moves up to 8 bytes");
  memcpy(&slots[threadIdx.x], &value, sizeof(T));
  meet_warp(threadIdx.x);
  memcpy(&value, &slots[threadIdx.x / 32 * 32 + static_cast<unsigned>(lane)], sizeof(T));
  meet_warp(threadIdx.x);
  return value;
}

inline bool __any_sync(unsigned mask, bool holds) {
  int any = holds;
  for (int lanes = 1; lanes < 32; lanes *= 2) any |= __shfl_xor_sync(mask, any, lanes);
  return any != 0;
}

inline unsigned __ballot_sync(unsigned mask, bool holds) {
  unsigned all = holds ? 1u << threadIdx.x % 32 : 0;
  for (int lanes = 1; lanes < 32; lanes *= 2) all |= __shfl_xor_sync(mask, all, lanes);
  return all;
}

inline int __ffs(unsigned x) { return __builtin_ffs(static_cast<int>(x)); }

// What the lanes of a warp offer each other in one instruction. Two generations, so that one barrier is enough: a
// thread that is an instruction ahead writes into the other.
struct Offer {
  const void* row;
  unsigned r[6];
};
inline Offer offers[2][1024];
inline thread_local unsigned generation = 0;
inline const Offer* exchange(const Offer& offer) {
  Offer* all = offers[generation++ & 1];
  all[threadIdx.x] = offer;
  meet_warp(threadIdx.x);
  return all + threadIdx.x / 32 * 32;
}

// PTX ISA, "ldmatrix": lane l of matrix i holds elements 2 (l % 4) and the next of row l / 4; transposed, of column l
// / 4.
inline void host_ldmatrix(unsigned (&r)[4], const void* row, bool transposed) {
  const Offer* warp = exchange({row, {}});
  const unsigned lane = threadIdx.x % 32;
  for (unsigned matrix = 0; matrix < 4; ++matrix) {
    unsigned short pair[2];
    for (unsigned half = 0; half < 2; ++half) {
      const unsigned line = transposed ? lane % 4 * 2 + half : lane / 4,
                     column = transposed ? lane / 4 : lane % 4 * 2 + half;
      memcpy(&pair[half], static_cast<const char*>(warp[matrix * 8 + line].row) + 2 * column, 2);
    }
    r[matrix] = pair[0] | static_cast<unsigned>(pair[1]) << 16;
  }
}

// d(16, 8) += a(16, depth) b(depth, 8), where a(row, k), b(k, column) read the warp's offers.
template <class A, class B>
void host_mma(float (&d)[4], int depth, A a, B b) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  for (int x = 0; x < 4; ++x) {
    const int row = lane / 4 + x / 2 * 8, column = lane % 4 * 2 + x % 2;
    double sum = 0;
    for (int k = 0; k < depth; ++k) sum += static_cast<double>(a(row, k)) * static_cast<double>(b(k, column));
    d[x] = static_cast<float>(d[x] + sum);
  }
}
// PTX ISA, "Matrix fragments for mma.m16n8k8" of 16-bit elements and of tf32, and "for mma.m16n8k16".
template <class Decode>
void host_mma_16bit(float (&d)[4], int depth, const Offer& offer, Decode decode) {
  const Offer* warp = exchange(offer);
  const auto half = [&](unsigned word, int which) { return decode(static_cast<unsigned short>(word >> 16 * which)); };
  host_mma(
      d, depth, [&](int row, int k) { return half(warp[row % 8 * 4 + k % 8 / 2].r[row / 8 + k / 8 * 2], k % 2); },
      [&](int k, int column) { return half(warp[column * 4 + k % 8 / 2].r[4 + k / 8], k % 2); });
}
inline void host_mma_tf32(float (&d)[4], const Offer& offer) {
  const Offer* warp = exchange(offer);
  const auto value = [](unsigned word) {  // tensor cores ignore the lowest bits
    word &= ~0x1fffu;
    float x;
    memcpy(&x, &word, 4);
    return x;
  };
  host_mma(
      d, 8, [&](int row, int k) { return value(warp[row % 8 * 4 + k % 4].r[row / 8 + k / 4 * 2]); },
      [&](int k, int column) { return value(warp[column * 4 + k % 4].r[4 + k / 4]); });
}
inline void host_copy(void* to, const void* from, int bytes, int available) {
  memset(to, 0, static_cast<size_t>(bytes));
  memcpy(to, from, static_cast<size_t>(available));
}

// An arrival (bulk.cuh): its phase in the upper half, the bytes that it waits for in the lower. One thread asks.
inline void host_expect_bytes(unsigned long long* place, unsigned bytes) {
  __atomic_fetch_add(place, bytes, __ATOMIC_ACQ_REL);
}
inline void host_copy_bulk(void* to, const void* from, unsigned bytes, unsigned long long* place) {
  memcpy(to, from, bytes);
  const unsigned long long left = __atomic_sub_fetch(place, bytes, __ATOMIC_ACQ_REL);
  if (static_cast<unsigned>(left) == 0) __atomic_fetch_add(place, 1ull << 32, __ATOMIC_ACQ_REL);
}
inline bool host_arrived(const unsigned long long* place, unsigned parity) {
  const bool there = (__atomic_load_n(place, __ATOMIC_ACQUIRE) >> 32 & 1) != parity;
  if (!there) std::this_thread::yield();
  return there;
}

inline size_t __cvta_generic_to_shared(const void* p) {
  return hopper != nullptr ? hopper->shared_address(p) : reinterpret_cast<size_t>(p);
}

struct float2 {
  float x, y;
};
inline float2 make_float2(float x, float y) { return {x, y}; }
inline unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }
inline unsigned long long min(unsigned long long a, unsigned long long b) { return a < b ? a : b; }
inline int min(int a, int b) { return a < b ? a : b; }
inline int max(int a, int b) { return a > b ? a : b; }
inline long long min(long long a, long long b) { return a < b ? a : b; }
inline long long max(long long a, long long b) { return a > b ? a : b; }

template <class To, class From>
To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof(To));
  return to;
}
inline unsigned __float_as_uint(float x) { return bits_as<unsigned>(x); }
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>(((static_cast<unsigned long long>(high) << 32) | low) >> (shift & 31));
}
inline unsigned __byte_perm(unsigned low, unsigned high, unsigned selector) {
  const unsigned long long bytes = static_cast<unsigned long long>(high) << 32 | low;
  unsigned result = 0;
  for (unsigned i = 0; i < 4; ++i) result |= static_cast<unsigned>(bytes >> (selector >> 4 * i & 7) * 8 & 255) << 8 * i;
  return result;
}
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

// The approximate instructions (PTX ISA, "ex2", "lg2", "rcp", "sqrt", "tanh"): the nearest number, or one as far from
// it as an instruction may be, to the side that is set, 1 or -1.
struct Approximations {
  int power = 0, log = 0, reciprocal = 0, root = 0, tanh = 0;
};
inline Approximations approximations;
inline float flushed(float x) { return fabsf(x) < 0x1p-126f ? copysignf(0.0f, x) : x; }
inline float host_power_of_two(float x) {
  const double y = exp2(static_cast<double>(flushed(x)));
  return flushed(static_cast<float>(y == 1 ? y : y * (1 + approximations.power * 0x1p-22)));
}
inline float host_quick_log2(float x) {
  const double y = log2(static_cast<double>(x)), size = x > 0.5f && x < 2 ? 1 : fabs(y);
  return static_cast<float>(y + (isinf(y) ? 0 : size * approximations.log * 0x1p-22));
}
inline float host_quick_reciprocal(float x) {
  return flushed(static_cast<float>(1 / static_cast<double>(flushed(x)) * (1 + approximations.reciprocal * 0x1p-23)));
}
inline float host_quick_sqrt(float x) {
  return static_cast<float>(sqrt(static_cast<double>(x)) * (1 + approximations.root * 0x1p-23));
}
inline float host_coarse_tanh(float x) {
  return static_cast<float>(tanh(static_cast<double>(x)) * (1 + approximations.tanh * 0x1p-11));
}

inline float rsqrt(float x) { return 1 / sqrtf(x); }
inline double rsqrt(double x) { return 1 / sqrt(x); }

template <class T>
T __ldcs(const T* p) {
  T value;
  memcpy(&value, p, sizeof(T));
  return value;
}
template <class T>
void __stcs(T* p, T value) {
  memcpy(p, &value, sizeof(T));
}
template <class T>
void __stwb(T* p, T value) {
  memcpy(p, &value, sizeof(T));
}

// Products that no sum is contracted with.
inline float __fmul_rn(float a, float b) {
  volatile float product = a * b;
  return product;
}
inline double __dmul_rn(double a, double b) {
  volatile double product = a * b;
  return product;
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

// Calls kernel(pointers..., dims..., maps...).
template <class... Args, std::size_t... I>
void call(void (*kernel)(Args...), std::index_sequence<I...>, void* const* pointers, const long long* dims,
          const void* const* maps) {
  constexpr std::size_t pointer_count = (std::size_t{0} + ... + (std::is_pointer_v<Args> ? 1 : 0));
  constexpr std::size_t map_count = (std::size_t{0} + ... + (std::is_class_v<Args> ? 1 : 0));
  const auto argument = [&](std::size_t which, auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    if constexpr (std::is_pointer_v<T>) {
      return static_cast<T>(pointers[which]);
    } else if constexpr (std::is_class_v<T>) {
      return *static_cast<const T*>(maps[which - (sizeof...(Args) - map_count)]);
    } else {
      return static_cast<T>(dims[which - pointer_count]);
    }
  };
  kernel(argument(I, static_cast<Args*>(nullptr))...);
}

inline void become(const HostThread& self) {
  blockIdx.x = self.block;
  threadIdx.x = self.thread;
  gridDim.x = self.blocks;
  meet = self.meet;
  meet_warp = self.meet_warp;
  slots = self.slots;
  hopper = self.hopper;
}
template <class... Args>
void run_thread(void (*kernel)(Args...), const HostThread& self, void* const* pointers, const long long* dims) {
  become(self);
  call(kernel, std::index_sequence_for<Args...>{}, pointers, dims, self.maps);
}

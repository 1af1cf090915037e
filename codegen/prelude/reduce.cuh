// Reductions over the threads that share a row. Fixed trees and no atomics: the result depends on the data alone, and
// every thread gets it. `combine` must be associative and commutative up to rounding.

//@ arg
// A candidate of argmax or argmin. The first NaN wins, then the best value, then the lower index.
template <class V, class I>
struct arg {
  V value;
  I index;
};
template <class V, class I>
__device__ __forceinline__ arg<V, I> shuffle_xor(arg<V, I> x, int mask) {
  return {shuffle_xor(x.value, mask), shuffle_xor(x.index, mask)};
}

//@ first_max
template <class V, class I>
__device__ __forceinline__ arg<V, I> first_max(arg<V, I> a, arg<V, I> b) {
  const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
  const bool tie = a.value == b.value || (a_nan && b_nan);
  const bool better = tie ? b.index < a.index : b_nan || (!a_nan && b.value > a.value);
  return better ? b : a;
}

//@ first_min
template <class V, class I>
__device__ __forceinline__ arg<V, I> first_min(arg<V, I> a, arg<V, I> b) {
  const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
  const bool tie = a.value == b.value || (a_nan && b_nan);
  const bool better = tie ? b.index < a.index : b_nan || (!a_nan && b.value < a.value);
  return better ? b : a;
}

//@ shuffle_xor
__device__ __forceinline__ float shuffle_xor(float x, int mask) { return __shfl_xor_sync(~0u, x, mask); }
__device__ __forceinline__ double shuffle_xor(double x, int mask) { return __shfl_xor_sync(~0u, x, mask); }
__device__ __forceinline__ i64 shuffle_xor(i64 x, int mask) { return __shfl_xor_sync(~0u, x, mask); }
template <class T>
__device__ __forceinline__ T shuffle_xor(T x, int mask) {
  return (T)__shfl_xor_sync(~0u, (int)x, mask);
}

//@ reduce_lanes
// Over `lanes` neighbouring lanes of a warp, a power of two. Every lane of the warp must call it.
template <int lanes, class T, class Combine>
__device__ __forceinline__ T reduce_lanes(T x, Combine combine) {
#pragma unroll
  for (int mask = lanes / 2; mask > 0; mask /= 2) x = combine(x, shuffle_xor(x, mask));
  return x;
}

//@ reduce_block
// Over a block of `threads`, a multiple of 32. Each call in a kernel has its own buffer (`combine` is a lambda, so each
// is an instantiation of its own) and is reached once, which is why one barrier is enough.
template <int threads, class T, class Combine>
__device__ __forceinline__ T reduce_block(T x, Combine combine) {
  __shared__ T partial[threads / 32];
  x = reduce_lanes<32>(x, combine);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = x;
  __syncthreads();
  x = partial[0];
#pragma unroll
  for (int warp = 1; warp < threads / 32; ++warp) x = combine(x, partial[warp]);
  return x;
}

//@ reduce_columns
// Over the threads of a block with the same threadIdx.x % columns. Buffers as in reduce_block.
template <int columns, int threads, class T, class Combine>
__device__ __forceinline__ T reduce_columns(T x, Combine combine) {
  __shared__ T partial[threads];
  partial[threadIdx.x] = x;
  __syncthreads();
  x = partial[threadIdx.x % columns];
#pragma unroll
  for (int part = 1; part < threads / columns; ++part) x = combine(x, partial[part * columns + threadIdx.x % columns]);
  return x;
}

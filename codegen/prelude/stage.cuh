// Runs of memory that a block brings to shared memory and takes from there, as vectors of 16 bytes spread over its
// threads. Both ends are aligned to 16 bytes, and a whole run is a multiple of them.

//@ for_each_vector
// Calls vector(i) for this thread's vectors of the first `count` of at most `most` elements, and element(i) for what is
// left over.
template <int N, int threads, int most, class Vector, class Element>
__device__ __forceinline__ void for_each_vector(int count, Vector vector, Element element) {
  const int own = (int)threadIdx.x * N;
  if (count == most) {
#pragma unroll
    for (int first = 0; first < most; first += threads * N)
      if (first + threads * N <= most || first + own < most) vector(first + own);
    return;
  }
#pragma unroll 1
  for (int i = own; i < count; i += threads * N) {
    if (i + N <= count) {
      vector(i);
    } else {
#pragma unroll 1
      for (int j = i; j < count; ++j) element(j);
    }
  }
}

//@ stage_run
// Asks for elements at `from`: asynchronous copies, and the last few by themselves. `kept`: the second-level cache is
// to keep their lines.
template <int threads, int most, bool kept, class T>
__device__ __forceinline__ void stage_run(T* to, const T* from, int count) {
  for_each_vector<16 / (int)sizeof(T), threads, most>(
      count,
      [&](int i) {
        if constexpr (kept) {
          copy_async_kept<16>(to + i, from + i, true);
        } else {
          copy_async<16>(to + i, from + i, true);
        }
      },
      [&](int i) { to[i] = from[i]; });
}

//@ store_run
// Stores elements at `to`. `streaming`: past the caches.
template <int threads, int most, bool streaming, class T>
__device__ __forceinline__ void store_run(T* to, const T* from, int count) {
  constexpr int N = 16 / (int)sizeof(T);
  for_each_vector<N, threads, most>(
      count,
      [&](int i) {
        if constexpr (streaming) {
          store_streaming<N, N>(to + i, load<N, N>(from + i));
        } else {
          store<N, N>(to + i, load<N, N>(from + i));
        }
      },
      [&](int i) { to[i] = from[i]; });
}

//@ stage_around
// Asks for `count` elements of the `all` at p from `at` on, which may be any, and gives the place of the first: aligned
// vectors that hold them come to `to`, which has room for two vectors' ends beside them.
template <int threads, class T, class I, class L>
__device__ __forceinline__ const T* stage_around(T* to, const T* p, I at, int count, L all) {
  constexpr int N = 16 / (int)sizeof(T);
  const int past = (int)(at & (N - 1));
  const I begin = at - past;
#pragma unroll 1
  for (int i = (int)threadIdx.x * N; i < past + count; i += threads * N) {
    if (begin + i + N <= all) {
      copy_async<16>(to + i, p + (begin + i), true);
    } else {
#pragma unroll 1
      for (int j = i; j < past + count; ++j) to[j] = p[begin + j];
    }
  }
  return to + past;
}

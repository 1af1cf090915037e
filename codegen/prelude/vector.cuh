// Loads and stores of several elements at once, in pieces of up to 16 bytes.

//@ chunk
template <class T, int N>
struct __align__(N * sizeof(T)) chunk {
  T element[N];
};

//@ load
// N elements from p, which is aligned to `aligned` elements.
template <int N, int aligned, class T>
__device__ __forceinline__ pack<T, N> load(const T* __restrict__ p) {
  pack<T, N> x;
#pragma unroll
  for (int i = 0; i < N; i += aligned) {
    const chunk<T, aligned> piece = *reinterpret_cast<const chunk<T, aligned>*>(p + i);
#pragma unroll
    for (int j = 0; j < aligned; ++j) x[i + j] = piece.element[j];
  }
  return x;
}

//@ store
// N elements to p, which is aligned to `aligned` elements.
template <int N, int aligned, class T>
__device__ __forceinline__ void store(T* __restrict__ p, const pack<T, N>& x) {
#pragma unroll
  for (int i = 0; i < N; i += aligned) {
    chunk<T, aligned> piece;
#pragma unroll
    for (int j = 0; j < aligned; ++j) piece.element[j] = x[i + j];
    *reinterpret_cast<chunk<T, aligned>*>(p + i) = piece;
  }
}

//@ word_of
template <int bytes>
struct word_of;
template <>
struct word_of<1> { using type = unsigned char; };
template <>
struct word_of<2> { using type = unsigned short; };
template <>
struct word_of<4> { using type = unsigned int; };
template <>
struct word_of<8> { using type = uint2; };
template <>
struct word_of<16> { using type = uint4; };

//@ store_streaming
// As store, marked as not read again soon: larger than the caches.
template <int N, int aligned, class T>
__device__ __forceinline__ void store_streaming(T* __restrict__ p, const pack<T, N>& x) {
  using word = typename word_of<aligned * (int)sizeof(T)>::type;
#pragma unroll
  for (int i = 0; i < N; i += aligned) {
    chunk<T, aligned> piece;
#pragma unroll
    for (int j = 0; j < aligned; ++j) piece.element[j] = x[i + j];
    __stcs(reinterpret_cast<word*>(p + i), *reinterpret_cast<const word*>(&piece));
  }
}

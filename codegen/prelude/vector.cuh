// Loads and stores of several elements at once, in pieces of up to 16 bytes.

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

//@ load
// N elements from p, which is aligned to `aligned` elements. Bytes in words: else the compiler takes each out of its word
// before anything asks for it.
template <int N, int aligned, class T>
__device__ __forceinline__ pack<T, N> load(const T* p) {
  if constexpr (N == aligned && sizeof(T) == 1 && N % 4 == 0) {
    using word = typename word_of<N>::type;
    const word w = *reinterpret_cast<const word*>(p);
    return *reinterpret_cast<const pack<T, N>*>(&w);
  } else if constexpr (N == aligned) {  // without a loop of one round: a small kernel compiles a twentieth faster
    return *reinterpret_cast<const pack<T, N>*>(p);
  } else {
    pack<T, N> x;
#pragma unroll
    for (int i = 0; i < N; i += aligned)
      *reinterpret_cast<pack<T, aligned>*>(x.element + i) = load<aligned, aligned>(p + i);
    return x;
  }
}

//@ store
// N elements to p, which is aligned to `aligned` elements.
template <int N, int aligned, class T>
__device__ __forceinline__ void store(T* __restrict__ p, const pack<T, N>& x) {
  if constexpr (N == aligned) {
    *reinterpret_cast<pack<T, N>*>(p) = x;
  } else {
#pragma unroll
    for (int i = 0; i < N; i += aligned)
      *reinterpret_cast<pack<T, aligned>*>(p + i) = *reinterpret_cast<const pack<T, aligned>*>(x.element + i);
  }
}

//@ spread
// Element j / points of x at place j, or zero where bit j of `visible` is not set.
template <int points, u32 visible, class T, int N>
__device__ __forceinline__ pack<T, points * N> spread(const pack<T, N>& x) {
  pack<T, points * N> y;
#pragma unroll
  for (int j = 0; j < points * N; ++j) y[j] = (visible >> j & 1) != 0 ? x[j / points] : T{};
  return y;
}

//@ load_around
// The two aligned vectors that hold elements at … at + N - 1 of the `count` at p. `whole`: the count is a multiple of N.
// Where the second is not there nothing of it is needed; it is the first again.
template <int N, bool whole, class T, class I, class L>
__device__ __forceinline__ pack<T, 2 * N> load_around(const T* p, I at, L count) {
  const T* begin = p + (at - (at & (N - 1)));
  const I behind = at - (at & (N - 1)) + N;
  const bool cut = behind + N > count;
  const pack<T, N> first = *reinterpret_cast<const pack<T, N>*>(begin);
  pack<T, N> second = {};
  if (whole || !cut) {
    second = *reinterpret_cast<const pack<T, N>*>(begin + (whole && cut ? 0 : N));
  } else {
#pragma unroll
    for (int j = 0; j < N; ++j)
      if (behind + j < count) second[j] = begin[N + j];
  }
  pack<T, 2 * N> x;
#pragma unroll
  for (int j = 0; j < N; ++j) x[j] = first[j], x[N + j] = second[j];
  return x;
}

//@ from_around
// Elements at … at + N - 1 of the vectors around them.
template <int N, class T, class I>
__device__ __forceinline__ pack<T, N> from_around(const pack<T, 2 * N>& around, I at) {
  constexpr int size = (int)sizeof(T), words = N * size / 4;
  const int past = (int)(at & (N - 1)) * size;  // bytes of the first vector that come before
  u32 word[2 * words];
  memcpy(word, &around, 2 * N * size);
#pragma unroll
  for (int shift = words / 2; shift > 0; shift /= 2) {
    const bool moves = (past / 4 & shift) != 0;
#pragma unroll
    for (int i = 0; i + shift < 2 * words; ++i) word[i] = moves ? word[i + shift] : word[i];
  }
  if (size < 4) {
#pragma unroll
    for (int i = 0; i < words; ++i) word[i] = __funnelshift_r(word[i], word[i + 1], past % 4 * 8);
  }
  pack<T, N> x;
  memcpy(&x, word, N * size);
  return x;
}

//@ load_stretch
// N elements of the `count` at p from `at` on, a multiple of `aligned`, in vectors of so many; zeros beyond both ends, and
// everywhere where `inside` is false. `whole`: the count is a multiple of `aligned`. The first `certain` elements lie there.
template <int N, int aligned, bool whole, int certain, class T, class I, class L>
__device__ __forceinline__ pack<T, N> load_stretch(const T* p, I at, L count, bool inside) {
  pack<T, N> x;
#pragma unroll
  for (int i = 0; i < N; i += aligned) {
    const I from = at + i;
    pack<T, aligned> piece = {};
    if (i + aligned <= certain || (inside && from >= 0 && from <= count - aligned)) {
      piece = *reinterpret_cast<const pack<T, aligned>*>(p + from);
    } else if (!whole && inside && from >= 0) {
#pragma unroll
      for (int j = 0; j < aligned; ++j)
        if (from < count - j) piece[j] = p[from + j];
    }
#pragma unroll
    for (int j = 0; j < aligned; ++j) x[i + j] = piece[j];
  }
  return x;
}

//@ move_down
// Where bit `by` of `past` is set, each word takes the value of the one `by` behind it; so with all lower bits. Steps are
// templates, not rounds of a loop, so that words stay in registers.
template <int by, class W, int M>
__device__ __forceinline__ void move_down(W (&word)[M], int past) {
  if constexpr (by > 0) {
    const bool moves = (past & by) != 0;
#pragma unroll
    for (int i = 0; i + by < M; ++i) {
      const W behind = word[i + by], here = word[i];
      word[i] = moves ? behind : here;
    }
    move_down<by / 2>(word, past);
  }
}

//@ shifted
// Elements past … past + N - 1 of x, where `past` is less than `aligned`, a power of two.
template <int N, int aligned, class T, int M>
__device__ __forceinline__ pack<T, N> shifted(const pack<T, M>& x, int past) {
  constexpr int size = (int)sizeof(T), a_word = size < 4 ? 4 / size : 1, words = M / a_word;
  pack<T, N> y;
  if constexpr (size < 4) {
    u32 word[words];
    memcpy(word, x.element, 4 * words);
    move_down<aligned / a_word / 2>(word, past / a_word);
#pragma unroll
    for (int i = 0; i + 1 < words; ++i)
      word[i] = __funnelshift_r(word[i], word[i + 1], (u32)(past % a_word * 8 * size));
    memcpy(y.element, word, N * size);
  } else {
    T word[words];
#pragma unroll
    for (int i = 0; i < words; ++i) word[i] = x[i];
    move_down<aligned / 2>(word, past);
#pragma unroll
    for (int i = 0; i < N; ++i) y[i] = word[i];
  }
  return y;
}

//@ under_way
// N elements in the words that they are loaded in: whoever took them apart would wait for them.
template <class T, int N, int aligned>
struct under_way {
  typename word_of<aligned * (int)sizeof(T)>::type word[N / aligned];
};

//@ arrived
template <class T, int N, int aligned>
__device__ __forceinline__ pack<T, N> arrived(const under_way<T, N, aligned>& from) {
  pack<T, N> x;
  memcpy(x.element, from.word, sizeof(from.word));
  return x;
}

//@ unpacked stays
// The same as any type of that size, bytes in words of their own, and where it stands: what becomes of it takes registers
// that no compiler is to fill ahead of time.
__device__ __forceinline__ void stays(unsigned int& w) { asm volatile("" : "+r"(w)::"memory"); }
__device__ __forceinline__ void stays(uint2& w) { stays(w.x), stays(w.y); }
__device__ __forceinline__ void stays(uint4& w) { stays(w.x), stays(w.y), stays(w.z), stays(w.w); }
template <class Narrow>
__device__ __forceinline__ void stays(Narrow& w) {
  unsigned int wide = w;
  stays(wide);
  w = (Narrow)wide;
}
template <class To, class T, int N, int aligned>
__device__ __forceinline__ To unpacked(under_way<T, N, aligned> from) {
#pragma unroll
  for (int i = 0; i < N / aligned; ++i) stays(from.word[i]);
  To x;
  memcpy(&x, from.word, sizeof(x));
  return x;
}

//@ load_now load_word
// As load, but where it stands: an ordinary load of memory, which no compiler moves behind a barrier as it does those of
// read-only memory. Nothing waits for it until it is taken apart (arrived).
__device__ __forceinline__ void load_word(unsigned char& w, const unsigned char* p) {
  unsigned short wide;
  asm volatile("ld.global.u8 %0, [%1];" : "=h"(wide) : "l"(p) : "memory");
  w = (unsigned char)wide;
}
__device__ __forceinline__ void load_word(unsigned short& w, const unsigned short* p) {
  asm volatile("ld.global.u16 %0, [%1];" : "=h"(w) : "l"(p) : "memory");
}
__device__ __forceinline__ void load_word(unsigned int& w, const unsigned int* p) {
  asm volatile("ld.global.u32 %0, [%1];" : "=r"(w) : "l"(p) : "memory");
}
__device__ __forceinline__ void load_word(uint2& w, const uint2* p) {
  asm volatile("ld.global.v2.u32 {%0, %1}, [%2];" : "=r"(w.x), "=r"(w.y) : "l"(p) : "memory");
}
__device__ __forceinline__ void load_word(uint4& w, const uint4* p) {
  asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(w.x), "=r"(w.y), "=r"(w.z), "=r"(w.w)
               : "l"(p)
               : "memory");
}
template <int N, int aligned, class T>
__device__ __forceinline__ under_way<T, N, aligned> load_now(const T* p) {
  under_way<T, N, aligned> x;
#pragma unroll
  for (int i = 0; i < N; i += aligned) {
    using word = typename word_of<aligned * (int)sizeof(T)>::type;
    load_word(x.word[i / aligned], reinterpret_cast<const word*>(p + i));
  }
  return x;
}

//@ load_here
// As load, but not put off until there are registers to spare: many gathers are then under way together.
template <int N, int aligned, class T>
__device__ __forceinline__ pack<T, N> load_here(const T* p) {
  return arrived(load_now<N, aligned>(p));
}

//@ load_streaming
// As load, of what is not read again: the caches drop it before anything else.
template <int N, int aligned, class T>
__device__ __forceinline__ pack<T, N> load_streaming(const T* p) {
  using word = typename word_of<aligned * (int)sizeof(T)>::type;
  if constexpr (N == aligned) {
    const word w = __ldcs(reinterpret_cast<const word*>(p));
    return *reinterpret_cast<const pack<T, N>*>(&w);
  } else {
    pack<T, N> x;
#pragma unroll
    for (int i = 0; i < N; i += aligned) {
      const word w = __ldcs(reinterpret_cast<const word*>(p + i));
      memcpy(x.element + i, &w, sizeof(w));
    }
    return x;
  }
}

//@ keep_policy
// On sm_90 what createpolicy makes is known (tests/runtime/gpu_test.cpp): the compiler would make it again wherever it
// is used, in six instructions, which costs a transposition 18 %.
__device__ __forceinline__ u64 keep_policy() {
  u64 policy = 0x14f0000000000000ull;
#if __CUDA_ARCH__ >= 800 && __CUDA_ARCH__ != 900
  asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
#endif
  return policy;
}

//@ load_kept
// As load, but where it stands, of lines that the second-level cache is to keep rather than those that are written: these then leave it as
// soon as they can, next to each other, and memory changes between reading and writing less often. Zeros where `inside`
// is false.
template <class word>
__device__ __forceinline__ void load_kept_word(word& w, const word* p, bool inside) {
#if __CUDA_ARCH__ >= 800
  constexpr int bytes = (int)sizeof(word);
  u32 x[bytes < 4 ? 1 : bytes / 4] = {};
#define TENON_LOAD(type, registers, from, ...)                                                                \
  asm volatile("{.reg .pred q; setp.ne.u32 q, " from ";\n@q ld.global.L2::cache_hint." type " " registers ";}" \
               : __VA_ARGS__                                                                                   \
               : "l"(p), "l"(keep_policy()), "r"((u32)inside))
  if constexpr (bytes == 1) TENON_LOAD("u8", "%0, [%1], %2", "%3, 0", "+r"(x[0]));
  if constexpr (bytes == 2) TENON_LOAD("u16", "%0, [%1], %2", "%3, 0", "+r"(x[0]));
  if constexpr (bytes == 4) TENON_LOAD("u32", "%0, [%1], %2", "%3, 0", "+r"(x[0]));
  if constexpr (bytes == 8) TENON_LOAD("v2.u32", "{%0, %1}, [%2], %3", "%4, 0", "+r"(x[0]), "+r"(x[1]));
  if constexpr (bytes == 16)
    TENON_LOAD("v4.u32", "{%0, %1, %2, %3}, [%4], %5", "%6, 0", "+r"(x[0]), "+r"(x[1]), "+r"(x[2]), "+r"(x[3]));
#undef TENON_LOAD
  memcpy(&w, x, sizeof(w));
#else
  memset(&w, 0, sizeof(w));
  if (inside) load_word(w, p);
#endif
}
template <int N, int aligned, class T>
__device__ __forceinline__ pack<T, N> load_kept(const T* p, bool inside = true) {
  using word = typename word_of<aligned * (int)sizeof(T)>::type;
  under_way<T, N, aligned> x;
#pragma unroll
  for (int i = 0; i < N; i += aligned)
    load_kept_word(x.word[i / aligned], reinterpret_cast<const word*>(p + i), inside);
  return arrived(x);
}

//@ store_whole
// As store, in words that a compiler does not take apart.
template <int N, int aligned, class T>
__device__ __forceinline__ void store_whole(T* __restrict__ p, const pack<T, N>& x) {
  using word = typename word_of<aligned * (int)sizeof(T)>::type;
#pragma unroll
  for (int i = 0; i < N; i += aligned) {
    pack<T, aligned> piece;
#pragma unroll
    for (int j = 0; j < aligned; ++j) piece[j] = x[i + j];
    __stwb(reinterpret_cast<word*>(p + i), *reinterpret_cast<const word*>(&piece));
  }
}

//@ store_streaming
// As store, marked as not read again soon: larger than the caches.
template <int N, int aligned, class T>
__device__ __forceinline__ void store_streaming(T* __restrict__ p, const pack<T, N>& x) {
  using word = typename word_of<aligned * (int)sizeof(T)>::type;
#pragma unroll
  for (int i = 0; i < N; i += aligned) {
    pack<T, aligned> piece;
#pragma unroll
    for (int j = 0; j < aligned; ++j) piece[j] = x[i + j];
    __stcs(reinterpret_cast<word*>(p + i), *reinterpret_cast<const word*>(&piece));
  }
}

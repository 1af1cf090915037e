// Integers of 8 bits, four in a word: what generated code computes of whole vectors of them, and how they become reals.
// A is a vector, or a word that stands for each of a vector's. Results have N elements, a multiple of four.

//@ byte_vector
// N elements in the words that hold them, so that no compiler takes these apart to put them together again.
template <class T, int N>
struct byte_vector {
  u32 word[N / 4];
  __device__ __forceinline__ T operator[](int j) const { return (T)(word[j / 4] >> j % 4 * 8); }
  __device__ __forceinline__ byte_vector& operator=(const pack<T, N>& x) {
    memcpy(word, x.element, N);
    return *this;
  }
};

//@ to_bytes
template <class T, int N>
__device__ __forceinline__ byte_vector<T, N> to_bytes(const byte_vector<T, N>& x) { return x; }
template <class T, int N>
__device__ __forceinline__ byte_vector<T, N> to_bytes(const pack<T, N>& x) {
  byte_vector<T, N> y;
  memcpy(y.word, x.element, N);
  return y;
}

//@ byte_word
// Word i of a vector.
template <class T, int N>
__device__ __forceinline__ u32 byte_word(const byte_vector<T, N>& x, int i) { return x.word[i]; }
template <class T, int N>
__device__ __forceinline__ u32 byte_word(const pack<T, N>& x, int i) {
  u32 word;
  memcpy(&word, x.element + 4 * i, 4);
  return word;
}
__device__ __forceinline__ u32 byte_word(u32 x, int) { return x; }

//@ splat_byte
__device__ __forceinline__ u32 splat_byte(u8 x) { return x * 0x01010101u; }

//@ map_bytes
// f(a, b) of each word.
template <class To, class A, class B, class F>
__device__ __forceinline__ To map_bytes(const A& a, const B& b, F f) {
  To y;
#pragma unroll
  for (int i = 0; i < (int)sizeof(To) / 4; ++i) y.word[i] = f(byte_word(a, i), byte_word(b, i));
  return y;
}

//@ bytes_and
template <class To, class A, class B>
__device__ __forceinline__ To bytes_and(const A& a, const B& b) {
  return map_bytes<To>(a, b, [](u32 x, u32 y) { return x & y; });
}
//@ bytes_or
template <class To, class A, class B>
__device__ __forceinline__ To bytes_or(const A& a, const B& b) {
  return map_bytes<To>(a, b, [](u32 x, u32 y) { return x | y; });
}
//@ bytes_xor
template <class To, class A, class B>
__device__ __forceinline__ To bytes_xor(const A& a, const B& b) {
  return map_bytes<To>(a, b, [](u32 x, u32 y) { return x ^ y; });
}
//@ bytes_add
// The upper bits apart, so that none is carried into the next byte.
template <class To, class A, class B>
__device__ __forceinline__ To bytes_add(const A& a, const B& b) {
  return map_bytes<To>(a, b, [](u32 x, u32 y) { return ((x & 0x7f7f7f7fu) + (y & 0x7f7f7f7fu)) ^ ((x ^ y) & 0x80808080u); });
}
//@ bytes_sub
template <class To, class A, class B>
__device__ __forceinline__ To bytes_sub(const A& a, const B& b) {
  return map_bytes<To>(a, b, [](u32 x, u32 y) { return ((x | 0x80808080u) - (y & 0x7f7f7f7fu)) ^ ((x ^ ~y) & 0x80808080u); });
}
//@ bytes_left
// By a literal from 0 to 7.
template <class To, int shift, class A>
__device__ __forceinline__ To bytes_left(const A& a) {
  return map_bytes<To>(a, 0u, [](u32 x, u32) { return (x << shift) & (0xffu << shift & 0xffu) * 0x01010101u; });
}
//@ bytes_right
// The same; zeros come in, or copies of the sign.
template <class To, int shift, bool copies, class A>
__device__ __forceinline__ To bytes_right(const A& a) {
  return map_bytes<To>(a, 0u, [](u32 x, u32) {
    const u32 moved = (x >> shift) & (0xffu >> shift) * 0x01010101u;
    return copies && shift > 0 ? moved | (x >> 7 & 0x01010101u) * (0xffu << (8 - shift) & 0xffu) : moved;
  });
}

//@ bytes_choose
// Element j is element j / points of a where bit j of `mask` is set, else of b.
template <class To, int points, u32 mask, class A, class B>
__device__ __forceinline__ To bytes_choose(const A& a, const B& b) {
  To y;
#pragma unroll
  for (int i = 0; i < (int)sizeof(To) / 4; ++i) {
    u32 selector = 0;
#pragma unroll
    for (int j = 0; j < 4; ++j)
      selector |= (u32)((4 * i + j) / points % 4 + ((mask >> (4 * i + j) & 1) != 0 ? 0 : 4)) << 4 * j;
    y.word[i] = __byte_perm(byte_word(a, i / points), byte_word(b, i / points), selector);
  }
  return y;
}

//@ sum_of_bytes
// Of a whole vector, as many as a product of four in an instruction adds.
__device__ __forceinline__ int add_four_bytes(u32 word, int sum, u8) {
#ifdef __CUDA_ARCH__
  return (int)__dp4a(word, 0x01010101u, (u32)sum);
#else
  for (int j = 0; j < 4; ++j) sum += (u8)(word >> 8 * j);
  return sum;
#endif
}
__device__ __forceinline__ int add_four_bytes(u32 word, int sum, i8) {
#ifdef __CUDA_ARCH__
  return __dp4a((int)word, 0x01010101, sum);
#else
  for (int j = 0; j < 4; ++j) sum += (i8)(word >> 8 * j);
  return sum;
#endif
}
template <template <class, int> class Vector, class T, int N>
__device__ __forceinline__ int sum_of_bytes(const Vector<T, N>& x) {
  int sum = 0;
#pragma unroll
  for (int i = 0; i < N / 4; ++i) sum = add_four_bytes(byte_word(x, i), sum, T{});
  return sum;
}

//@ extreme_byte
// The greatest or least of a whole vector. Two halves of a word are compared at once, of which the upper byte decides:
// once as they are, once moved up by a byte. Before sm_90 that takes several instructions, and bytes go one by one.
template <bool greatest>
__device__ __forceinline__ u32 extreme_of_halves(u32 a, u32 b, bool has_sign) {
#if __CUDA_ARCH__ >= 900
  return greatest ? (has_sign ? __vmaxs2(a, b) : __vmaxu2(a, b)) : (has_sign ? __vmins2(a, b) : __vminu2(a, b));
#else
  u32 y = 0;
  for (int shift = 0; shift < 32; shift += 16) {
    const int p = has_sign ? (short)(a >> shift) : (int)(a >> shift & 0xffff);
    const int q = has_sign ? (short)(b >> shift) : (int)(b >> shift & 0xffff);
    y |= ((p > q) == greatest ? a : b) & 0xffffu << shift;
  }
  return y;
#endif
}
template <bool greatest, template <class, int> class Vector, class T, int N>
__device__ __forceinline__ T extreme_byte(const Vector<T, N>& x) {
  constexpr bool has_sign = (T)-1 < (T)0;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
  T y = (T)byte_word(x, 0);
#pragma unroll
  for (int j = 1; j < N; ++j) {
    const T element = (T)(byte_word(x, j / 4) >> j % 4 * 8);
    y = (element > y) == greatest ? element : y;
  }
  return y;
#else
  u32 upper = byte_word(x, 0), lower = upper << 8;
#pragma unroll
  for (int i = 1; i < N / 4; ++i) {
    upper = extreme_of_halves<greatest>(upper, byte_word(x, i), has_sign);
    lower = extreme_of_halves<greatest>(lower, byte_word(x, i) << 8, has_sign);
  }
  const u32 both = extreme_of_halves<greatest>(upper, lower, has_sign);
  const T first = (T)(both >> 8), second = (T)(both >> 24);
  return (first > second) == greatest ? first : second;
#endif
}

//@ greatest_byte
template <template <class, int> class Vector, class T, int N>
__device__ __forceinline__ T greatest_byte(const Vector<T, N>& x) { return extreme_byte<true>(x); }
//@ least_byte
template <template <class, int> class Vector, class T, int N>
__device__ __forceinline__ T least_byte(const Vector<T, N>& x) { return extreme_byte<false>(x); }

//@ byte_to_f32
// Byte j of a word, plus an integer: one permutation takes it out and makes it the low bits of 2^23, which is
// subtracted again. Exact where the sum has 22 bits.
__device__ __forceinline__ float byte_to_f32(u32 word, int j, int plus, u8) {
  return __uint_as_float(__byte_perm(word, 0x4b000000u, 0x7440u + j)) - (8388608.0f - plus);
}
__device__ __forceinline__ float byte_to_f32(u32 word, int j, int plus, i8) {
  return __uint_as_float(__byte_perm(word ^ 0x80808080u, 0x4b000000u, 0x7440u + j)) - (8388736.0f - plus);
}
template <template <class, int> class Vector, class T, int N>
__device__ __forceinline__ float byte_to_f32(const Vector<T, N>& x, int j, int plus) {
  return byte_to_f32(byte_word(x, j / 4), j % 4, plus, T{});
}

//@ bits_of_integer
// Of an integer up to 256 (bf16) or 2048 (f16), which are exact.
__device__ __forceinline__ constexpr u32 bits_of_integer(int x, int mantissa, int bias) {
  const int magnitude = x < 0 ? -x : x;
  int exponent = 0;
  while (magnitude >> exponent > 1) ++exponent;
  const int below = magnitude - (1 << exponent);  // the leading bit
  const int fraction = exponent > mantissa ? below >> (exponent - mantissa) : below << (mantissa - exponent);
  return x == 0 ? 0 : (u32)((x < 0 ? 0x8000 : 0) + ((exponent + bias) << mantissa) + fraction);
}

//@ add_pair
// Two integers in the mantissas of 16-bit reals that begin with 128 (bf16) or 1024 (f16), and `plus`: exact.
template <int plus>
__device__ __forceinline__ u32 add_pair(u32 x, bf16) {
  constexpr u32 c = bits_of_integer(plus, 7, 127);
#if __CUDA_ARCH__ >= 800
  u32 y;  // sm_80 has no instruction that adds them without a product
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(y) : "r"(x), "r"(0x3f803f80u), "r"(c * 0x10001u));
  return y;
#else
  const int low = x & 0x7f, high = x >> 16 & 0x7f;
  return bits_of_integer(low + 128 + plus, 7, 127) | bits_of_integer(high + 128 + plus, 7, 127) << 16;
#endif
}
template <int plus>
__device__ __forceinline__ u32 add_pair(u32 x, f16) {
  constexpr u32 c = bits_of_integer(plus, 10, 15);
#if __CUDA_ARCH__ >= 530
  u32 y;
  asm("add.rn.f16x2 %0, %1, %2;" : "=r"(y) : "r"(x), "r"(c * 0x10001u));
  return y;
#else
  const int low = x & 0x3ff, high = x >> 16 & 0x3ff;
  return bits_of_integer(low + 1024 + plus, 10, 15) | bits_of_integer(high + 1024 + plus, 10, 15) << 16;
#endif
}

//@ is_f16
__device__ __forceinline__ constexpr bool is_f16(f16) { return true; }
__device__ __forceinline__ constexpr bool is_f16(bf16) { return false; }

//@ bytes_to_16
// All of a vector plus an integer, where the sums are numbers of To. `low`: they are less than 128, which is as many as
// the mantissa of bf16 counts from 128 on; f16 has all 256 from 1024 on. The others are numbers of bf16 too, but no low
// bits of one: those are f32 first, of which bf16 is the upper half.
template <class To, bool low, int plus, template <class, int> class Vector, class T, int N>
__device__ __forceinline__ pack<To, N> bytes_to_16(const Vector<T, N>& x) {
  constexpr bool half = is_f16(To{}), has_sign = (T)-1 < (T)0;
  constexpr int base = (half ? 1024 : 128) + (has_sign && !low ? 128 : 0);
  pack<To, N> y;
#pragma unroll
  for (int i = 0; i < N / 2; ++i) {
    const u32 four = byte_word(x, i / 2);
    u32 word;
    if constexpr (half || low) {
      word = __byte_perm(has_sign && !low ? four ^ 0x80808080u : four, half ? 0x64646464u : 0x43434343u,
                         i % 2 == 0 ? 0x4140u : 0x4342u);
      word = add_pair<plus - base>(word, To{});
    } else {
      word = __byte_perm(__float_as_uint(byte_to_f32(x, 2 * i, plus)), __float_as_uint(byte_to_f32(x, 2 * i + 1, plus)),
                         0x7632u);
    }
    memcpy(y.element + 2 * i, &word, 4);
  }
  return y;
}

//@ fma_pair
// a b + c of two elements of 16 bits each, rounded once.
__device__ __forceinline__ u32 fma_pair(u32 a, u32 b, u32 c, bf16) {
#if __CUDA_ARCH__ >= 800
  u32 y;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(y) : "r"(a), "r"(b), "r"(c));
  return y;
#else
  const auto element = [&](int shift) {
    return (u32)f32_to_bf16(bf16_to_f32({(u16)(a >> shift)}) * bf16_to_f32({(u16)(b >> shift)}) +
                            bf16_to_f32({(u16)(c >> shift)})).bits << shift;
  };
  return element(0) | element(16);
#endif
}
__device__ __forceinline__ u32 fma_pair(u32 a, u32 b, u32 c, f16) {
#if __CUDA_ARCH__ >= 530
  u32 y;
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(y) : "r"(a), "r"(b), "r"(c));
  return y;
#else
  const auto element = [&](int shift) {
    return (u32)f32_to_f16(f16_to_f32({(u16)(a >> shift)}) * f16_to_f32({(u16)(b >> shift)}) +
                           f16_to_f32({(u16)(c >> shift)})).bits << shift;
  };
  return element(0) | element(16);
#endif
}

//@ pair_word
// Elements 2i and 2i + 1 of a vector, or a word for all.
template <class T, int N>
__device__ __forceinline__ u32 pair_word(const pack<T, N>& x, int i) {
  u32 word;
  memcpy(&word, x.element + 2 * i, 4);
  return word;
}
__device__ __forceinline__ u32 pair_word(u32 x, int) { return x; }

//@ fma_pairs
// The same of vectors, of which one may be a word.
template <class T, int N, class A, class B, class C>
__device__ __forceinline__ pack<T, N> fma_pairs(const A& a, const B& b, const C& c) {
  pack<T, N> y;
#pragma unroll
  for (int i = 0; i < N / 2; ++i) {
    const u32 pair = fma_pair(pair_word(a, i), pair_word(b, i), pair_word(c, i), T{});
    memcpy(y.element + 2 * i, &pair, 4);
  }
  return y;
}
//@ add_pairs
template <class T, int N>
__device__ __forceinline__ pack<T, N> add_pairs(const pack<T, N>& a, const pack<T, N>& b) {
  return fma_pairs<T, N>(a, is_f16(T{}) ? 0x3c003c00u : 0x3f803f80u, b);
}
//@ subtract_pairs
template <class T, int N>
__device__ __forceinline__ pack<T, N> subtract_pairs(const pack<T, N>& a, const pack<T, N>& b) {
  return fma_pairs<T, N>(b, is_f16(T{}) ? 0xbc00bc00u : 0xbf80bf80u, a);
}
//@ multiply_pairs
// -0 changes no product.
template <class T, int N>
__device__ __forceinline__ pack<T, N> multiply_pairs(const pack<T, N>& a, const pack<T, N>& b) {
  return fma_pairs<T, N>(a, b, 0x80008000u);
}

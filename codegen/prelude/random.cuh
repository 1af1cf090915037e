// Philox 4x32-10, the counter-based generator of J. K. Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3",
// SC'11. The counter is (block, stream) and the key the seed, low halves first. Block is the type of the block's number:
// u32 where that fits, so that a quarter of the counter is 0 and the first rounds are mostly constants.

//@ philox_block
struct philox_block {
  u32 word[4];
};

//@ philox_keys
// The keys of the ten rounds, for all blocks of a seed, which stands for them where few blocks are drawn.
struct philox_keys {
  u32 round[10][2];
  __device__ __forceinline__ philox_keys(i64 seed) {
#pragma unroll
    for (u32 i = 0; i < 10; ++i)
      round[i][0] = (u32)seed + i * 0x9E3779B9u, round[i][1] = (u32)((u64)seed >> 32) + i * 0xBB67AE85u;
  }
};

//@ wide_product
// Of what is known to have 32 bits: of a factor above 2^31 the compiler makes a product of 64 bits, and adds its upper
// half, which is 0.
__device__ __forceinline__ u64 wide_product(u32 a, u32 b) {
#ifdef __CUDA_ARCH__
  u64 y;
  asm("mul.wide.u32 %0, %1, %2;" : "=l"(y) : "r"(a), "r"(b));
  return y;
#else
  return (u64)a * b;
#endif
}

//@ philox
template <class Block>
__device__ __forceinline__ philox_block philox(const philox_keys& keys, i64 stream, Block block) {
  u32 c0 = (u32)block, c1 = (u32)((u64)block >> 32), c2 = (u32)stream, c3 = (u32)((u64)stream >> 32);
#pragma unroll
  for (int i = 0; i < 10; ++i) {
    const u64 product0 = wide_product(c0, 0xD2511F53u);
    const u64 product1 = wide_product(c2, 0xCD9E8D57u);
    c0 = (u32)(product1 >> 32) ^ c1 ^ keys.round[i][0];
    c1 = (u32)product1;
    c2 = (u32)(product0 >> 32) ^ c3 ^ keys.round[i][1];
    c3 = (u32)product0;
  }
  return {{c0, c1, c2, c3}};
}

//@ random_element
// Element i: word i % 4 of block i / 4. Selected without an indexed array, which would leave the registers.
template <class Block>
__device__ __forceinline__ int random_element(const philox_keys& keys, i64 stream, i64 i) {
  const philox_block block = philox(keys, stream, (Block)((u64)i / 4));
  const u32 low = (i & 1) ? block.word[1] : block.word[0];
  const u32 high = (i & 1) ? block.word[3] : block.word[2];
  return (int)((i & 2) ? high : low);
}

//@ random_word
template <int word, class Block>
__device__ __forceinline__ int random_word(const philox_keys& keys, i64 stream, Block block) {
  return (int)philox(keys, stream, block).word[word];
}

//@ random_elements
// The N elements from i on, a multiple of 4: all words of each block.
template <int N, class Block>
__device__ __forceinline__ pack<int, N> random_elements(const philox_keys& keys, i64 stream, i64 i) {
  pack<int, N> x;
#pragma unroll
  for (int first = 0; first < N; first += 4) {
    const philox_block block = philox(keys, stream, (Block)((u64)i / 4) + first / 4);
#pragma unroll
    for (int j = 0; j < 4; ++j) x[first + j] = (int)block.word[j];
  }
  return x;
}

//@ random_elements_from
// The N elements from any i on: of the blocks that they lie in, all words, moved into place.
template <int N, class Block>
__device__ __forceinline__ pack<int, N> random_elements_from(const philox_keys& keys, i64 stream, i64 i) {
  const int past = (int)(i & 3);
  const pack<int, N + 4> around = random_elements<N + 4, Block>(keys, stream, i - past);
  pack<int, N> x;
#pragma unroll
  for (int j = 0; j < N; ++j) {
    const int even = (past & 2) != 0 ? around[j + 2] : around[j];
    const int odd = (past & 2) != 0 ? around[j + 3] : around[j + 1];
    x[j] = (past & 1) != 0 ? odd : even;
  }
  return x;
}

// Philox 4x32-10, the counter-based generator of J. K. Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3",
// SC'11. The counter is (block, stream) and the key the seed, low halves first.

//@ philox
struct philox_block {
  u32 word[4];
};
__device__ __forceinline__ philox_block philox(u64 seed, u64 stream, u64 block) {
  u32 key0 = (u32)seed, key1 = (u32)(seed >> 32);
  u32 c0 = (u32)block, c1 = (u32)(block >> 32), c2 = (u32)stream, c3 = (u32)(stream >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const u64 product0 = (u64)0xD2511F53u * c0;
    const u64 product1 = (u64)0xCD9E8D57u * c2;
    c0 = (u32)(product1 >> 32) ^ c1 ^ key0;
    c1 = (u32)product1;
    c2 = (u32)(product0 >> 32) ^ c3 ^ key1;
    c3 = (u32)product0;
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

//@ random_element
// Element i: word i % 4 of block i / 4. Selected without an indexed array, which would leave the registers.
__device__ __forceinline__ int random_element(i64 seed, i64 stream, i64 i) {
  const philox_block block = philox((u64)seed, (u64)stream, (u64)i / 4);
  const u32 low = (i & 1) ? block.word[1] : block.word[0];
  const u32 high = (i & 1) ? block.word[3] : block.word[2];
  return (int)((i & 2) ? high : low);
}

//@ random_word
template <int word>
__device__ __forceinline__ int random_word(i64 seed, i64 stream, i64 block) {
  return (int)philox((u64)seed, (u64)stream, (u64)block).word[word];
}

//@ random_elements
// The N elements from i on, a multiple of 4: all words of each block.
template <int N>
__device__ __forceinline__ pack<int, N> random_elements(i64 seed, i64 stream, i64 i) {
  pack<int, N> x;
#pragma unroll
  for (int first = 0; first < N; first += 4) {
    const philox_block block = philox((u64)seed, (u64)stream, (u64)i / 4 + first / 4);
#pragma unroll
    for (int j = 0; j < 4; ++j) x[first + j] = (int)block.word[j];
  }
  return x;
}

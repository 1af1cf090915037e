// The softmax of a warpgroup of Attend kernels on sm_90a: its rows stay in registers, and weights become fragments of the
// next product as they come. The loop around it is attend_wgmma.cuh.

//@ masking
// What tells which keys of a tile a query sees: a range of keys, a condition besides, or the score itself.
enum class masking { by_ranges, by_conditions, by_scores };

//@ weights make_weights
// What generated code says of the weights. open_score(i, j, q k) times `scale` is s where no mask hides it (`plain`: it is
// q k itself); the weight is exp(s - shift(i, maximum of s)), and factor(i, j, w) multiplies v. masked(i, j) is the
// condition under which a query sees a key of its range, or masked(i, j, q k) the score with its masks.
template <bool has_maximum_, bool plain_, bool varies_, masking by_, class Masked, class OpenScore, class Shift, class Weight,
          class Factor>
struct weights {
  static constexpr bool has_maximum = has_maximum_, shifted = has_maximum_, plain = plain_, varies = varies_;
  static constexpr masking by = by_;
  float scale;
  Masked masked;
  OpenScore open_score;
  Shift shift;
  Weight weight;
  Factor factor;
};
template <bool has_maximum, bool plain, bool varies, masking by, class Masked, class OpenScore, class Shift, class Weight,
          class Factor>
__device__ __forceinline__ weights<has_maximum, plain, varies, by, Masked, OpenScore, Shift, Weight, Factor> make_weights(
    float scale, Masked masked, OpenScore open_score, Shift shift, Weight weight, Factor factor) {
  return {scale, masked, open_score, shift, weight, factor};
}

//@ weighted_rows
// The softmax of the two rows of a thread, of 64 that a warpgroup has. Weights are powers of two of s less the shift,
// each by one fma of the score: the base of the logarithm and `scale` are one factor.
struct weighted_rows {
  static constexpr float log2_e = 1.44269504f;
  float top[2] = {minus_infinity(0.0f), minus_infinity(0.0f)};  // the maximum of the scores so far
  float below[2] = {0, 0};                                     // what is subtracted from exponents of two
  float sum[2] = {0, 0};                                       // of this thread's weights

  // Scores of keys from j0 on, of which masks hide some, or that lie behind the last one. keys_of(i): the range that a
  // query sees.
  template <int tile_kv, class Weights, class Index, class KeysOf>
  static __device__ __forceinline__ void mask(float (&s)[tile_kv / 2], const Weights& weights, const Index (&i)[2], Index j0,
                                              Index j_limit, const KeysOf& keys_of) {
    j0 += (Index)(threadIdx.x % 4 * 2);
    if constexpr (Weights::by == masking::by_scores) {
#pragma unroll
      for (int x = 0; x < tile_kv / 2; ++x) {
        const Index j = j0 + (Index)(x / 4 * 8 + x % 2);
        s[x] = j < j_limit ? weights.masked(i[x / 2 % 2], j, s[x]) : minus_infinity(0.0f);
      }
    } else {
      const auto upper = keys_of(i[0]), lower = keys_of(i[1]);
      const Index first[2] = {upper.first - j0, lower.first - j0}, last[2] = {upper.last - j0, lower.last - j0};
      // Conditions are bits, found by a loop: what they load and compute for a whole tile exceeds the registers.
      u32 bits[(tile_kv + 63) / 64] = {};
      if constexpr (Weights::by == masking::by_conditions) {
#pragma unroll
        for (int word = 0; word < (tile_kv + 63) / 64; ++word) {
#pragma unroll 2
          for (int y = 0; y < 32 && word * 64 + y * 2 < tile_kv; y += 4)
#pragma unroll
            for (int z = 0; z < 4; ++z) {
              const Index column = (Index)(word * 64 + y * 2 + z % 2);
              const Index j = j0 + column < j_limit ? j0 + column : j_limit - 1;  // without a branch around loads
              const bool seen = weights.masked(i[z / 2], j);
              bits[word] |= (u32)(seen & (column >= first[z / 2]) & (column < last[z / 2])) << (y + z);
            }
        }
      }
#pragma unroll
      for (int x = 0; x < tile_kv / 2; ++x) {
        const int r = x / 2 % 2;
        const Index column = (Index)(x / 4 * 8 + x % 2);
        const bool seen = Weights::by == masking::by_conditions ? (bits[x / 32] >> x % 32 & 1) != 0
                                                                : column >= first[r] && column < last[r];
        s[x] = seen ? weights.open_score(i[r], j0 + column, s[x]) : minus_infinity(0.0f);
      }
    }
  }

  // Makes weights of scores; gives what multiplies all that was summed before.
  template <int tile_kv, class Weights, class Index, class KeysOf>
  __device__ __forceinline__ void weigh(float (&s)[tile_kv / 2], float (&ratio)[2], const Weights& weights,
                                        const Index (&i)[2], Index j0, bool open, Index j_limit, const KeysOf& keys_of) {
    if (!open) {
      mask<tile_kv>(s, weights, i, j0, j_limit, keys_of);
    } else if (!Weights::plain) {
#pragma unroll
      for (int x = 0; x < tile_kv / 2; ++x)
        s[x] = weights.open_score(i[x / 2 % 2], j0 + (Index)(x / 4 * 8 + threadIdx.x % 4 * 2 + x % 2), s[x]);
    }
    const float slope = weights.scale * log2_e;
    ratio[0] = ratio[1] = 1;
    if constexpr (Weights::has_maximum) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        float highest = s[2 * r], other = s[2 * r + 1];
#pragma unroll
        for (int x = 4; x < tile_kv / 2; x += 4)
          highest = maximum(highest, s[x + 2 * r]), other = maximum(other, s[x + 2 * r + 1]);
        highest = maximum(highest, other);
        highest = maximum(highest, __shfl_xor_sync(~0u, highest, 1));
        highest = maximum(highest, __shfl_xor_sync(~0u, highest, 2));
        const bool first = top[r] == minus_infinity(0.0f);
        top[r] = maximum(top[r], highest);
        const float before = below[r];
        // The exponent of the greatest is 0 but for one rounding, which all share. While all scores are -inf, weights are
        // 0: a later maximum makes them so.
        const float highest_score = top[r] * weights.scale, shift = weights.shift(i[r], highest_score);
        below[r] = shift == highest_score ? top[r] * slope : shift * log2_e;
        if (top[r] == minus_infinity(0.0f)) below[r] = 0;
        ratio[r] = first ? 0.0f : power_of_two(before - below[r]);
        sum[r] *= ratio[r];
      }
    }
    float partial[4] = {};
#pragma unroll
    for (int x = 0; x < tile_kv / 2; ++x) {
      s[x] = power_of_two(fma(s[x], slope, -below[x / 2 % 2]));
      partial[x % 4] += s[x];
    }
    sum[0] += partial[0] + partial[1], sum[1] += partial[2] + partial[3];
  }

  // The sums of four lanes that share rows.
  __device__ __forceinline__ void finish() {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      sum[r] += __shfl_xor_sync(~0u, sum[r], 1);
      sum[r] += __shfl_xor_sync(~0u, sum[r], 2);
    }
  }

  // The maximum and the sum as the epilogue takes them; gives what each sum of values lacks: the weight of each key of a
  // row that saw no score above -inf is 0, or NaN where the shift is not guarded.
  template <class Weights, class Index>
  __device__ __forceinline__ void close(float (&unseen)[2], const Weights& weights, const Index (&i)[2], Index j_limit) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float highest = top[r] * weights.scale;
      const bool nothing = Weights::shifted && j_limit > 0 && top[r] == minus_infinity(0.0f);
      unseen[r] = nothing ? weights.weight(i[r], highest, weights.shift(i[r], highest)) : 0.0f;
      top[r] = highest;
      sum[r] += unseen[r];
    }
  }
};

//@ pack_fragments
// Weights, times what multiplies them along a row, as the first operand of the next product: 16 keys a fragment.
template <class T, int tile_kv, class Weights, class Index>
__device__ __forceinline__ void pack_fragments(u32 (&p)[tile_kv / 16][4], const float (&s)[tile_kv / 2],
                                               const Weights& weights, const Index (&i)[2], Index j0, Index j_limit) {
#pragma unroll
  for (int x = 0; x < tile_kv / 4; ++x) {
    float pair[2] = {s[2 * x], s[2 * x + 1]};
    const Index j = j0 + (Index)(x / 2 * 8 + threadIdx.x % 4 * 2);
#pragma unroll
    for (int y = 0; y < 2; ++y)
      if (!Weights::varies || j + y < j_limit) pair[y] = weights.factor(i[x % 2], j + y, pair[y]);
    p[x / 4][x % 4] = pack_pair(pair[0], pair[1], T{});
  }
}

//@ settle_fragments
// Keeps the compiler from making fragments behind this place.
template <int count>
__device__ __forceinline__ void settle_fragments(u32 (&p)[count][4]) {
#pragma unroll
  for (int i = 0; i < count; ++i)
    asm volatile("" : "+r"(p[i][0]), "+r"(p[i][1]), "+r"(p[i][2]), "+r"(p[i][3])::"memory");
}

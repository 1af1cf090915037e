// The softmax of a warpgroup of Attend kernels on sm_90a: its rows stay in registers, and weights become fragments of the
// next product as they come. The loop around it is attend_wgmma.cuh.

//@ masking
// What tells which keys of a tile a query sees: a range of keys, a condition besides, or the score itself.
enum class masking { by_ranges, by_conditions, by_scores };

//@ weights make_weights
// What generated code says of the weights. open_score(i, j, q k) times `scale` is s where no mask hides it (`plain`: it is
// q k itself); the weight is exp(s - shift(i, maximum of s)), and factor(i, j, w) multiplies v: only
// one that `varies` looks at j, and where it `draws`, it is by_fours. masked(i, j) is the condition under which a query
// sees a key of its range, or masked(i, j, q k) the score with its masks.
template <bool has_maximum_, bool plain_, bool varies_, masking by_, class Masked, class OpenScore, class Shift, class Weight,
          class Factor>
struct weights {
  static constexpr bool has_maximum = has_maximum_, shifted = has_maximum_, plain = plain_, varies = varies_;
  static constexpr bool draws = is_by_fours<Factor>;
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

//@ by_fours is_by_fours
// A function(i, j, x, drawn) of a key and of random words, the words of its four keys of the blocks that draw(i, j / 4)
// gives.
template <class Draw, class Function>
struct by_fours {
  Draw draw;
  Function function;
  __device__ __forceinline__ by_fours(Draw draw_, Function function_) : draw(draw_), function(function_) {}
};

template <class Function>
constexpr bool is_by_fours = false;
template <class Draw, class Function>
constexpr bool is_by_fours<by_fours<Draw, Function>> = true;

//@ by_pairs
// A function(i, j, x, read) of a key and of what is read for it, the first or the second of the pair that read(i, j) gives
// for an even j.
template <class Read, class Function>
struct by_pairs {
  Read read;
  Function function;
  __device__ __forceinline__ by_pairs(Read read_, Function function_) : read(read_), function(function_) {}
};

//@ by_boxes
// The same of what boxes bring, an element of T for a key.
template <class T, class Function>
struct by_boxes {
  Function function;
  __device__ __forceinline__ by_boxes(T, Function function_) : function(function_) {}
};

//@ held_pairs
// What a function of the `count` scores of a thread reads ahead of them: nothing, or pairs. What lies behind the last key
// is not read. Of boxes it knows where those of the thread's warpgroup are: panels of 128 bytes of each of 64 rows.
template <int count, class Function>
struct held_pairs {
  template <class Index>
  __device__ __forceinline__ void read(const Function&, const Index (&)[2], Index, Index) {}
};
template <int count, class T, class Function>
struct held_pairs<count, by_boxes<T, Function>> {
  const unsigned char* boxes = nullptr;
  template <class Index>
  __device__ __forceinline__ void read(const by_boxes<T, Function>&, const Index (&)[2], Index, Index) {}
  // Of scores 2 * x and 2 * x + 1. Pieces of 16 bytes of a row change places with its number.
  __device__ __forceinline__ pack<T, 2> pair(int x) const {
    const int lane = threadIdx.x % 32, row = threadIdx.x % 128 / 32 * 16 + lane / 4 + x % 2 * 8;
    const int byte = (x / 2 * 8 + lane % 4 * 2) * (int)sizeof(T), piece = byte % 128 / 16 ^ lane / 4;
    return *(const pack<T, 2>*)(boxes + byte / 128 * (64 * 128) + row * 128 + piece * 16 + byte % 16);
  }
};
template <int count, class Read, class Function>
struct held_pairs<count, by_pairs<Read, Function>> {
  decltype((*static_cast<const Read*>(nullptr))(0, 0)) pairs[count / 2];
  template <class Index>
  __device__ __forceinline__ void read(const by_pairs<Read, Function>& f, const Index (&i)[2], Index j0, Index j_limit) {
#pragma unroll
    for (int x = 0; x < count / 2; ++x) {
      const Index j = j0 + (Index)(x / 2 * 8 + threadIdx.x % 4 * 2);
      pairs[x] = f.read(i[x % 2], j < j_limit ? j : j_limit - 2);
    }
  }
};

//@ held_ahead
template <int count, class Function>
__device__ __forceinline__ held_pairs<count, Function> held_ahead(const Function&) {
  return {};
}

//@ share_blocks
// Two neighbouring lanes have two keys each of the same four, of the same two rows, and each lane the blocks of one row,
// the first those of the first. Gives the words of a lane's keys: two of the first row, then two of the second.
template <int N>
__device__ __forceinline__ void share_blocks(pack<int, N> (&words)[4], const pack<philox_block, N>& blocks) {
  const bool second = threadIdx.x % 2 != 0;
#pragma unroll
  for (int n = 0; n < N; ++n) {
    const u32* const word = blocks[n].word;
#pragma unroll
    for (int key = 0; key < 2; ++key) {
      const u32 other = __shfl_xor_sync(~0u, second ? word[key] : word[2 + key], 1);
      words[key][n] = (int)(second ? other : word[key]);
      words[2 + key][n] = (int)(second ? word[2 + key] : other);
    }
  }
}

//@ column_of
// How far the key of score x of a thread is from that of its first.
template <class Index>
__device__ __forceinline__ constexpr Index column_of(int x) {
  return (Index)(x / 4 * 8 + x % 2);
}

//@ map_keys
// s[x] = f(i, j, s[x]) for the scores of a thread, and `hidden` but where sees(x). What is drawn by fours is asked of the
// last key instead of those behind it: no branch may stand while products are under way.
template <int count, class Function, class Index, class Sees>
__device__ __forceinline__ void map_keys(float (&s)[count], const Function& f, const held_pairs<count, Function>&,
                                         const Index (&i)[2], Index j0, Index j_limit, const Sees& sees, float hidden) {
#pragma unroll
  for (int x = 0; x < count; ++x) {
    const Index j = j0 + (Index)(threadIdx.x % 4 * 2) + column_of<Index>(x);
    s[x] = sees(x) ? f(i[x / 2 % 2], j, s[x]) : hidden;
  }
}
template <int count, class Read, class Function, class Index, class Sees>
__device__ __forceinline__ void map_keys(float (&s)[count], const by_pairs<Read, Function>& f,
                                         const held_pairs<count, by_pairs<Read, Function>>& held, const Index (&i)[2],
                                         Index j0, Index j_limit, const Sees& sees, float hidden) {
#pragma unroll
  for (int x = 0; x < count; ++x) {
    const Index j = j0 + (Index)(threadIdx.x % 4 * 2) + column_of<Index>(x);
    s[x] = sees(x) ? f.function(i[x / 2 % 2], j, s[x], held.pairs[x / 2][x % 2]) : hidden;
  }
}
template <int count, class T, class Function, class Index, class Sees>
__device__ __forceinline__ void map_keys(float (&s)[count], const by_boxes<T, Function>& f,
                                         const held_pairs<count, by_boxes<T, Function>>& held, const Index (&i)[2],
                                         Index j0, Index j_limit, const Sees& sees, float hidden) {
#pragma unroll
  for (int x = 0; x < count; x += 2) {
    const pack<T, 2> read = held.pair(x / 2);
    const Index j = j0 + (Index)(threadIdx.x % 4 * 2) + column_of<Index>(x);
    s[x] = sees(x) ? f.function(i[x / 2 % 2], j, s[x], read[0]) : hidden;
    s[x + 1] = sees(x + 1) ? f.function(i[x / 2 % 2], j + 1, s[x + 1], read[1]) : hidden;
  }
}
template <int count, class Draw, class Function, class Index, class Sees>
__device__ __forceinline__ void map_keys(float (&s)[count], const by_fours<Draw, Function>& f,
                                         const held_pairs<count, by_fours<Draw, Function>>&, const Index (&i)[2], Index j0,
                                         Index j_limit, const Sees& sees, float hidden) {
  const Index row = threadIdx.x % 2 == 0 ? i[0] : i[1];
#pragma unroll
  for (int x = 0; x < count; x += 4) {
    const auto blocks = f.draw(row, j0 / 4 + (Index)(x / 2 + threadIdx.x % 4 / 2));
    pack<int, sizeof(blocks) / sizeof(philox_block)> words[4];
    share_blocks(words, blocks);
#pragma unroll
    for (int y = 0; y < 4; ++y) {
      const Index j = j0 + (Index)(threadIdx.x % 4 * 2) + column_of<Index>(x + y);
      const float mapped = f.function(i[y / 2], j < j_limit ? j : j_limit - 1, s[x + y], words[y]);
      s[x + y] = sees(x + y) ? mapped : hidden;
    }
  }
}

//@ exact_power
// 2^exponent, of a normal number.
template <int exponent>
__device__ __forceinline__ float exact_power() {
  return __uint_as_float((u32)(127 + exponent) << 23);
}

//@ weighted_rows
// The softmax of the two rows of a thread, of 64 that a warpgroup has. Weights are powers of two of s less the shift,
// each by one fma of the score: the base of the logarithm and `scale` are one factor.
struct weighted_rows {
  static constexpr float log2_e = 1.44269504f;
  float top[2] = {minus_infinity(0.0f), minus_infinity(0.0f)};  // the maximum of the scores so far
  float below[2] = {0, 0};                                     // what is subtracted from exponents of two
  float sum[2] = {0, 0};                                       // of this thread's weights

  // Whether scores are so far from 0 that their product with the slope has lost what sets them apart, or is infinite:
  // masks of the lowest finite number. The exact difference from the greatest is then multiplied instead.
  static __device__ __forceinline__ bool is_far(float score, float slope) {
    const float size = fabsf(score);
    return size * slope > 0x1p14f && size < -minus_infinity(0.0f);
  }

  // Which of the keys from j0 on the rows see by conditions, as bits: found ahead of the scores, and by a loop, since what
  // conditions load and compute for a whole tile exceeds the registers. keys_of(i): the range that a query sees.
  template <int tile_kv, class Weights, class Index, class KeysOf>
  static __device__ __forceinline__ void find(u32 (&bits)[(tile_kv + 63) / 64], const Weights& weights, const Index (&i)[2],
                                              Index j0, Index j_limit, const KeysOf& keys_of) {
    if constexpr (Weights::by == masking::by_conditions) {
      const Index own = j0 + (Index)(threadIdx.x % 4 * 2);
      const auto upper = keys_of(i[0]), lower = keys_of(i[1]);
      const Index first[2] = {upper.first - own, lower.first - own}, last[2] = {upper.last - own, lower.last - own};
#pragma unroll
      for (int word = 0; word < (tile_kv + 63) / 64; ++word) {
        bits[word] = 0;
#pragma unroll 2
        for (int y = 0; y < 32 && word * 64 + y * 2 < tile_kv; y += 4)
#pragma unroll
          for (int z = 0; z < 4; ++z) {
            const Index column = (Index)(word * 64 + y * 2 + z % 2);
            const Index j = own + column < j_limit ? own + column : j_limit - 1;  // without a branch around loads
            const bool seen = weights.masked(i[z / 2], j);
            bits[word] |= (u32)(seen & (column >= first[z / 2]) & (column < last[z / 2])) << (y + z);
          }
      }
    }
  }

  // Scores of keys from j0 on, of which masks hide some, or that lie behind the last one.
  template <int tile_kv, class Weights, class Held, class Index, class KeysOf>
  static __device__ __forceinline__ void mask(float (&s)[tile_kv / 2], const Weights& weights, const Held& held,
                                              const u32 (&bits)[(tile_kv + 63) / 64], const Index (&i)[2], Index j0,
                                              Index j_limit, const KeysOf& keys_of) {
    const Index own = j0 + (Index)(threadIdx.x % 4 * 2);
    if constexpr (Weights::by == masking::by_scores) {
      const auto sees = [&](int x) { return own + column_of<Index>(x) < j_limit; };
      map_keys(s, weights.masked, {}, i, j0, j_limit, sees, minus_infinity(0.0f));
    } else if constexpr (Weights::by == masking::by_conditions) {
      const auto sees = [&](int x) { return (bits[x / 32] >> x % 32 & 1) != 0; };
      map_keys(s, weights.open_score, held, i, j0, j_limit, sees, minus_infinity(0.0f));
    } else {
      const auto upper = keys_of(i[0]), lower = keys_of(i[1]);
      const Index first[2] = {upper.first - own, lower.first - own}, last[2] = {upper.last - own, lower.last - own};
      const auto sees = [&](int x) {
        const Index column = column_of<Index>(x);
        return column >= first[x / 2 % 2] && column < last[x / 2 % 2];
      };
      map_keys(s, weights.open_score, held, i, j0, j_limit, sees, minus_infinity(0.0f));
    }
  }

  // Makes weights of scores, times 2^lift; gives what multiplies all that was summed before. What is drawn for weights takes its time
  // here, while values are multiplied.
  template <int tile_kv, int lift, class Weights, class Held, class Index, class KeysOf>
  __device__ __forceinline__ void weigh(float (&s)[tile_kv / 2], float (&ratio)[2], const Weights& weights, const Held& held,
                                        const u32 (&bits)[(tile_kv + 63) / 64], const Index (&i)[2], Index j0, bool open, Index j_limit, const KeysOf& keys_of) {
    if (!open) {
      mask<tile_kv>(s, weights, held, bits, i, j0, j_limit, keys_of);
    } else if (!Weights::plain) {
      map_keys(s, weights.open_score, held, i, j0, j_limit, [](int) { return true; }, 0.0f);
    }
    const float slope = weights.scale * log2_e;
    ratio[0] = ratio[1] = 1;
    bool far[2] = {false, false};
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
        const float top_before = top[r];
        const bool first = top_before == minus_infinity(0.0f);
        top[r] = maximum(top[r], highest);
        const float before = below[r];
        // The exponent of the greatest is 0 but for one rounding, which all share. While all scores are -inf, weights are
        // 0: a later maximum makes them so.
        const float highest_score = top[r] * weights.scale, shift = weights.shift(i[r], highest_score);
        below[r] = shift == highest_score ? top[r] * slope : shift * log2_e;
        if (top[r] == minus_infinity(0.0f)) below[r] = 0;
        far[r] = is_far(top[r], slope);
        ratio[r] = first ? 0.0f : power_of_two(far[r] ? (top_before - top[r]) * slope : before - below[r]);
        sum[r] *= ratio[r];
      }
      if (__any_sync(~0u, far[0] || far[1])) {
#pragma unroll
        for (int x = 0; x < tile_kv / 2; ++x) s[x] -= far[x / 2 % 2] ? top[x / 2 % 2] : 0.0f;
      }
    }
    const float subtracted[2] = {(far[0] ? 0.0f : below[0]) - lift, (far[1] ? 0.0f : below[1]) - lift};
    float partial[4] = {};
#pragma unroll
    for (int x = 0; x < tile_kv / 2; ++x) {
      s[x] = power_of_two(fma(s[x], slope, -subtracted[x / 2 % 2]));
      partial[x % 4] += s[x];
    }
    sum[0] += partial[0] + partial[1], sum[1] += partial[2] + partial[3];
    if constexpr (Weights::draws) multiply(s, weights, i, j0, j_limit);
  }

  // Weights times what multiplies them along a row. Those of keys behind the last are 0.
  template <int count, class Weights, class Index>
  static __device__ __forceinline__ void multiply(float (&s)[count], const Weights& weights, const Index (&i)[2], Index j0,
                                                  Index j_limit) {
    const Index left = j_limit - j0 - (Index)(threadIdx.x % 4 * 2);
    const auto sees = [&](int x) { return !Weights::varies || column_of<Index>(x) < left; };
    map_keys(s, weights.factor, {}, i, j0, j_limit, sees, 0.0f);
  }

  // The sums of four lanes that share rows, of weights as they are.
  template <int lift>
  __device__ __forceinline__ void finish() {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      if (lift > 0) sum[r] *= exact_power<-lift>();
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

//@ pack_four
// Four f32 of at most 448 as neighbouring elements of a fragment.
__device__ __forceinline__ u32 pack_four(float a, float b, float c, float d, f8e4m3) {
#if __CUDA_ARCH__ >= 890
  u32 four;
  asm("{ .reg .b16 low, high; cvt.rn.satfinite.e4m3x2.f32 low, %2, %1; cvt.rn.satfinite.e4m3x2.f32 high, %4, %3; "
      "mov.b32 %0, {low, high}; }"
      : "=r"(four)
      : "f"(a), "f"(b), "f"(c), "f"(d));
  return four;
#else
  return (u32)f32_to_f8e4m3(a).bits | (u32)f32_to_f8e4m3(b).bits << 8 | (u32)f32_to_f8e4m3(c).bits << 16 |
         (u32)f32_to_f8e4m3(d).bits << 24;
#endif
}

//@ pack_fragments
// Weights, times what multiplies them along a row, as the first operand of the next product: 16 keys a fragment.
template <class T, int tile_kv, class Weights, class Index>
__device__ __forceinline__ void pack_fragments(u32 (&p)[tile_kv / 16][4], float (&s)[tile_kv / 2], const Weights& weights,
                                               const Index (&i)[2], Index j0, Index j_limit) {
  if constexpr (!Weights::draws) weighted_rows::multiply(s, weights, i, j0, j_limit);
#pragma unroll
  for (int x = 0; x < tile_kv / 4; ++x) p[x / 4][x % 4] = pack_pair(s[2 * x], s[2 * x + 1], T{});
}

//@ byte_fragments
// The same of f8e4m3, 32 keys a fragment. A lane takes four neighbouring keys of each 16, and has two of the first eight
// and two of the last. Of the four lanes of a row the outer ones keep a half of what they have, two rows at once: `swap`
// makes halves change lanes, and `order` fragments of them.
struct byte_fragments {
  u32 lane = threadIdx.x % 4;
  bool outer = lane == 0 || lane == 3;

  template <int tile_kv>
  __device__ __forceinline__ void swap(u32 (&halves)[tile_kv / 32][4], const float (&s)[tile_kv / 2]) const {
    const int quad = threadIdx.x % 32 / 4 * 4;
    const int from_a = quad + (int)(0xc9u >> 2 * lane & 3), from_b = quad + (int)(0x9cu >> 2 * lane & 3);
    const u32 to_a = outer ? 0x7632u : 0x5410u, to_b = outer ? 0x5410u : 0x7632u;
#pragma unroll
    for (int x = 0; x < tile_kv / 2; x += 8) {
      const u32 row = pack_four(s[x], s[x + 1], s[x + 4], s[x + 5], f8e4m3{});
      const u32 next = pack_four(s[x + 2], s[x + 3], s[x + 6], s[x + 7], f8e4m3{});
      halves[x / 16][x / 8 % 2 * 2] = __shfl_sync(~0u, __byte_perm(row, next, to_a), from_a);
      halves[x / 16][x / 8 % 2 * 2 + 1] = __shfl_sync(~0u, __byte_perm(row, next, to_b), from_b);
    }
  }
  template <int count>
  __device__ __forceinline__ void order(u32 (&p)[count][4], const u32 (&halves)[count][4]) const {
    const u32 upper = outer ? 0x1054u : 0x5410u, lower = outer ? 0x3276u : 0x7632u;
#pragma unroll
    for (int x = 0; x < 4 * count; x += 2) {
      p[x / 4][x % 4] = __byte_perm(halves[x / 4][x % 4], halves[x / 4][x % 4 + 1], upper);
      p[x / 4][x % 4 + 1] = __byte_perm(halves[x / 4][x % 4], halves[x / 4][x % 4 + 1], lower);
    }
  }
};

//@ settle_fragments
// Keeps the compiler from making fragments behind this place.
template <int count>
__device__ __forceinline__ void settle_fragments(u32 (&p)[count][4]) {
#pragma unroll
  for (int i = 0; i < count; ++i)
    asm volatile("" : "+r"(p[i][0]), "+r"(p[i][1]), "+r"(p[i][2]), "+r"(p[i][3])::"memory");
}

// The main loop of Attend kernels on sm_90a. Blocks stay and take tile after tile of queries. One thread asks for boxes of
// queries, keys and values, several tiles of keys ahead; each other warpgroup multiplies 64 queries with them. The scores
// of a tile of keys are multiplied while the weights of the one before go into the sums, and their softmax hides behind
// that product (J. Shah et al., "FlashAttention-3", 2024). Weights are fragments of registers as they come.

//@ attend_tiles
// `tile_kv` keys at once, lines of `depth` elements of queries and keys and of `width` of values: panels of 64 elements
// side by side. `stages`: tiles of keys, and of values, that are there or on their way. `turns`: one warpgroup multiplies
// while another has its softmax. Of the keys of a tile of queries each of `parts` blocks, a cluster, has a share.
template <class T, int consumers_, int tile_kv_, int depth_, int width_, int stages_, bool turns_, int parts_>
struct attend_tiles {
  using element = T;
  static constexpr int consumers = consumers_, tile_kv = tile_kv_, depth = depth_, width = width_, stages = stages_;
  static constexpr bool turns = turns_;
  static constexpr int parts = parts_;
  static constexpr int tile_q = 64 * consumers, panels_d = (depth + 63) / 64, panels_e = (width + 63) / 64;
  static constexpr int bytes_q = panels_d * tile_q * 128, bytes_k = panels_d * tile_kv * 128;
  static constexpr int bytes_v = panels_e * tile_kv * 128;
  static constexpr int consumer_registers = consumers == 1 ? 216 : consumers == 2 ? 240 : 160;
  static constexpr int producer_registers = consumers == 1 ? 152 : consumers == 2 ? 24 : 32;
  static_assert(tile_kv % 16 == 0 && depth % 16 == 0 && width % 32 == 0, "whole instructions, and whole turns of results");
};

//@ key_range
// The keys that some query of a tile sees, from a multiple of the tile's keys on, and those that every one of them sees.
template <class Index>
struct key_range {
  Index first, last, first_open, last_open;
};

//@ weights make_weights
// What generated code says of the weights. score(i, j, q k) times `scale` is s, and open_score the same where no mask
// hides (`plain`: it is q k itself); the weight is exp(s - shift(i, maximum of s)), and factor(i, j, w) multiplies v.
template <bool has_maximum_, bool plain_, bool varies_, class Score, class OpenScore, class Shift, class Weight, class Factor>
struct weights {
  static constexpr bool has_maximum = has_maximum_, shifted = has_maximum_, plain = plain_, varies = varies_;
  float scale;
  Score score;
  OpenScore open_score;
  Shift shift;
  Weight weight;
  Factor factor;
};
template <bool has_maximum, bool plain, bool varies, class Score, class OpenScore, class Shift, class Weight, class Factor>
__device__ __forceinline__ weights<has_maximum, plain, varies, Score, OpenScore, Shift, Weight, Factor> make_weights(
    float scale, Score score, OpenScore open_score, Shift shift, Weight weight, Factor factor) {
  return {scale, score, open_score, shift, weight, factor};
}

//@ weighted_rows
// The softmax of the two rows of a thread, of 64 that a warpgroup has. Weights are powers of two of s less the shift,
// each by one fma of the score: the base of the logarithm and `scale` are one factor.
struct weighted_rows {
  static constexpr float log2_e = 1.44269504f;
  float top[2] = {minus_infinity(0.0f), minus_infinity(0.0f)};  // the maximum of the scores so far
  float below[2] = {0, 0};                                     // what is subtracted from exponents of two
  float sum[2] = {0, 0};                                       // of this thread's weights

  // Makes weights of scores; gives what multiplies all that was summed before.
  template <int tile_kv, class Weights, class Index>
  __device__ __forceinline__ void weigh(float (&s)[tile_kv / 2], float (&ratio)[2], const Weights& weights,
                                        const Index (&i)[2], Index j0, bool open, Index j_limit) {
    const int column = threadIdx.x % 4 * 2;
    if (!open) {
#pragma unroll
      for (int x = 0; x < tile_kv / 2; ++x) {
        const Index j = j0 + (Index)(x / 4 * 8 + column + x % 2);
        s[x] = j < j_limit ? weights.score(i[x / 2 % 2], j, s[x]) : minus_infinity(0.0f);
      }
    } else if (!Weights::plain) {
#pragma unroll
      for (int x = 0; x < tile_kv / 2; ++x)
        s[x] = weights.open_score(i[x / 2 % 2], j0 + (Index)(x / 4 * 8 + column + x % 2), s[x]);
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

//@ hand_out_queries
// The sums of a warpgroup's 64 queries, in `width` columns from e0 on, leave 32 columns at once, eight rows of each warp
// after eight, through `mine`, shared memory of the warp, so that lanes store neighbouring columns.
template <int width, class Index, class Result>
__device__ __forceinline__ void hand_out_queries(float (&sum)[width / 2], const float (&tops)[2], const float (&totals)[2],
                                                 float* mine, Index i0, Index e0, Index i_limit, Index e_limit,
                                                 const Result& out) {
  constexpr int vector = Result::vector, turn = 32, per_row = turn / vector, slots = 8 * per_row / 32;
  static_assert(slots >= 1, "each lane has a vector");
  using staged = staged_sums<turn>;
  const int lane = threadIdx.x % 32;
  i0 += (Index)(threadIdx.x / 32 % 4 * 16);
#pragma unroll 1
  for (int column = 0; column < width; column += turn) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int x = 0; x < turn / 2; x += 4)
        staged::write(mine, lane / 4, x * 2 + lane % 4 * 2, sum[x + half * 2], sum[x + half * 2 + 1]);
      __syncwarp();
#pragma unroll
      for (int slot = 0; slot < slots; ++slot) {
        const int row = (slot * 32 + lane) / per_row, at = (slot * 32 + lane) % per_row * vector;
        const float top = __shfl_sync(~0u, tops[half], row * 4), total = __shfl_sync(~0u, totals[half], row * 4);
        const Index i = i0 + (Index)(half * 8 + row), e = e0 + (Index)(column + at);
        if (i < i_limit && e < e_limit) out.put(i, e, top, total, staged::template read<vector>(mine, row, at));
      }
      __syncwarp();
    }
#pragma unroll
    for (int x = 0; x + turn / 2 < width / 2; ++x) sum[x] = sum[x + turn / 2];
  }
}

//@ hand_out_shares
// The same where the blocks of a cluster have sums over some of the keys each: they add up those of all of them, in their
// order, each for some of the columns. `left`: shared memory that nothing else needs any more.
template <class Tiles, class Weights, class Index, class Result>
__device__ __forceinline__ void hand_out_shares(const float (&sum)[Tiles::width / 2], weighted_rows& rows,
                                                unsigned char* left, float* mine, const Weights& weights,
                                                const Index (&i)[2], Index i0, Index i_limit, Index j_limit, Index e_limit,
                                                const Result& out) {
  constexpr int turn = 32, turns = Tiles::width / turn, threads = 128 * Tiles::consumers, packs = Tiles::width / 8;
  const u32 rank = cluster_rank();
  float* const place = reinterpret_cast<float*>(left) + threadIdx.x * 4;  // of a thread's numbers, four at a time
  wait_turn<threads>(4);  // all have read the last keys and values
#pragma unroll
  for (int x = 0; x < Tiles::width / 2; x += 4)
    store<4, 4>(place + x * threads, pack<float, 4>{sum[x], sum[x + 1], sum[x + 2], sum[x + 3]});
  store<4, 4>(place + packs * 4 * threads, pack<float, 4>{rows.top[0], rows.top[1], rows.below[0], rows.below[1]});
  store<4, 4>(place + (packs + 1) * 4 * threads, pack<float, 4>{rows.sum[0], rows.sum[1], 0, 0});
  join_cluster();
  float below[2] = {0, 0}, share[Tiles::parts][2];
  rows.top[0] = rows.top[1] = minus_infinity(0.0f);
#pragma unroll
  for (int part = 0; part < Tiles::parts; ++part) {
    const pack<float, 4> its = load_of_block(place + packs * 4 * threads, part);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      if (its[r] > rows.top[r]) below[r] = its[2 + r];
      rows.top[r] = maximum(rows.top[r], its[r]);
    }
  }
  rows.sum[0] = rows.sum[1] = 0;
#pragma unroll
  for (int part = 0; part < Tiles::parts; ++part) {
    const pack<float, 4> its = load_of_block(place + packs * 4 * threads, part);
    const pack<float, 4> total = load_of_block(place + (packs + 1) * 4 * threads, part);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const bool nothing = Weights::has_maximum && its[r] == minus_infinity(0.0f);
      share[part][r] = nothing ? 0.0f : power_of_two(its[2 + r] - below[r]);
      rows.sum[r] += total[r] * share[part][r];
    }
  }
  float unseen[2];
  rows.close(unseen, weights, i, j_limit);
#pragma unroll 1
  for (int at = 0; at < turns; ++at) {
    if ((u32)at % Tiles::parts != rank) continue;
    float all[turn / 2];
#pragma unroll
    for (int x = 0; x < turn / 2; ++x) all[x] = unseen[x / 2 % 2];
#pragma unroll
    for (int part = 0; part < Tiles::parts; ++part)
#pragma unroll
      for (int x = 0; x < turn / 2; x += 4) {
        const pack<float, 4> its = load_of_block(place + (at * (turn / 2) + x) * threads, part);
#pragma unroll
        for (int y = 0; y < 4; ++y) all[x + y] += its[y] * share[part][y / 2];
      }
    hand_out_queries<turn>(all, rows.top, rows.sum, mine, i0, (Index)(at * turn), i_limit, e_limit, out);
  }
}

//@ attend_wgmma
// load_q(to, full, batch, i), load_k(to, full, batch, j) and load_v ask for tiles. multiply_scores(s, q, k, add) is one
// wgmma of 64 queries, multiply_values(sum, weights, v, add) one with a fragment of weights. keys_of(batch, i, rows) is the
// range of keys of queries. with_weights(batch, use) calls use(weights, out). Where later queries see more keys, tiles of
// queries go in `pairs`, the first with the last: all blocks have the same to do. `together` heads are walked at once, so
// that their keys stay in the second-level cache.
template <class Tiles, bool pairs, class Index, class LoadQ, class LoadK, class LoadV, class MultiplyScores,
          class MultiplyValues, class KeysOf, class WithWeights>
__device__ __forceinline__ void attend_wgmma(unsigned char* shared, const LoadQ& load_q, const LoadK& load_k,
                                             const LoadV& load_v, const MultiplyScores& multiply_scores,
                                             const MultiplyValues& multiply_values, const KeysOf& keys_of,
                                             const WithWeights& with_weights, u32 batches, u32 together, Index i_limit,
                                             Index j_limit, Index e_limit) {
  constexpr int stages = Tiles::stages, consumers = Tiles::consumers, tile_kv = Tiles::tile_kv;
  constexpr int of_consumer = consumers > 1 && sizeof(Index) > 4 ? 8 : 0;  // registers that the producer's addresses take
  unsigned char* const queries = shared;
  unsigned char* const keys = queries + Tiles::bytes_q;
  unsigned char* const values = keys + stages * Tiles::bytes_k;
  arrival* const barriers = reinterpret_cast<arrival*>(values + stages * Tiles::bytes_v);
  arrival *const full_q = barriers, *const empty_q = full_q + 1, *const full_k = empty_q + 1, *const empty_k = full_k + stages;
  arrival *const full_v = empty_k + stages, *const empty_v = full_v + stages;
  float* const rows_out = reinterpret_cast<float*>(empty_v + stages);  // of each warp
  if (threadIdx.x == 0) {
    begin_barriers<1>(full_q, 1);
    begin_barriers<1>(empty_q, consumers);
    begin_barriers<stages>(full_k, 1);
    begin_barriers<stages>(empty_k, consumers);
    begin_barriers<stages>(full_v, 1);
    begin_barriers<stages>(empty_v, consumers);
    publish_barriers();
  }
  __syncthreads();
  const u32 tiles_q = (u32)((i_limit + (Tiles::tile_q - 1)) / Tiles::tile_q);
  const u32 turns_q = pairs ? (tiles_q + 1) / 2 : tiles_q, turns = turns_q * batches;
  const int group = threadIdx.x / 128;
  struct place {
    u32 batch;
    Index i;
  };
  // Calls use(place) for each tile of this block.
  const auto for_each_tile = [&](const auto& use) {
    for (u32 number = blockIdx.x / Tiles::parts; number < turns; number += gridDim.x / Tiles::parts) {
      const u32 section = number / (together * turns_q), rest = number % (together * turns_q);
      const u32 left = batches - section * together, heads = left < together ? left : together;
      const u32 batch = section * together + rest % heads, tile = rest / heads;
#pragma unroll 1
      for (u32 last = pairs ? 1 : 0;; last = 0) {
        if (!pairs || last == 1 || tile + 1 + tile != tiles_q)
          use(place{batch, (Index)(last == 1 ? tiles_q - 1 - tile : tile) * Tiles::tile_q});
        if (last == 0) break;
      }
    }
  };
  // What this block has of the range.
  const auto blocks_of = [&](key_range<Index>& range) {
    const Index all = range.last > range.first ? (range.last - range.first + (tile_kv - 1)) / tile_kv : (Index)0;
    if (Tiles::parts == 1) return all;
    const Index rank = cluster_rank(), first = all * rank / Tiles::parts;
    range.first += first * tile_kv;
    return all * (rank + 1) / Tiles::parts - first;
  };
  ring<1> at_q;
  ring<stages> at_k, at_v;
  if (group == consumers) {
    give_registers<Tiles::producer_registers + consumers * of_consumer>();
    if (threadIdx.x % 128 == 0) {
      const auto bring = [&](ring<stages>& at, arrival* full, arrival* empty, unsigned char* to, int bytes, const auto& load,
                             u32 batch, Index j) {
        wait_arrival(empty + at.stage, at.parity ^ 1);
        expect_bytes(full + at.stage, bytes);
        load(to + at.stage * bytes, full + at.stage, batch, j);
        at.advance();
      };
      for_each_tile([&](const place& tile) {
        key_range<Index> range = keys_of(tile.batch, tile.i, Tiles::tile_q);
        const Index blocks = blocks_of(range);
        if (blocks == 0) return;
        wait_arrival(empty_q, at_q.parity ^ 1);
        expect_bytes(full_q, Tiles::bytes_q);
        load_q(queries, full_q, tile.batch, tile.i);
        at_q.advance();
        bring(at_k, full_k, empty_k, keys, Tiles::bytes_k, load_k, tile.batch, range.first);
#pragma unroll 1
        for (Index block = 0; block < blocks; ++block) {
          if (block + 1 < blocks)
            bring(at_k, full_k, empty_k, keys, Tiles::bytes_k, load_k, tile.batch, range.first + (block + 1) * tile_kv);
          bring(at_v, full_v, empty_v, values, Tiles::bytes_v, load_v, tile.batch, range.first + block * tile_kv);
        }
      });
    }
    __syncwarp();
  } else {
    take_registers<Tiles::consumer_registers - of_consumer>();
    const bool tells = threadIdx.x % 128 == 0;
    float* const mine = rows_out + threadIdx.x / 32 * staged_sums<32>::size;
    // The products of one warpgroup after those of another: each has the turn for a tile's two.
    const auto wait_for_turn = [&] {
      if constexpr (Tiles::turns) wait_turn<256>(1 + group);
    };
    const auto pass_turn = [&] {
      if constexpr (Tiles::turns) give_turn<256>(1 + (group + 1) % consumers);
    };
    if (Tiles::turns && group == consumers - 1) give_turn<256>(1);
    for_each_tile([&](const place& tile) {
      key_range<Index> range = keys_of(tile.batch, tile.i, Tiles::tile_q);
      const Index blocks = blocks_of(range), i0 = tile.i + (Index)(group * 64);
      const key_range<Index> own = keys_of(tile.batch, i0 < i_limit ? i0 : i_limit - 1, 64);
      // The rows of a thread's fragments; rows beyond the last query repeat it and are not stored.
      Index i[2];
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        i[r] = i0 + (Index)(threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4 + r * 8);
        i[r] = i[r] < i_limit ? i[r] : i_limit - 1;
      }
      with_weights(tile.batch, [&](const auto& weights, const auto& out) {
        weighted_rows rows;
        float sum[Tiles::width / 2];
        if (blocks == 0) {
#pragma unroll
          for (int x = 0; x < Tiles::width / 2; ++x) sum[x] = 0;
        } else {
          float s[tile_kv / 2], ratio[2];
          u32 p[tile_kv / 16][4];
          const auto issue_scores = [&] {
            const u64 a = tile_descriptor(queries + group * (64 * 128), 0);
            const u64 b = tile_descriptor(keys + at_k.stage * Tiles::bytes_k, 0);
#pragma unroll
            for (int step = 0; step < Tiles::depth / 16; ++step)
              multiply_scores(s, a + (step / 4 * (Tiles::tile_q * 128) + step % 4 * 32) / 16,
                              b + (step / 4 * (tile_kv * 128) + step % 4 * 32) / 16, step > 0);
            commit_products();
          };
          const auto issue_values = [&](bool add) {
            const u64 b = tile_descriptor(values + at_v.stage * Tiles::bytes_v, tile_kv * 128);
#pragma unroll
            for (int step = 0; step < tile_kv / 16; ++step)
              multiply_values(sum, p[step], b + step * (16 * 128 / 16), add || step > 0);
            commit_products();
          };
          const auto weigh = [&](Index block) {
            const Index j0 = range.first + block * tile_kv;
            const bool open = j0 >= own.first_open && j0 + tile_kv <= own.last_open;
            rows.template weigh<tile_kv>(s, ratio, weights, i, j0, open, j_limit);
          };
          const auto pack_weights = [&](Index block) {
            pack_fragments<typename Tiles::element, tile_kv>(p, s, weights, i, range.first + block * tile_kv, j_limit);
            settle_fragments(p);
          };
          const auto release = [&](arrival* empty) {
            if (tells) arrive(empty);
          };
          wait_arrival(full_q, at_q.parity);
          wait_arrival(full_k + at_k.stage, at_k.parity);
          wait_for_turn();
          begin_products();
          issue_scores();
          pass_turn();
          wait_products<0>();
          settle(s);
          release(empty_k + at_k.stage);
          at_k.advance();
          weigh(0);
          pack_weights(0);
#pragma unroll 1
          for (Index block = 1; block < blocks; ++block) {
            wait_arrival(full_k + at_k.stage, at_k.parity);
            wait_for_turn();
            begin_products();
            issue_scores();
            wait_arrival(full_v + at_v.stage, at_v.parity);
            begin_products();
            issue_values(block > 1);
            pass_turn();
            wait_products<1>();
            settle(s);
            release(empty_k + at_k.stage);
            at_k.advance();
            weigh(block);
            // Exponentials take their time while values are multiplied. A branch that no sum takes keeps them ahead of the
            // wait, which ptxas moves to the beginning of its block.
            settle(s);
            if (rows.sum[0] + rows.sum[1] < 0) mine[0] = 0;
            wait_products<0>();
            settle(sum);
            release(empty_v + at_v.stage);
            at_v.advance();
            if (__any_sync(~0u, ratio[0] != 1 || ratio[1] != 1)) {
#pragma unroll
              for (int x = 0; x < Tiles::width / 2; ++x) sum[x] *= ratio[x / 2 % 2];
            }
            settle(sum);
            pack_weights(block);
          }
          release(empty_q);
          at_q.advance();
          wait_arrival(full_v + at_v.stage, at_v.parity);
          begin_products();
          issue_values(blocks > 1);
          wait_products<0>();
          settle(sum);
          release(empty_v + at_v.stage);
          at_v.advance();
        }
rows.finish();
        float unseen[2];
        if constexpr (Tiles::parts > 1) {
          hand_out_shares<Tiles>(sum, rows, keys, mine, weights, i, i0, i_limit, j_limit, e_limit, out);
        } else {
          rows.close(unseen, weights, i, j_limit);
#pragma unroll
          for (int x = 0; x < Tiles::width / 2; ++x) sum[x] += unseen[x / 2 % 2];
          hand_out_queries<Tiles::width>(sum, rows.top, rows.sum, mine, i0, (Index)0, i_limit, e_limit, out);
        }
      });
    });
    if (Tiles::turns && group == 0) wait_turn<256>(1);
  }
  if constexpr (Tiles::parts > 1) {
    if (group == consumers) join_cluster();  // consumers have, ahead of each other's sums
    join_cluster();
  }
}

// The main loop of Attend kernels on sm_90a. Blocks stay and take tile after tile of queries. One thread asks for boxes of
// queries, keys and values, several tiles of keys ahead; each other warpgroup multiplies 64 queries with them. The scores
// of a tile of keys are multiplied while the weights of the one before go into the sums, and their softmax hides behind
// that product (J. Shah et al., "FlashAttention-3", 2024). Weights are fragments of registers as they come.

//@ attend_tiles
// `tile_kv` keys at once, lines of `depth` elements of queries and keys and of `width` of values: panels of 64 elements
// side by side. `stages`: tiles of keys, and of values, that are there or on their way. `turns`: one warpgroup multiplies
// while another has its softmax. Of the keys of a tile of queries each of `parts` blocks, a cluster, has a share.
// `block_mask`: the warp that asks for tiles of keys tests which of them are visible. `pages`: a table says where boxes are.
template <class T, int consumers_, int tile_kv_, int depth_, int width_, int stages_, bool turns_, int parts_,
          bool block_mask_, bool pages_ = false>
struct attend_tiles {
  using element = T;
  static constexpr int consumers = consumers_, tile_kv = tile_kv_, depth = depth_, width = width_, stages = stages_;
  static constexpr bool turns = turns_, block_mask = block_mask_, pages = pages_;
  static constexpr int parts = parts_;
  static constexpr int tile_q = 64 * consumers, panels_d = (depth + 63) / 64, panels_e = (width + 63) / 64;
  static constexpr int bytes_q = panels_d * tile_q * 128, bytes_k = panels_d * tile_kv * 128;
  static constexpr int bytes_v = panels_e * tile_kv * 128;
  // Tests take registers from those who multiply.
  static constexpr int of_tests = block_mask && consumers > 1 ? consumers == 2 ? 16 : 8 : 0;
  static constexpr int consumer_registers = (consumers == 1 ? 216 : consumers == 2 ? 240 : 160) - of_tests;
  static constexpr int producer_registers = (consumers == 1 ? 152 : consumers == 2 ? 24 : 32) + consumers * of_tests;
  static_assert(tile_kv % 16 == 0 && depth % 16 == 0 && width % 32 == 0, "whole instructions, and whole turns of results");
};

//@ key_range
// The keys that some of several queries sees, and those that every one of them sees.
template <class Index>
struct key_range {
  Index first, last, first_open, last_open;
};

//@ key_tile
// A tile of keys: the first of them, whether every query of a warpgroup sees all of them, and whether it is the last tile.
// `mark` is what a warp that tests tiles says of one: its number in the range, whether all is seen, whether it is the last.
template <class Index>
struct key_tile {
  Index j;
  bool open, last;
};
__device__ __forceinline__ u32 tile_mark(u32 number, bool open, bool last) { return number * 4 + open * 2 + last; }

//@ attend_wgmma
// load_q(to, full, batch, i), load_k(to, full, batch, j) and load_v ask for tiles. multiply_scores(s, q, k, add) is one
// wgmma of 64 queries, multiply_values(sum, weights, v, add) one with a fragment of weights. keys_of(batch, i, rows) is the
// range of keys of queries; where tiles are tested, each_visible(batch, i, rows, j, tiles, use) calls use(number, open, last)
// for those of `tiles` tiles of keys, from j on, that are visible. with_weights(batch, use) calls use(weights, out). Where later queries see more keys, tiles of queries go in `pairs`, the first with the last: all
// blocks have the same to do. `together` heads are walked at once, so that their keys stay in the second-level cache.
template <class Tiles, bool pairs, class Index, class LoadQ, class LoadK, class LoadV, class MultiplyScores,
          class MultiplyValues, class KeysOf, class EachVisible, class WithWeights>
__device__ __forceinline__ void attend_wgmma(unsigned char* shared, const LoadQ& load_q, const LoadK& load_k,
                                             const LoadV& load_v, const MultiplyScores& multiply_scores,
                                             const MultiplyValues& multiply_values, const KeysOf& keys_of,
                                             const EachVisible& each_visible, const WithWeights& with_weights, u32 batches, u32 together, Index i_limit,
                                             Index j_limit, Index e_limit) {
  constexpr int stages = Tiles::stages, consumers = Tiles::consumers, tile_kv = Tiles::tile_kv;
  // Registers that the producer's addresses take.
  constexpr int of_consumer = consumers > 1 && (sizeof(Index) > 4 || Tiles::pages) ? 8 : 0;
  unsigned char* const queries = shared;
  unsigned char* const keys = queries + Tiles::bytes_q;
  unsigned char* const values = keys + stages * Tiles::bytes_k;
  arrival* const barriers = reinterpret_cast<arrival*>(values + stages * Tiles::bytes_v);
  arrival *const full_q = barriers, *const empty_q = full_q + 1, *const full_k = empty_q + 1, *const empty_k = full_k + stages;
  arrival *const full_v = empty_k + stages, *const empty_v = full_v + stages;
  u32* const marks = reinterpret_cast<u32*>(empty_v + stages);  // of each tile of keys that is there
  float* const rows_out = reinterpret_cast<float*>(marks + (Tiles::block_mask ? (stages + 3) / 4 * 4 : 0));  // of each warp
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
    range.first -= range.first % tile_kv;
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
    const bool asks = threadIdx.x % 128 == 0;
    const auto bring = [&](ring<stages>& at, arrival* full, arrival* empty, unsigned char* to, int bytes, const auto& load,
                           u32 batch, Index j, u32 mark) {
      wait_arrival(empty + at.stage, at.parity ^ 1);
      if constexpr (Tiles::block_mask) {
        if (full == full_k) marks[at.stage] = mark;
      }
      expect_bytes(full + at.stage, bytes);
      load(to + at.stage * bytes, full + at.stage, batch, j);
      at.advance();
    };
    const auto bring_keys = [&](u32 batch, Index j, u32 mark) {
      bring(at_k, full_k, empty_k, keys, Tiles::bytes_k, load_k, batch, j, mark);
    };
    const auto bring_values = [&](u32 batch, Index j) {
      bring(at_v, full_v, empty_v, values, Tiles::bytes_v, load_v, batch, j, 0);
    };
    const auto bring_queries = [&](const place& tile) {
      wait_arrival(empty_q, at_q.parity ^ 1);
      expect_bytes(full_q, Tiles::bytes_q);
      load_q(queries, full_q, tile.batch, tile.i);
      at_q.advance();
    };
    if (asks && !Tiles::block_mask) {
      for_each_tile([&](const place& tile) {
        key_range<Index> range = keys_of(tile.batch, tile.i, Tiles::tile_q);
        const Index blocks = blocks_of(range);
        if (blocks == 0) return;
        bring_queries(tile);
        bring_keys(tile.batch, range.first, 0);
#pragma unroll 1
        for (Index block = 0; block < blocks; ++block) {
          if (block + 1 < blocks) bring_keys(tile.batch, range.first + (block + 1) * tile_kv, 0);
          bring_values(tile.batch, range.first + block * tile_kv);
        }
      });
    }
    if constexpr (Tiles::block_mask) {
      if (threadIdx.x % 128 < 32) {
        for_each_tile([&](const place& tile) {
          key_range<Index> range = keys_of(tile.batch, tile.i, Tiles::tile_q);
          const Index blocks = blocks_of(range);
          if (blocks == 0) return;
          if (asks) bring_queries(tile);
          Index before = -1;
          const auto bring_tile = [&](Index number, bool open, bool last) {
            if (asks) {
              const Index j = range.first + number * tile_kv;
              bring_keys(tile.batch, j, tile_mark((u32)number, open, last));
              if (before >= 0) bring_values(tile.batch, before);
              if (last) bring_values(tile.batch, j);
              before = j;
            }
            __syncwarp();
          };
          each_visible(tile.batch, tile.i, Tiles::tile_q, range.first, blocks, bring_tile);
        });
      }
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
          // The tile of keys that is next in the ring; they lie side by side where none is skipped.
          const Index end = range.first + blocks * tile_kv;
          const auto tile_behind = [&](Index before) -> key_tile<Index> {
            const u32 mark = Tiles::block_mask ? marks[at_k.stage] : 0;
            const Index j = Tiles::block_mask ? range.first + (Index)(mark / 4) * tile_kv : before + tile_kv;
            const bool open = j >= own.first_open && j + tile_kv <= own.last_open;
            if constexpr (Tiles::block_mask) return {j, open && (mark & 2) != 0, (mark & 1) != 0};
            return {j, open, j + tile_kv >= end};
          };
          auto held = held_ahead<tile_kv / 2>(weights.open_score);
          const auto weigh = [&](const key_tile<Index>& now) {
            rows.template weigh<tile_kv>(s, ratio, weights, held, i, now.j, now.open, j_limit,
                                         [&](Index query) { return keys_of(tile.batch, query, 1); });
          };
          const auto pack_weights = [&](const key_tile<Index>& now) {
            pack_fragments<typename Tiles::element, tile_kv>(p, s, weights, i, now.j, j_limit);
            settle_fragments(p);
          };
          const auto release = [&](arrival* empty) {
            if (tells) arrive(empty);
          };
          wait_arrival(full_q, at_q.parity);
          wait_arrival(full_k + at_k.stage, at_k.parity);
          key_tile<Index> now = tile_behind(range.first - tile_kv);
          held.read(weights.open_score, i, now.j, j_limit);
          wait_for_turn();
          begin_products();
          issue_scores();
          pass_turn();
          wait_products<0>();
          settle(s);
          release(empty_k + at_k.stage);
          at_k.advance();
          weigh(now);
          pack_weights(now);
          bool add = false;
#pragma unroll 1
          while (!now.last) {
            wait_arrival(full_k + at_k.stage, at_k.parity);
            now = tile_behind(now.j);
            held.read(weights.open_score, i, now.j, j_limit);
            wait_for_turn();
            begin_products();
            issue_scores();
            wait_arrival(full_v + at_v.stage, at_v.parity);
            begin_products();
            issue_values(add);
            add = true;
            pass_turn();
            wait_products<1>();
            settle(s);
            release(empty_k + at_k.stage);
            at_k.advance();
            weigh(now);
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
            pack_weights(now);
          }
          release(empty_q);
          at_q.advance();
          wait_arrival(full_v + at_v.stage, at_v.parity);
          begin_products();
          issue_values(add);
          wait_products<0>();
          settle(sum);
          release(empty_v + at_v.stage);
          at_v.advance();
        }
        rows.finish();
        if constexpr (Tiles::parts > 1) {
          hand_out_shares<Tiles>(sum, rows, keys, mine, weights, i, i0, i_limit, j_limit, e_limit, out);
        } else {
          float unseen[2];
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

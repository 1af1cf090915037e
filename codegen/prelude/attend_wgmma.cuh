// The main loop of Attend kernels on sm_90a. Blocks stay and take tile after tile of queries. One thread asks for boxes of
// queries, keys and values, several tiles of keys ahead; each other warpgroup multiplies 64 queries with them. The scores
// of a tile of keys are multiplied while the weights of the one before go into the sums, and their softmax hides behind
// that product (J. Shah et al., "FlashAttention-3", 2024); also where that one is the last of the tile of queries before.
// Weights are fragments of registers as they come.

//@ attend_tiles
// `tile_kv` keys at once, lines of `depth` elements of queries and keys and of `width` of values: panels of 128
// bytes side by side. `stages`: tiles of keys, and of values, that are there or on their way. `turns`: one warpgroup multiplies
// while another has its softmax. Of the keys of a tile of queries each of `parts` blocks, a cluster, has a share, or each of
// `split_kv` blocks, all of which run at once and meet in memory.
// `block_mask`: three warps test which tiles of keys are visible, and one asks for those. `pages`: a table says where boxes
// are. `stages_q`: tiles of queries that are there or on their way, `whole_q`: all of 64 queries for each warpgroup. `resident`: blocks that a multiprocessor runs at once.
// Of f8, lines of values lie along the keys, and weights are multiplied by 2^`lift`, since f8 has few exponents.
// Boxes bring what the scores of each warpgroup read, elements of `score_bytes`, `stages_s` tiles of keys ahead: 0 where
// they bring none.
template <class T, int consumers_, int tile_kv_, int depth_, int width_, int stages_, int stages_q_, bool whole_q_, bool turns_, int parts_,
          int split_kv_, int resident_, bool block_mask_, bool pages_ = false, int lift_ = 0, int score_bytes_ = 0,
          int stages_s_ = 0>
struct attend_tiles {
  using element = T;
  static constexpr int consumers = consumers_, tile_kv = tile_kv_, depth = depth_, width = width_;
  static constexpr int stages = stages_, stages_q = stages_q_;
  static constexpr bool whole_q = whole_q_, turns = turns_, block_mask = block_mask_, pages = pages_;
  static constexpr int parts = parts_, split_kv = split_kv_;
  static constexpr int lift = lift_;
  static constexpr int in_line = 128 / sizeof(T), in_step = 32 / sizeof(T);  // elements; of an instruction's depth
  static constexpr bool turned = sizeof(T) == 1;  // values lie along the keys, in lines of so many bytes
  static constexpr bool packs_early = sizeof(T) == 1;
  static constexpr int line_v = turned && tile_kv % 128 != 0 ? 64 : 128;
  static constexpr int tile_q = 64 * consumers, panels_d = (depth + in_line - 1) / in_line;
  static constexpr int bytes_q = panels_d * tile_q * 128, bytes_k = panels_d * tile_kv * 128, bytes_zeros = 1024;
  static constexpr int bytes_v =
      turned ? tile_kv * width : 128 * ((width + in_line - 1) / in_line * tile_kv);
  static constexpr int stages_s = stages_s_, bytes_s = (tile_kv * score_bytes_ + 127) / 128 * (64 * 128);  // of a warpgroup
  static constexpr int warps = 4;  // of a warpgroup: each reads what scores need
  static constexpr int stages_t = block_mask ? 6 : 0;  // tests of 32 tiles of keys that are known
  // Tests take registers from those who multiply.
  static constexpr int of_tests = block_mask && consumers > 1 ? 8 : 0;
  static constexpr bool shares = resident_ > 1;  // the registers of a multiprocessor
  static_assert(resident_ == 1 || (resident_ == 2 && consumers == 1 && !block_mask), "the warps of two blocks have registers");
  static constexpr int consumer_registers = (shares ? 200 : consumers == 1 ? 240 : consumers == 2 ? 232 : 160) - of_tests;
  static constexpr int producer_registers = (shares ? 56 : consumers == 1 ? 128 : consumers == 2 ? 40 : 32) + consumers * of_tests;
  static_assert(parts == 1 || split_kv == 1, "blocks of a cluster have a tile's keys, or blocks that meet in memory");
  // Floats of shared memory of a warp, for rows on their way out.
  static constexpr int of_warp = split_kv > 1 ? key_sums::size : staged_sums<32>::size;
  static_assert(tile_kv % (turned ? line_v : in_step) == 0 && depth % in_step == 0 && width % 32 == 0, "whole instructions, and whole turns of results");
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
// join() waits for the kernels ahead, once there are barriers. load_q(to, full, batch, i), load_k(to, full, batch, j) and load_v ask for tiles,
// load_s(to, full, batch, i, j) for what the scores of 64 queries read, or is 0. multiply_scores(s, q, k, add) is one
// wgmma of 64 queries, multiply_values(sum, weights, v, add) one with a fragment of weights. keys_of(batch, i, rows) is the
// range of keys of queries; where tiles are tested, see_tiles(batch, i, rows, j, tiles, number) says what they see of 32 of
// `tiles` tiles of keys that begin at j, from one number on. with_weights(batch, use) calls use(weights, out).
template <class Tiles, bool pairs, class Index, class Join, class LoadQ, class LoadK, class LoadV, class LoadS, class MultiplyScores,
          class MultiplyValues, class KeysOf, class SeeTiles, class WithWeights, class Split>
__device__ __forceinline__ void attend_wgmma(unsigned char* shared, const Join& join, const LoadQ& load_q, const LoadK& load_k,
                                             const LoadV& load_v, const LoadS& load_s, const MultiplyScores& multiply_scores,
                                             const MultiplyValues& multiply_values, const KeysOf& keys_of,
                                             const SeeTiles& see_tiles, const WithWeights& with_weights, const Split& split,
                                             u32 batches, u32 together, Index i_limit, Index j_limit, Index e_limit) {
  constexpr int stages = Tiles::stages, stages_q = Tiles::stages_q, consumers = Tiles::consumers, tile_kv = Tiles::tile_kv;
  // Registers that the producer's addresses take.
  constexpr int of_consumer = consumers > 1 && (sizeof(Index) > 4 || Tiles::pages) ? 8 : 0;
  unsigned char *const zeros = shared, *const queries = zeros + Tiles::bytes_zeros;
  unsigned char* const keys = queries + stages_q * Tiles::bytes_q;
  unsigned char* const values = keys + stages * Tiles::bytes_k;
  constexpr int stages_s = Tiles::stages_s;
  unsigned char* const of_scores = values + stages * Tiles::bytes_v;  // of each warpgroup in turn
  arrival* const barriers = reinterpret_cast<arrival*>(of_scores + consumers * stages_s * Tiles::bytes_s);
  arrival *const full_q = barriers, *const empty_q = full_q + stages_q, *const full_k = empty_q + stages_q;
  arrival *const empty_k = full_k + stages, *const full_v = empty_k + stages, *const empty_v = full_v + stages;
  arrival *const full_s = empty_v + stages, *const empty_s = full_s + consumers * stages_s;
  arrival *const full_t = empty_s + consumers * stages_s, *const empty_t = full_t + Tiles::stages_t;
  u32* const marks = reinterpret_cast<u32*>(empty_t + Tiles::stages_t);  // of each tile of keys that is there
  u32* const tested = marks + (Tiles::block_mask ? (stages + 3) / 4 * 4 : 0);  // of 32 tiles: some, all
  float* const rows_out = reinterpret_cast<float*>(tested + 2 * Tiles::stages_t);  // of each warp
  if (threadIdx.x == 0) {
    begin_barriers<stages_q>(full_q, 1);
    begin_barriers<stages_q>(empty_q, consumers);
    begin_barriers<stages>(full_k, 1);
    begin_barriers<stages>(empty_k, consumers);
    begin_barriers<stages>(full_v, 1);
    begin_barriers<stages>(empty_v, consumers);
    if constexpr (stages_s > 0) {
      begin_barriers<consumers * stages_s>(full_s, 1);
      begin_barriers<consumers * stages_s>(empty_s, Tiles::warps);
    }
    if constexpr (Tiles::block_mask) {
      begin_barriers<Tiles::stages_t>(full_t, 1);
      begin_barriers<Tiles::stages_t>(empty_t, 1);
    }
    publish_barriers();
  }
  for (int at = threadIdx.x * 16; at < Tiles::bytes_zeros; at += 16 * 128) store<4, 4>((u32*)(zeros + at), pack<u32, 4>{});
  publish_writes();
  __syncthreads();
  join();
  const int group = __shfl_sync(~0u, threadIdx.x / 128, 0);  // known to be the same for a warp
  const auto part_of_keys = [] {
    return Tiles::split_kv > 1 ? blockIdx.x / (gridDim.x / Tiles::split_kv) : cluster_rank();
  };
  // What this block has of the range.
  const auto blocks_of = [&](key_range<Index>& range) {
    range.first -= range.first % tile_kv;
    const Index all = range.last > range.first ? (range.last - range.first + (tile_kv - 1)) / tile_kv : (Index)0;
    constexpr int parts = Tiles::parts * Tiles::split_kv;
    if (parts == 1) return all;
    const Index rank = part_of_keys(), first = all * rank / parts;
    range.first += first * tile_kv;
    return all * (rank + 1) / parts - first;
  };
  query_tiles<Tiles, pairs, Index> walk(batches, together, i_limit);
  ring<stages_q> at_q;
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
    const auto bring_queries = [&](const query_tile<Index>& tile) {
      wait_arrival(empty_q + at_q.stage, at_q.parity ^ 1);
      expect_bytes(full_q + at_q.stage, Tiles::bytes_q);
      load_q(queries + at_q.stage * Tiles::bytes_q, full_q + at_q.stage, tile.batch, tile.i);
      at_q.advance();
    };
    // Keys are asked for a tile ahead of values, as their products are, also from one tile of queries to the next. Queries
    // come behind those values where their place is free only then.
    query_tile<Index> before{};
    Index before_j = 0;
    bool begun = false;
    const auto bring_tile = [&](const query_tile<Index>& tile, bool first, Index j, u32 mark) {
      bring_keys(tile.batch, j, mark);
      if (first && stages_q > 1) bring_queries(tile);
      if (begun) bring_values(before.batch, before_j);
      if (first && stages_q == 1) bring_queries(tile);
      before = tile;
      before_j = j;
      begun = true;
    };
    // Calls use(tile, range, blocks) for each tile of queries of this block.
    const auto for_each_tile = [&](const auto& use) {
      while (walk.there()) {
        const query_tile<Index> tile = walk.now();
        walk.advance(tile);
        key_range<Index> range = keys_of(tile.batch, tile.i, Tiles::tile_q);
        const Index blocks = blocks_of(range);
        use(tile, range.first, blocks);
      }
    };
    if constexpr (Tiles::block_mask) {
      // One warp asks for tiles that three others have found, each 32 of 96, ahead of it.
      ring<Tiles::stages_t> at_t;
      const int finder = threadIdx.x % 128 / 32 - 1;
      int turn = 0;
      if (finder >= 0) {
        for_each_tile([&](const query_tile<Index>& tile, Index j, Index blocks) {
#pragma unroll 1
          for (Index number = 0; number < blocks; number += 32) {
            if (turn == finder) {
              const auto seen = see_tiles(tile.batch, tile.i, Tiles::tile_q, j, blocks, number);
              if (threadIdx.x % 32 == 0) {
                wait_arrival(empty_t + at_t.stage, at_t.parity ^ 1);
                tested[2 * at_t.stage] = seen.some, tested[2 * at_t.stage + 1] = seen.all;
                arrive(full_t + at_t.stage);
              }
            }
            at_t.advance();
            turn = turn == 2 ? 0 : turn + 1;
          }
        });
      } else if (asks) {
        for_each_tile([&](const query_tile<Index>& tile, Index j, Index blocks) {
          // A tile is asked for when the next one is known, or that there is none; the first where no key is visible.
          Index waiting = 0;
          bool first = true, any = false, all = false;
#pragma unroll 1
          for (Index number = 0; number < blocks; number += 32) {
            wait_arrival(full_t + at_t.stage, at_t.parity);
            const u32 some = tested[2 * at_t.stage], open = tested[2 * at_t.stage + 1];
            arrive(empty_t + at_t.stage);
            at_t.advance();
#pragma unroll 1
            for (u32 left = some; left != 0; left &= left - 1) {
              const int bit = __ffs(left) - 1;
              if (any) {
                bring_tile(tile, first, j + waiting * tile_kv, tile_mark((u32)waiting, all, false));
                first = false;
              }
              any = true, waiting = number + (Index)bit, all = (open >> bit & 1) != 0;
            }
          }
          if (blocks > 0) bring_tile(tile, first, j + waiting * tile_kv, tile_mark((u32)waiting, all, true));
        });
      }
    } else if (asks) {
      for_each_tile([&](const query_tile<Index>& tile, Index j, Index blocks) {
#pragma unroll 1
        for (Index block = 0; block < blocks; ++block) bring_tile(tile, block == 0, j + block * tile_kv, 0);
      });
    }
    if constexpr (stages_s > 0) {
      static_assert(!Tiles::block_mask, "the warps that ask for what scores read would test tiles");
      if (threadIdx.x % 128 == 32) {
        ring<stages_s> at_s;
        for_each_tile([&](const query_tile<Index>& tile, Index j, Index blocks) {
#pragma unroll 1
          for (Index block = 0; block < blocks; ++block) {
#pragma unroll 1
            for (int to = 0; to < consumers; ++to) {
              const int place = to * stages_s + at_s.stage;
              wait_arrival(empty_s + place, at_s.parity ^ 1);
              expect_bytes(full_s + place, Tiles::bytes_s);
              load_s(of_scores + place * Tiles::bytes_s, full_s + place, tile.batch, tile.i + (Index)(to * 64),
                     j + block * tile_kv);
            }
            at_s.advance();
          }
        });
      }
    }
    if (asks && begun) bring_values(before.batch, before_j);
    __syncwarp();
  } else {
    take_registers<Tiles::consumer_registers - of_consumer>();
    const bool tells = threadIdx.x % 128 == 0;
    float* const mine = rows_out + threadIdx.x / 32 * Tiles::of_warp;
    // The products of one warpgroup after those of another: each has the turn for a tile's two.
    const auto wait_for_turn = [&] {
      if constexpr (Tiles::turns) wait_turn<256>(1 + group);
    };
    const auto pass_turn = [&] {
      if constexpr (Tiles::turns) give_turn<256>(1 + (group + 1) % consumers);
    };
    if (Tiles::turns && group == consumers - 1) give_turn<256>(1);
    const auto release = [&](arrival* empty) {
      if (tells) arrive(empty);
    };
    // The rows of a thread's fragments; rows beyond the last query repeat it and are not stored. Where there are none the
    // compiler sees that what depends on distances is the same for both, eight keys apart.
    const auto rows_of = [&](Index (&i)[2], Index i0) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        i[r] = i0 + (Index)(threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4 + r * 8);
        if (!Tiles::whole_q) i[r] = i[r] < i_limit ? i[r] : i_limit - 1;
      }
    };
    float s[tile_kv / 2], sum[Tiles::width / 2], ratio[2];
    u32 p[tile_kv / Tiles::in_step][4] = {};
    // Products of operands in shared memory: the next panel is so far, in units of 16 bytes, as the numbers behind the
    // operands say; of values first the next ones of an instruction.
    constexpr u32 panel_q = Tiles::tile_q * 128 / 16, panel_k = tile_kv * 128 / 16;
    constexpr int steps_v = Tiles::turned ? Tiles::line_v / 32 : tile_kv / 16;  // instructions of a panel of values
    constexpr u32 piece_v = Tiles::turned ? 2 : 16 * 128 / 16, panel_v = Tiles::width * Tiles::line_v / 16;
    const auto issue_scores = [&](u64 q, u64 k, u32 panel_q, u32 panel_k) {
#pragma unroll
      for (int step = 0; step < Tiles::depth / Tiles::in_step; ++step)
        multiply_scores(s, q + step / 4 * panel_q + step % 4 * 2, k + step / 4 * panel_k + step % 4 * 2, step > 0);
      commit_products();
    };
    const auto issue_values = [&](u64 v, u32 piece, u32 panel, bool add) {
#pragma unroll
      for (int step = 0; step < tile_kv / Tiles::in_step; ++step)
        multiply_values(sum, p[step], v + step % steps_v * piece + step / steps_v * panel, add || step > 0);
      commit_products();
    };
    const auto queries_there = [&] {
      int stage = at_q.stage;
      // Of deep queries many descriptors would take registers from one tile of keys to the next.
      if (Tiles::depth > 128) asm volatile("" : "+r"(stage));
      return tile_descriptor(queries + stage * Tiles::bytes_q + group * (64 * 128), 0);
    };
    const auto keys_there = [&] { return tile_descriptor(keys + at_k.stage * Tiles::bytes_k, 0); };
    const auto values_there = [&] {
      const void* const tile = values + at_v.stage * Tiles::bytes_v;
      if constexpr (Tiles::line_v == 64) return short_tile_descriptor(tile);
      return tile_descriptor(tile, Tiles::turned ? 0 : tile_kv * 128);
    };
    const u64 nothing = eight_lines_descriptor(zeros);
    // The tile of queries whose sums are under way: the weights of its last keys, where there are `some`, are multiplied
    // beside the first scores of the next one.
    query_tile<Index> under_way{};
    [[maybe_unused]] ring<(stages_s > 0 ? stages_s : 1)> at_s;
    bool begun = false, some = false, add = false;
    weighted_rows rows;
#pragma unroll 1
    for (;;) {
      const bool more = walk.there();
      if (!more && !begun) break;
      const query_tile<Index> tile = more ? walk.now() : under_way;
      key_range<Index> range = keys_of(tile.batch, tile.i, Tiles::tile_q);
      const Index blocks = more ? blocks_of(range) : (Index)0, i0 = tile.i + (Index)(group * 64);
      const key_range<Index> own = keys_of(tile.batch, i0 < i_limit ? i0 : i_limit - 1, 64);
      Index i[2];
      rows_of(i, i0);
      with_weights(tile.batch, [&](const auto& weights, const auto&) {
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
        const auto seen_by = [&](Index query) { return keys_of(tile.batch, query, 1); };
        u32 bits[(tile_kv + 63) / 64];
        // What hides scores is found while they are multiplied.
        const auto find_hidden = [&](const key_tile<Index>& now) {
          if (!now.open) weighted_rows::find<tile_kv>(bits, weights, i, now.j, j_limit, seen_by);
        };
        // Weights of the scores that have come, while values are multiplied. Fragments of 8 bits are half as many registers:
        // most of their work is done here too.
        [[maybe_unused]] u32 halves[Tiles::packs_early ? tile_kv / Tiles::in_step : 1][4];
        const auto weigh = [&](const key_tile<Index>& now) {
          release(empty_k + at_k.stage);
          at_k.advance();
          if (now.last) {
            release(empty_q + at_q.stage);
            at_q.advance();
          }
          if constexpr (stages_s > 0) {
            const int place = group * stages_s + at_s.stage;
            wait_arrival(full_s + place, at_s.parity);
            held.boxes = of_scores + place * Tiles::bytes_s;
          }
          rows.template weigh<tile_kv, Tiles::lift>(s, ratio, weights, held, bits, i, now.j, now.open, j_limit, seen_by);
          if constexpr (stages_s > 0) {
            settle(s);
            __syncwarp();
            if (threadIdx.x % 32 == 0) arrive(empty_s + group * stages_s + at_s.stage);
            at_s.advance();
          }
          // Exponentials take their time here. A branch that no sum takes keeps them ahead of the wait, which ptxas moves
          // to the beginning of its block.
          if constexpr (Tiles::packs_early) {
            byte_fragments().swap<tile_kv>(halves, s);
            settle_fragments(halves);
          } else {
            settle(s);
          }
          if (rows.sum[0] + rows.sum[1] < 0) mine[0] = 0;
        };
        const auto pack_weights = [&](const key_tile<Index>& now) {
          if constexpr (Tiles::packs_early) {
            byte_fragments().order(p, halves);
          } else {
            pack_fragments<typename Tiles::element, tile_kv>(p, s, weights, i, now.j, j_limit);
          }
          settle_fragments(p);
        };
        const auto finish_values = [&] {
          release(empty_v + at_v.stage);
          at_v.advance();
        };
        key_tile<Index> now{0, false, true};
        if (blocks > 0) {
          wait_arrival(full_q + at_q.stage, at_q.parity);
          wait_arrival(full_k + at_k.stage, at_k.parity);
          now = tile_behind(range.first - tile_kv);
          held.read(weights.open_score, i, now.j, j_limit);
        }
        // Both are issued also where no tile of keys is behind one of them, with zeros: in a branch ptxas would let each
        // product wait for the one before.
        const bool scored = blocks > 0;
        const u64 q = scored ? queries_there() : nothing, k = scored ? keys_there() : nothing, v = some ? values_there() : nothing;
        const u32 to_q = scored ? panel_q : 0, to_k = scored ? panel_k : 0, to_v = some ? piece_v : 0, panel = some ? panel_v : 0;
        wait_for_turn();
        begin_products();
        issue_scores(q, k, to_q, to_k);
        if (some) wait_arrival(full_v + at_v.stage, at_v.parity);
        begin_products();
        issue_values(v, to_v, panel, add);
        pass_turn();
        if (scored) find_hidden(now);
        wait_products<1>();
        settle(s);
        weighted_rows before = rows;
        rows = weighted_rows();
        if (scored) weigh(now);
        wait_products<0>();
        settle(sum);
        if (some) finish_values();
        if (scored) {
          pack_weights(now);
        } else {
#pragma unroll
          for (int x = 0; x < 4 * tile_kv / Tiles::in_step; ++x) p[x / 4][x % 4] = 0;
        }
        if (begun) {
          with_weights(under_way.batch, [&](const auto& its_weights, const auto& out) {
            const Index its_i0 = under_way.i + (Index)(group * 64);
            Index its_i[2];
            rows_of(its_i, its_i0);
            before.template finish<Tiles::lift>();
            if constexpr (Tiles::parts > 1) {
              hand_out_shares<Tiles>(sum, before, keys, mine, its_weights, its_i, its_i0, i_limit, j_limit, e_limit, out);
            } else if constexpr (Tiles::split_kv > 1) {
              const u32 tile = under_way.batch * walk.count + (u32)(under_way.i / Tiles::tile_q);
              hand_out_split_keys<Tiles>(sum, before, split, tile, part_of_keys(), mine, its_weights, under_way.i, i_limit,
                                         j_limit, e_limit, out);
            } else {
              float unseen[2];
              before.close(unseen, its_weights, its_i, j_limit);
#pragma unroll
              for (int x = 0; x < Tiles::width / 2; ++x)
                sum[x] = (Tiles::lift > 0 ? sum[x] * exact_power<-Tiles::lift>() : sum[x]) + unseen[x / 2 % 2];
              hand_out_queries<Tiles::width>(sum, before.top, before.sum, mine, its_i0, (Index)0, i_limit, e_limit, out);
            }
          });
        }
        forget(sum);
        add = false;
        some = scored;
#pragma unroll 1
        while (!now.last) {
          wait_arrival(full_k + at_k.stage, at_k.parity);
          now = tile_behind(now.j);
          held.read(weights.open_score, i, now.j, j_limit);
          wait_for_turn();
          begin_products();
          issue_scores(queries_there(), keys_there(), panel_q, panel_k);
          wait_arrival(full_v + at_v.stage, at_v.parity);
          begin_products();
          issue_values(values_there(), piece_v, panel_v, add);
          add = true;
          pass_turn();
          find_hidden(now);
          wait_products<1>();
          settle(s);
          weigh(now);
          wait_products<0>();
          settle(sum);
          finish_values();
          if (__any_sync(~0u, ratio[0] != 1 || ratio[1] != 1)) {
#pragma unroll
            for (int x = 0; x < Tiles::width / 2; ++x) sum[x] *= ratio[x / 2 % 2];
          }
          settle(sum);
          pack_weights(now);
        }
      });
      if (!more) break;
      under_way = tile;
      begun = true;
      walk.advance(tile);
    }
    if (Tiles::turns && group == 0) wait_turn<256>(1);
  }
  if constexpr (Tiles::parts > 1) {
    if (group == consumers) join_cluster();  // consumers have, ahead of each other's sums
    join_cluster();
  }
}

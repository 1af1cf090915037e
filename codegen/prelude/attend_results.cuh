// How sums of values leave a warpgroup of Attend kernels on sm_90a, or several blocks that have a share of the keys each: a
// cluster, or blocks that meet in memory. The loop ahead of it is attend_wgmma.cuh.

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
  // Addresses that follow from the lane are made here: ahead of all tiles they would take registers from their loops.
  int lane = threadIdx.x % 32;
  asm volatile("" : "+r"(lane));
  i0 += (Index)(threadIdx.x / 32 % 4 * 16);
  constexpr int turns = width % (2 * turn) == 0 ? 2 : 1;  // without moving sums
#pragma unroll 1
  for (int column = 0; column < width; column += turns * turn) {
#pragma unroll
    for (int piece = 0; piece < 2 * turns; ++piece) {
      const int half = piece % 2, of = piece / 2 * turn;
#pragma unroll
      for (int x = 0; x < turn / 2; x += 4)
        staged::write(mine, lane / 4, x * 2 + lane % 4 * 2, sum[of / 2 + x + half * 2], sum[of / 2 + x + half * 2 + 1]);
      __syncwarp();
#pragma unroll
      for (int slot = 0; slot < slots; ++slot) {
        const int row = (slot * 32 + lane) / per_row, at = (slot * 32 + lane) % per_row * vector;
        const float top = __shfl_sync(~0u, tops[half], row * 4), total = __shfl_sync(~0u, totals[half], row * 4);
        const Index i = i0 + (Index)(half * 8 + row), e = e0 + (Index)(column + of + at);
        if (i < i_limit && e < e_limit) out.put(i, e, top, total, staged::template read<vector>(mine, row, at));
      }
      __syncwarp();
    }
#pragma unroll
    for (int x = 0; x + turns * turn / 2 < width / 2; ++x) sum[x] = sum[x + turns * turn / 2];
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
  const float slope = weights.scale * weighted_rows::log2_e;
#pragma unroll
  for (int part = 0; part < Tiles::parts; ++part) {
    const pack<float, 4> its = load_of_block(place + packs * 4 * threads, part);
    const pack<float, 4> total = load_of_block(place + (packs + 1) * 4 * threads, part);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const bool nothing = Weights::has_maximum && its[r] == minus_infinity(0.0f);
      const bool far = Weights::has_maximum && weighted_rows::is_far(rows.top[r], slope);
      share[part][r] = nothing ? 0.0f : power_of_two(far ? (its[r] - rows.top[r]) * slope : its[2 + r] - below[r]);
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

//@ key_sums
// What a thread has of two rows over some of the keys: the greatest score, what was subtracted from exponents, the sum of
// weights, and the sums of 32 columns of values.
struct key_sums {
  static constexpr int columns = 32, pieces = columns / 8 + 2, size = 32 * 4 * pieces;  // of four floats; floats of a warp
  float top[2] = {minus_infinity(0.0f), minus_infinity(0.0f)}, below[2] = {0, 0}, total[2] = {0, 0};
  float sum[columns / 2] = {};

  // With those over other keys: of pieces of four, the last two have what is of rows.
  template <class Weights>
  __device__ __forceinline__ void add(const pack<float, 4> (&its)[pieces], const Weights& weights) {
    const float slope = weights.scale * weighted_rows::log2_e;
    const pack<float, 4>&of_rows = its[pieces - 2], &totals = its[pieces - 1];
    float keep[2], take[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float highest = maximum(top[r], of_rows[r]), least = of_rows[r] > top[r] ? of_rows[2 + r] : below[r];
      const bool far = Weights::has_maximum && weighted_rows::is_far(highest, slope);
      const auto share = [&](float its_top, float its_below) {
        if (Weights::has_maximum && its_top == minus_infinity(0.0f)) return 0.0f;
        return power_of_two(far ? (its_top - highest) * slope : its_below - least);
      };
      keep[r] = share(top[r], below[r]), take[r] = share(of_rows[r], of_rows[2 + r]);
      top[r] = highest, below[r] = least, total[r] = total[r] * keep[r] + totals[r] * take[r];
    }
#pragma unroll
    for (int x = 0; x < columns / 2; ++x) sum[x] = sum[x] * keep[x / 2 % 2] + its[x / 4][x % 4] * take[x / 2 % 2];
  }
};

//@ hand_out_split_keys
// The same where `split_kv` blocks have shares of the keys and leave their sums in memory. Each adds up some of the tile's
// units, 16 queries by 32 columns. Where it has fewer of them than warps, several have one together: each adds up
// neighbouring parts, in their order, and the first of them what they have, in theirs.
template <class Tiles, class Split, class Weights, class Index, class Result>
__device__ __forceinline__ void hand_out_split_keys(const float (&sum)[Tiles::width / 2], weighted_rows& rows,
                                                    const Split& split, u32 tile, u32 rank, float* mine,
                                                    const Weights& weights, Index i0, Index i_limit, Index j_limit,
                                                    Index e_limit, const Result& out) {
  constexpr int turn = key_sums::columns, turns = Tiles::width / turn, threads = 128 * Tiles::consumers;
  constexpr int packs = Tiles::width / 8, pieces = key_sums::pieces, parts = Tiles::split_kv;
  constexpr int warps = threads / 32, units = warps * turns;
  using dealt = unit_teams<units, warps, parts>;
  constexpr int helpers = dealt::helpers, teams = dealt::teams;
  constexpr int together = Tiles::consumers == 1 ? 4 : 2;  // parts under way at once
  constexpr i64 part_size = (packs + 2) * threads * 4;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, team = warp / helpers, helper = warp % helpers;
  float* const all_parts = reinterpret_cast<float*>(split.sums) + tile * (parts * part_size);
  const auto row_of = [&](int slot) { return i0 + (Index)(slot * 16); };  // of 16 queries
  if (row_of(warp) < i_limit) {
    float* const place = all_parts + rank * part_size + threadIdx.x * 4;
#pragma unroll
    for (int x = 0; x < Tiles::width / 2; x += 4)
      store<4, 4>(place + x * threads, pack<float, 4>{sum[x], sum[x + 1], sum[x + 2], sum[x + 3]});
    store<4, 4>(place + packs * 4 * threads, pack<float, 4>{rows.top[0], rows.top[1], rows.below[0], rows.below[1]});
    store<4, 4>(place + (packs + 1) * 4 * threads, pack<float, 4>{rows.sum[0], rows.sum[1], 0, 0});
  }
  wait_turn<threads>(4);  // all have stored theirs
  if (threadIdx.x == 0) meet_in_memory(reinterpret_cast<u32*>(split.counters + tile * 128), parts);
  wait_turn<threads>(4);
  const int begin = parts * helper / helpers, end = parts * (helper + 1) / helpers;
  const auto add_up = [&](key_sums& all, int unit) {
    const float* const from = all_parts + (unit % warps * 32 + lane) * 4;
    const int at = unit / warps;
#pragma unroll 1
    for (int first = begin; first < end; first += together) {
      under_way<float, 4, 4> its[together][pieces];
#pragma unroll
      for (int i = 0; i < together; ++i)
#pragma unroll
        for (int piece = 0; piece < pieces; ++piece)
          its[i][piece] = load_now<4, 4>(from + min(first + i, end - 1) * part_size +
                                         (piece < turn / 8 ? at * (turn / 8) + piece : packs + piece - turn / 8) * threads * 4);
#pragma unroll
      for (int i = 0; i < together; ++i) {
        pack<float, 4> x[pieces];
#pragma unroll
        for (int piece = 0; piece < pieces; ++piece) x[piece] = arrived(its[i][piece]);
        if (first + i < end) all.add(x, weights);
      }
    }
  };
  const auto leave = [&](key_sums& all, int unit) {
    const int slot = unit % warps, at = unit / warps;
    Index i[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      i[r] = row_of(slot) + (Index)(lane / 4 + r * 8);
      i[r] = i[r] < i_limit ? i[r] : i_limit - 1;
      rows.top[r] = all.top[r], rows.sum[r] = all.total[r];
    }
    float unseen[2];
    rows.close(unseen, weights, i, j_limit);
#pragma unroll
    for (int x = 0; x < turn / 2; ++x) all.sum[x] += unseen[x / 2 % 2];
    hand_out_queries<turn>(all.sum, rows.top, rows.sum, mine, row_of(slot - warp % 4), (Index)(at * turn), i_limit, e_limit,
                           out);
  };
  const auto there = [&](int unit) { return unit < units && row_of(unit % warps) < i_limit; };
  if constexpr (helpers == 1) {
#pragma unroll 1
    for (int unit = rank + warp * parts; unit < units; unit += warps * parts) {
      if (!there(unit)) continue;
      key_sums all;
      add_up(all, unit);
      leave(all, unit);
    }
  } else {
    const int unit = team < teams ? rank + team * parts : units;
    key_sums all;
    if (there(unit)) add_up(all, unit);
#pragma unroll
    for (int x = 0; x < turn / 2; x += 4)
      store<4, 4>(mine + x * 32 + lane * 4, pack<float, 4>{all.sum[x], all.sum[x + 1], all.sum[x + 2], all.sum[x + 3]});
    store<4, 4>(mine + (pieces - 2) * 128 + lane * 4, pack<float, 4>{all.top[0], all.top[1], all.below[0], all.below[1]});
    store<4, 4>(mine + (pieces - 1) * 128 + lane * 4, pack<float, 4>{all.total[0], all.total[1], 0, 0});
    wait_turn<threads>(4);  // all have added up theirs
    if (helper > 0 || !there(unit)) return;
#pragma unroll 1
    for (int other = 1; other < helpers; ++other) {
      pack<float, 4> x[pieces];
#pragma unroll
      for (int piece = 0; piece < pieces; ++piece)
        x[piece] = load<4, 4>(mine + other * Tiles::of_warp + piece * 128 + lane * 4);
      all.add(x, weights);
    }
    leave(all, unit);
  }
}

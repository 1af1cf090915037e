// How sums of values leave a warpgroup of Attend kernels on sm_90a, or the blocks of a cluster that have a share of the
// keys each. The loop ahead of it is attend_wgmma.cuh.

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

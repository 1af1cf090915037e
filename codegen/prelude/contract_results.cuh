// How the sums of warpgroups leave (contract_wgmma.cuh): past shared memory of a warp, so that lanes store neighbouring
// columns, or as boxes from there; where blocks have parts of a tile's depth, each adds up some of all.

//@ staged_sums
// Eight rows of a warp's sums on their way out, in shared memory: the lanes write pairs of columns as wgmma leaves them, and
// read neighbouring ones. Four columns are a piece; pieces change places so that neither meets a bank twice.
template <int columns>
struct staged_sums {
  static constexpr int line = columns + 8, size = 8 * line;
  static_assert(columns == 32 || columns == 64, "eight pieces or sixteen");
  static __device__ __forceinline__ int piece(int row, int at) { return row * line + (at ^ (columns == 64 ? at >> 3 & 1 : row & 1)) * 4; }
  static __device__ __forceinline__ void write(float* to, int row, int column, float low, float high) {
    store<2, 2>(to + piece(row, column / 4) + column % 4, pack<float, 2>{low, high});
  }
  template <int vector>
  static __device__ __forceinline__ pack<float, vector> read(const float* from, int row, int column) {
    constexpr int together = vector < 4 ? vector : 4;
    pack<float, vector> x;
#pragma unroll
    for (int i = 0; i < vector; i += together) {
      const pack<float, together> part =
          load<together, together>(from + piece(row, (column + i) / 4) + (column + i) % 4);
#pragma unroll
      for (int j = 0; j < together; ++j) x[i + j] = part[j];
    }
    return x;
  }
};

//@ sums_of_warp
// Floats of shared memory for the sums of a warp on their way out.
__device__ constexpr int sums_of_warp(int products) {
  return products == 1 ? staged_sums<64>::size : products * staged_sums<32>::size;
}

//@ hand_out
// The sums of a warpgroup leave 64 columns at once, or 32, eight rows of each warp after eight, through `mine`, shared
// memory of the warp, so that lanes have neighbouring columns. What `out` reads is under way eight rows ahead where there
// are registers for it (`early`). The sums move to the front of their array as they leave: the loop has one body. Of two
// `products` those of the same columns leave together.
template <int columns, int products, bool early_, class Index, class Result>
__device__ __forceinline__ void hand_out(float (&sum)[products * columns / 2], float* mine, Index m0, Index n0,
                                         Index m_limit, Index n_limit, const Result& out) {
  constexpr int vector = Result::vector;
  constexpr bool wide = products == 1 && early_ && columns % 64 == 0 && vector >= 8;  // a line of 16-bit results
  constexpr int turn = wide ? 64 : 32, held = turn / 2, per_row = turn / vector;
  constexpr int slots = 8 * per_row / 32;  // vectors of a lane
  constexpr bool early = early_ && vector >= 4;
  using staged = staged_sums<turn>;
  const int lane = threadIdx.x % 32;
  m0 += (Index)(threadIdx.x / 32 % 4 * 16);
  const auto row_of = [&](int slot) { return (slot * 32 + lane) / per_row; };
  const auto column_of = [&](int slot) { return (slot * 32 + lane) % per_row * vector; };
  using loads = decltype(out.get(m0, n0));
  loads ahead[early ? slots : 1];
  const auto read = [&](int slot, int column, int half) {
    const Index m = m0 + (Index)(half * 8 + row_of(slot)), n = n0 + (Index)(column + column_of(slot));
    return m < m_limit && n < n_limit ? out.get(m, n) : loads{};
  };
  if constexpr (early) {
#pragma unroll
    for (int slot = 0; slot < slots; ++slot) ahead[slot] = read(slot, 0, 0);
  }
#pragma unroll 1
  for (int column = 0; column < columns; column += turn) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int product = 0; product < products; ++product)
#pragma unroll
        for (int i = 0; i < held; i += 4) {
          const int at = product * (columns / 2) + i + half * 2;
          staged::write(mine + product * staged::size, lane / 4, i * 2 + lane % 4 * 2, sum[at], sum[at + 1]);
        }
      __syncwarp();
      loads now[early ? slots : 1];
      if constexpr (early) {
#pragma unroll
        for (int slot = 0; slot < slots; ++slot) now[slot] = ahead[slot];
        if (half == 0 || column + turn < columns) {
#pragma unroll
          for (int slot = 0; slot < slots; ++slot) ahead[slot] = read(slot, half == 0 ? column : column + turn, 1 - half);
        }
      }
#pragma unroll(!early_ ? 1 : slots < 4 ? slots : 4)
      for (int slot = 0; slot < slots; ++slot) {
        const Index m = m0 + (Index)(half * 8 + row_of(slot)), n = n0 + (Index)(column + column_of(slot));
        if constexpr (!early) now[0] = read(slot, column, half);
        if (m >= m_limit || n >= n_limit) continue;
        const pack<float, vector> x = staged::template read<vector>(mine, row_of(slot), column_of(slot));
        if constexpr (products == 1) {
          out.put(m, n, x, now[early ? slot : 0]);
        } else {
          out.put(m, n, x, staged::template read<vector>(mine + staged::size, row_of(slot), column_of(slot)),
                  now[early ? slot : 0]);
        }
      }
      __syncwarp();
    }
#pragma unroll
    for (int product = 0; product < products; ++product)
#pragma unroll
      for (int i = product * (columns / 2); i + held < (product + 1) * (columns / 2); ++i) sum[i] = sum[i + held];
  }
}

//@ result_boxes make_result_boxes
// A result that leaves as boxes of 16 rows of 32 elements of T: take(m, n, x, loaded) is what becomes of two neighbouring
// sums, with what get(n) has loaded, and leave(from, m, n) asks for the box at m, n to be copied to memory.
template <class T, class Get, class Take, class Leave>
struct result_boxes {
  using type = T;
  static constexpr int reach = 0;
  Get get;
  Take take;
  Leave leave;
};
template <class T, class Get, class Take, class Leave>
__device__ __forceinline__ result_boxes<T, Get, Take, Leave> make_result_boxes(Get get, Take take, Leave leave) {
  return {get, take, leave};
}

//@ kept
// Where a vector is stored that a result takes.
template <class T>
struct kept {
  T value;
  template <class Row, class Column>
  __device__ __forceinline__ void put(Row, Column, const T& x) {
    value = x;
  }
};

//@ hand_out_boxes
// The same as boxes, of which a warp has two in `mine`: one is filled while the other is read. Their 16-byte pieces change
// places as in a tensor map of lines of 64 bytes. What lies beyond the limits is computed at their edge, and not stored.
template <int columns, class Index, class Result>
__device__ __forceinline__ void hand_out_boxes(float (&sum)[columns / 2], unsigned char* mine, Index m0, Index n0,
                                               Index m_limit, Index n_limit, const Result& out) {
  using T = typename Result::type;
  constexpr int turn = 32, pairs = turn / 8;  // columns of a box, and pairs of them in a lane
  const int lane = threadIdx.x % 32;
  m0 += (Index)(threadIdx.x / 32 % 4 * 16);
  if (m0 >= m_limit) return;
  const auto column_of = [&](int column, int pair) {
    return min(n0 + (Index)(column + pair * 8), n_limit - 8) + (Index)(lane % 4 * 2);
  };
  using loads = decltype(out.get(n0));
  loads ahead[pairs];
#pragma unroll
  for (int pair = 0; pair < pairs; ++pair) ahead[pair] = out.get(column_of(0, pair));
#pragma unroll
  for (int column = 0; column < columns; column += turn) {
    if (n0 + (Index)column >= n_limit) continue;
    unsigned char* const box = mine + column / turn % 2 * 1024;
    loads now[pairs];
#pragma unroll
    for (int pair = 0; pair < pairs; ++pair) {
      now[pair] = ahead[pair];
      if (column + turn < columns) ahead[pair] = out.get(column_of(column + turn, pair));
    }
    if (lane == 0) {
      if (column == 0) {
        wait_boxes<0>();  // the last of those before may be either
      } else {
        wait_boxes<1>();
      }
    }
    __syncwarp();
#pragma unroll
    for (int pair = 0; pair < pairs; ++pair)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = half * 8 + lane / 4, at = column / 2 + pair * 4 + half * 2;
        const pack<T, 2> x = out.take(min(m0 + (Index)row, m_limit - 1), column_of(column, pair),
                                      pack<float, 2>{sum[at], sum[at + 1]}, now[pair]);
        store<2, 2>(reinterpret_cast<T*>(box + row * 64 + (pair ^ row / 2 % 4) * 16 + lane % 4 * 4), x);
      }
    publish_writes();
    __syncwarp();
    if (lane == 0) {
      out.leave(box, m0, n0 + (Index)column);
      commit_boxes();
    }
  }
}

//@ leave_sums
// The sums of the `threads` of a block as they have them, in four neighbours of a thread each.
template <int threads, int blocks, int count>
__device__ __forceinline__ void leave_sums(float* to, float (&sum)[blocks][count]) {
#pragma unroll
  for (int block = 0; block < blocks; ++block)
#pragma unroll
    for (int i = 0; i < count; i += 4)
      store<4, 4>(to + ((block * (count / 4) + i / 4) * threads + threadIdx.x) * 4,
                  pack<float, 4>{sum[block][i], sum[block][i + 1], sum[block][i + 2], sum[block][i + 3]});
}

//@ hand_out_parts
// The same where the blocks of a cluster have the sums of parts of the depth: each adds up those of all of them, in their
// order, for some of the columns. `left`: shared memory for the sums of a block, which nothing else needs any more.
template <class Tiles, class Index, class Result>
__device__ __forceinline__ void hand_out_parts(float (&sum)[Tiles::blocks][Tiles::tile_n / 2], unsigned char* left,
                                               float* mine, Index m0, Index n0, Index m_limit, Index n_limit,
                                               const Result& out) {
  constexpr int turn = 32, turns = Tiles::tile_n / turn, threads = 128 * Tiles::consumers;
  const u32 rank = cluster_rank();
  wait_turn<threads>(1);  // all have read the last tiles
  leave_sums<threads>(reinterpret_cast<float*>(left), sum);
  join_cluster();
#pragma unroll 1
  for (int at = 0; at < Tiles::blocks * turns; ++at) {
    if ((threadIdx.x / 128 * Tiles::blocks * turns + at) % Tiles::parts != rank) continue;
    float all[turn / 2];
#pragma unroll
    for (int i = 0; i < turn / 2; i += 4) {
      const float* place = reinterpret_cast<float*>(left) + ((at * (turn / 8) + i / 4) * threads + threadIdx.x) * 4;
      pack<float, 4> total = load_of_block(place, 0);
#pragma unroll
      for (int part = 1; part < Tiles::parts; ++part) {
        const pack<float, 4> its = load_of_block(place, part);
#pragma unroll
        for (int j = 0; j < 4; ++j) total[j] += its[j];
      }
#pragma unroll
      for (int j = 0; j < 4; ++j) all[i + j] = total[j];
    }
    hand_out<turn, 1, false>(all, mine, m0 + at / turns * 64, n0 + at % turns * turn, m_limit, n_limit, out);
  }
}

//@ split_tiles
// Where the blocks that share tiles along the depth meet: for each tile the sums of all of them, and two counters.
struct split_tiles {
  u8 *sums, *counters;  // counters are 0 before and after
};

//@ unit_teams
// How the warps of a block take what it has of a tile's `units`, which as many blocks as there are `parts` deal among
// themselves: one by one, or, where a block has fewer units than warps, several warps one together, parts of the sum each.
template <int units, int warps, int parts>
struct unit_teams {
  static constexpr int own = (units + parts - 1) / parts, sharing = own < warps ? warps / own : 1;
  static constexpr int helpers = sharing < parts ? sharing : parts, teams = warps / helpers;
};

//@ hand_out_split
// The same where `split_k` blocks have the sums of parts of the depth and leave them in memory, as their threads have them.
// Each block adds up some of the tile's units, 16 rows of 32 columns, for which memory is waited for as few times as may be:
// where it has fewer units than warps, several have one together. Each adds up neighbouring parts, in their order, and the
// first of them what they have, in theirs.
template <class Tiles, class Index, class Result>
__device__ __forceinline__ void hand_out_split(float (&sum)[Tiles::blocks][Tiles::tile_n / 2], const split_tiles& split,
                                               u32 tile, u32 rank, float* mine, Index m0, Index n0,
                                               Index m_limit, Index n_limit, const Result& out) {
  constexpr int turn = 32, pieces = turn / 8, turns = Tiles::tile_n / turn, threads = 128 * Tiles::consumers;
  constexpr int warps = threads / 32, units = warps * Tiles::blocks * turns, parts = Tiles::split_k;
  using dealt = unit_teams<units, warps, parts>;
  constexpr int helpers = dealt::helpers, teams = dealt::teams;
  constexpr int of_helper = (parts + helpers - 1) / helpers, most = Tiles::consumer_registers > 200 ? 6 : 4;
  constexpr int rounds = (of_helper + most - 1) / most, together = (of_helper + rounds - 1) / rounds;  // under way at once
  constexpr i64 part_size = Tiles::tile_m * Tiles::tile_n;
  float* const all_parts = reinterpret_cast<float*>(split.sums) + tile * (parts * part_size);
  leave_sums<threads>(all_parts + rank * part_size, sum);
  wait_turn<threads>(1);  // all have stored theirs
  if (threadIdx.x == 0) meet_in_memory(reinterpret_cast<u32*>(split.counters + tile * 128), parts);
  wait_turn<threads>(1);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, team = warp / helpers, helper = warp % helpers;
  const int begin = parts * helper / helpers, end = parts * (helper + 1) / helpers;
  // Of a unit, 16 rows of the `warps` times 16 that leave_sums counts as one, and 32 columns of them.
  const auto slot_of = [](int unit) { return unit % warps; };
  const auto at_of = [](int unit) { return unit / warps; };
  const auto add_up = [&](pack<float, 4>(&total)[pieces], int unit) {
    const float* const from = all_parts + (at_of(unit) * pieces * threads + slot_of(unit) * 32 + lane) * 4;
#pragma unroll 1
    for (int first = begin; first < end; first += together) {
      under_way<float, 4, 4> its[together][pieces];
#pragma unroll
      for (int i = 0; i < together; ++i)
#pragma unroll
        for (int piece = 0; piece < pieces; ++piece)
          its[i][piece] = load_now<4, 4>(from + min(first + i, end - 1) * part_size + piece * threads * 4);
#pragma unroll
      for (int i = 0; i < together; ++i)
#pragma unroll
        for (int piece = 0; piece < pieces; ++piece) {
          const pack<float, 4> x = arrived(its[i][piece]);
          if (first + i >= end) continue;
#pragma unroll
          for (int j = 0; j < 4; ++j) total[piece][j] += x[j];
        }
    }
  };
  const auto leave = [&](const pack<float, 4>(&total)[pieces], int unit) {
    float all[turn / 2];
#pragma unroll
    for (int i = 0; i < turn / 2; ++i) all[i] = total[i / 4][i % 4];
    const int slot = slot_of(unit), at = at_of(unit);
    const Index row = m0 + (Index)((slot / 4 - warp / 4) * Tiles::rows + at / turns * 64 + (slot % 4 - warp % 4) * 16);
    hand_out<turn, 1, false>(all, mine, row, n0 + (Index)(at % turns * turn), m_limit, n_limit, out);
  };
  if constexpr (helpers == 1) {
#pragma unroll 1
    for (int unit = rank + warp * parts; unit < units; unit += warps * parts) {
      pack<float, 4> total[pieces] = {};
      add_up(total, unit);
      leave(total, unit);
    }
  } else {
    const int unit = team < teams ? rank + team * parts : units;
    pack<float, 4> total[pieces] = {};
    if (unit < units) add_up(total, unit);
    constexpr int of_warp = sums_of_warp(1);
    static_assert(of_warp >= pieces * 128, "a warp has memory for the sums of a unit");
#pragma unroll
    for (int piece = 0; piece < pieces; ++piece) store<4, 4>(mine + piece * 128 + lane * 4, total[piece]);
    wait_turn<threads>(1);  // all have added up theirs
    if (helper > 0 || unit >= units) return;
#pragma unroll 1
    for (int other = 1; other < helpers; ++other)
#pragma unroll
      for (int piece = 0; piece < pieces; ++piece) {
        const pack<float, 4> x = load<4, 4>(mine + other * of_warp + piece * 128 + lane * 4);
#pragma unroll
        for (int j = 0; j < 4; ++j) total[piece][j] += x[j];
      }
    leave(total, unit);
  }
}

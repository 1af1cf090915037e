// The main loop of Contract kernels on sm_90a. Blocks stay and take tile after tile. Producers bring both operands into
// shared memory, several steps ahead, and consumers, warpgroups of their own, multiply them from there into registers. One
// thread asks for an operand that boxes describe; any other warpgroups read and write as boxes would lie (contract_fed.cuh).
// Blocks of a cluster have neighbouring tiles along m and share what they read of b: each asks for a part of it, for all of
// them. Where masks bound a product (bounded_depth), tiles have a depth each.

//@ ring
// A place among `stages`, and the parity of the phase that its barriers are in.
template <int stages>
struct ring {
  int stage = 0;
  u32 parity = 0;
  __device__ __forceinline__ void advance() {
    if (++stage == stages) stage = 0, parity ^= 1;
  }
  template <class Index>
  __device__ __forceinline__ void advance(Index steps) {
    const u32 sum = stage + (u32)steps;
    stage = sum % stages, parity ^= sum / stages & 1;
  }
};

//@ wgmma_tiles
// tile_m x tile_n of the result for each block, in steps of 128 bytes of the depth. Each of `consumers` warpgroups
// multiplies tile_m / consumers rows of a tile or, where they take `turns`, whole tiles: one multiplies while another
// multiplies tile_m / consumers rows of a tile or, where they take `turns`, whole tiles: one multiplies while another
// hands its sums out. Of two that share a tile the second follows the first by `lead` steps, for the same reason. Of a
// tile whose depth is in `parts` each block of a cluster has one; there is a cluster for each tile. Of one that is split
// among `split_k` blocks, all of which run at once, they meet in memory. `products` of the same rows lie side by side in tile_n:
// each has as many columns. The sums of every `block` steps are added to totals (0: there are none). `boxes_a`, `boxes_b`:
// the operand comes in boxes; `box_results`: the result leaves in some; `lag`: steps by which copies of threads may be behind (0: they are no asynchronous ones).
template <class T, int tile_m_, int tile_n_, int consumers_, bool turns_, int lead_, int producers_, int stages_, int cluster_,
          int parts_, int split_k_, bool box_results_, int products_, int block_, bool a_along_depth_, bool b_along_depth_, bool boxes_a_, bool boxes_b_,
          int lag_>
struct wgmma_tiles {
  static constexpr int parts = parts_, split_k = split_k_, products = products_, block = block_;
  static constexpr int tile_m = tile_m_, tile_n = tile_n_, columns = tile_n / products;  // of the result
  static constexpr int stages = stages_, cluster = cluster_, lag = lag_;
  static constexpr int consumers = consumers_, producers = producers_;
  static constexpr int lead = lead_;
  static constexpr bool turns = turns_, a_along_depth = a_along_depth_, b_along_depth = b_along_depth_;
  static constexpr bool boxes_a = boxes_a_, boxes_b = boxes_b_;
  static constexpr bool box_results = box_results_;
  static constexpr bool boxes = boxes_a || boxes_b, threads = !boxes_a || !boxes_b;  // some operand comes so
  static constexpr int depth = 128 / (int)sizeof(T);
  static constexpr int rows = turns ? tile_m : tile_m / consumers;  // of a warpgroup
  static constexpr int blocks = rows / 64;                          // products of 64 rows in a step
  static constexpr int bytes_a = tile_m * 128, bytes_b = tile_n * 128, bytes = bytes_a + bytes_b;  // of a stage
  static constexpr int boxed_bytes = (boxes_a ? bytes_a : 0) + (boxes_b ? bytes_b : 0);
  static_assert(rows % 64 == 0 && columns % 32 == 0, "a warpgroup multiplies 64 rows");

  // Registers of a thread: all have the same at first, 65536 in all.
  static constexpr int sums = blocks * (tile_n / 2);  // of a thread
  static constexpr bool many = sums > 128, early = threads && consumers == 2 ? sums <= 64 : !many;
  static constexpr int beside_threads = producers == 2 ? 152 : consumers == 1 ? 216 : consumers == 2 ? 192 : 136;
  static constexpr int consumer_registers =
      threads ? beside_threads : many ? 240 : consumers == 1 ? 216 : consumers == 2 ? 232 : 152;
  static constexpr int producer_registers =
      threads ? (consumers == 1 ? 152 : producers == 1 && consumers == 2 ? 120 : 104) : many ? 24 : 40;

  // From one instruction's part of a tile to the next, in units of descriptors (16 bytes).
  static constexpr int step_a = (a_along_depth ? 32 : 32 * depth) / 16, step_b = (b_along_depth ? 32 : 32 * depth) / 16;
  static constexpr int block_a = 64 * 128 / 16;
  static_assert(parts * split_k == 1 || ((parts == 1 || split_k == 1) && cluster == 1 && !turns && products == 1),
                "blocks share a tile's depth or what they read");
  static_assert(!box_results || (parts * split_k == 1 && products == 1), "boxes take the sums of one product");
  static_assert(lead == 0 || (consumers == 2 && !turns && parts * split_k == 1 && lead < stages),
                "one warpgroup follows another");
};

//@ touch_tile
// Brings what `out` reads of a tile of `rows` x `columns` to the second-level cache. Called by a warpgroup.
template <int rows, int columns, class Index, class Result>
__device__ __forceinline__ void touch_tile(Index m0, Index n0, Index m_limit, Index n_limit, const Result& out) {
  if constexpr (Result::reach > 0) {
    constexpr int per_row = (columns + Result::reach - 1) / Result::reach;
#pragma unroll 1
    for (int slot = threadIdx.x % 128; slot < rows * per_row; slot += 128) {
      const Index m = m0 + (Index)(slot / per_row), n = n0 + (Index)(slot % per_row * Result::reach);
      if (m < m_limit && n < n_limit) out.touch(m, n);
    }
  }
}

//@ bounded_walk
// The tiles of a product of which masks hide some: first all that are multiplied, then the others, so that blocks that
// take them in turns multiply as many. In the order of raster_of otherwise, from the last row (column) of tiles back
// where the depth grows along it: short tiles fill the end. rows_of(n) is the range of rows that are seen of the tiles
// at columns from n on.
template <class Index, int rows, int columns, bool back_m, bool back_n, class RowsOf>
struct bounded_walk {
  const RowsOf& rows_of;
  u32 batches, tiles_m, tiles_n;
  u32 reached = 0, within = 0;  // the number of the tile that it stands at; of its part of a column of a group
  u32 batch = 0, group = 0, column = 0;
  u32 height, first, last;  // rows of tiles in the group, and those of the column that are multiplied
  bool hidden = false;

  __device__ __forceinline__ bounded_walk(const RowsOf& rows_of, u32 batches, u32 tiles_m, u32 tiles_n)
      : rows_of(rows_of), batches(batches), tiles_m(tiles_m), tiles_n(tiles_n) {
    look();
  }
  __device__ __forceinline__ void look() {
    height = tiles_m - group < 8 ? tiles_m - group : 8;
    const depth_range<Index> seen = rows_of((Index)(back_n ? tiles_n - 1 - column : column) * columns);
    Index from = seen.begin / rows, to = seen.end > seen.begin ? (seen.end - 1) / rows + 1 : from;
    if (back_m) {
      const Index end = (Index)tiles_m - from;
      from = (Index)tiles_m - to, to = end;
    }
    const auto in_group = [&](Index row) {
      return row < (Index)group ? 0u : row < (Index)(group + height) ? (u32)row - group : height;
    };
    first = in_group(from), last = in_group(to);
  }
  __device__ __forceinline__ u32 count() const { return hidden ? height - (last - first) : last - first; }

  // Numbers never fall from one call to the next.
  __device__ __forceinline__ raster at(u32 number) {
    within += number - reached;
    reached = number;
#pragma unroll 1
    while (within >= count()) {
      within -= count();
      if (++column == tiles_n) {
        column = 0, group += 8;
        if (group >= tiles_m) {
          group = 0;
          if (++batch == batches) batch = 0, hidden = true;
        }
      }
      look();
    }
    const u32 row = group + (!hidden ? first + within : within < first ? within : within + (last - first));
    return {(int)batch, (int)(back_m ? tiles_m - 1 - row : row), (int)(back_n ? tiles_n - 1 - column : column)};
  }
};

//@ bounded_depth make_bounded_depth
// What masks leave of a product: depth_of(m, n) of the tile of rows x columns that begins there, and rows_of(n).
template <class Index, int rows, int columns, bool back_m, bool back_n, class DepthOf, class RowsOf>
struct bounded_depth {
  DepthOf depth_of;
  RowsOf rows_of;
  __device__ __forceinline__ auto walk(u32 batches, u32 tiles_m, u32 tiles_n) const {
    return bounded_walk<Index, rows, columns, back_m, back_n, RowsOf>(rows_of, batches, tiles_m, tiles_n);
  }
  __device__ __forceinline__ depth_range<Index> of(const raster& tile) const {
    return depth_of((Index)tile.m * rows, (Index)tile.n * columns);
  }
};
template <class Index, int rows, int columns, bool back_m, bool back_n, class DepthOf, class RowsOf>
__device__ __forceinline__ auto make_bounded_depth(DepthOf depth_of, RowsOf rows_of)
    -> bounded_depth<Index, rows, columns, back_m, back_n, DepthOf, RowsOf> {
  return {depth_of, rows_of};
}

//@ contract_wgmma | contract_wgmma_bounded
// load_a(to, full, batch, m, k) and load_b(to, full, batch, n, k) ask for a step of the operands' tiles: boxes of 64
// elements along the depth, or of 64 elements across it. An operand that threads bring is a fed_tile, or the like; of two,
// load_a is both of them. multiply(sum, a, b, add) is one wgmma, which adds to the sums or sets them. with_result(batch,
// use) calls use(out). join() waits for the kernels ahead, once there are barriers: nothing else precedes it. The tiles are dealt to `all_blocks` blocks, of which this one is number `own_block`; bounded ones
// to all of the grid, whose numbers are read where they are used: a register less.
//? contract_wgmma
template <class Tiles, class Index, class Join, class LoadA, class LoadB, class Multiply, class Results>
__device__ __forceinline__ void contract_wgmma(unsigned char* shared, const Join& join, u32 own_block, u32 all_blocks, const LoadA& load_a,
                                               const LoadB& load_b, const Multiply& multiply,
                                               const Results& with_result, u32 batches, Index m_limit, Index n_limit,
                                               Index k_limit, const split_tiles& split = {}) {
//? contract_wgmma_bounded
// Of each tile `bounds` says which depth is multiplied, and in which order they come.
template <class Tiles, class Index, class Join, class LoadA, class LoadB, class Multiply, class Results, class Bounds>
__device__ __forceinline__ void contract_wgmma_bounded(unsigned char* shared, const Join& join, const LoadA& load_a, const LoadB& load_b,
                                                       const Multiply& multiply, const Results& with_result, u32 batches,
                                                       Index m_limit, Index n_limit, const Bounds& bounds) {
//?
  constexpr int stages = Tiles::stages, cluster = Tiles::cluster, depth = Tiles::depth, consumers = Tiles::consumers;
  constexpr int shared_by = cluster * Tiles::parts;  // blocks that have the same tile, or neighbouring ones
  float* const sums = reinterpret_cast<float*>(shared + stages * Tiles::bytes);  // of each warp, on their way out
  constexpr int of_warp = Tiles::box_results ? 512 : sums_of_warp(Tiles::products);
  arrival* const full = reinterpret_cast<arrival*>(sums + 4 * consumers * of_warp);
  arrival* const empty = full + stages;
  if (threadIdx.x == 0) {
    begin_barriers<stages>(full, (Tiles::boxes ? 1 : 0) + (Tiles::threads ? 4 : 0));
    begin_barriers<stages>(empty, (Tiles::turns ? 1 : consumers) * cluster);
    publish_barriers();
  }
  if constexpr (cluster > 1) {
    join_cluster();
  } else {
    __syncthreads();
  }
  join();
  const u32 tiles_m = (u32)((m_limit + (Tiles::tile_m * cluster - 1)) / (Tiles::tile_m * cluster));
  const u32 tiles_n = (u32)((n_limit + (Tiles::columns - 1)) / Tiles::columns);
//? contract_wgmma
  constexpr int of_tile = shared_by * Tiles::split_k;  // blocks
  const u32 tiles = batches * tiles_m * tiles_n, step = all_blocks / of_tile;
//? contract_wgmma_bounded
  const u32 tiles = batches * tiles_m * tiles_n, step = gridDim.x / shared_by;
//?
  const Index rank = cluster > 1 ? cluster_rank() : 0;
//? contract_wgmma
  constexpr int parts = Tiles::parts * Tiles::split_k;
  // Blocks that read the same part of the depth are neighbours, so that they lie all over the device: on an H200 those of
  // 290 x 768 x 472512 took 559 us where each other part was a neighbour's, and 363 so.
  const u32 own_tile = Tiles::split_k > 1 ? own_block % step : own_block / shared_by;
  const Index part_of_depth = Tiles::parts > 1 ? cluster_rank() : Tiles::split_k > 1 ? own_block / step : 0;
  const Index all_steps = (k_limit + (depth - 1)) / depth, first_step = all_steps * part_of_depth / parts;
  const Index steps = all_steps * (part_of_depth + 1) / parts - first_step, k0 = first_step * depth;
//? contract_wgmma_bounded
  const Index part_of_depth = Tiles::parts > 1 ? cluster_rank() : 0;
  Index steps = 0, k0 = 0;  // of the tile at hand
  const auto find_depth = [&](const raster& tile) {
    const auto seen = bounds.of(tile);
    const Index begin = (Index)seen.begin / depth * depth;  // whole steps of a whole depth
    const Index all_steps = seen.end > seen.begin ? ((Index)seen.end - begin + (depth - 1)) / depth : 0;
    const Index first_step = all_steps * part_of_depth / Tiles::parts;
    steps = all_steps * (part_of_depth + 1) / Tiles::parts - first_step, k0 = begin + first_step * depth;
  };
  auto walk = bounds.walk(batches, tiles_m, tiles_n);
//?
  const int group = threadIdx.x / 128;
  ring<stages> at;
  if (group >= consumers) {
    give_registers<Tiles::producer_registers>();
    const int thread = threadIdx.x % 128;
    // Waits for the stage at hand, and asks for the boxes of its step.
    const auto claim = [&](u32 batch, Index m, Index n, Index k) {
      unsigned char* const stage = shared + at.stage * Tiles::bytes;
      wait_arrival(empty + at.stage, at.parity ^ 1);
      if (Tiles::boxes && thread == 0) {
        expect_bytes(full + at.stage, Tiles::boxed_bytes);
        if constexpr (Tiles::boxes_a) load_a(stage, full + at.stage, batch, m, k);
        if constexpr (Tiles::boxes_b) load_b(stage + Tiles::bytes_a, full + at.stage, batch, n, k);
      }
      return stage;
    };
//? contract_wgmma
    u32 number = own_tile;
//? contract_wgmma_bounded
    u32 number = blockIdx.x / shared_by;
//?
    u32 batch = 0;
    Index m0 = 0, n0 = 0;
    const auto look = [&] {
//? contract_wgmma
      const raster tile = raster_of(number, tiles_m, tiles_n);
//? contract_wgmma_bounded
      const raster tile = walk.at(number);
      find_depth(tile);
//?
      batch = tile.batch, m0 = (tile.m * cluster + rank) * Tiles::tile_m, n0 = (Index)tile.n * Tiles::columns;
    };
    if constexpr (Tiles::threads) {
      constexpr int producers = Tiles::producers, lag = Tiles::lag;
      const auto fed = [&] {
        if constexpr (Tiles::boxes_a) {
          return load_b;
        } else {
          return load_a;
        }
      }();
      using fed_type = decltype(fed);
      ring<stages> behind;  // the first step whose copies have not been told of
      if (producers > 1) at.advance(group - consumers), behind.advance(group - consumers);
      const auto tell = [&] {
        publish_writes();
        __syncwarp();
        if (thread % 32 == 0) arrive(full + behind.stage);
        behind.advance(producers);
      };
      Index k = group - consumers;  // the step within the tile
      bool more = number < tiles;
      if (more) look();
      const auto find_step = [&] {
        while (more && k >= steps) {
          k -= steps, number += step;
          more = number < tiles;
          if (more) look();
        }
      };
      const auto place = [&] { return fed_place<Index>{batch, m0, n0, k0 + k * depth}; };
      find_step();
      typename fed_type::held next;
      fed_place<Index> ahead = place();
      if (more) fed.load(0, next, thread, ahead);
      int waiting = 0;
#pragma unroll 1
      for (bool some = more; some; some = more) {
        const fed_place<Index> now = ahead;
        k += producers;
        find_step();
        if (more) ahead = place();
        unsigned char* stage = shared;
#pragma unroll(fed_type::units <= 4 ? fed_type::units : 1)
        for (int unit = 0; unit < fed_type::units; ++unit) {
          const typename fed_type::held held = next;
          if (unit + 1 < fed_type::units) {
            fed.load(unit + 1, next, thread, now);
          } else if (more) {
            fed.load(0, next, thread, ahead);
          }
          if (unit == 0) stage = claim(now.batch, now.m, now.n, now.k);
          fed.write(unit, stage + (Tiles::boxes_a ? Tiles::bytes_a : 0), held, thread, now);
        }
        if (lag > 0) commit_copies();
        if (waiting < lag) {
          ++waiting;
        } else {
          if (lag > 0) wait_copies<lag>();
          tell();
        }
        at.advance(producers);
      }
      if constexpr (lag > 0) {
        wait_copies<0>();
        for (; waiting > 0; --waiting) tell();
      }
    } else if (thread == 0) {
      for (; number < tiles; number += step) {
        look();
#pragma unroll 1
        for (Index k = 0; k < steps; ++k) {
          claim(batch, m0, n0, k0 + k * depth);
          at.advance();
        }
      }
    }
    __syncwarp();
  } else {
    take_registers<Tiles::consumer_registers>();
    const auto release = [&](int stage) {
      if constexpr (cluster > 1) {
        if (threadIdx.x % 128 < cluster) arrive(empty + stage, threadIdx.x % 128);
      } else {
        if (threadIdx.x % 128 == 0) arrive(empty + stage);
      }
    };
    const int part = Tiles::turns ? 0 : group * Tiles::rows;  // of the tile's rows
//? contract_wgmma
    const u32 first = own_tile, skipped = Tiles::turns ? consumers : 1;
//? contract_wgmma_bounded
    const u32 first = blockIdx.x / shared_by, skipped = Tiles::turns ? consumers : 1;
//?
//? contract_wgmma
    if (Tiles::turns) at.advance(group * steps);
//? contract_wgmma_bounded
    u32 passed = first;  // the block's first tile that `at` stands before: tiles differ in their depth
//?
    for (u32 number = first + (Tiles::turns ? group : 0) * step; number < tiles; number += skipped * step) {
//? contract_wgmma
      const raster tile = raster_of(number, tiles_m, tiles_n);
//? contract_wgmma_bounded
      if constexpr (Tiles::turns) {
#pragma unroll 1
        for (; passed != number; passed += step) {
          find_depth(walk.at(passed));
          at.advance(steps);
        }
        passed += step;
      }
      const raster tile = walk.at(number);
      find_depth(tile);
//?
      const Index m0 = (tile.m * cluster + rank) * Tiles::tile_m + part, n0 = (Index)tile.n * Tiles::columns;
      with_result(tile.batch,
                  [&](const auto& out) { touch_tile<Tiles::rows, Tiles::columns>(m0, n0, m_limit, n_limit, out); });
      float sum[Tiles::blocks][Tiles::tile_n / 2];
      float total[Tiles::block > 0 ? Tiles::blocks : 1][Tiles::tile_n / 2] = {};
//? contract_wgmma
      if (steps == 0) {
//? contract_wgmma_bounded
      {  // of every tile: asked of each, it takes registers beyond those that there are
//?
#pragma unroll
        for (int i = 0; i < Tiles::blocks * (Tiles::tile_n / 2); ++i) sum[i / (Tiles::tile_n / 2)][i % (Tiles::tile_n / 2)] = 0;
      }
      // A phase's parity tells it from its neighbours only: none waits for data of its tile before that of the tile ahead
      // has come.
      if (Tiles::turns && number != first) wait_turn<256>(1 + group);
      // The stages of a short depth let the first warpgroup into its next tile before the second begins this one.
      const bool follows = Tiles::lead > 0 && steps > stages;
      if (follows && group == 1) wait_turn<256>(1);
      int before = -1;  // the stage that is read by products under way
#pragma unroll 1
      for (Index k = 0; k < steps; ++k) {
        wait_arrival(full + at.stage, at.parity);
        const unsigned char* const stage = shared + at.stage * Tiles::bytes;
        const u64 a = tile_descriptor(stage + part * 128, 0);
        const u64 b = tile_descriptor(stage + Tiles::bytes_a, Tiles::b_along_depth ? 0 : 128 * depth);
        begin_products();
#pragma unroll
        for (int i = 0; i < 4; ++i)
#pragma unroll
          for (int block = 0; block < Tiles::blocks; ++block)
            multiply(sum[block], a + block * Tiles::block_a + i * Tiles::step_a, b + i * Tiles::step_b,
                     (Tiles::block > 0 ? k % Tiles::block > 0 : k > 0) || i > 0);
        commit_products();
        if (follows && group == 0 && k == Tiles::lead - 1) give_turn<256>(1);
        wait_products<1>();
        if (before >= 0) release(before);
        before = at.stage;
        if (Tiles::block > 0 && (k + 1) % Tiles::block == 0) {
          wait_products<0>();
          release(before);
          before = -1;
          if constexpr (Tiles::block > 0) {
#pragma unroll
            for (int block = 0; block < Tiles::blocks; ++block) {
              settle(sum[block]);
              add_block(total[block], sum[block]);
            }
          }
        }
        at.advance();
      }
      if (Tiles::turns && number + step < tiles) give_turn<256>(1 + (group + 1) % consumers);
      wait_products<0>();
      if (before >= 0) release(before);
//? contract_wgmma
      if (Tiles::turns) at.advance((skipped - 1) * steps);
//?
#pragma unroll
      for (int block = 0; block < Tiles::blocks; ++block) settle(sum[block]);
      if constexpr (Tiles::block > 0) {
#pragma unroll
        for (int block = 0; block < Tiles::blocks; ++block) {
          add_block(total[block], sum[block]);
          add_block(sum[block], total[block]);
        }
      }
      float* const mine = sums + threadIdx.x / 32 * of_warp;
      with_result(tile.batch, [&](const auto& out) {
        if constexpr (Tiles::parts > 1) {
          hand_out_parts<Tiles>(sum, shared, mine, m0, n0, m_limit, n_limit, out);
//? contract_wgmma
        } else if constexpr (Tiles::split_k > 1) {
          hand_out_split<Tiles>(sum, split, number, part_of_depth, mine, m0, n0, m_limit, n_limit, out);
//?
        } else {
          // One body: the sums of the next 64 rows move to the front.
#pragma unroll 1
          for (int block = 0; block < Tiles::blocks; ++block) {
            if constexpr (Tiles::box_results) {
              hand_out_boxes<Tiles::columns>(sum[0], reinterpret_cast<unsigned char*>(mine), m0 + block * 64, n0, m_limit,
                                             n_limit, out);
            } else {
              hand_out<Tiles::columns, Tiles::products, Tiles::early>(sum[0], mine, m0 + block * 64, n0, m_limit, n_limit,
                                                                      out);
            }
#pragma unroll
            for (int i = 0; i + 1 < Tiles::blocks; ++i)
#pragma unroll
              for (int j = 0; j < Tiles::tile_n / 2; ++j) sum[i][j] = sum[i + 1][j];
          }
        }
      });
    }
    if (Tiles::box_results && threadIdx.x % 32 == 0) wait_boxes<0>();  // the memory that they are read from is the block's
  }
  if (Tiles::parts > 1 && group >= consumers) join_cluster();  // consumers have, ahead of each other's sums
  if constexpr (shared_by > 1) join_cluster();
}

// The main loops of Contract kernels. A block computes tile_m x tile_n of the result: operand tiles pass through shared
// memory, several in flight, and the sums leave through it, so that the epilogue sees neighbouring columns.

//@ raster raster_of
// The tile of a block. Tiles of one batch are numbered in groups of eight rows of tiles, down the columns of a group:
// blocks that run together share operands in L2.
struct raster {
  int batch, m, n;
};
__device__ __forceinline__ raster raster_of(u32 block, u32 tiles_m, u32 tiles_n) {
  const u32 batch = block / (tiles_m * tiles_n), rest = block % (tiles_m * tiles_n);
  const u32 group = rest / (8 * tiles_n), within = rest % (8 * tiles_n);
  const u32 height = tiles_m - group * 8 < 8 ? tiles_m - group * 8 : 8;
  return {(int)batch, (int)(group * 8 + within % height), (int)(within / height)};
}

//@ depth_range
// From `begin` up to `end`: of a tile's depth, or of rows.
template <class Index>
struct depth_range {
  Index begin, end;
};

//@ operand_from make_operand_from
// An operand from some depth on.
template <class Operand, class Index>
struct operand_from {
  static constexpr int vector = Operand::vector;
  static constexpr bool along_depth = Operand::along_depth, async = Operand::async, ahead = false;
  const Operand& source;
  Index first;
  __device__ __forceinline__ auto get(Index outer, Index depth) const { return source.get(outer, first + depth); }
};
template <class Operand, class Index>
__device__ __forceinline__ operand_from<Operand, Index> make_operand_from(const Operand& source, Index first) {
  return {source, first};
}

//@ walk_rows
// Hands rows of sums in shared memory to `out`: row r of `rows` stands for row m_of(r) of the result, columns begin at n0.
template <int rows, int columns, int line, int threads, class Sum, class Index, class Row, class Result>
__device__ __forceinline__ void walk_rows(const Sum* sums, Index n0, Index m_limit, Index n_limit, Row m_of, const Result& out) {
  constexpr int vector = Result::vector;
  constexpr int aligned = vector * (int)sizeof(Sum) > 16 ? 16 / (int)sizeof(Sum) : vector;
#pragma unroll 1
  for (int slot = threadIdx.x; slot < rows * (columns / vector); slot += threads) {
    const int row = slot / (columns / vector), column = slot % (columns / vector) * vector;
    const Index m = m_of(row), n = n0 + column;
    if (m < m_limit && n < n_limit) out.put(m, n, load<vector, aligned>(sums + row * line + column));
  }
}

//@ contract_pipeline
// The loop over the depth that all main loops share: tile s of both operands lies in stage s % stages.
template <class TileA, class TileB, int stages, int threads, class Index, class A, class B, class Multiply>
__device__ __forceinline__ void contract_pipeline(void* shared, const A& a, const B& b, Index m0, Index n0, Index m_limit,
                                                  Index n_limit, Index k_limit, Multiply multiply) {
  static_assert(stages >= 2, "one stage is filled while another is read");
  constexpr int depth = TileA::depth_size;
  auto* tiles_a = reinterpret_cast<typename TileA::element*>(shared);
  auto* tiles_b = reinterpret_cast<typename TileB::element*>(tiles_a + stages * TileA::size);
  tile_loader<TileA, A, threads, Index> load_a(a, m_limit, k_limit);
  tile_loader<TileB, B, threads, Index> load_b(b, n_limit, k_limit);
  const Index steps = (k_limit + depth - 1) / depth;
#pragma unroll 1
  for (int s = 0; s < stages - 1; ++s) {
    if (s < steps) {
      load_a.fill(tiles_a + s * TileA::size, m0, (Index)(s * depth));
      load_b.fill(tiles_b + s * TileB::size, n0, (Index)(s * depth));
    }
    commit_copies();
  }
  int reading = 0, writing = stages - 1;
#pragma unroll 1
  for (Index step = 0; step < steps; ++step) {
    wait_copies<stages - 2>();
    __syncthreads();
    auto* next_a = tiles_a + writing * TileA::size;
    auto* next_b = tiles_b + writing * TileB::size;
    const bool more = step + (stages - 1) < steps;
    if (more) {
      load_a.begin(next_a, m0, (step + (stages - 1)) * depth);
      load_b.begin(next_b, n0, (step + (stages - 1)) * depth);
    }
    commit_copies();
    multiply(tiles_a + reading * TileA::size, tiles_b + reading * TileB::size);
    if (more) {
      load_a.finish(next_a);
      load_b.finish(next_b);
    }
    reading = reading + 1 == stages ? 0 : reading + 1;
    writing = writing + 1 == stages ? 0 : writing + 1;
  }
  wait_copies<0>();
  __syncthreads();
}

//@ add_block
// Adds the sums of a block of the depth to the totals, and begins the next.
template <class T>
__device__ __forceinline__ void add_block(T& total, T& sum) {
  total += sum;
  sum = 0;
}
template <class T, int n>
__device__ __forceinline__ void add_block(T (&totals)[n], T (&sums)[n]) {
#pragma unroll
  for (int i = 0; i < n; ++i) add_block(totals[i], sums[i]);
}

//@ add_groups
// Adds what `groups` of threads left in shared memory, `count` sums each, to the first one's.
template <int count, int groups, int threads, class T>
__device__ __forceinline__ void add_groups(T* sums) {
  for (int i = (int)threadIdx.x; i < count; i += threads) {
    T all = sums[i];
#pragma unroll
    for (int other = 1; other < groups; ++other) all += sums[other * count + i];
    sums[i] = all;
  }
  __syncthreads();
}

//@ fragments_out
// Hands a block's sums to `out`, which warps hold as fragments of mma: in each round every warp writes 16 of its rows to
// shared memory, so that the epilogue's code stands here once, not once for each row. `groups` of warps have each a part
// of all sums.
template <int tile_n, int warps_m, int warps_n, int groups, int rows, int columns, class Index, class Result>
__device__ __forceinline__ void fragments_out(unsigned char* shared, const float (&sum)[rows][columns][4], const Result& out,
                                              Index m0, Index n0, Index m_limit, Index n_limit) {
  constexpr int line = tile_n + 8, of_group = 16 * warps_m * line, threads = 32 * warps_m * warps_n * groups;
  const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
  const int group = groups == 1 ? 0 : warp / (warps_m * warps_n);
  const int warp_m = warp / warps_n % warps_m, warp_n = warp % warps_n;
  float* sums = reinterpret_cast<float*>(shared);
#pragma unroll 1
  for (int round = 0; round < rows; ++round) {
    float* mine = sums + group * of_group + (warp_m * 16 + lane / 4) * line + warp_n * columns * 8 + lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < rows; ++i)
      if (i == round)
#pragma unroll
        for (int j = 0; j < columns; ++j) {
          *reinterpret_cast<float2*>(mine + j * 8) = make_float2(sum[i][j][0], sum[i][j][1]);
          *reinterpret_cast<float2*>(mine + 8 * line + j * 8) = make_float2(sum[i][j][2], sum[i][j][3]);
        }
    __syncthreads();
    if constexpr (groups > 1) add_groups<of_group, groups, threads>(sums);
    walk_rows<16 * warps_m, tile_n, line, threads>(
        sums, n0, m_limit, n_limit,
        [&](int row) { return m0 + (Index)(row / 16 * rows * 16 + round * 16 + row % 16); }, out);
    __syncthreads();
  }
}

//@ contract_mma
// Tensor cores (mma.sync). Warps tile the block's tile; a warp owns tile_m / warps_m x tile_n / warps_n of it. Of a long
// depth the sums of every `block` tiles are added to totals, so that an error does not grow with it (0: one block).
template <class T, int tile_m, int tile_n, int tile_k, int warps_m, int warps_n, int stages, class Index, int block = 0,
          class A, class B, class Result>
__device__ __forceinline__ void contract_mma(unsigned char* shared, const A& a, const B& b, const Result& out, Index m0,
                                             Index n0, Index m_limit, Index n_limit, Index k_limit) {
  constexpr bool transposable = sizeof(T) == 2;
  using TileA = matrix_tile<T, tile_m, tile_k, A::along_depth || !transposable>;
  using TileB = matrix_tile<T, tile_n, tile_k, B::along_depth || !transposable>;
  constexpr int threads = 32 * warps_m * warps_n;
  constexpr int warp_rows = tile_m / warps_m, warp_columns = tile_n / warps_n;
  constexpr int rows = warp_rows / 16, columns = warp_columns / 8;
  constexpr int step = 32 / (int)sizeof(T);
  static_assert(warp_rows % 16 == 0 && warp_columns % 16 == 0 && tile_k % step == 0, "a warp multiplies whole fragments");
  const int warp = threadIdx.x / 32;
  const int warp_m = warp / warps_n, warp_n = warp % warps_n;

  float sum[rows][columns][4] = {}, total[block > 0 ? rows : 1][columns][4] = {};
  int tiles = 0;
  contract_pipeline<TileA, TileB, stages, threads>(
      shared, a, b, m0, n0, m_limit, n_limit, k_limit, [&](const T* tile_a, const T* tile_b) {
#pragma unroll
        for (int k = 0; k < tile_k; k += step) {
          u32 fragment_a[rows][4], fragment_b[columns / 2][4];
#pragma unroll
          for (int i = 0; i < rows; ++i) load_fragment_a<TileA>(fragment_a[i], tile_a, warp_m * warp_rows + i * 16, k);
#pragma unroll
          for (int j = 0; j < columns / 2; ++j)
            load_fragment_b<TileB>(fragment_b[j], tile_b, warp_n * warp_columns + j * 16, k);
#pragma unroll
          for (int i = 0; i < rows; ++i)
#pragma unroll
            for (int j = 0; j < columns; ++j)
              mma(sum[i][j], fragment_a[i], fragment_b[j / 2][j % 2 * 2], fragment_b[j / 2][j % 2 * 2 + 1], T{});
        }
        if constexpr (block > 0)
          if (++tiles % block == 0) add_block(total, sum);
      });
  if constexpr (block > 0) {
    add_block(total, sum);
    add_block(sum, total);
  }

  fragments_out<tile_n, warps_m, warps_n, 1>(shared, sum, out, m0, n0, m_limit, n_limit);
}

//@ contract_simt
// Scalar multiply-adds in T (float or double): sixteen threads lie along n, each owns tile_n / 16 neighbouring columns.
// So do several groups of `threads`, which divide the depth of each tile. `block` as above.
template <class T, int tile_m, int tile_n, int tile_k, int threads, int groups, int stages, class Index, int block = 0,
          class A, class B, class Result>
__device__ __forceinline__ void contract_simt(unsigned char* shared, const A& a, const B& b, const Result& out, Index m0,
                                              Index n0, Index m_limit, Index n_limit, Index k_limit) {
  using TileA = plain_tile<T, tile_m, tile_k>;
  using TileB = plain_tile<T, tile_n, tile_k>;
  constexpr int columns = tile_n / 16, rows = tile_m / (threads / 16), depth = tile_k / groups;
  static_assert(columns * 16 == tile_n && rows * (threads / 16) == tile_m, "threads tile the block's tile");
  static_assert(depth * groups == tile_k, "groups divide a tile's depth");
  const int thread = groups == 1 ? (int)threadIdx.x : (int)threadIdx.x % threads;  // of its group
  const int group = groups == 1 ? 0 : (int)threadIdx.x / threads;
  const int first_row = thread / 16 * rows, first_column = thread % 16 * columns;

  T sum[rows][columns] = {}, total[block > 0 ? rows : 1][columns] = {};
  int tiles = 0;
  contract_pipeline<TileA, TileB, stages, threads * groups>(
      shared, a, b, m0, n0, m_limit, n_limit, k_limit, [&](const T* tile_a, const T* tile_b) {
#pragma unroll 4
        for (int i = 0; i < depth; ++i) {
          const int k = group * depth + i;
          const auto x = load<rows, rows < TileA::chunk ? rows : TileA::chunk>(tile_a + TileA::offset(first_row, k));
          const auto y = load<columns, columns < TileB::chunk ? columns : TileB::chunk>(tile_b + TileB::offset(first_column, k));
#pragma unroll
          for (int row = 0; row < rows; ++row)
#pragma unroll
            for (int j = 0; j < columns; ++j) sum[row][j] = fma(x[row], y[j], sum[row][j]);
        }
        if constexpr (block > 0)
          if (++tiles % block == 0) add_block(total, sum);
      });
  if constexpr (block > 0) {
    add_block(total, sum);
    add_block(sum, total);
  }

  constexpr int line = tile_n + 16 / (int)sizeof(T), of_group = threads / 16 * line;
  T* sums = reinterpret_cast<T*>(shared);
#pragma unroll 1
  for (int round = 0; round < rows; ++round) {
    T* mine = sums + group * of_group + thread / 16 * line + first_column;
#pragma unroll
    for (int i = 0; i < rows; ++i)
      if (i == round)
#pragma unroll
        for (int j = 0; j < columns; ++j) mine[j] = sum[i][j];
    __syncthreads();
    if constexpr (groups > 1) add_groups<of_group, groups, threads * groups>(sums);
    walk_rows<threads / 16, tile_n, line, threads * groups>(
        sums, n0, m_limit, n_limit, [&](int row) { return m0 + (Index)(row * rows + round); }, out);
    __syncthreads();
  }
}

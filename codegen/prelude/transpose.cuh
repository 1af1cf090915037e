// A transposition through shared memory: a block reads a tile along its columns as global memory holds them, and gives
// it back along its rows.

//@ transpose_tile
// `word` neighbouring elements of a row move together. The odd number of words in a line and the skew of every 32 rows
// let the lanes of a warp reach different banks on both sides: they write 8 vectors down a column at up to 4 columns,
// and read words along rows.
template <class T, int rows_, int columns_>
struct __align__(16) transpose_tile {
  using type = T;
  static constexpr int rows = rows_, columns = columns_;
  static constexpr int word = sizeof(T) < 4 ? 4 / (int)sizeof(T) : 1;
  static constexpr int line = columns + word;
  T element[rows * line + (rows + 31) / 32 * 4 * word];

  __device__ __forceinline__ T* at(int row, int column) {
    return element + row * line + (int)((u32)row / 32) * 4 * word + column;
  }
  // N elements of `row` from `column` on.
  template <int N>
  __device__ __forceinline__ pack<T, N> get(int row, int column) {
    constexpr int piece = N < word ? N : word;
    pack<T, N> x;
#pragma unroll
    for (int i = 0; i < N; i += piece)
      *reinterpret_cast<pack<T, piece>*>(x.element + i) = *reinterpret_cast<const pack<T, piece>*>(at(row, column + i));
    return x;
  }
  // The same from any column on: the words that hold it, shifted.
  template <int N>
  __device__ __forceinline__ pack<T, N> get_any(int row, int column) {
    pack<T, N> x;
    if constexpr (word == 1 || N % word != 0) {
#pragma unroll
      for (int i = 0; i < N; ++i) x[i] = *at(row, column + i);
    } else {
      const int past = column % word;
      const u32* from = reinterpret_cast<const u32*>(at(row, column - past));
      u32 around[N / word + 1];
#pragma unroll
      for (int i = 0; i <= N / word; ++i) around[i] = from[i];
#pragma unroll
      for (int i = 0; i < N / word; ++i)
        around[i] = __funnelshift_r(around[i], around[i + 1], past * 8 * (int)sizeof(T));
      memcpy(&x, around, sizeof(x));
    }
    return x;
  }
  template <int N>
  __device__ __forceinline__ void put(int row, int column, const pack<T, N>& x) {
    constexpr int piece = N < word ? N : word;
#pragma unroll
    for (int i = 0; i < N; i += piece)
      *reinterpret_cast<pack<T, piece>*>(at(row, column + i)) = *reinterpret_cast<const pack<T, piece>*>(x.element + i);
  }
};

//@ tile_walk
// How `threads` threads go over a tile down its columns: `vector` rows of `group` columns a thread and round. They lie
// along a panel of lanes * vector rows, then along the columns; a round is some columns or panels on.
template <class Tile, int vector, int threads>
struct tile_walk {
  static constexpr int bytes = (int)sizeof(typename Tile::type);
  static constexpr int group = vector > 1 ? Tile::word : 1;   // columns whose elements share a word
  static constexpr int wide = 128 / bytes / vector;           // lanes that move 128 bytes
  static constexpr int fitting = Tile::rows / vector < 32 ? Tile::rows / vector : 32;
  static constexpr int lanes = wide < fitting ? wide : fitting;
  static constexpr int groups = Tile::columns / group;
  static constexpr int slots = Tile::rows / vector * groups;
  static constexpr int rounds = (slots + threads - 1) / threads;
  static constexpr int step = threads / lanes;
  static constexpr int rounds_of_panel = step < groups ? groups / step : 1;
  static constexpr int panels_of_round = step < groups ? 1 : step / groups;
  static_assert(threads % lanes == 0 && groups % (step < groups ? step : groups) == 0, "powers of two");

  const int first_row = (int)(threadIdx.x % lanes + threadIdx.x / lanes / groups * lanes) * vector;
  const int first_column = (int)(threadIdx.x / lanes % groups) * group;
  const bool takes_part = slots >= threads || threadIdx.x < slots;
  __device__ __forceinline__ int row(int round) const {
    return first_row + round / rounds_of_panel * panels_of_round * lanes * vector;
  }
  __device__ __forceinline__ int column(int round) const { return first_column + round % rounds_of_panel * step * group; }
};

//@ fill_part
// See fill_tile; `whole`: the tile is within the limits.
template <int vector, int threads, bool whole, class T, int rows, int columns, class Index, class Load>
__device__ __forceinline__ void fill_part(transpose_tile<T, rows, columns>& tile, Index row_limit, Index column_limit,
                                          Load load) {
  const tile_walk<transpose_tile<T, rows, columns>, vector, threads> walk;
  constexpr int group = walk.group, rounds = walk.rounds;
  constexpr int most = 64 / (group * vector * (int)sizeof(T));
  constexpr int held_rounds = rounds < most ? rounds : most < 1 ? 1 : most > 16 ? 16 : most;
  if (!walk.takes_part) return;
#pragma unroll
  for (int first = 0; first < rounds; first += held_rounds) {
    pack<T, vector> held[held_rounds][group];
#pragma unroll
    for (int i = 0; i < held_rounds; ++i) {
      const int row = walk.row(first + i), column = walk.column(first + i);
#pragma unroll
      for (int g = 0; g < group; ++g)
        held[i][g] = whole || (row < row_limit && column + g < column_limit) ? load(row, column + g)
                                                                             : pack<T, vector>{};
    }
#pragma unroll
    for (int i = 0; i < held_rounds; ++i) {
      const int row = walk.row(first + i), column = walk.column(first + i);
#pragma unroll
      for (int j = 0; j < vector; ++j) {
        pack<T, group> part;
#pragma unroll
        for (int g = 0; g < group; ++g) part[g] = held[i][g][j];
        tile.put(row + j, column, part);
      }
    }
  }
}

//@ fill_tile
// The share of one of `threads` threads in filling a tile. load(row, column) gives `vector` elements of a column from
// `row` on; what is beyond the limits becomes 0. Loads come before the writes that wait for them. Narrow loads are
// bound by their instructions: they are only checked in tiles at the edges.
template <int vector, int threads, class T, int rows, int columns, class Index, class Load>
__device__ __forceinline__ void fill_tile(transpose_tile<T, rows, columns>& tile, Index row_limit, Index column_limit,
                                          Load load) {
  if (vector * (int)sizeof(T) < 16 && row_limit >= rows && column_limit >= columns) {
    fill_part<vector, threads, true>(tile, row_limit, column_limit, load);
  } else {
    fill_part<vector, threads, false>(tile, row_limit, column_limit, load);
  }
}

//@ flush_tile
// The way back: store(row, column, x) takes `vector` elements of a column from `row` on, within the limits.
template <int vector, int threads, class T, int rows, int columns, class Index, class Store>
__device__ __forceinline__ void flush_tile(transpose_tile<T, rows, columns>& tile, Index row_limit, Index column_limit,
                                           Store store) {
  const tile_walk<transpose_tile<T, rows, columns>, vector, threads> walk;
  constexpr int group = walk.group, rounds = walk.rounds;
  if (!walk.takes_part) return;
#pragma unroll
  for (int round = 0; round < rounds; ++round) {
    const int row = walk.row(round), column = walk.column(round);
    pack<T, vector> x[group];
#pragma unroll
    for (int j = 0; j < vector; ++j) {
      const pack<T, group> part = tile.template get<group>(row + j, column);
#pragma unroll
      for (int g = 0; g < group; ++g) x[g][j] = part[g];
    }
#pragma unroll
    for (int g = 0; g < group; ++g)
      if (row < row_limit && column + g < column_limit) store(row, column + g, x[g]);
  }
}

//@ put_piece
// Elements j … j + N - 1 of x to p, which is aligned to so many, as j is.
template <int N, class T, int M>
__device__ __forceinline__ void put_piece(T* p, const pack<T, M>& x, int j) {
  *reinterpret_cast<pack<T, N>*>(p) = *reinterpret_cast<const pack<T, N>*>(x.element + j);
}

//@ fill_flat
// The share of one of `threads` threads in `slots` vectors of a flat tile: load(slot) gives one, put(slot, x) leaves its
// elements in their places. Loads come before the writes that wait for them.
template <class T, int vector, int slots, int threads, class Load, class Put>
__device__ __forceinline__ void fill_flat(Load load, Put put) {
  constexpr int rounds = (slots + threads - 1) / threads, most = 64 / (vector * (int)sizeof(T));
  constexpr int held_rounds = rounds < most ? rounds : most < 1 ? 1 : most > 16 ? 16 : most;
  constexpr bool whole = slots % (held_rounds * threads) == 0;
#pragma unroll 1
  for (int first = 0; first < rounds; first += held_rounds) {
    pack<T, vector> held[held_rounds];
#pragma unroll
    for (int i = 0; i < held_rounds; ++i) {
      const u32 slot = (u32)((first + i) * threads) + threadIdx.x;
      if (whole || slot < slots) held[i] = load(slot);
    }
#pragma unroll
    for (int i = 0; i < held_rounds; ++i) {
      const u32 slot = (u32)((first + i) * threads) + threadIdx.x;
      if (whole || slot < slots) put(slot, held[i]);
    }
  }
}

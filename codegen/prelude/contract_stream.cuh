// The main loop of Contract kernels with few rows or few columns. Each element of the other operand, the matrix, is
// needed by one warp only: it goes from memory to that warp's registers, in the order in which a lane holds a fragment, and
// no shared memory or barrier stands between. The warps of a block divide the depth; shared memory adds up their sums.
//
// A chunk is 32 steps of the depth. Lane 4g + t has steps [8t, 8t + 8) of rows g and g + 8 of the matrix and of row g of
// the few: eight neighbouring elements of K-major operands. The two mma of a chunk take halves of these eight, so they
// pair the same steps of both operands in another order than the instruction's own, which no sum notices. Of a matrix
// that is narrower in memory a lane has more neighbours, 16 bytes at once, and a chunk has more steps; what is loaded is
// kept as it is, a turn ahead, and becomes 16-bit elements when it is multiplied.

//@ stream_elements
// Eight steps of one row, from `depth` on; zeros beyond the limit where `guarded`.
template <bool guarded, class T, class Operand, class Index>
__device__ __forceinline__ pack<T, 8> stream_elements(const Operand& source, Index outer, Index depth, Index k_limit) {
  constexpr int vector = Operand::along_depth ? Operand::vector : 1;
  static_assert(Operand::vector == vector, "rows that do not run along the depth are read element by element");
  pack<T, 8> all;
#pragma unroll
  for (int j = 0; j < 8; j += vector) {
    pack<T, vector> x = {};
    if (!guarded || depth + j < k_limit) x = source.get(outer, depth + j);
#pragma unroll
    for (int i = 0; i < vector; ++i) all[j + i] = x[i];
  }
  return all;
}

//@ stream_few
// Eight steps of row g of each eight rows.
template <bool guarded, class T, int groups, class Operand, class Index>
__device__ __forceinline__ void stream_few(pack<T, 8> (&x)[groups], const Operand& source, Index outer0, Index depth,
                                           Index limit, Index k_limit) {
#pragma unroll
  for (int i = 0; i < groups; ++i) {
    const Index outer = outer0 + i * 8 + (int)threadIdx.x % 32 / 4;
    x[i] = stream_elements<guarded, T>(source, outer < limit ? outer : limit - 1, depth, k_limit);
  }
}

//@ stream_flag
template <bool value_>
struct stream_flag {
  static constexpr bool value = value_;
};

//@ stream_word
// Elements 2i and 2i + 1.
template <class T, int n>
__device__ __forceinline__ u32 stream_word(const pack<T, n>& x, int i) {
  u32 word;
  memcpy(&word, &x.element[2 * i], 4);
  return word;
}

//@ stream_matrix stream_rows stream_columns
// A lane's share of `wide` rows of the matrix in a chunk, as fragments for mma. Rows along the depth: as above.
template <class T, int wide, class Operand>
struct stream_rows {
  static constexpr int fragments = wide / 16;
  pack<T, 8> rows[fragments][2];

  // Where row g + 8 * half of a fragment lies in the tile.
  static __device__ __forceinline__ int row_of(int fragment, int g, int half) { return fragment * 16 + half * 8 + g; }
  template <bool guarded, class Index>
  __device__ __forceinline__ void load(const Operand& source, Index outer0, Index depth, Index limit, Index k_limit) {
    const int g = (int)threadIdx.x % 32 / 4;
#pragma unroll
    for (int f = 0; f < fragments; ++f)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const Index outer = outer0 + row_of(f, g, half);  // rows beyond the limit read the last one: nobody stores them
        rows[f][half] = stream_elements<guarded, T>(source, outer < limit ? outer : limit - 1, depth, k_limit);
      }
  }
  __device__ __forceinline__ void fragment(u32 (&a)[4], int f, int step) const {
    a[0] = stream_word(rows[f][0], 2 * step);
    a[1] = stream_word(rows[f][1], 2 * step);
    a[2] = stream_word(rows[f][0], 2 * step + 1);
    a[3] = stream_word(rows[f][1], 2 * step + 1);
  }
};
// Rows across the depth: a lane reads `vector` neighbouring rows at each of its eight steps. Two of them are rows g and
// g + 8 of a fragment; a byte permutation brings neighbouring steps into one register.
template <class T, int wide, class Operand>
struct stream_columns {
  static constexpr int vector = Operand::vector;
  static constexpr int groups = wide / (8 * vector), fragments = wide / 16;
  pack<T, vector> steps[groups][8];

  static __device__ __forceinline__ int row_of(int fragment, int g, int half) {
    constexpr int of_group = vector / 2;
    return fragment / of_group * 8 * vector + g * vector + fragment % of_group * 2 + half;
  }
  template <bool guarded, class Index>
  __device__ __forceinline__ void load(const Operand& source, Index outer0, Index depth, Index limit, Index k_limit) {
    const int g = (int)threadIdx.x % 32 / 4;
    __builtin_assume(depth >= 0);  // a step's half is then known: two lie in one byte
#pragma unroll
    for (int i = 0; i < groups; ++i) {
      const Index outer = outer0 + i * 8 * vector + g * vector;
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        steps[i][j] = pack<T, vector>{};
        if (!guarded || depth + j < k_limit) steps[i][j] = source.get(outer < limit ? outer : limit - vector, depth + j);
      }
    }
  }
  __device__ __forceinline__ void fragment(u32 (&a)[4], int f, int step) const {
    const auto& of = steps[f / (vector / 2)];
    const int word = f % (vector / 2);
#pragma unroll
    for (int pair = 0; pair < 2; ++pair) {
      const u32 first = stream_word(of[4 * step + 2 * pair], word), second = stream_word(of[4 * step + 2 * pair + 1], word);
      a[2 * pair] = __byte_perm(first, second, 0x5410);
      a[2 * pair + 1] = __byte_perm(first, second, 0x7632);
    }
  }
};
template <bool rows, class T, int wide, class Operand>
struct stream_matrix : stream_rows<T, wide, Operand> {};
template <class T, int wide, class Operand>
struct stream_matrix<false, T, wide, Operand> : stream_columns<T, wide, Operand> {};

//@ stream_sums
// The sums of a warp's chunks, of which those of a turn are loaded together.
template <class Fragments, class T, int wide, int warps, int unroll, int block, int columns, class Index, class Matrix,
          class Few>
__device__ __forceinline__ void stream_sums(float (&sum)[wide / 16][columns][4],
                                            float (&total)[block > 0 ? wide / 16 : 1][columns][4], const Matrix& matrix,
                                            const Few& vectors, Index wide0, Index few0, Index wide_limit,
                                            Index few_limit, Index k_limit) {
  constexpr int fragments = wide / 16, chunk = 32;
  const int warp = (int)threadIdx.x / 32, t = (int)threadIdx.x % 4;
  const auto multiply = [&](const Fragments& m, const pack<T, 8> (&x)[columns]) {
#pragma unroll
    for (int step = 0; step < 2; ++step)
#pragma unroll
      for (int f = 0; f < fragments; ++f) {
        u32 a[4];
        m.fragment(a, f, step);
#pragma unroll
        for (int c = 0; c < columns; ++c)
          mma(sum[f][c], a, stream_word(x[c], 2 * step), stream_word(x[c], 2 * step + 1), T{});
      }
  };

  const Index chunks = k_limit / chunk, whole = chunks / unroll * unroll;
  int turns = 0;
#pragma unroll 1
  for (Index first = warp * unroll; first < whole; first += warps * unroll) {
    Fragments m[unroll];
    pack<T, 8> x[unroll][columns];
#pragma unroll
    for (int u = 0; u < unroll; ++u) {
      const Index depth = (first + u) * chunk + t * 8;
      m[u].template load<false>(matrix, wide0, depth, wide_limit, k_limit);
      stream_few<false>(x[u], vectors, few0, depth, few_limit, k_limit);
    }
#pragma unroll
    for (int u = 0; u < unroll; ++u) multiply(m[u], x[u]);
    if constexpr (block > 0)
      if (++turns % (block / unroll > 0 ? block / unroll : 1) == 0) add_block(total, sum);
  }
#pragma unroll 1
  for (Index at = whole + warp; at * chunk < k_limit; at += warps) {
    Fragments m;
    pack<T, 8> x[columns];
    const Index depth = at * chunk + t * 8;
    m.template load<true>(matrix, wide0, depth, wide_limit, k_limit);
    stream_few<true>(x, vectors, few0, depth, few_limit, k_limit);
    multiply(m, x);
  }
}

//@ stream_spans
// A lane's share of `wide` rows of a matrix that is loaded ahead, as it lies in memory: `span` steps of each.
template <class T, int wide, class Operand, class Index>
struct stream_spans {
  static constexpr int fragments = wide / 16, vector = Operand::vector;
  static constexpr int span = vector > 8 ? vector : 8, pieces = span / vector;
  decltype((*(const Operand*)nullptr).load(Index(), Index())) loaded[fragments][2][pieces];

  static __device__ __forceinline__ int row_of(int fragment, int g, int half) { return fragment * 16 + half * 8 + g; }
  static __device__ __forceinline__ Index outer_of(int f, int half, Index outer0, Index limit) {
    const Index outer = outer0 + row_of(f, (int)threadIdx.x % 32 / 4, half);
    return outer < limit ? outer : limit - 1;  // rows beyond the limit read the last one: nobody stores them
  }
  template <bool guarded>
  __device__ __forceinline__ void load(const Operand& source, Index outer0, Index depth, Index limit, Index k_limit) {
#pragma unroll
    for (int f = 0; f < fragments; ++f)
#pragma unroll
      for (int half = 0; half < 2; ++half)
#pragma unroll
        for (int i = 0; i < pieces; ++i)
          if (!guarded || depth + i * vector < k_limit)
            loaded[f][half][i] = source.load(outer_of(f, half, outer0, limit), depth + i * vector);
  }
  // The elements of a row, zeros beyond the limit where `guarded`.
  template <bool guarded>
  __device__ __forceinline__ pack<T, span> row(const Operand& source, int f, int half, Index outer0, Index depth,
                                               Index limit, Index k_limit) const {
    pack<T, span> all = {};
#pragma unroll
    for (int i = 0; i < pieces; ++i) {
      if (guarded && depth + i * vector >= k_limit) break;
      const auto x = source.value(outer_of(f, half, outer0, limit), depth + i * vector, loaded[f][half][i]);
      memcpy(all.element + i * vector, x.element, sizeof(x));
    }
    return all;
  }
};

//@ stream_sums_ahead
// The sums of a warp's chunks where the matrix is loaded a turn ahead.
template <class T, int wide, int warps, int unroll, int block, int columns, class Index, class Matrix, class Few>
__device__ __forceinline__ void stream_sums_ahead(float (&sum)[wide / 16][columns][4],
                                                  float (&total)[block > 0 ? wide / 16 : 1][columns][4],
                                                  const Matrix& matrix, const Few& vectors, Index wide0, Index few0,
                                                  Index wide_limit, Index few_limit, Index k_limit) {
  using Spans = stream_spans<T, wide, Matrix, Index>;
  constexpr int span = Spans::span, chunk = 4 * span, stride = warps * unroll;
  const int warp = (int)threadIdx.x / 32, t = (int)threadIdx.x % 4;
  const auto depth_of = [&](Index at) { return at * chunk + t * span; };
  const auto multiply = [&](auto guarded, const Spans& m, Index depth) {
    constexpr bool checks = decltype(guarded)::value;
    pack<T, 8> x[span / 8][columns];
#pragma unroll
    for (int q = 0; q < span / 8; ++q) stream_few<checks>(x[q], vectors, few0, depth + 8 * q, few_limit, k_limit);
#pragma unroll
    for (int f = 0; f < wide / 16; ++f) {
      const pack<T, span> upper = m.template row<checks>(matrix, f, 0, wide0, depth, wide_limit, k_limit),
                          lower = m.template row<checks>(matrix, f, 1, wide0, depth, wide_limit, k_limit);
#pragma unroll
      for (int step = 0; step < span / 4; ++step) {
        const u32 a[4] = {stream_word(upper, 2 * step), stream_word(lower, 2 * step), stream_word(upper, 2 * step + 1),
                          stream_word(lower, 2 * step + 1)};
#pragma unroll
        for (int c = 0; c < columns; ++c) {
          const pack<T, 8>& b = x[step / 2][c];
          mma(sum[f][c], a, stream_word(b, step % 2 * 2), stream_word(b, step % 2 * 2 + 1), T{});
        }
      }
    }
  };
  const Index chunks = k_limit / chunk, whole = chunks / unroll * unroll;
  int turns = 0;
  Spans next[unroll];
  const auto load = [&](Index first) {
#pragma unroll
    for (int u = 0; u < unroll; ++u)
      next[u].template load<false>(matrix, wide0, depth_of(first + u), wide_limit, k_limit);
  };
  if (warp * unroll < whole) load(warp * unroll);
#pragma unroll 1
  for (Index first = warp * unroll; first < whole; first += stride) {
    Spans m[unroll];
#pragma unroll
    for (int u = 0; u < unroll; ++u) m[u] = next[u];
    if (first + stride < whole) load(first + stride);
#pragma unroll
    for (int u = 0; u < unroll; ++u) multiply(stream_flag<false>{}, m[u], depth_of(first + u));
    if constexpr (block > 0)
      if (++turns % (block / unroll > 0 ? block / unroll : 1) == 0) add_block(total, sum);
  }
  if (whole * chunk >= k_limit) return;  // known where the depth is
#pragma unroll 1
  for (Index at = whole + warp; at * chunk < k_limit; at += warps) {
    Spans m;
    m.template load<true>(matrix, wide0, depth_of(at), wide_limit, k_limit);
    multiply(stream_flag<true>{}, m, depth_of(at));
  }
}

//@ contract_stream
// `few_are_rows`: the result's rows are those of `few`, its columns those of the matrix; else the other way round. Of a
// long depth the sums of every `block` chunks are added to totals (0: one block).
template <class T, int wide, int few, int warps, int unroll, bool few_are_rows, class Index, int block = 0, class Matrix,
          class Few, class Result>
__device__ __forceinline__ void contract_stream(unsigned char* shared, const Matrix& matrix, const Few& vectors,
                                                const Result& out, Index wide0, Index few0, Index wide_limit,
                                                Index few_limit, Index k_limit) {
  using Fragments = stream_matrix<Matrix::along_depth || Matrix::vector == 1, T, wide, Matrix>;
  constexpr int fragments = wide / 16, columns = few / 8;
  const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32, g = lane / 4, t = lane % 4;

  float sum[fragments][columns][4] = {}, total[block > 0 ? fragments : 1][columns][4] = {};
  if constexpr (Matrix::ahead && Matrix::along_depth) {
    stream_sums_ahead<T, wide, warps, unroll, block>(sum, total, matrix, vectors, wide0, few0, wide_limit, few_limit,
                                                     k_limit);
  } else {
    stream_sums<Fragments, T, wide, warps, unroll, block>(sum, total, matrix, vectors, wide0, few0, wide_limit, few_limit,
                                                          k_limit);
  }
  if constexpr (block > 0) {
    add_block(total, sum);
    add_block(sum, total);
  }

  constexpr int tile_m = few_are_rows ? few : wide, tile_n = few_are_rows ? wide : few, line = tile_n + 4;
  float* sums = reinterpret_cast<float*>(shared);
#pragma unroll
  for (int f = 0; f < fragments; ++f)
#pragma unroll
    for (int c = 0; c < columns; ++c)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int w = Fragments::row_of(f, g, i / 2), x = c * 8 + 2 * t + i % 2;
        sums[(warp * tile_m + (few_are_rows ? x : w)) * line + (few_are_rows ? w : x)] = sum[f][c][i];
      }
  __syncthreads();
  constexpr int vector = Result::vector;
  constexpr int aligned = vector < 4 ? vector : 4;
#pragma unroll 1
  for (int slot = threadIdx.x; slot < tile_m * (tile_n / vector); slot += 32 * warps) {
    const int row = slot / (tile_n / vector), column = slot % (tile_n / vector) * vector;
    const Index m = (few_are_rows ? few0 : wide0) + row, n = (few_are_rows ? wide0 : few0) + column;
    if (m >= (few_are_rows ? few_limit : wide_limit) || n >= (few_are_rows ? wide_limit : few_limit)) continue;
    auto all = load<vector, aligned>(sums + row * line + column);
#pragma unroll
    for (int w = 1; w < warps; ++w) {
      const auto part = load<vector, aligned>(sums + (w * tile_m + row) * line + column);
#pragma unroll
      for (int i = 0; i < vector; ++i) all[i] += part[i];
    }
    out.put(m, n, all);
  }
}

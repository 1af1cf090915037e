// The main loops of Attend kernels: sum over j of weight(i, j) v(j, e) without the matrix of weights. A block owns a tile of
// queries and walks over tiles of keys with the online softmax of M. Milakov and N. Gimelshein (2018): a row keeps its
// maximum so far, and what it has summed is multiplied by a ratio of weights whenever that maximum grows.

//@ softmax make_softmax
// What generated code says of the weights: score(i, j, q k) is s, shift(i, maximum of s) is c, weight(i, s, c) is
// exp(s - c), and factor(i, j, w) what multiplies v; only a factor that `varies` looks at j.
template <bool has_maximum_, bool shifted_, bool varies_, class Score, class Shift, class Weight, class Factor>
struct softmax {
  static constexpr bool has_maximum = has_maximum_, shifted = shifted_, varies = varies_;
  Score score;
  Shift shift;
  Weight weight;
  Factor factor;
};
template <bool has_maximum, bool shifted, bool varies, class Score, class Shift, class Weight, class Factor>
__device__ __forceinline__ softmax<has_maximum, shifted, varies, Score, Shift, Weight, Factor> make_softmax(
    Score score, Shift shift, Weight weight, Factor factor) {
  return {score, shift, weight, factor};
}

//@ minus_infinity
__device__ __forceinline__ float minus_infinity(float) { return -inf_f32(); }
__device__ __forceinline__ double minus_infinity(double) { return -inf_f64(); }

//@ near_keys
// A number that bounds keys, within what sums with it leave in 64 bits: no key lies so far.
__device__ __forceinline__ i64 near_keys(i64 x) {
  constexpr i64 far = (i64)1 << 62;
  return x < -far ? -far : x > far ? far : x;
}

//@ ends_by begins_at
// The end of a range of keys that do not lie behind `last`, and its beginning, of keys from `first` on.
template <class Index>
__device__ __forceinline__ Index ends_by(Index end, i64 last) {
  return last >= (i64)end ? end : last < 0 ? (Index)0 : (Index)last + 1;
}
template <class Index>
__device__ __forceinline__ Index begins_at(Index begin, i64 first, Index end) {
  return first <= (i64)begin ? begin : first < (i64)end ? (Index)first : end;
}

//@ softmax_row
template <class F>
struct softmax_row {
  F top = minus_infinity(F{});  // the maximum of the scores so far
  F shift = 0, sum = 0;

  // Takes in the maximum of further scores; the factor for all that was summed with the old one. Before there is a score
  // above -inf nothing was summed, and the ratio of weights may be anything.
  template <class Softmax, class Index>
  __device__ __forceinline__ F advance(const Softmax& softmax, Index i, F block_top) {
    F ratio = 1;
    if constexpr (Softmax::has_maximum) {
      const bool first = top == minus_infinity(F{});
      top = maximum(top, block_top);
      if constexpr (Softmax::shifted) {
        const F before = shift;
        shift = softmax.shift(i, top);
        ratio = first ? (F)0 : softmax.weight(i, before, shift);
        sum *= ratio;
      }
    }
    return ratio;
  }
  // While all scores are -inf, weights wait: a later maximum makes them 0.
  template <class Softmax, class Index>
  __device__ __forceinline__ F weigh(const Softmax& softmax, Index i, F score) const {
    if (Softmax::shifted && top == minus_infinity(F{})) return 0;
    return softmax.weight(i, score, shift);
  }
  // The weight of each key of a row that saw no score above -inf: 0, or NaN where c is not guarded against -inf.
  template <class Softmax, class Index>
  __device__ __forceinline__ F unseen(const Softmax& softmax, Index i, Index keys) const {
    if (!Softmax::shifted || keys == 0 || !(top == minus_infinity(F{}))) return 0;
    return softmax.weight(i, top, softmax.shift(i, top));
  }
};

//@ walk_queries
// Hands rows of sums in shared memory, and the maximum and the sum of their weights, to `out`.
template <int rows, int columns, int line, int threads, class F, class Index, class Row, class Result>
__device__ __forceinline__ void walk_queries(const F* sums, const F* tops, const F* totals, Index e0, Index i_limit,
                                             Index e_limit, Row i_of, const Result& out) {
  constexpr int vector = Result::vector;
  constexpr int aligned = vector * (int)sizeof(F) > 16 ? 16 / (int)sizeof(F) : vector;
#pragma unroll 1
  for (int slot = threadIdx.x; slot < rows * (columns / vector); slot += threads) {
    const int row = slot / (columns / vector), column = slot % (columns / vector) * vector;
    const Index i = i_of(row), e = e0 + column;
    if (i < i_limit && e < e_limit)
      out.put(i, e, tops[row], totals[row], load<vector, aligned>(sums + row * line + column));
  }
}

//@ pack_pair
// Two f32 as neighbouring 16-bit elements of a fragment.
__device__ __forceinline__ u32 pack_pair(float low, float high, f16) {
  return (u32)f32_to_f16(low).bits | (u32)f32_to_f16(high).bits << 16;
}
__device__ __forceinline__ u32 pack_pair(float low, float high, bf16) {
#if __CUDA_ARCH__ >= 800
  u32 pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
#else
  return (u32)f32_to_bf16(low).bits | (u32)f32_to_bf16(high).bits << 16;
#endif
}

//@ attend_mma
// Tensor cores (mma.sync): a warp owns 16 queries. `depth` and `width` are the extents of d and e, padded to 16 with zeros.
template <class T, int tile_q, int tile_kv, int depth, int width, class Index, class Q, class K, class V, class Softmax,
          class Result>
__device__ __forceinline__ void attend_mma(unsigned char* shared, const Q& q, const K& k, const V& v, const Softmax& softmax,
                                           const Result& out, Index i0, Index first_key, Index last_key, Index i_limit,
                                           Index j_limit, Index d_limit, Index e_limit) {
  using TileQ = matrix_tile<T, tile_q, depth, true>;
  using TileK = matrix_tile<T, tile_kv, depth, true>;
  using TileV = matrix_tile<T, width, tile_kv, false>;
  constexpr int threads = tile_q * 2;
  constexpr bool q_in_registers = depth <= 128;
  T* queries = reinterpret_cast<T*>(shared);
  T* keys = queries + TileQ::size;
  T* values = keys + TileK::size;
  tile_loader<TileQ, Q, threads, Index> load_q(q, i_limit, d_limit);
  tile_loader<TileK, K, threads, Index> load_k(k, j_limit, d_limit);
  tile_loader<TileV, V, threads, Index> load_v(v, e_limit, j_limit);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  // The two rows of a thread's fragments; rows beyond the last query repeat it and are not stored.
  Index i[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    i[r] = i0 + warp * 16 + lane / 4 + r * 8;
    i[r] = i[r] < i_limit ? i[r] : i_limit - 1;
  }

  load_q.fill(queries, i0, (Index)0);
  if (first_key < last_key) load_k.fill(keys, first_key, (Index)0);
  commit_copies();
  wait_copies<0>();
  __syncthreads();
  u32 fragment_q[q_in_registers ? depth / 16 : 1][4];
  if constexpr (q_in_registers) {
#pragma unroll
    for (int step = 0; step < depth / 16; ++step) load_fragment_a<TileQ>(fragment_q[step], queries, warp * 16, step * 16);
  }

  softmax_row<float> row[2];
  float sum[width / 8][4] = {};
#pragma unroll 1
  for (Index j0 = first_key; j0 < last_key; j0 += tile_kv) {
    wait_copies<0>();
    __syncthreads();  // these keys are there, and the values before were read
    load_v.fill(values, (Index)0, j0);
    commit_copies();

    float s[tile_kv / 8][4] = {};
#pragma unroll
    for (int step = 0; step < depth / 16; ++step) {
      constexpr int last = q_in_registers ? depth / 16 - 1 : 0;
      u32(&a)[4] = fragment_q[step < last ? step : last];
      if constexpr (!q_in_registers) load_fragment_a<TileQ>(a, queries, warp * 16, step * 16);
#pragma unroll
      for (int n = 0; n < tile_kv / 16; ++n) {
        u32 b[4];
        load_fragment_b<TileK>(b, keys, n * 16, step * 16);
        mma(s[2 * n], a, b[0], b[1], T{});
        mma(s[2 * n + 1], a, b[2], b[3], T{});
      }
    }

    float top[2] = {minus_infinity(0.0f), minus_infinity(0.0f)};
#pragma unroll
    for (int n = 0; n < tile_kv / 8; ++n)
#pragma unroll
      for (int x = 0; x < 4; ++x) {
        const Index j = j0 + n * 8 + lane % 4 * 2 + x % 2;
        s[n][x] = j < j_limit ? (float)softmax.score(i[x / 2], j, s[n][x]) : minus_infinity(0.0f);
        if constexpr (Softmax::has_maximum) top[x / 2] = maximum(top[x / 2], s[n][x]);
      }
    float ratio[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      if constexpr (Softmax::has_maximum) {
        top[r] = maximum(top[r], __shfl_xor_sync(~0u, top[r], 1));
        top[r] = maximum(top[r], __shfl_xor_sync(~0u, top[r], 2));
      }
      ratio[r] = row[r].advance(softmax, i[r], top[r]);
    }
#pragma unroll
    for (int n = 0; n < tile_kv / 8; ++n)
#pragma unroll
      for (int x = 0; x < 4; ++x) {
        s[n][x] = row[x / 2].weigh(softmax, i[x / 2], s[n][x]);
        row[x / 2].sum += s[n][x];
      }
    if constexpr (Softmax::shifted) {
#pragma unroll
      for (int n = 0; n < width / 8; ++n)
#pragma unroll
        for (int x = 0; x < 4; ++x) sum[n][x] *= ratio[x / 2];
    }

    wait_copies<0>();
    __syncthreads();  // the values are there, and the keys were read
    if (j0 + tile_kv < last_key) load_k.fill(keys, j0 + tile_kv, (Index)0);
    commit_copies();
#pragma unroll
    for (int step = 0; step < tile_kv / 16; ++step) {
      u32 a[4];  // two neighbouring fragments of s are one of the next product's first operand
#pragma unroll
      for (int x = 0; x < 4; ++x) {
        float* pair = &s[2 * step + x / 2][x % 2 * 2];
#pragma unroll
        for (int y = 0; y < 2; ++y) {
          const Index j = j0 + step * 16 + x / 2 * 8 + lane % 4 * 2 + y;
          if (!Softmax::varies || j < j_limit) pair[y] = softmax.factor(i[x % 2], j, pair[y]);
        }
        a[x] = pack_pair(pair[0], pair[1], T{});
      }
#pragma unroll
      for (int n = 0; n < width / 16; ++n) {
        u32 b[4];
        load_fragment_b<TileV>(b, values, n * 16, step * 16);
        mma(sum[2 * n], a, b[0], b[1], T{});
        mma(sum[2 * n + 1], a, b[2], b[3], T{});
      }
    }
  }

#pragma unroll
  for (int r = 0; r < 2; ++r) {
    row[r].sum += __shfl_xor_sync(~0u, row[r].sum, 1);
    row[r].sum += __shfl_xor_sync(~0u, row[r].sum, 2);
    const float unseen = row[r].unseen(softmax, i[r], j_limit);
    row[r].sum += unseen;
#pragma unroll
    for (int n = 0; n < width / 8; ++n)
#pragma unroll
      for (int x = 0; x < 2; ++x) sum[n][2 * r + x] += unseen;
  }

  // The results leave in rounds of some columns, so that the epilogue's code stands here once.
  constexpr int columns = width % 64 == 0 ? 64 : width % 32 == 0 ? 32 : 16;
  constexpr int line = columns + 8;
  float* sums = reinterpret_cast<float*>(shared);
  float* tops = sums + tile_q * line;
  float* totals = tops + tile_q;
#pragma unroll 1
  for (int round = 0; round < width / columns; ++round) {
    __syncthreads();
    float* mine = sums + (warp * 16 + lane / 4) * line + lane % 4 * 2;
#pragma unroll
    for (int n = 0; n < width / 8; ++n)
      if (n / (columns / 8) == round) {
        float* at = mine + n % (columns / 8) * 8;
        *reinterpret_cast<float2*>(at) = make_float2(sum[n][0], sum[n][1]);
        *reinterpret_cast<float2*>(at + 8 * line) = make_float2(sum[n][2], sum[n][3]);
      }
    if (lane % 4 == 0) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        tops[warp * 16 + lane / 4 + r * 8] = row[r].top;
        totals[warp * 16 + lane / 4 + r * 8] = row[r].sum;
      }
    }
    __syncthreads();
    walk_queries<tile_q, columns, line, threads>(
        sums, tops, totals, (Index)(round * columns), i_limit, e_limit, [&](int r) { return i0 + r; }, out);
  }
}

//@ attend_simt
// Scalar multiply-adds in F (float or double), for `width` columns of v from e0 on. Sixteen threads share four queries; q,
// k and v pass through shared memory sixteen steps at a time, the weights of a tile once.
template <class F, int tile_q, int tile_kv, int width, class Index, class Q, class K, class V, class Softmax, class Result>
__device__ __forceinline__ void attend_simt(unsigned char* shared, const Q& q, const K& k, const V& v, const Softmax& softmax,
                                            const Result& out, Index i0, Index e0, Index first_key, Index last_key,
                                            Index i_limit, Index j_limit, Index d_limit, Index e_limit) {
  constexpr int chunk = 16, rows = 4, columns = tile_kv / 16, widths = width / 16;
  using TileQ = plain_tile<F, tile_q, chunk>;
  using TileK = plain_tile<F, tile_kv, chunk>;
  using TileV = plain_tile<F, width, chunk>;
  using TileP = plain_tile<F, tile_q, tile_kv>;
  constexpr int threads = tile_q / rows * 16;
  constexpr int wide = 16 / (int)sizeof(F);
  F* weights = reinterpret_cast<F*>(shared);
  F* queries = weights + TileP::size;
  F* keys = queries + TileQ::size;
  F* values = queries;
  tile_loader<TileQ, Q, threads, Index> load_q(q, i_limit, d_limit);
  tile_loader<TileK, K, threads, Index> load_k(k, j_limit, d_limit);
  tile_loader<TileV, V, threads, Index> load_v(v, e_limit, j_limit);
  const int first_row = (int)threadIdx.x / 16 * rows, x = (int)threadIdx.x % 16;
  Index i[rows];
#pragma unroll
  for (int r = 0; r < rows; ++r) {
    i[r] = i0 + first_row + r;
    i[r] = i[r] < i_limit ? i[r] : i_limit - 1;
  }

  softmax_row<F> row[rows];
  F sum[rows][widths] = {};
#pragma unroll 1
  for (Index j0 = first_key; j0 < last_key; j0 += tile_kv) {
    F s[rows][columns] = {};
#pragma unroll 1
    for (Index d0 = 0; d0 < d_limit; d0 += chunk) {
      __syncthreads();
      load_q.fill(queries, i0, d0);
      load_k.fill(keys, j0, d0);
      commit_copies();
      wait_copies<0>();
      __syncthreads();
#pragma unroll 4
      for (int d = 0; d < chunk; ++d) {
        const auto a = load<rows, wide>(queries + TileQ::offset(first_row, d));
        const auto b = load<columns, columns < wide ? columns : wide>(keys + TileK::offset(x * columns, d));
#pragma unroll
        for (int r = 0; r < rows; ++r)
#pragma unroll
          for (int c = 0; c < columns; ++c) s[r][c] = fma(a[r], b[c], s[r][c]);
      }
    }

#pragma unroll
    for (int r = 0; r < rows; ++r) {
      F top = minus_infinity(F{});
#pragma unroll
      for (int c = 0; c < columns; ++c) {
        const Index j = j0 + x * columns + c;
        s[r][c] = j < j_limit ? (F)softmax.score(i[r], j, s[r][c]) : minus_infinity(F{});
        if constexpr (Softmax::has_maximum) top = maximum(top, s[r][c]);
      }
      if constexpr (Softmax::has_maximum) {
#pragma unroll
        for (int mask = 8; mask > 0; mask /= 2) top = maximum(top, __shfl_xor_sync(~0u, top, mask));
      }
      const F ratio = row[r].advance(softmax, i[r], top);
      if constexpr (Softmax::shifted) {
#pragma unroll
        for (int c = 0; c < widths; ++c) sum[r][c] *= ratio;
      }
#pragma unroll
      for (int c = 0; c < columns; ++c) {
        const F w = row[r].weigh(softmax, i[r], s[r][c]);
        row[r].sum += w;
        const Index j = j0 + x * columns + c;
        weights[TileP::offset(first_row + r, x * columns + c)] =
            !Softmax::varies || j < j_limit ? (F)softmax.factor(i[r], j, w) : w;
      }
    }

#pragma unroll 1
    for (int part = 0; part < tile_kv; part += chunk) {
      __syncthreads();
      load_v.fill(values, e0, j0 + part);
      commit_copies();
      wait_copies<0>();
      __syncthreads();
#pragma unroll 4
      for (int j = 0; j < chunk; ++j) {
        const auto a = load<rows, wide>(weights + TileP::offset(first_row, part + j));
        const auto b = load<widths, widths < wide ? widths : wide>(values + TileV::offset(x * widths, j));
#pragma unroll
        for (int r = 0; r < rows; ++r)
#pragma unroll
          for (int c = 0; c < widths; ++c) sum[r][c] = fma(a[r], b[c], sum[r][c]);
      }
    }
    __syncthreads();
  }

#pragma unroll
  for (int r = 0; r < rows; ++r) {
#pragma unroll
    for (int mask = 8; mask > 0; mask /= 2) row[r].sum += __shfl_xor_sync(~0u, row[r].sum, mask);
    const F unseen = row[r].unseen(softmax, i[r], j_limit);
    row[r].sum += unseen;
#pragma unroll
    for (int c = 0; c < widths; ++c) sum[r][c] += unseen;
  }

  constexpr int line = width + wide;
  F* sums = reinterpret_cast<F*>(shared);
  F* tops = sums + tile_q / rows * line;
  F* totals = tops + tile_q / rows;
#pragma unroll 1
  for (int round = 0; round < rows; ++round) {
    __syncthreads();
#pragma unroll
    for (int r = 0; r < rows; ++r)
      if (r == round) {
#pragma unroll
        for (int c = 0; c < widths; ++c) sums[first_row / rows * line + x * widths + c] = sum[r][c];
        tops[first_row / rows] = row[r].top;
        totals[first_row / rows] = row[r].sum;
      }
    __syncthreads();
    walk_queries<tile_q / rows, width, line, threads>(
        sums, tops, totals, e0, i_limit, e_limit, [&](int r) { return i0 + (Index)(r * rows + round); }, out);
  }
}

// The main loop of f32 products on tensor cores (mma.sync), whose operands lie in shared memory as they are. An element is
// high + low, two numbers of tf32, on its way to the registers: high high and high low + low high are added up apart, since
// tensor cores cut a sum to the bits of its greatest term (after Ootomo & Yokota, "Recovering single precision accuracy from
// Tensor Cores", 2022). What low low would add is below 2^-22 of each product, to either side.

//@ split_tf32
// x rounded to 11 bits, and the rest, which is at most half a unit of these: of it tensor cores take 11 bits, too.
__device__ __forceinline__ void split_tf32(float x, u32& high, u32& low) {
  high = __float_as_uint(x) + 0x1000u & 0xffffe000u;
  low = __float_as_uint(x - __uint_as_float(high));
}

//@ f32_tile
// Lines as the operand lies. The words that a warp loads of a fragment, four steps of eight rows, are in different banks.
template <int outer_size_, int depth_size_, bool along_depth_>
struct f32_tile {
  using element = float;
  static constexpr int outer_size = outer_size_, depth_size = depth_size_;
  static constexpr bool along_depth = along_depth_;
  static constexpr int chunk = 4;
  static constexpr int line = along_depth ? depth_size + 4 : outer_size + 8;
  static constexpr int size = (along_depth ? outer_size : depth_size) * line;
  static __device__ __forceinline__ int offset(int outer, int depth) {
    return along_depth ? outer * line + depth : depth * line + outer;
  }
};

//@ contract_3xtf32
// Warps tile the block's tile, and `groups` of them divide the depth of each tile of the operands, at whose end a total in
// f32 gets the sum of high high. `ends`: of a tile that the depth ends in only what lies ahead of the end is multiplied.
template <int tile_m, int tile_n, int tile_k, int warps_m, int warps_n, int groups, int stages, bool ends, class Index,
          class A, class B, class Result>
__device__ __forceinline__ void contract_3xtf32(unsigned char* shared, const A& a, const B& b, const Result& out, Index m0,
                                                Index n0, Index m_limit, Index n_limit, Index k_limit) {
  using TileA = f32_tile<tile_m, tile_k, A::along_depth>;
  using TileB = f32_tile<tile_n, tile_k, B::along_depth>;
  constexpr int threads = 32 * warps_m * warps_n * groups, depth = tile_k / groups;
  constexpr int warp_rows = tile_m / warps_m, warp_columns = tile_n / warps_n;
  constexpr int rows = warp_rows / 16, columns = warp_columns / 8;
  static_assert(warp_rows % 16 == 0 && warp_columns % 8 == 0 && depth % 8 == 0, "a warp multiplies whole fragments");
  const int warp = (int)threadIdx.x / 32, g = (int)threadIdx.x % 32 / 4, t = (int)threadIdx.x % 4;
  const int group = groups == 1 ? 0 : warp / (warps_m * warps_n);
  const int row0 = warp / warps_n % warps_m * warp_rows + g, column0 = warp % warps_n * warp_columns + g;

  float total[rows][columns][4] = {}, low[rows][columns][4] = {};
  Index left = k_limit - group * depth;  // of the depth, from this group's part of a tile on
  contract_pipeline<TileA, TileB, stages, threads>(
      shared, a, b, m0, n0, m_limit, n_limit, k_limit, [&](const float* tile_a, const float* tile_b) {
        float high[rows][columns][4] = {};
        const auto multiply = [&](int k) {
          const int step = group * depth + k + t;
          u32 high_a[rows][4], low_a[rows][4], high_b[columns][2], low_b[columns][2];
#pragma unroll
          for (int j = 0; j < columns; ++j)
#pragma unroll
            for (int half = 0; half < 2; ++half)
              split_tf32(tile_b[TileB::offset(column0 + j * 8, step + half * 4)], high_b[j][half], low_b[j][half]);
#pragma unroll
          for (int i = 0; i < rows; ++i)
#pragma unroll
            for (int x = 0; x < 4; ++x)
              split_tf32(tile_a[TileA::offset(row0 + i * 16 + x % 2 * 8, step + x / 2 * 4)], high_a[i][x], low_a[i][x]);
          const auto add = [&](float (&sum)[rows][columns][4], const u32 (&x)[rows][4], const u32 (&y)[columns][2]) {
#pragma unroll
            for (int i = 0; i < rows; ++i)
#pragma unroll
              for (int j = 0; j < columns; ++j) mma(sum[i][j], x[i], y[j][0], y[j][1], tf32{});
          };
          add(low, low_a, high_b);
          add(high, high_a, high_b);
          add(low, high_a, low_b);
        };
        if (ends && left < depth) {
#pragma unroll 1
          for (int k = 0; k < left; k += 8) multiply(k);
        } else {
#pragma unroll
          for (int k = 0; k < depth; k += 8) multiply(k);
        }
        if (ends) left -= tile_k;
        add_block(total, high);
      });
  add_block(total, low);
  fragments_out<tile_n, warps_m, warps_n, groups>(shared, total, out, m0, n0, m_limit, n_limit);
}

// Tensor core instructions and their fragments. A step is 32 bytes of the depth: 16 elements of f16 and bf16, 8 of tf32.
// Layouts: PTX ISA, "Matrix fragments for mma.m16n8k16"; g = lane / 4, t = lane % 4.
//   a: (g, 2t) (g + 8, 2t) (g, 2t + 8) (g + 8, 2t + 8), two elements each     b: (k = 2t, n = g) (k = 2t + 8, n = g)
//   d: (g, 2t) (g, 2t + 1) (g + 8, 2t) (g + 8, 2t + 1)

//@ tf32
// An f32 in shared memory whose mantissa is rounded to 10 bits on its way to the tensor cores.
struct tf32 { float value; };

//@ shared_address
__device__ __forceinline__ u32 shared_address(const void* p) { return (u32)__cvta_generic_to_shared(p); }

//@ ldmatrix
// Four 8x8 matrices of 16-bit elements; lane l gives the address of row l % 8 of matrix l / 8.
__device__ __forceinline__ void ldmatrix(u32 (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row))
               : "memory");
}

//@ ldmatrix_transposed
__device__ __forceinline__ void ldmatrix_transposed(u32 (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row))
               : "memory");
}

//@ mma
// d += a b over one step, for a of 16 rows and b of 8 columns; the last argument gives the element type.
__device__ __forceinline__ void mma(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1, f16) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
  asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(b0));
  asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[2]), "r"(a[3]), "r"(b1));
#endif
}
__device__ __forceinline__ void mma(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1, bf16) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ __forceinline__ void mma(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1, tf32) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

//@ round_fragment
template <class T>
__device__ __forceinline__ void round_fragment(u32 (&)[4], T) {}
__device__ __forceinline__ void round_fragment(u32 (&r)[4], tf32) {
#pragma unroll
  for (int i = 0; i < 4; ++i) asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r[i]) : "f"(__uint_as_float(r[i])));
}

//@ fragment_point fragment_of_a fragment_of_b
// Where lane `lane` points ldmatrix for 16 x 1 step of an operand: its row (a row of a, a column of b) and its depth in
// units of half steps and elements. `a` and `b` order the four matrices differently; `along_depth` says that lines in
// shared memory run along the depth, and the instruction then reads them as they are.
struct fragment_point {
  int outer, depth;
};
template <int half_step>
__device__ __forceinline__ fragment_point fragment_of_a(int lane, bool along_depth) {
  return along_depth ? fragment_point{lane % 16, lane / 16 * half_step}
                     : fragment_point{lane / 8 % 2 * 8, lane / 16 * 8 + lane % 8};
}
template <int half_step>
__device__ __forceinline__ fragment_point fragment_of_b(int lane, bool along_depth) {
  return along_depth ? fragment_point{lane / 16 * 8 + lane % 8, lane / 8 % 2 * half_step}
                     : fragment_point{lane / 16 * 8, lane / 8 % 2 * 8 + lane % 8};
}

//@ load_fragment_a
// The fragment of rows [row, row + 16) at depth [depth, depth + one step) of a tile.
template <class Tile>
__device__ __forceinline__ void load_fragment_a(u32 (&r)[4], const typename Tile::element* tile, int row, int depth) {
  const fragment_point at = fragment_of_a<Tile::chunk>(threadIdx.x % 32, Tile::along_depth);
  const typename Tile::element* line = tile + Tile::offset(row + at.outer, depth + at.depth);
  if constexpr (Tile::along_depth) {
    ldmatrix(r, line);
  } else {
    ldmatrix_transposed(r, line);
  }
  round_fragment(r, typename Tile::element{});
}

//@ load_fragment_b
// The fragments of columns [column, column + 8) in r[0], r[1] and [column + 8, column + 16) in r[2], r[3].
template <class Tile>
__device__ __forceinline__ void load_fragment_b(u32 (&r)[4], const typename Tile::element* tile, int column, int depth) {
  const fragment_point at = fragment_of_b<Tile::chunk>(threadIdx.x % 32, Tile::along_depth);
  const typename Tile::element* line = tile + Tile::offset(column + at.outer, depth + at.depth);
  if constexpr (Tile::along_depth) {
    ldmatrix(r, line);
  } else {
    ldmatrix_transposed(r, line);
  }
  round_fragment(r, typename Tile::element{});
}

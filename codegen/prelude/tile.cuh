// Operand tiles in shared memory, and how a block's threads fill them. A tile has `outer_size` rows of A, columns of B,
// queries, keys …, and `depth_size` steps of the sum; it lies in lines along one of the two.

//@ matrix_tile
// Lines of 16-byte chunks for ldmatrix. Eight neighbouring lines at one column fall into different banks: short lines
// exchange their chunks by an XOR with the line's number, long ones are padded to an odd count, which costs little there and
// leaves addresses that differ by constants.
template <class T, int outer_size_, int depth_size_, bool along_depth_>
struct matrix_tile {
  using element = T;
  static constexpr int outer_size = outer_size_, depth_size = depth_size_;
  static constexpr bool along_depth = along_depth_;
  static constexpr int chunk = 16 / (int)sizeof(T);  // elements
  static constexpr int lines = along_depth ? outer_size : depth_size;
  static constexpr int chunks = (along_depth ? depth_size : outer_size) / chunk;
  static constexpr bool padded = !(chunks == 4 || chunks == 2 || chunks == 1);
  static constexpr int line = (padded ? chunks | 1 : chunks) * chunk;
  static constexpr int size = lines * line;
  static_assert((along_depth ? depth_size : outer_size) % chunk == 0, "a line is whole chunks");
  static_assert(along_depth || sizeof(T) == 2, "only 16-bit elements are transposed on the way to the registers");

  // Of element (outer, depth), in elements.
  static __device__ __forceinline__ int offset(int outer, int depth) {
    const int row = along_depth ? outer : depth, column = along_depth ? depth : outer;
    const int spread = padded ? 0 : row / (8 / (padded ? 8 : chunks)) & (chunks - 1);
    return row * line + (column / chunk ^ spread) * chunk + column % chunk;
  }
};

//@ plain_tile
// Lines along the outer axis, for threads that read neighbouring rows or columns at one depth.
template <class T, int outer_size_, int depth_size_>
struct plain_tile {
  using element = T;
  static constexpr int outer_size = outer_size_, depth_size = depth_size_;
  static constexpr bool along_depth = false;
  static constexpr int chunk = 16 / (int)sizeof(T);
  static constexpr int line = outer_size + chunk;
  static constexpr int size = depth_size * line;
  static __device__ __forceinline__ int offset(int outer, int depth) { return depth * line + outer; }
};

//@ copy_async
// `bytes` (4, 8 or 16) from global to shared memory without passing through registers; zeros where `inside` is false.
template <int bytes>
__device__ __forceinline__ void copy_async(void* to, const void* from, bool inside) {
#if __CUDA_ARCH__ >= 800
  const int available = inside ? bytes : 0;
  if constexpr (bytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from), "r"(available)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared_address(to)), "l"(from), "n"(bytes),
                 "r"(available)
                 : "memory");
  }
#endif
}

//@ copy_async_kept
// The same, of lines that the second-level cache is to keep (load_kept). Asked for apart: of copies that say so
// themselves ptxas 13.0 makes illegal instructions.
template <int bytes>
__device__ __forceinline__ void copy_async_kept(void* to, const void* from, bool inside) {
#if __CUDA_ARCH__ >= 800
  if (inside) asm volatile("prefetch.global.L2::evict_last [%0];" ::"l"(from));
#endif
  copy_async<bytes>(to, from, inside);
}

//@ commit_copies
__device__ __forceinline__ void commit_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

//@ wait_copies
// Until at most `pending` groups of copies are under way.
template <int pending>
__device__ __forceinline__ void wait_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
#endif
}

//@ operand make_operand
// An operand of a contraction as generated code describes it. get(outer, depth) gives `vector` neighbouring elements, along
// the depth or along the outer axis, as pack<T, vector>; an asynchronous operand's gives their address instead.
template <int vector_, bool along_depth_, bool async_, class Get>
struct operand {
  static constexpr int vector = vector_;
  static constexpr bool along_depth = along_depth_, async = async_, ahead = false;
  Get get;
};
template <int vector, bool along_depth, bool async, class Get>
__device__ __forceinline__ operand<vector, along_depth, async, Get> make_operand(Get get) {
  return {get};
}

//@ operand_ahead make_operand_ahead
// The same in two steps, between which others may stand: load(outer, depth) reads what value(outer, depth, loaded) makes
// the elements of.
template <int vector_, bool along_depth_, class Load, class Value>
struct operand_ahead {
  static constexpr int vector = vector_;
  static constexpr bool along_depth = along_depth_, async = false, ahead = true;
  Load load;
  Value value;
  template <class Index>
  __device__ __forceinline__ auto get(Index outer, Index depth) const {
    return value(outer, depth, load(outer, depth));
  }
};
template <int vector, bool along_depth, class Load, class Value>
__device__ __forceinline__ operand_ahead<vector, along_depth, Load, Value> make_operand_ahead(Load load, Value value) {
  return {load, value};
}

//@ tile_loader
// The share of one thread in filling `Tile` from `Operand`. A synchronous operand of few vectors is fetched into registers
// by begin() and written by finish(), so that arithmetic can stand between them; one of many is written at once, since as
// many registers would not be left. Elements outside the limits become 0.
template <class Tile, class Operand, int threads, class Index>
struct tile_loader {
  using T = typename Tile::element;
  static constexpr int vector = Operand::vector;
  static constexpr int per_line = (Operand::along_depth ? Tile::depth_size : Tile::outer_size) / vector;
  static constexpr int total = Tile::outer_size * Tile::depth_size / vector;
  static constexpr int rounds = (total + threads - 1) / threads;
  static constexpr bool same_lines = Operand::along_depth == Tile::along_depth;
  static constexpr bool holds = !Operand::async && rounds <= 4;

  const Operand& source;
  Index outer_limit, depth_limit;
  pack<T, vector> held[holds ? rounds : 1];

  __device__ __forceinline__ tile_loader(const Operand& source, Index outer_limit, Index depth_limit)
      : source(source), outer_limit(outer_limit), depth_limit(depth_limit) {}

  static __device__ __forceinline__ int outer_of(int slot) {
    return Operand::along_depth ? slot / per_line : slot % per_line * vector;
  }
  static __device__ __forceinline__ int depth_of(int slot) {
    return Operand::along_depth ? slot % per_line * vector : slot / per_line;
  }

  __device__ __forceinline__ pack<T, vector> fetch(int slot, Index outer0, Index depth0) const {
    const Index outer = outer0 + outer_of(slot), depth = depth0 + depth_of(slot);
    if (outer < outer_limit && depth < depth_limit) return source.get(outer, depth);
    return pack<T, vector>{};
  }
  static __device__ __forceinline__ void write(T* tile, int slot, const pack<T, vector>& x) {
    const int outer = outer_of(slot), depth = depth_of(slot);
    constexpr int piece = !same_lines ? 1 : vector < Tile::chunk ? vector : Tile::chunk;
#pragma unroll
    for (int j = 0; j < vector; j += piece) {
      pack<T, piece> part;
#pragma unroll
      for (int i = 0; i < piece; ++i) part[i] = x[j + i];
      store<piece, piece>(tile + (Operand::along_depth ? Tile::offset(outer, depth + j) : Tile::offset(outer + j, depth)),
                          part);
    }
  }

  // From row outer0 and depth0 on, into `tile`.
  __device__ __forceinline__ void begin(T* tile, Index outer0, Index depth0) {
    if constexpr (holds) {
#pragma unroll
      for (int round = 0; round < rounds; ++round) {
        const int slot = round * threads + (int)threadIdx.x;
        if (total % threads == 0 || slot < total) held[round] = fetch(slot, outer0, depth0);
      }
    } else {
      fill(tile, outer0, depth0);
    }
  }
  __device__ __forceinline__ void finish(T* tile) {
    if constexpr (holds) {
#pragma unroll
      for (int round = 0; round < rounds; ++round) {
        const int slot = round * threads + (int)threadIdx.x;
        if (total % threads == 0 || slot < total) write(tile, slot, held[round]);
      }
    }
  }
  // begin and finish in one.
  __device__ __forceinline__ void fill(T* tile, Index outer0, Index depth0) {
    static_assert(!Operand::async || same_lines, "a copy keeps the direction of lines");
    constexpr int unroll = rounds <= 8 && Operand::async ? rounds : rounds < 4 ? rounds : 4;
#pragma unroll unroll
    for (int round = 0; round < rounds; ++round) {
      const int slot = round * threads + (int)threadIdx.x;
      if (total % threads != 0 && slot >= total) break;
      if constexpr (Operand::async) {
        const Index outer = outer0 + outer_of(slot), depth = depth0 + depth_of(slot);
        copy_async<vector * (int)sizeof(T)>(tile + Tile::offset(outer_of(slot), depth_of(slot)), source.get(outer, depth),
                                            outer < outer_limit && depth < depth_limit);
      } else {
        write(tile, slot, fetch(slot, outer0, depth0));
      }
    }
  }
};

//@ result make_result
// What becomes of a contraction's result: put(outer…, x) takes `vector` neighbouring columns.
template <int vector_, class Put>
struct result {
  static constexpr int vector = vector_;
  Put put;
};
template <int vector, class Put>
__device__ __forceinline__ result<vector, Put> make_result(Put put) {
  return {put};
}

//@ result_ahead make_result_ahead
// The same with operands that are read some time ahead: get(outer…) loads what put(outer…, x, loaded) takes, and
// touch(outer…) brings the lines of `reach` neighbouring columns to the second-level cache (0: there are none).
template <int vector_, int reach_, class Get, class Touch, class Put>
struct result_ahead {
  static constexpr int vector = vector_, reach = reach_;
  Get get;
  Touch touch;
  Put put;
};
template <int vector, int reach, class Get, class Touch, class Put>
__device__ __forceinline__ result_ahead<vector, reach, Get, Touch, Put> make_result_ahead(Get get, Touch touch, Put put) {
  return {get, touch, put};
}

//@ touch_line
__device__ __forceinline__ void touch_line(const void* p) { asm volatile("prefetch.global.L2 [%0];" ::"l"(p) : "memory"); }

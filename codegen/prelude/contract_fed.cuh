// Operands that warpgroups of producers bring to a product (contract_wgmma.cuh), step by step, as boxes would lie. What
// passes through registers is brought in units: one is on its way from memory while the unit ahead of it is computed and
// written.

//@ boxed_tile
// A tile as boxes bring it: lines of 64 elements of 16 bits, whose 16-byte pieces change places by the line's number.
template <class T, int outer_size_, bool along_depth_>
struct boxed_tile {
  using element = T;
  static constexpr int outer_size = outer_size_, depth_size = 128 / (int)sizeof(T), chunk = 16 / (int)sizeof(T);
  static constexpr bool along_depth = along_depth_;

  // Of element (outer, depth), in elements.
  static __device__ __forceinline__ int offset(int outer, int depth) {
    const int line = along_depth ? outer : outer / depth_size * depth_size + depth;
    const int column = along_depth ? depth : outer % depth_size;
    return line * depth_size + (column / chunk ^ line % 8) * chunk + column % chunk;
  }
};

//@ divisor_up_to
// The greatest divisor of `count` that is no more than `most`.
__device__ constexpr int divisor_up_to(int count, int most) { return count % most == 0 ? most : divisor_up_to(count, most - 1); }

//@ fed_place
// Where the tiles of a step begin.
template <class Index>
struct fed_place {
  u32 batch;
  Index m, n, k;
};

//@ fed_vectors
// Which vectors of `Tile` a thread of a warpgroup has, `rounds` of them. The tile begins at a place's row or, where it is
// not `of_rows`, column.
template <class Tile, int vector, bool of_rows, class Index>
struct fed_vectors {
  static constexpr int per_line = (Tile::along_depth ? Tile::depth_size : Tile::outer_size) / vector;
  static constexpr int rounds = Tile::outer_size * Tile::depth_size / vector / 128;
  struct vector_place {
    int tile_outer, tile_depth;
    Index outer, depth;
    __device__ __forceinline__ bool inside(Index outer_limit, Index depth_limit) const {
      return outer < outer_limit && depth < depth_limit;
    }
  };
  static __device__ __forceinline__ vector_place at(const fed_place<Index>& begin, int round, int thread) {
    const int slot = round * 128 + thread;
    const int outer = Tile::along_depth ? slot / per_line : slot % per_line * vector;
    const int depth = Tile::along_depth ? slot % per_line * vector : slot / per_line;
    return {outer, depth, (of_rows ? begin.m : begin.n) + outer, begin.k + depth};
  }
};

//@ fed_tile make_fed_tile
// load(batch, outer, depth) reads what value(batch, outer, depth, loaded) makes `vector` elements along a line of. Elements
// outside the limits are loaded from inside them, and become 0; there are none where all tiles are `whole`. A unit is of
// 128 rows or columns at most, and loaded into `most_registers` at most.
template <class Tile, int vector, bool of_rows, bool whole, int most_registers, class Index, class Load, class Value>
struct fed_tile {
  using element = typename Tile::element;
  using vectors = fed_vectors<Tile, vector, of_rows, Index>;
  using loads = decltype((*(const Load*)nullptr)(0u, Index(), Index()));
  static constexpr int rounds = vectors::rounds;
  static constexpr int of_128 = Tile::outer_size > 128 ? rounds * 128 / Tile::outer_size : rounds;
  static constexpr int registers_of_one = ((int)sizeof(loads) + 3) / 4;
  static constexpr int fitting = most_registers / registers_of_one, together = of_128 < 8 ? of_128 : 8;
  static constexpr int batch = divisor_up_to(rounds, fitting < 1 ? 1 : fitting < together ? fitting : together);
  static constexpr int units = rounds / batch, registers = batch * registers_of_one;
  struct held {
    loads loaded[batch];
  };

  Index outer_limit, depth_limit;
  Load load_one;
  Value value;

  __device__ __forceinline__ Index inside_outer(Index outer) const {
    const Index last = outer_limit - (Tile::along_depth ? 1 : vector);
    return whole || outer < last ? outer : last;
  }
  __device__ __forceinline__ Index inside_depth(Index depth) const {
    const Index last = depth_limit - (Tile::along_depth ? vector : 1);
    return whole || depth < last ? depth : last;
  }
  __device__ __forceinline__ void load(int unit, held& to, int thread, const fed_place<Index>& begin) const {
#pragma unroll
    for (int i = 0; i < batch; ++i) {
      const auto at = vectors::at(begin, unit * batch + i, thread);
      to.loaded[i] = load_one(begin.batch, inside_outer(at.outer), inside_depth(at.depth));
    }
  }
  template <bool guarded>
  __device__ __forceinline__ void write_vectors(int unit, unsigned char* to, const held& from, int thread,
                                                const fed_place<Index>& begin) const {
    element* const tile = reinterpret_cast<element*>(to);
#pragma unroll
    for (int i = 0; i < batch; ++i) {
      const auto at = vectors::at(begin, unit * batch + i, thread);
      pack<element, vector> x = value(begin.batch, inside_outer(at.outer), inside_depth(at.depth), from.loaded[i]);
      if (guarded && !at.inside(outer_limit, depth_limit)) x = pack<element, vector>{};
      constexpr int piece = vector < Tile::chunk ? vector : Tile::chunk;
#pragma unroll
      for (int j = 0; j < vector; j += piece) {
        pack<element, piece> part;
#pragma unroll
        for (int e = 0; e < piece; ++e) part[e] = x[j + e];
        store<piece, piece>(tile + (Tile::along_depth ? Tile::offset(at.tile_outer, at.tile_depth + j)
                                                      : Tile::offset(at.tile_outer + j, at.tile_depth)),
                            part);
      }
    }
  }
  __device__ __forceinline__ void write(int unit, unsigned char* to, const held& from, int thread,
                                        const fed_place<Index>& begin) const {
    const Index outer = of_rows ? begin.m : begin.n;
    if (whole || (outer + Tile::outer_size <= outer_limit && begin.k + Tile::depth_size <= depth_limit)) {
      write_vectors<false>(unit, to, from, thread, begin);
    } else {
      write_vectors<true>(unit, to, from, thread, begin);
    }
  }
};
template <class Tile, int vector, bool of_rows, bool whole, int most_registers, class Index, class Load, class Value>
__device__ __forceinline__ fed_tile<Tile, vector, of_rows, whole, most_registers, Index, Load, Value> make_fed_tile(
    Index outer_limit, Index depth_limit, Load load, Value value) {
  return {outer_limit, depth_limit, load, value};
}

//@ copied_tile make_copied_tile
// The same of an operand that is multiplied as it lies at address(batch, outer, depth): asynchronous copies.
template <class Tile, int vector, bool of_rows, class Index, class Address>
struct copied_tile {
  using element = typename Tile::element;
  using vectors = fed_vectors<Tile, vector, of_rows, Index>;
  static constexpr int units = 1, registers = 0;
  struct held {};

  Index outer_limit, depth_limit;
  Address address;

  __device__ __forceinline__ void load(int, held&, int, const fed_place<Index>&) const {}
  __device__ __forceinline__ void write(int, unsigned char* to, const held&, int thread,
                                        const fed_place<Index>& begin) const {
    constexpr int batch = divisor_up_to(vectors::rounds, 8);
#pragma unroll 1
    for (int first = 0; first < vectors::rounds; first += batch)
#pragma unroll
      for (int i = 0; i < batch; ++i) {
        const auto at = vectors::at(begin, first + i, thread);
        const bool inside = at.inside(outer_limit, depth_limit);
        copy_async<vector * (int)sizeof(element)>(
            reinterpret_cast<element*>(to) + Tile::offset(at.tile_outer, at.tile_depth),
            address(begin.batch, inside ? at.outer : 0, inside ? at.depth : 0), inside);
      }
  }
};
template <class Tile, int vector, bool of_rows, class Index, class Address>
__device__ __forceinline__ copied_tile<Tile, vector, of_rows, Index, Address> make_copied_tile(Index outer_limit,
                                                                                               Index depth_limit,
                                                                                               Address address) {
  return {outer_limit, depth_limit, address};
}

//@ fed_tiles make_fed_tiles
// Two tiles, the second `offset` bytes behind the first. In one unit where both have few registers.
template <int offset, class First, class Second>
struct fed_tiles {
  static constexpr bool together =
      First::units == 1 && Second::units == 1 && First::registers + Second::registers <= 32;
  static constexpr int units = together ? 1 : First::units + Second::units;
  static constexpr int registers = First::registers + Second::registers;
  struct held {
    typename First::held first;
    typename Second::held second;
  };

  First first;
  Second second;

  template <class Place>
  __device__ __forceinline__ void load(int unit, held& to, int thread, const Place& begin) const {
    if (unit < First::units) first.load(unit, to.first, thread, begin);
    if (together || unit >= First::units) second.load(together ? 0 : unit - First::units, to.second, thread, begin);
  }
  template <class Place>
  __device__ __forceinline__ void write(int unit, unsigned char* to, const held& from, int thread,
                                        const Place& begin) const {
    if (unit < First::units) first.write(unit, to, from.first, thread, begin);
    if (together || unit >= First::units)
      second.write(together ? 0 : unit - First::units, to + offset, from.second, thread, begin);
  }
};
template <int offset, class First, class Second>
__device__ __forceinline__ fed_tiles<offset, First, Second> make_fed_tiles(First first, Second second) {
  return {first, second};
}

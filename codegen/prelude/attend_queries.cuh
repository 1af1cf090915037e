// The order in which blocks take tiles of queries of an attention on sm_90a: how work is divided, and which keys stay in the
// second-level cache. The loop over the keys of a tile is attend_wgmma.cuh.

//@ query_tile
// A tile of queries: its sequence and head as one number, and the first query.
template <class Index>
struct query_tile {
  u32 batch;
  Index i;
};

//@ query_tiles
// The tiles of queries that a block takes. Where later queries see more keys, tiles go in `pairs`, the last with the first:
// all blocks have the same to do. Where blocks have few pairs, some of them would have one more than others: then tiles of
// all heads go by their length, and blocks take them to and fro. `together` heads are walked at once, so that their keys
// stay in the second-level cache.
template <class Tiles, bool pairs, class Index>
struct query_tiles {
  static constexpr u32 few_pairs = 6;   // of a block
  u32 batches, together, count, turns;  // tiles of a head, and turns for them
  u32 number;                           // of the turn, or of the tile
  bool by_length;
  bool second;  // of a pair, or the way back

  __device__ __forceinline__ query_tiles(u32 batches_, u32 together_, Index i_limit)
      : batches(batches_), together(together_), count((u32)((i_limit + (Tiles::tile_q - 1)) / Tiles::tile_q)) {
    turns = pairs ? (count + 1) / 2 : count;
    number = block();
    by_length = pairs && turns * batches < few_pairs * blocks();
    second = false;
  }
  // Blocks that split keys have neighbours of other tiles (contract_wgmma); those of a cluster are neighbours.
  static __device__ __forceinline__ u32 block() {
    return Tiles::split_kv > 1 ? blockIdx.x % blocks() : blockIdx.x / Tiles::parts;
  }
  static __device__ __forceinline__ u32 blocks() { return gridDim.x / (Tiles::parts * Tiles::split_kv); }
  __device__ __forceinline__ bool there() const { return number < (by_length ? count : turns) * batches; }
  __device__ __forceinline__ query_tile<Index> now() const {
    if (by_length) return {number % batches, (Index)(count - 1 - number / batches) * Tiles::tile_q};
    const u32 section = number / (together * turns), rest = number % (together * turns);
    const u32 left = batches - section * together, heads = left < together ? left : together;
    // A block takes other tiles of each section, since masks may leave more to do in some.
    const u32 sections = (batches + together - 1) / together, step = turns > sections ? turns / sections : 1;
    const u32 tile = (rest / heads + section * step) % turns;
    return {section * together + rest % heads, (Index)(pairs && !second ? count - 1 - tile : tile) * Tiles::tile_q};
  }
  // The next one behind `tile`, which is this one. A pair may be one tile, in the middle.
  __device__ __forceinline__ void advance(const query_tile<Index>& tile) {
    if (by_length) {
      number += second ? 2 * block() + 1 : 2 * (blocks() - 1 - block()) + 1;
      second = !second;
      return;
    }
    second = pairs && !second && tile.i * 2 + Tiles::tile_q != (Index)(count * Tiles::tile_q);
    if (!second) number += blocks();
  }
};

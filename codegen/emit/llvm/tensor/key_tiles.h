// The keys that a block of queries sees, tile by tile: a range that bounds say (codegen/analysis/key_bounds.h), and in
// it the tiles of which a mask hides some keys only (codegen/analysis/tile_tests.h). A tile that is wholly hidden is in
// no loop, and of one that is wholly visible nothing is masked.
#pragma once

#include "codegen/emit/llvm/tensor/product.h"

namespace tenon::codegen::simd {

/// Tiles stand at places [begin, end), `size` apart: the keys themselves, or places in the list of visible tiles.
struct KeyTiles {
  int size = 0;  ///< keys of a tile
  Value *begin = nullptr, *end = nullptr;
  Span keys;              ///< from the first to the last that some query sees
  Span open;              ///< those that bounds hide from none
  bool may_open = false;  ///< what masks beside bounds say is known of a tile, if there are any
  Value* list = nullptr;  ///< twice the first key of each visible tile, and 1 more where nothing hides a key of it
};

/// `queries` has one at least. `list`: memory of key_tile_bytes where the schedule says block_mask, else unused.
KeyTiles find_key_tiles(Unit& unit, Scope& task, const Span& queries, int size, Value* list);
/// Of the list; an i64, a multiple of 64.
Value* key_tile_bytes(Unit& unit, int size);

/// The keys of the tile at `place`, and whether all queries see all of them: an i1, or null where that is not known of
/// any tile or there are no masks.
struct KeyTile {
  Span keys;
  Value* open = nullptr;
};
KeyTile tile_at(Unit& unit, const KeyTiles& tiles, Value* place);

}  // namespace tenon::codegen::simd

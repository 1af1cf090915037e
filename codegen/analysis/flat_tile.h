// Flat tiles of Map kernels: boxes of the domain that blocks work on in its order, across the ends of rows, while what
// they load comes to shared memory in the order in which it lies there, across the ends of its rows. So both move long
// runs where axes are short, and where both orders share some: tiles of two axes (transpose.h) do neither. Used by the
// schedule, its verifier and the CUDA emitter.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "codegen/kernel/kernel.h"

namespace tenon::codegen {

/// A load that comes through a flat tile.
struct FlatLoad {
  InstrId id = -1;
  std::vector<int> order;         ///< the axes of the box as the operand lies, the one of neighbours first
  std::vector<int> strides = {};  ///< of the axes in shared memory, in elements
  int vector = 1;                 ///< neighbours in memory that a thread loads at once, maybe across the first axis
  int piece = 1;                  ///< of those, such as are aligned neighbours in the tile, too
  int aligned = 1;                ///< elements of the tile that a thread reads at once
  std::int64_t elements = 0;      ///< of shared memory
};

struct FlatTile {
  std::vector<int> extents;  ///< of the box: 1 where an axis is not in it
  std::vector<FlatLoad> loads;
  int points = 1;
};

/// The loads that lie in another order than the domain, so that a vector of its points has few neighbours of them, with
/// their whole orders. Empty where flat tiles do not serve the kernel.
std::vector<FlatLoad> loads_across(const Kernel& kernel);

/// The tile of a flat schedule: `columns` points that follow each other in the domain, or some more, by `rows` elements
/// that do so in each load. Nothing where there is none.
std::optional<FlatTile> flat_tile_of(const Kernel& kernel, const MapSchedule& schedule);

/// The widest vector of points up to `limit` that lies in such a tile wherever it begins.
int flat_tile_vector(const Kernel& kernel, const MapTile& tile, int limit);

/// Bytes of shared memory.
std::int64_t shared_bytes(const Kernel& kernel, const FlatTile& tile);

/// Whether the box has an axis in part, and whether its last part is shorter.
bool is_cut(const Kernel& kernel, const FlatTile& tile, int axis);
bool is_ragged(const Kernel& kernel, const FlatTile& tile, int axis);

}  // namespace tenon::codegen

// What masks of positions leave of a matrix product. Where a selection takes something else than the product, or a
// factor is a structural zero, nothing has to be multiplied: main loops skip the tiles that are hidden as a whole, and
// of the others the depth that is (docs/numerics.md, rule 5).
#pragma once

#include <vector>

#include "codegen/analysis/position_bounds.h"
#include "codegen/lower/parts.h"

namespace tenon::codegen {

/// Bounds of positions of a contract kernel, without values of the batch.
struct ProductBounds {
  std::vector<PositionBound> result;  ///< of rows and columns: elsewhere no store uses the product, or it is 0
  std::vector<PositionBound> depth;   ///< of the depth too, with a slope of 1 or -1: elsewhere a factor is 0
  bool empty() const { return result.empty() && depth.empty(); }
};

ProductBounds product_bounds(const Kernel& kernel, const ContractParts& parts);

/// Of the axis, how fast the depth grows along it.
std::int64_t growth_of_depth(const ProductBounds& bounds, int axis);

/// What is left of a product in tiles of some size.
struct ProductShare {
  double tiles = 1;  ///< of the tiles, those in which something is multiplied
  double depth = 1;  ///< and of their depth
};

/// At the sizes that the kernel's symbols may have; unknown ones count as 1024.
ProductShare product_share(const Kernel& kernel, const ContractParts& parts, const ProductBounds& bounds,
                           std::int64_t tile_m, std::int64_t tile_n);

/// "column <= row + 7: tiles elsewhere are not multiplied", a line for each bound of a contract kernel whose schedule
/// looks at them.
std::vector<std::string> product_mask_texts(const Kernel& kernel);

}  // namespace tenon::codegen

// The share of a matmul that masks of positions leave, for the cost model: found in the graph as
// codegen/analysis/product_bounds.h finds bounds in a kernel, and counted at a grid of positions.
#pragma once

#include <array>
#include <optional>

#include "ir/fusion/cluster.h"

namespace tenon::ir::fusion {

/// Whether `condition` is `holds`.
struct ProductMask {
  ValueId condition = -1;
  bool holds = true;
  bool operator==(const ProductMask&) const = default;
};
/// A comparison of positions that selects the result of a matmul wherever it is used, and hides some of it.
std::optional<ProductMask> result_mask(const Context& context, NodeId matmul);

/// Of the products of a matmul, those that are left where comparisons of positions select something else than its
/// result, or make an operand 0, where that is computed on its way in: by these operands, as bits (1: the first, 2: the
/// second). 1 without such masks.
std::array<double, 4> multiplied_shares(const Context& context, NodeId matmul);

}  // namespace tenon::ir::fusion

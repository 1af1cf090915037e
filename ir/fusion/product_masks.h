// The share of a matmul that masks of positions leave, for the cost model: found in the graph as
// codegen/analysis/product_bounds.h finds bounds in a kernel, and counted at a grid of positions.
#pragma once

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
/// result, or make an operand 0. 1 without such masks.
double multiplied_share(const Context& context, NodeId matmul);

}  // namespace tenon::ir::fusion

// What products cost as they stand, divided along their depth, and where threads bring their operands: the analytic
// model by which arrange_products (products.h) rewrites them. All times are microseconds.
#pragma once

#include <cstdint>

#include "ir/fusion/plan.h"

namespace tenon::ir::fusion {

inline constexpr double kGain = 1.25;  ///< that a rewrite must promise
/// Up to so many rows or columns, the other operand may stream through one block for each.
inline constexpr std::int64_t kStreamedRows = 32;
/// So many go to warpgroups where boxes bring both operands (schedule/contract.cpp).
inline constexpr std::int64_t kLeastOfBoxes = 25;

/// [batch, m, k] by [batch, k, n].
struct ProductShape {
  double batch = 1;
  std::int64_t m = 0, n = 0, k = 0;
  bool in_boxes = false;     ///< that bring both to warpgroups
  bool along_depth = false;  ///< some operand lies along it
  double flops() const { return 2 * batch * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k); }
};

/// A depth in parts that are alike; the whole where there is one. What they leave is multiplied by itself.
struct DepthDivision {
  std::int64_t parts = 1, depth = 0;
  double us = 0;  ///< of all of them, and their sums
  std::int64_t rest(const ProductShape& problem) const { return problem.k - parts * depth; }
};

/// The cheapest division: parts must promise kGain, and have a batch of one (options.split_depth).
DepthDivision division_of(const PlanOptions& options, const ProductShape& problem, const ContractionElement& element);
/// Of the product as it stands, by the better of large tiles and of small ones, which reach half as much.
double undivided_us(const PlanOptions& options, const ProductShape& problem, const ContractionElement& element);
/// What threads take to bring an operand to tensor cores, once for each tile of the other one, where its rows have
/// `extent` elements.
double fed_us(const CostModel& cost, const ProductShape& problem, bool left, std::int64_t extent);

}  // namespace tenon::ir::fusion

// What comparisons of positions say of them: linear bounds, which hold wherever a condition does. Masks of keys
// (key_bounds.h) and of products (product_bounds.h) are read off them.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/kernel/kernel.h"

namespace tenon::codegen {

/// The sum of slopes[a] * axis a, of a constant and of a value is at most 0.
struct PositionBound {
  std::vector<std::int64_t> slopes;  ///< of each axis of the kernel
  Dim constant;
  InstrId value = -1;  ///< an integer of the batch, of a sequence's length say; -1: none
  int sign = 0;        ///< of the value in the sum
  bool operator==(const PositionBound&) const = default;
};

/// What a selection asks: whether `condition` is `holds`.
struct MaskCondition {
  InstrId condition = -1;
  bool holds = true;
};

/// Adds bounds that hold wherever the mask's condition does, found in comparisons of sums of positions and a value of
/// the batch, and in conjunctions of them. True if the condition holds wherever they all do. Positions are points of
/// the axes in `positions`, values vary along those in `batch` only (bit a: axis a).
bool add_position_bounds(const Kernel& kernel, const MaskCondition& mask, std::uint64_t positions, std::uint64_t batch,
                         std::vector<PositionBound>& bounds);

}  // namespace tenon::codegen

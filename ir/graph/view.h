// Views, read once: what their attributes mean for a given operand shape. Shared by inference, interpreter, planner
// and lowering.
#pragma once

#include <limits>
#include <vector>

#include "ir/graph/graph.h"

namespace tenon::ir {

/// As start or stop of a slice: from the first or to the last element, whatever the extent and the step's sign.
inline constexpr std::int64_t kSliceEnd = std::numeric_limits<std::int64_t>::max();

/// Result element i along an axis is operand element start + i * step.
struct SliceRange {
  Dim start;
  std::int64_t step = 1;
  Dim extent;
};

/// One range for each axis of `shape`, by NumPy's rules. Error(type) when a bound cannot be compared with a symbolic
/// extent, or the lists do not fit.
std::vector<SliceRange> slice_ranges(const Attrs& attrs, const Shape& shape, const Symbols& symbols);

/// Result axis i is operand axis permutation[i]. Error(type) when `perm` is no permutation of the axes.
std::vector<int> permutation(const Attrs& attrs, int rank);

/// The axes that a flip reverses.
std::vector<int> flipped_axes(const Attrs& attrs, int rank);

}  // namespace tenon::ir

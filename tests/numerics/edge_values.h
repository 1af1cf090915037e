// Numbers at which formats and operators change their ways, for each dtype.
#pragma once

#include <vector>

#include "ir/interpret/interpret.h"

namespace tenon::test {

/// A 1-D array of the edges of `dtype`: zeros, subnormals, extremes, infinities, NaN, halfway cases, where functions
/// overflow; of integers the extremes and what shifts and divisions make special.
ir::HostArray edge_values(DType dtype);

/// The few that still make a table when three operands are combined.
ir::HostArray few_edge_values(DType dtype);

/// Operand `operand` of all combinations of `count` elements of `values`: of one array the array itself; of two, the
/// first repeats each element and the second the whole.
ir::HostArray combination(const ir::HostArray& values, int operand, int count);

/// Every bit pattern of an 8-bit dtype; of wider ones about 6000 spread over all of them. NaNs are in canonical form.
ir::HostArray bit_patterns(DType dtype);

}  // namespace tenon::test

// What blocks that walk over rows leave of the outer reductions: one accumulator for each element of a row. Where the
// warps of a block have rows of their own, theirs are combined through shared memory first.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/kernel/kernel.h"

namespace tenon::codegen {

/// The reductions over the kept axes, in definition order.
std::vector<InstrId> outer_reductions(const Kernel& kernel);
/// Bytes of an accumulator, at most.
int accumulator_bytes(const Kernel& kernel, InstrId reduce);
/// Bytes of an outer reduction's accumulators that the warps of a block leave at once, one vector for each lane of a
/// row; 0 where the block has a row.
std::int64_t warp_parts_bytes(const Kernel& kernel, const ReduceSchedule& schedule);

}  // namespace tenon::codegen

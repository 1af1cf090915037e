// Rows that a block walks over, in shared memory before it comes to them: a ring of one slot for each row
// under way and one for the row in hand. Filled by asynchronous copies, each thread's vectors by itself or (bulk) whole
// rows by one thread.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/kernel/kernel.h"
#include "codegen/target/target.h"

namespace tenon::codegen {

/// Whether rows under way are in shared memory, rather than in registers.
bool has_ring(const ReduceSchedule& schedule);
/// The loads of a row's elements that the block has from the start, in definition order.
std::vector<InstrId> ring_loads(const Kernel& kernel);
/// Elements of one slot, for each load.
std::int64_t slot_elements(const ReduceSchedule& schedule);
/// Of `load`, what all slots have.
std::int64_t ring_load_bytes(const Kernel& kernel, const ReduceSchedule& schedule, InstrId load);
/// Dynamic shared memory of a block; 0 without a ring.
std::int64_t ring_bytes(const Kernel& kernel, const ReduceSchedule& schedule);
/// Whether bulk copies can bring what every load takes of a row: it lies in one piece, of multiples of 16 bytes, and
/// the row has a barrier, behind which its slot may be written again.
bool comes_whole(const Kernel& kernel, const ReduceSchedule& schedule);
/// Whether there is a ring of so many stages on `target`, of which each multiprocessor has room for its blocks'.
bool fits_ring(const Kernel& kernel, const ReduceSchedule& schedule, const Target& target);

/// The first element of the row that `load` takes, where it lies in one piece.
Access row_begin(const Kernel& kernel, InstrId load);
/// Of each row, what `load` takes.
std::int64_t row_bytes(const Kernel& kernel, InstrId load);

}  // namespace tenon::codegen

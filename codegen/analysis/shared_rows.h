// Rows that are too long for the registers of their team: the first vectors of each thread lie in shared memory from
// one sweep to the next. Each thread reads what it copied there itself, so no barrier is needed.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/analysis/rounds.h"
#include "codegen/kernel/kernel.h"
#include "codegen/target/target.h"

namespace tenon::codegen {

/// Whether `load` gives every thread whole vectors that one asynchronous copy each can bring.
bool whole_vectors(const Kernel& kernel, const ReduceSchedule& schedule, InstrId load);
/// The loads that several sweeps use, in definition order: what a row has in shared memory; what is computed from them
/// is computed again. Empty when it cannot be there: what is computed would be drawn again, or a load is not of whole
/// vectors.
std::vector<InstrId> shared_loads(const Kernel& kernel, const ReduceSchedule& schedule);
/// Of `load`, what all threads of a block have there.
std::int64_t shared_load_bytes(const Kernel& kernel, const ReduceSchedule& schedule, InstrId load);
/// Dynamic shared memory of a block.
std::int64_t shared_row_bytes(const Kernel& kernel, const ReduceSchedule& schedule);
/// Dynamic shared memory that each of `blocks` blocks of a multiprocessor may have.
std::int64_t shared_row_room(const Kernel& kernel, const ReduceSchedule& schedule, const Target& target, int blocks);
/// Blocks that a multiprocessor has room for.
int resident_blocks(const Kernel& kernel, const ReduceSchedule& schedule, const Target& target);
/// Dynamic shared memory with which no more than `blocks` blocks fit a multiprocessor.
std::int64_t bytes_for_at_most(const Target& target, int blocks);

}  // namespace tenon::codegen

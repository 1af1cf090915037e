// What files of the Reduce heuristics share: rows along memory in the registers of the threads that have them
// (codegen/schedule/reduce_held.cpp). choose_reduce_schedule (choices.h) puts them together.
#pragma once

#include <cstdint>

#include "codegen/analysis/row_shape.h"
#include "codegen/kernel/kernel.h"
#include "codegen/schedule/schedule.h"

namespace tenon::codegen {

constexpr int kMaxHeldElements = 64;       // of a thread, in registers; each also lives as f32 while it is used
constexpr std::int64_t kLargeRow = 16384;  // elements, beyond which a large block has a row
constexpr int kMostThreadsOfRow = 512;     // of a block, which leaves each 64 registers and more
constexpr int kMostOfNorms = 24;           // issue slots of an element of a norm

/// Issue slots of what is computed of one element of a row.
int slots_of_element(const Kernel& kernel);

/// Whether rows come from places that are loaded: of a table that others read too.
bool gathers_rows(const Kernel& kernel);

/// Holds a row that is read again in registers, where it fits, with more threads where that is what it takes to hold
/// few elements in each: they leave room for more blocks on a multiprocessor.
void hold_in_registers(ReduceSchedule& schedule, const Kernel& kernel, const Target& target, const RowShape& shape);
/// Whether a large block's registers have the row, rather than its shared memory: where what is computed of an element
/// leaves them room, and time for another row to load.
bool registers_are_enough(const ReduceSchedule& schedule, const Kernel& kernel);

}  // namespace tenon::codegen

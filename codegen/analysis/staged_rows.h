// Short rows that lie one behind the other: those of a block are one run of memory, which comes to shared memory, and
// leaves it, in vectors of 16 bytes that may cross the ends of rows. A thread reads and writes its elements there.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/kernel/kernel.h"

namespace tenon::codegen {

/// A place in shared memory for the run of one operand.
struct StagedRun {
  int loaded = -1;  ///< the operand that comes; -1: none
  int stored = -1;  ///< the operand that leaves, whose elements take the places of those loaded; -1: none
  DType dtype = DType::f32;
};

/// The runs of all operands that are loaded or stored as they lie in the domain. What is stored takes the place of what
/// was loaded as the same dtype and is not read by a later sweep: the thread of an element is the same in all of them.
std::vector<StagedRun> staged_runs(const Kernel& kernel);
/// Whether `access` lies like the domain, in whole vectors.
bool is_staged(const Kernel& kernel, const Access& access);
/// Of one element, in all runs.
std::int64_t staged_element_bytes(const Kernel& kernel);

/// Rows of a block.
int rows_of_block(const ReduceSchedule& schedule);
/// Dynamic shared memory of a block.
std::int64_t staged_bytes(const Kernel& kernel, const ReduceSchedule& schedule);

/// `kernel` with accesses to runs instead, operands behind its own that have a thread's row alone: "row_in0".
Kernel with_staged_rows(const Kernel& kernel);
/// "row_in0".
std::string staged_name(const Kernel& kernel, int operand);

}  // namespace tenon::codegen

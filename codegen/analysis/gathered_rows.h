// Rows that the points of a Map kernel gather from, along its innermost axis: out[n, k] = x[n, i[k]]. Each element that
// lies anywhere in memory brings a sector of 32 bytes with it. A block that has whole rows in shared memory reads them
// once, as they lie, and a position once for all of its rows.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/kernel/kernel.h"

namespace tenon::codegen {

/// Rows of one operand. Those of neighbours along the axis before the innermost follow each other in memory.
struct GatheredRows {
  int operand = -1;
  Index begin;              ///< where a row begins, whatever the point of the innermost axis
  std::int64_t length = 0;  ///< elements of a row
  std::vector<InstrId> loads;
};

/// Those of all loads that may come from rows in shared memory. No load is in two.
std::vector<GatheredRows> gathered_rows(const Kernel& kernel);

/// How the threads of a block lie over its points, where `schedule` stages rows: `lanes` of them along the innermost
/// axis, with `unroll` vectors each, and `teams` along the rows, with `strip` rows each.
struct GatheringBlock {
  int lanes = 1, teams = 1;
  int rows = 1;    ///< of the block
  int points = 1;  ///< of a row that the block has
};
GatheringBlock gathering_block(const Kernel& kernel, const MapSchedule& schedule);

/// Shared memory that the rows of a block take, in bytes: of one operand, with what comes along at both ends, and of
/// all.
std::int64_t gathered_bytes(const Kernel& kernel, const GatheredRows& rows, int of_block);
std::int64_t gathered_bytes(const Kernel& kernel, const MapSchedule& schedule);

/// The kernel whose loads are from rows in shared memory: operands "row0", "row1" behind its own.
Kernel with_gathered_rows(const Kernel& kernel, const std::vector<GatheredRows>& all);

/// Values that say where in a row elements lie, and are the same for all rows of a thread.
std::vector<InstrId> shared_positions(const Kernel& kernel, const std::vector<GatheredRows>& all);

}  // namespace tenon::codegen

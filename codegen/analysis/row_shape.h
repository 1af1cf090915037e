// The rows of a Reduce kernel as its schedules see them: how many there are, how long they are, and what is loaded of
// each element.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/kernel/kernel.h"

namespace tenon::codegen {

struct RowShape {
  std::size_t kept = 0;         ///< axes
  std::int64_t rows = 0;        ///< the greatest number when symbolic
  std::int64_t least_rows = 0;  ///< the least
  std::int64_t length = 0;      ///< of a row; the greatest when symbolic
  bool known = false;           ///< constant
};

RowShape shape_of(const Kernel& kernel);

/// The loads that vary along a row.
std::vector<const Instr*> row_loads(const Kernel& kernel);
/// The loads that each element of each row has of its own: what a kernel's time goes to. All row loads where there are
/// none (a single row).
std::vector<const Instr*> row_streams(const Kernel& kernel);
/// Whether something is stored for each element of a row.
bool stores_elements(const Kernel& kernel);
/// Whether neighbouring rows lie side by side where elements are stored.
bool stores_across(const Kernel& kernel);
/// Bytes of an element of the widest row operand.
std::int64_t widest_of(const Kernel& kernel);
/// Bytes of one element of every stream.
std::int64_t stream_bytes(const Kernel& kernel);
/// Of one element of a persistent row: the bytes in registers, when most.
std::int64_t held_bytes(const Kernel& kernel);
/// More than one sweep over the row: a reduction of reductions, or elements stored after one.
bool rereads(const Kernel& kernel);
/// Whether a reduction is for the place of an element.
bool finds_index(const Kernel& kernel);

}  // namespace tenon::codegen

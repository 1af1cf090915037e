// Which values are integers so small that rounding them changes nothing.
#pragma once

#include <cstdint>
#include <optional>

#include "codegen/kernel/kernel.h"

namespace tenon::codegen {

/// Whether every value of the instruction is an integer that the real type `dtype` holds exactly, a zero or NaN: to
/// round it there, or to cast it, is the value itself. Integers of 8 bits in bf16 are, what masks, shifts and sums with
/// literals make of them, and what was rounded to an integer and limited. False where that is not known.
bool is_exact_in(const Kernel& kernel, InstrId id, DType dtype);

/// Where the instruction's values are integers: the least and the greatest that they may be. Nothing where that is not
/// known.
struct IntegerRange {
  std::int64_t low = 0, high = 0;
};
std::optional<IntegerRange> integer_range(const Kernel& kernel, InstrId id);

}  // namespace tenon::codegen

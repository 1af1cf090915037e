// Integers that are computed of positions: where they are affine functions of the axes, divisions and remainders
// included, what is gathered at them is read as a view is.
#pragma once

#include <optional>

#include "codegen/kernel/kernel.h"

namespace tenon::codegen {

/// What the integer instruction computes, as an index: positions, integer literals, and their sums, differences,
/// products with a literal, floor divisions and remainders by one above 0, as long as nothing wraps. Nothing where it
/// is something else, or that is not known.
std::optional<Index> affine_value(const Kernel& kernel, InstrId id);

}  // namespace tenon::codegen

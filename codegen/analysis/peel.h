// Vectors that are peeled off rows whose length no vector divides: they begin where one access, the reference, is
// aligned. Every other operand must lie along the row at known distances from it.
#pragma once

#include "codegen/analysis/rounds.h"
#include "codegen/kernel/kernel.h"

namespace tenon::codegen {

/// The access at whose alignment vectors begin when the rows of a Reduce kernel are peeled. Null when they cannot be:
/// every operand must be contiguous along the one reduced axis, so that nothing is read outside a row.
const Access* peel_reference(const Kernel& kernel);

/// The same for column reductions (codegen/emit/cuda/reduce/columns.h), or null: one kept and one reduced axis, one
/// sweep, with what shares it, that stores nothing for each element, and every load that varies along the kept axis in
/// vectors at the same places.
const Access* column_reference(const Kernel& kernel, int vector, SharedSweeps shared);

}  // namespace tenon::codegen

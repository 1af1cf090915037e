// Column reductions of rows whose length no vector divides: rows `vector` apart are aligned alike, so each part takes
// the rows of one alignment, and its vectors begin at aligned addresses, which are the same columns in all of them.
#pragma once

#include "codegen/emit/cuda/emit.h"

namespace tenon::codegen::cuda {

/// The access at whose alignment vectors begin, or null: one kept and one reduced axis, one sweep that stores nothing
/// for each element, and every load that varies along the kept axis in vectors at the same places.
const Access* column_reference(const Kernel& kernel, int vector);

/// A Reduce kernel whose schedule maps columns and is peeled; `splits` is a multiple of `vector`.
Source emit_peeled_columns(const Kernel& kernel, const Target& target);

}  // namespace tenon::codegen::cuda

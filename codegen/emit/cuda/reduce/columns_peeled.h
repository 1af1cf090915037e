// Column reductions of rows whose length no vector divides: rows `vector` apart are aligned alike, so each part takes
// the rows of one alignment, and its vectors begin at aligned addresses, which are the same columns in all of them.
#pragma once

#include "codegen/emit/cuda/emit.h"

namespace tenon::codegen::cuda {

/// A Reduce kernel whose schedule maps columns and is peeled; `splits` is a multiple of `vector`.
Source emit_peeled_columns(const Kernel& kernel, const Target& target);

}  // namespace tenon::codegen::cuda

// Products with a vector, as reductions.
#pragma once

#include "codegen/kernel/kernel.h"

namespace tenon::codegen {

/// A contract kernel whose result has one row or one column, as a reduce kernel: each element of the matrix is needed
/// once, so that no tile has anything to share, and rows of any length are summed as those of any other reduction.
/// Other kernels stay as they are: false. Products and sums are in the contraction's dtype.
bool sum_vector_products(Kernel& kernel);

}  // namespace tenon::codegen

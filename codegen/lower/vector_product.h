// Products with a vector, or with a few of them, as reductions.
#pragma once

#include "codegen/kernel/kernel.h"

namespace tenon::codegen {

/// Whether a contract kernel whose result has one row or one column had better stay one: a reduction reads the vector
/// and converts both factors for each element of the matrix, which is more than a multiprocessor does while it copies a
/// few bits. Tensor cores take eight rows for that, from registers (contract_stream.cuh). Where the matrix's rows lie
/// across the sum a reduction needs a second function, too, for the parts that it is cut in.
bool streams_past_vector(const Kernel& kernel, const Target& target);

/// A contract kernel whose result has one row or one column, as a reduce kernel: each element of the matrix is needed
/// once, so that no tile has anything to share, and rows of any length are summed as those of any other reduction.
/// Other kernels stay as they are: false. Products and sums are in the contraction's dtype.
bool sum_vector_products(Kernel& kernel);

/// The same of a result of two to sixteen rows or columns, for dtypes that tensor cores do not multiply: a sum for each
/// of them, which share what is read of the matrix. A tile of theirs has few blocks, each of which walks the whole
/// depth (f32 [2, 4096] x [4096, 1024] on an H100: 118 us).
bool sum_few_products(Kernel& kernel, const Target& target);

}  // namespace tenon::codegen

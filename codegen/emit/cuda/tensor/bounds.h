// What masks of positions leave of a product (codegen/analysis/product_bounds.h), as the lambdas that main loops of
// Contract kernels ask.
#pragma once

#include <string>

#include "codegen/analysis/product_bounds.h"
#include "codegen/emit/cuda/text/writer.h"

namespace tenon::codegen::cuda {

/// "int", or "i64" where 31 bits may not hold the sums of the bounds.
std::string bound_type(const Kernel& kernel, const ContractParts& parts);

/// "const auto depth_of = [&](int m, int n) -> depth_range<int> { … };": of the tile of rows x columns that begins
/// there; it begins at a step of the schedule.
void emit_depth_of(Writer& out, const Kernel& kernel, const ContractParts& parts, int rows, int columns);

/// "const auto bounds = make_bounded_depth<int, 128, 256, false, false>(depth_of, rows_of);" with both of them.
void emit_bounds(Writer& out, const Kernel& kernel, const ContractParts& parts, int rows, int columns);

/// "blockIdx.x", or the same from the last block back where later tiles have more depth: those begin first.
std::string first_block(const ProductBounds& bounds, const ContractParts& parts);

}  // namespace tenon::codegen::cuda

// Map kernels by flat tiles, whatever the order of axes in which loads lie.
#pragma once

#include "codegen/emit/source.h"
#include "codegen/kernel/kernel.h"

namespace tenon::codegen::cuda {

/// A kernel whose schedule has a flat tile (codegen/analysis/flat_tile.h).
Source emit_flat_tile(const Kernel& kernel, const Target& target);

}  // namespace tenon::codegen::cuda

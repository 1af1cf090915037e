// Loads that overlap from point to point as they are written: stretches of an operand in registers, which points take
// their elements from (codegen/analysis/overlap.h).
#pragma once

#include <functional>
#include <vector>

#include "codegen/analysis/overlap.h"
#include "codegen/emit/cuda/text/writer.h"
#include "codegen/kernel/kernel.h"

namespace tenon::codegen::cuda {

/// Loads the stretches of `overlaps` into registers: "const pack<float, 12> w0 = …;"
void define_stretches(Writer& out, const Kernel& kernel, const std::vector<Overlap>& overlaps);
/// Those of `rows` neighbouring rows along `axis`, in arrays "pack<float, 12> w0[6];" that have the rows of all that
/// lie whole rows further on. `open_row` defines the axis for row u of a loop, which is closed here.
std::vector<StretchOfRow> define_stretches_of_rows(Writer& out, const Kernel& kernel,
                                                   const std::vector<Overlap>& overlaps, int axis, int rows,
                                                   const std::function<void()>& open_row);

}  // namespace tenon::codegen::cuda

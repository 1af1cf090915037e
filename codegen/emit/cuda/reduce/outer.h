// Outer reductions: those over the kept axes, beside reductions over rows (norm backward: dw and db beside dx). A fixed
// number of blocks walk over all rows. Each thread accumulates the outer reductions of its own elements in registers
// a<id>[c][j]. At the end each block writes them to scratch, and a second function combines the blocks in order.
#pragma once

#include "codegen/emit/cuda/reduce/team.h"
#include "codegen/emit/cuda/reduce/walk.h"

namespace tenon::codegen::cuda {

/// The kernel's outer reductions, in the order of their sweeps.
std::vector<InstrId> outer_reductions(const Rows& rows);

/// "pack<float, 8> a9[1];" for each, with its identity in it.
void declare_outer(Writer& out, const Rows& rows, int chunks);
/// Stores the block's part of each in scratch, behind the last row.
void emit_outer_parts(Writer& out, const Rows& rows, Walk& walk);
/// The second function: combines the parts and stores the results.
Finisher outer_finisher(const Rows& rows, const Target& target);

}  // namespace tenon::codegen::cuda

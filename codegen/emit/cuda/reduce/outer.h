// Reductions over the kept axes beside those over rows (norm backward: dw and db beside dx). A grid of blocks walks all
// rows; each thread keeps the outer reductions of its own elements in registers a<id>[c][j], over all rows of its
// block. At the end each block leaves them in scratch, and a second function combines the blocks' in order.
#pragma once

#include "codegen/emit/cuda/reduce/team.h"
#include "codegen/emit/cuda/reduce/walk.h"

namespace tenon::codegen::cuda {

/// The kernel's outer reductions, in the order of their sweeps.
std::vector<InstrId> outer_reductions(const Rows& rows);

/// "pack<float, 8> a9[1];" for each, at its identity.
void declare_outer(Writer& out, const Rows& rows, int chunks);
/// Behind the last row: the block's share of each into scratch.
void emit_outer_parts(Writer& out, const Rows& rows, Walk& walk);
/// The second function: what is stored of them.
Finisher outer_finisher(const Rows& rows, const Target& target);

}  // namespace tenon::codegen::cuda

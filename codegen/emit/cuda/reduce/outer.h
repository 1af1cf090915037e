// Outer reductions: those over the kept axes, beside reductions over rows (norm backward: dw and db beside dx). A fixed
// number of blocks walk over all rows. Each thread accumulates the outer reductions of its own elements in registers
// a<id>[c][j]. At the end each block writes them to scratch, and a second function combines the blocks in order. A
// block has one row at a time, or each of its warps has some.
#pragma once

#include "codegen/emit/cuda/reduce/team.h"
#include "codegen/emit/cuda/reduce/walk.h"

namespace tenon::codegen::cuda {

/// The kernel's outer reductions, in the order of their sweeps.
std::vector<InstrId> outer_reductions(const Rows& rows);

/// "pack<float, 8> a9[1];" for each, with its identity in it.
void declare_outer(Writer& out, const Rows& rows, int chunks);
/// Stores the block's part of each in scratch, behind the last row, where the block has a row.
void emit_outer_parts(Writer& out, const Rows& rows, Walk& walk);
/// The same where its warps have rows of their own: they combine theirs first, in order, in the dynamic memory `shared`
/// (codegen/analysis/outer_parts.h).
void emit_outer_of_warps(Writer& out, const Rows& rows, const Walk& walk);
/// The second function: combines the parts and stores the results.
Finisher outer_finisher(const Rows& rows, const Target& target);

}  // namespace tenon::codegen::cuda

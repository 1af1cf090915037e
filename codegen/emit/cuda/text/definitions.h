// The definitions of a scope's values, a line each: "const float v3 = v1 + v2;". The sine and the cosine of one value
// are two of them and one call, since most of the work is the same.
#pragma once

#include <vector>

#include "codegen/emit/cuda/text/names.h"
#include "codegen/emit/cuda/text/writer.h"
#include "codegen/kernel/kernel.h"

namespace tenon::codegen::cuda {

/// All of `instrs` (kinds as in `expression`), which are in definition order. Literals are spelled where they are used.
void define(Writer& out, const Kernel& kernel, const std::vector<InstrId>& instrs, const Names& names);

/// One of `scope`: those that are defined in the same scope, all by this function and in definition order. With the
/// first of a pair comes the second, for which nothing is then left to do.
void define(Writer& out, const Kernel& kernel, InstrId instr, const std::vector<InstrId>& scope, const Names& names);

}  // namespace tenon::codegen::cuda

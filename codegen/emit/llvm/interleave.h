// Vectors of one turn, computed side by side. Long expressions are chains of instructions that wait for each other;
// one behind the other they fill a core's queues with what cannot begin yet.
#pragma once

#include <vector>

#include "codegen/emit/llvm/scope.h"

namespace tenon::codegen::simd {

/// Evaluates `values` in each of `scopes`, whose instructions then take turns. Calls of functions stay in one piece.
void evaluate_interleaved(Unit& unit, std::vector<Scope>& scopes, const std::vector<InstrId>& values);

}  // namespace tenon::codegen::simd

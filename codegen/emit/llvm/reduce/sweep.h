// One sweep of a reduce kernel over the reduced axes (codegen/analysis/rounds.h): elements are accumulated or stored.
#pragma once

#include <vector>

#include "codegen/analysis/rounds.h"
#include "codegen/emit/llvm/reduce/accumulate.h"
#include "codegen/emit/llvm/reduce/kept.h"
#include "codegen/emit/llvm/reduce/late_stores.h"
#include "codegen/emit/llvm/reduce/rows.h"

namespace tenon::codegen::simd {

/// What the reductions of a sweep have found: [reduction][row].
using Partials = std::vector<std::vector<Partial>>;

/// Sweep `number` over `rows`, or over a part of each; over a row with `late`, the stores of the row before it, in
/// turns with it.
Partials emit_sweep(Unit& unit, const RowPlan& plan, const Rounds& rounds, std::size_t number, std::vector<Scope>& rows,
                    const Part& part, const std::vector<KeptValue>& kept, LateStores* late = nullptr);

}  // namespace tenon::codegen::simd

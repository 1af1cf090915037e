// The buffers of a row's dear values (codegen/analysis/dear_values.h) in memory of the thread that works on the row.
#pragma once

#include <vector>

#include "codegen/analysis/dear_values.h"
#include "codegen/emit/llvm/scope.h"

namespace tenon::codegen::simd {

/// A dear value and where its elements lie, those of one row.
struct KeptValue {
  DearValue what;
  Value* memory = nullptr;
};

/// Buffers for what the schedule keeps of a row, `reduced` being its only axis: none when it keeps nothing.
std::vector<KeptValue> reserve_kept(Unit& unit, const Rounds& rounds, const std::vector<int>& reduced, int lanes);

/// Gives `scopes`, whose lanes lie along the row, what earlier sweeps than `sweep` kept.
void bind_kept(Unit& unit, std::size_t sweep, const std::vector<KeptValue>& all, std::vector<Scope>& scopes);
/// Keeps what sweep number `sweep` computes: of a masked vector only its elements, for what lies behind them may have
/// been kept before, where the ends of a row come last.
void keep(Unit& unit, std::size_t sweep, const std::vector<KeptValue>& all, std::vector<Scope>& scopes);

}  // namespace tenon::codegen::simd

// A maximum and the exponentials shifted by it, summed in one sweep (`Online` of codegen/analysis/rounds.h). All lanes
// are shifted alike: most turns then find nothing that is larger, and only the others stop to rescale.
#pragma once

#include <vector>

#include "codegen/analysis/rounds.h"
#include "codegen/emit/llvm/reduce/long_sums.h"
#include "codegen/emit/llvm/scope.h"

namespace tenon::codegen::simd {

/// What a row has so far, as variables of the function.
struct OnlineSum {
  Online what;
  Accumulator maximum;                 ///< in every lane; a zero of either sign
  Accumulator sum;                     ///< of each lane
  llvm::AllocaInst* shift = nullptr;   ///< in every lane
  llvm::AllocaInst* blocks = nullptr;  ///< of the sum, shifted alike; null where there are none (long_sums.h)
};

OnlineSum make_online(Unit& unit, const Online& online, int lanes);
/// Adds the elements of one turn. The builder is in another block afterwards, and so are `scopes`.
void add_online(Unit& unit, const OnlineSum& so_far, std::vector<Scope>& scopes);
Partial online_maximum(Unit& unit, const OnlineSum& so_far);
/// By `sums`, to which it was added.
Partial online_sum(Unit& unit, const OnlineSum& so_far, const LongSums& sums);

}  // namespace tenon::codegen::simd

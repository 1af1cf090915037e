// The keys that the masks of an attention leave a query: a range, as far as comparisons of positions say it. Emitters
// skip the tiles of keys outside of it.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/kernel/kernel.h"

namespace tenon::codegen {

/// j <= slope * i + offset (an upper bound) or j >= slope * i + offset (a lower one), for all keys j that query i sees.
struct KeyBound {
  bool upper = true;
  std::int64_t slope = 0;
  Dim offset;
};

/// Bounds outside of which the score of an attend kernel is -inf, found in selections by comparisons of sums of
/// positions, and by conjunctions of them. Not complete: what is not understood bounds nothing.
std::vector<KeyBound> key_bounds(const Kernel& kernel);

}  // namespace tenon::codegen

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

/// The masks of an attend kernel's score: selections against -inf.
struct KeyMasks {
  std::vector<KeyBound> bounds;  ///< outside of which the score is -inf; what is not understood bounds nothing
  InstrId open = -1;             ///< the score where no mask hides the key, behind the selections that stand last
  bool complete = false;         ///< the score is `open` wherever all bounds hold
};

/// Found in comparisons of sums of positions, and in conjunctions of them.
KeyMasks key_masks(const Kernel& kernel);

}  // namespace tenon::codegen

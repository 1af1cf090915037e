// The keys that the masks of an attention leave a query: a range, as far as comparisons of positions say it. Emitters
// skip the tiles of keys outside of it.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/analysis/position_bounds.h"
#include "codegen/kernel/kernel.h"

namespace tenon::codegen {

/// j <= slope * i + offset + value (an upper bound) or j >= the same (a lower one), for all keys j that query i sees.
struct KeyBound {
  bool upper = true;
  std::int64_t slope = 0;
  Dim offset;
  InstrId value = -1;    ///< an integer of the batch, of a sequence's length say; -1: none
  bool negated = false;  ///< the value is subtracted
};

/// The masks of an attend kernel's score: selections against -inf.
struct KeyMasks {
  std::vector<KeyBound> bounds;       ///< outside of which the score is -inf
  std::vector<MaskCondition> others;  ///< that bounds do not say, or not wholly
  InstrId open = -1;                  ///< the score where no mask hides the key, behind the selections that stand last
  bool exact = true;                  ///< the score is `open` wherever all bounds and conditions hold
  /// The score is `open` wherever all bounds hold.
  bool complete() const { return exact && others.empty(); }
};

/// Whether bounds by positions alone say all of the mask, and leave each query a key (where there are keys).
bool leaves_each_query_a_key(const Kernel& kernel, const MaskCondition& mask);

/// Bounds are found in comparisons of sums of positions and a value of the batch, and in conjunctions of them.
KeyMasks key_masks(const Kernel& kernel);

}  // namespace tenon::codegen

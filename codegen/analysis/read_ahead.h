// What a score reads beside the product of its query and its key, a bias in memory say: ahead of the product, which
// then hides how long memory takes. A thread reads pairs of neighbouring keys, as it has them; or boxes bring all that
// the scores of a warpgroup read to shared memory. Pairs lie 16 bytes of a row side by side, so that a load of a warp
// touches eight lines; boxes touch each once.
#pragma once

#include "codegen/analysis/box.h"
#include "codegen/analysis/key_bounds.h"
#include "codegen/lower/parts.h"

namespace tenon::codegen {

/// The load of the score where no mask hides it that is read so: 16 bits or fewer an element, which two keys share a
/// register for, contiguous along an even number of keys, and not placed by other values. The first such; -1 where
/// there is none, or the score draws random numbers, whose functions have another form.
InstrId read_ahead(const Kernel& kernel, const AttendParts& parts, const KeyMasks& masks);

/// A load of the score, and its boxes: rows of queries, and neighbouring keys.
struct BoxedScores {
  InstrId read = -1;
  int bytes = 0;  ///< of an element: 1, 2 or 4
  BoxAccess box;
};
/// The same where boxes can bring it: it differs from query to query. Nothing where there is none.
std::optional<BoxedScores> boxed_scores(const Kernel& kernel, const AttendParts& parts, const KeyMasks& masks);

}  // namespace tenon::codegen

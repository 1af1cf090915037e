// What a score reads beside the product of its query and its key, a bias in memory say: as pairs of neighbouring keys,
// as a thread has them, and ahead of the product, which then hides how long memory takes.
#pragma once

#include "codegen/analysis/key_bounds.h"
#include "codegen/lower/parts.h"

namespace tenon::codegen {

/// The load of the score where no mask hides it that is read so: 16 bits or fewer an element, which two keys share a
/// register for, contiguous along an even number of keys, and not placed by other values. The first such; -1 where
/// there is none, or the score draws random numbers, whose functions have another form.
InstrId read_ahead(const Kernel& kernel, const AttendParts& parts, const KeyMasks& masks);

}  // namespace tenon::codegen

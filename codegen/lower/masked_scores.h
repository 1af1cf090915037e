// Masks that are added to the scores of an attention: 0 where a query sees a key, -inf elsewhere. The sum is a
// selection, and becomes one, so that masks have one form: what bounds the keys (codegen/analysis/key_bounds.h) finds
// it however the user wrote it.
#pragma once

#include "codegen/kernel/kernel.h"

namespace tenon::codegen {

/// A selection between 0 and -inf, or between -inf and 0, behind casts between reals. Added, it rounds nothing.
bool is_added_mask(const Kernel& kernel, InstrId id);

/// In an attend kernel: x + mask becomes x where the mask is 0, and -inf elsewhere, as far as such sums are what the
/// score is made of last. A score that is not finite is hidden too (docs/numerics.md).
void select_masked_scores(Kernel& kernel);

}  // namespace tenon::codegen

// The score of an attention as a value times a positive constant. Softmax takes the maximum of the value, and the
// constant goes into the base of the exponential (docs/numerics.md, rule 6).
#pragma once

#include "codegen/analysis/key_bounds.h"
#include "codegen/lower/parts.h"

namespace tenon::codegen {

struct ScaledScores {
  InstrId product = -1;  ///< `value` times `scale`; -1 where there is none
  InstrId value = -1;    ///< what masks hide, or not, without the constant
  float scale = 1;
};

/// Of the score where no mask hides it: a product in f32 by a literal above 0 that nothing but masks takes.
ScaledScores scaled_scores(const Kernel& kernel, const AttendParts& parts, const KeyMasks& masks);

/// What computes the score where no mask hides it, from the product of queries and keys.
Region open_region(const Kernel& kernel, const AttendParts& parts, const KeyMasks& masks);

/// Issue slots of such a score and of what multiplies its weight, and how many are costly: fewer elements are unrolled,
/// or fewer warpgroups share the registers.
int score_cost(const Kernel& kernel, const AttendParts& parts);
inline constexpr int kCostlyScore = 12;

/// Each weight is exp(score - shift), or exp(score), in f32 and without a cast between.
bool weights_are_exponentials(const Kernel& kernel, const AttendParts& parts);

}  // namespace tenon::codegen

// What a CPU keeps of a row from one sweep to the next: loads it makes again from the caches, but values that are dear
// to compute, such as the exponentials of a softmax, it keeps in a buffer.
#pragma once

#include <cstddef>
#include <vector>

#include "codegen/analysis/rounds.h"
#include "codegen/kernel/kernel.h"

namespace tenon::codegen {

/// A value of every element that a later sweep uses again.
struct DearValue {
  InstrId value = -1;
  std::size_t sweep = 0;  ///< that computes it
};

/// In definition order: of values that several sweeps evaluate, those that they would evaluate no further.
std::vector<DearValue> dear_values(const Kernel& kernel, const Rounds& rounds);

}  // namespace tenon::codegen

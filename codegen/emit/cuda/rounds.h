// A Reduce kernel's body cut into sweeps over the reduced axes. A reduction's round is the number of reductions that it
// depends on along the longest chain; one sweep serves all reductions of a round, and what is stored for each element
// once they are known.
#pragma once

#include <vector>

#include "codegen/kernel.h"

namespace tenon::codegen::cuda {

struct Sweep {
  std::vector<InstrId> before;  ///< per-row instructions that can be computed only now
  std::vector<InstrId> instrs;  ///< per element, in definition order
  std::vector<InstrId> reduces;
  std::vector<int> stores;  ///< per element
};

struct Rounds {
  std::vector<Sweep> sweeps;
  std::vector<InstrId> after;   ///< per-row instructions behind the last sweep
  std::vector<int> row_stores;  ///< one element for each row
};

Rounds rounds_of(const Kernel& kernel);

/// Whether the value varies along a reduced axis.
bool element_level(const Kernel& kernel, InstrId instr);

}  // namespace tenon::codegen::cuda

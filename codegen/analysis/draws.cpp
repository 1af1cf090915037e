// See draws.h.
#include "codegen/analysis/draws.h"

#include <algorithm>

#include "codegen/analysis/vectorize.h"

namespace tenon::codegen {

bool draws_random_numbers(const Kernel& kernel) {
  return std::any_of(kernel.body.begin(), kernel.body.end(),
                     [](const Instr& instr) { return instr.kind == InstrKind::random; });
}

Index block_of(const Kernel& kernel, const Instr& random) {
  return random.word < 0 ? floor_div(random.index, 4, kernel.context()) : random.index;
}

bool has_narrow_blocks(const Kernel& kernel, const Instr& random) {
  const bool wide = kernel.wide_index || kernel.wide_random;
  return !wide || bounds(block_of(kernel, random), kernel.context()).max <= UINT32_MAX;
}

std::vector<InstrId> drawn_by_fours(const Kernel& kernel, const std::vector<InstrId>& region, int j) {
  std::vector<InstrId> drawn;
  for (const InstrId id : region) {
    const Instr& instr = kernel.instr(id);
    if (instr.kind == InstrKind::random && instr.word < 0 && kernel.instr(instr.args[0]).depends == 0 &&
        counts_up(instr.index, j, false, 4, 4, kernel))
      drawn.push_back(id);
  }
  return drawn;
}

Index block_of_four(const Kernel& kernel, const Instr& random, int j) {
  const auto step = random.index.coefficient(j);
  if (!step || !step->is(1)) return block_of(kernel, random);
  const Index key = Index::axis(j);
  return floor_div(random.index - key, 4, kernel.context()) + floor_div(key, 4, kernel.context());
}

}  // namespace tenon::codegen

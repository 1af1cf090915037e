// What the threads of a persistent row keep of it in registers from one sweep to the next: what was loaded, or what was
// computed from it where that is smaller, or costs more to compute again than registers do.
#pragma once

#include <vector>

#include "codegen/analysis/rounds.h"
#include "codegen/kernel/kernel.h"

namespace tenon::codegen {

/// A value of every element that more than one sweep uses.
struct Held {
  InstrId value = -1;
  std::size_t sweep = 0;  ///< that computes it; a load is there before the first
};

/// In definition order.
std::vector<Held> held_values(const Kernel& kernel, const Rounds& rounds);
/// The same of loads alone: what shared memory holds, where they are copied to.
std::vector<Held> held_loads(const Kernel& kernel, const Rounds& rounds);
/// Issue slots of an element beyond which a tile's values stay in registers: of online sums along rows, and of moments
/// and online sums down columns, whose tiles are larger.
inline constexpr int kDearInVectors = 6, kDearInLoop = 14;
/// What the second pass over a tile (the online sum, or else the squares around the mean) uses of what the first has
/// computed, where that takes more than `dear` issue slots. Empty unless it is one value.
std::vector<InstrId> kept_in_tile(const Kernel& kernel, const Sweep& sweep, int dear);
/// Of `instrs`, what `reduce` sums up: those that are still to be done then, behind those that are kept.
std::vector<InstrId> instrs_behind(const Kernel& kernel, const std::vector<InstrId>& instrs, InstrId reduce,
                                   const std::vector<InstrId>& kept);
/// `rounds` with sweeps that use the values of earlier ones.
Rounds with_held(const Kernel& kernel, Rounds rounds, const std::vector<Held>& held);

/// Bytes of one element of it: a load as in memory, a rounded value likewise, else the value itself.
int held_size(const Kernel& kernel, InstrId value);

/// Whether `instr` loads an element of the innermost axis from an offset that is known from the start.
bool is_plain_load(const Kernel& kernel, InstrId instr);

}  // namespace tenon::codegen

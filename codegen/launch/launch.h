// Launches: which kernels one launch runs. Decided from the kernels and their schedules, before any text is written.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "codegen/kernel/kernel.h"
#include "codegen/target/target.h"

namespace tenon::codegen {

/// Kernels that one launch runs side by side, each on blocks of its own (a pack, which CUDA has), or a kernel by
/// itself.
struct Launch {
  std::vector<int> groups;  ///< of the plan, one for each member
  std::vector<Kernel> members;
};

/// How the kernels of `together`, which a plan packs, are launched: those that can be members of one pack first, and
/// each of the others by itself. On a CPU all of them are by themselves. Members get blocks of one size where their
/// schedules leave it free.
std::vector<Launch> deal_launches(Launch together, const Target& target);

/// The name of the function that is launched: the kernel's, or "pack_of_3_map_exp".
std::string entry_of(const Launch& launch);

/// "map_exp: map threads=256 vector=4 unroll=1 (in pack_of_3_map_exp)", a line.
std::string print(const Launch& launch, std::size_t member);
/// A line for each member.
std::string print(const Launch& launch);

}  // namespace tenon::codegen

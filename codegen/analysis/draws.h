// Random numbers, and those that an attention draws four at a time. Element i of random bits is word i % 4 of block i /
// 4, so that four neighbouring keys of a query may share a block, and need the rounds of one Philox between them.
#pragma once

#include <vector>

#include "codegen/kernel/kernel.h"

namespace tenon::codegen {

bool draws_random_numbers(const Kernel& kernel);

/// The number of the block that a random number is a word of, and whether 32 bits hold it.
Index block_of(const Kernel& kernel, const Instr& random);
bool has_narrow_blocks(const Kernel& kernel, const Instr& random);

/// Issue slots of each of four numbers that are drawn together, where kRandomCost is that of one by itself.
inline constexpr int kDrawCost = 12;

/// Those of `region` whose elements at four keys of axis `j`, from a multiple of four on, are the words of one block.
std::vector<InstrId> drawn_by_fours(const Kernel& kernel, const std::vector<InstrId>& region, int j);
/// The number of the block of one of these at keys from a multiple of four on: what is left of the key is divided
/// apart.
Index block_of_four(const Kernel& kernel, const Instr& random, int j);

}  // namespace tenon::codegen

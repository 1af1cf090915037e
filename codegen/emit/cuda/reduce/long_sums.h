// Sums of so many reals that a thread would add up hundreds one after the other: it adds those of a block, then blocks,
// in double where they are many too, so that the error does not grow with the number of terms (docs/numerics.md).
// What is shorter stays as it is.
#pragma once

#include <string>
#include <vector>

#include "codegen/emit/cuda/reduce/team.h"

namespace tenon::codegen::cuda {

/// Of `reduces`, those in f32 that are sums of more than a few hundred terms by one of `members` threads.
std::vector<InstrId> long_sums(const Rows& rows, const std::vector<InstrId>& reduces, int members);

/// The type in which their blocks are added: float while these are few, since a double is another register.
const char* type_of_blocks(const Rows& rows, int members);

/// Turns of a loop, in each of which a thread adds `terms` to an accumulator, of one block.
int turns_of_block(int terms);

/// "for (int block = <first>; block < <end>; block += <step>) {" and the end of the block, "stop".
void open_block(Writer& out, const Rows& rows, const std::string& first, const std::string& end, std::int64_t step);

}  // namespace tenon::codegen::cuda

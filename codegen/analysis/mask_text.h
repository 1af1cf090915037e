// The masks of an attention in words: which keys are never read, which tiles are asked, and what is asked of each
// score.
#pragma once

#include <string>
#include <vector>

#include "codegen/kernel/kernel.h"

namespace tenon::codegen {

/// "key <= query + 3: no key behind it is read", a line for each mask of an attend kernel that has its schedule.
/// `operands`: names of what it reads, in the order of Kernel::operands.
std::vector<std::string> mask_texts(const Kernel& kernel, const std::vector<std::string>& operands);

}  // namespace tenon::codegen

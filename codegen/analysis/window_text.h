// The windows and the guards of a map in words: what a thread loads once, and how much of the kernel has no guards.
#pragma once

#include <string>
#include <vector>

#include "codegen/kernel/kernel.h"

namespace tenon::codegen {

/// "x: 8 loads of 4 results are 4 of 16 bytes", "all but 0.1 % of the results lie inside: no guards", of a map kernel
/// that has its schedule. `operands`: names of what it reads, in the order of Kernel::operands.
std::vector<std::string> window_texts(const Kernel& kernel, const std::vector<std::string>& operands);

}  // namespace tenon::codegen

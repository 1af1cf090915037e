// Groups of which lowering makes the same kernel: those of equal layers of a model. They differ in the values that they
// read and write, which a kernel does not know.
#pragma once

#include <cstddef>
#include <vector>

#include "ir/fusion/plan.h"

namespace tenon::codegen {

/// For each of `sets`, groups of `plan` that are launched together, the position of the first set whose kernels are the
/// same in every dimension class: its own where none before it is alike. In time linear in the groups.
std::vector<std::size_t> first_alike(const ir::Plan& plan, const std::vector<std::vector<int>>& sets);

}  // namespace tenon::codegen

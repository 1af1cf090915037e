// Runs generated CUDA without a GPU: the text is compiled as C++ with the words of CUDA defined (cuda_shim.h). It shows
// what the text computes, not how a GPU rounds exp or schedules warps. Slow: a second for each kernel, and a host
// thread for each of a block.
#pragma once

#include <vector>

#include "codegen/source.h"
#include "ir/interpret.h"

namespace tenon::test {

/// Runs `source` on `pointers` (of its operands, in order).
void run_cuda_on_host(const codegen::Source& source, const std::vector<void*>& pointers, const Bindings& bindings);

}  // namespace tenon::test

// Runs generated CUDA without a GPU: the text is compiled as C++ with the words of CUDA defined (cuda_shim.h). It shows
// what the text computes, not how a GPU rounds exp or schedules warps. Slow: a part of a second for each kernel, and a
// host thread for each of a block.
#pragma once

#include <memory>
#include <vector>

#include "codegen/emit/source.h"
#include "ir/interpret/interpret.h"
#include "runtime/backend.h"

namespace tenon::test {

/// Runs `source` on `pointers` (of its operands, in order).
void run_cuda_on_host(const codegen::Source& source, const std::vector<void*>& pointers, const Bindings& bindings);

/// A backend whose kernels are CUDA for sm_90a, run so: executables, packs among them, without a GPU.
std::shared_ptr<const runtime::Backend> cuda_on_host_backend();

}  // namespace tenon::test

// Runs generated CUDA without a GPU: the text is compiled as C++ with the words of CUDA defined (cuda_shim.h). It shows
// what the text computes, not how a GPU rounds exp or schedules warps. Slow: a part of a second for each kernel, and a
// host thread for each of a block, but for kernels of warpgroups (hopper_on_host.h).
#pragma once

#include <memory>
#include <vector>

#include "codegen/emit/source.h"
#include "ir/interpret/interpret.h"
#include "runtime/backend.h"

namespace tenon::test {

/// Runs `source` on `pointers` (of its operands, in order).
void run_cuda_on_host(const codegen::Source& source, const std::vector<void*>& pointers, const Bindings& bindings);

/// The same, compiled once.
class CudaOnHost {
 public:
  explicit CudaOnHost(const codegen::Source& source);
  ~CudaOnHost();
  CudaOnHost(const CudaOnHost&) = delete;
  CudaOnHost& operator=(const CudaOnHost&) = delete;

  /// `seed`: of the order in which the threads of warpgroups run (hopper_on_host.h). std::runtime_error for what they
  /// may not do.
  void run(const std::vector<void*>& pointers, const Bindings& bindings, std::uint64_t seed = 1) const;

 private:
  struct Kernel;
  std::unique_ptr<const Kernel> kernel_;
};

/// A backend whose kernels are CUDA for sm_90a, run so: executables, packs among them, without a GPU. `warpgroups`:
/// whether these multiply, where they can.
std::shared_ptr<const runtime::Backend> cuda_on_host_backend(bool warpgroups);

}  // namespace tenon::test

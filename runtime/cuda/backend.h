// The CUDA target: emit_cuda, NVRTC, the kernel cache, and the driver. Compiles for any architecture without a device;
// launching needs one.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "runtime/backend.h"
#include "runtime/cuda/device.h"
#include "runtime/cuda/nvrtc.h"

namespace tenon::runtime::cuda {

struct BackendOptions {
  NvrtcSearch nvrtc;
  std::string arch;         ///< empty: the device's own
  bool with_device = true;  ///< false: compile only; launches are Error(no_device)
  int device = 0;
  std::set<std::string> disable;  ///< codegen::Features that are switched off
  std::string tenon_version;      ///< part of every cache key
};

/// Error(no_device) when there is no NVRTC, or no device where one is wanted.
std::shared_ptr<const Backend> make_backend(const BackendOptions& options, std::shared_ptr<KernelCache> cache);

}  // namespace tenon::runtime::cuda

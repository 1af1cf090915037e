// The NVRTC of this machine, for tests that need one.
#pragma once

#include <cstdlib>
#include <memory>

#include "runtime/cuda/nvrtc.h"
#include "tenon/error.h"

namespace tenon::test {

inline runtime::cuda::NvrtcSearch nvrtc_search() {
  runtime::cuda::NvrtcSearch search;
  if (const char* path = std::getenv("TENON_NVRTC_PATH")) search.path = path;
  search.extra_folders = {"build/nvrtc/nvidia/cu13/lib"};
  search.toolkit_folders = {"/usr/local/cuda"};
  return search;
}

/// Null where there is none.
inline std::shared_ptr<const runtime::cuda::Nvrtc> installed_nvrtc() {
  try {
    return runtime::cuda::open_nvrtc(nvrtc_search());
  } catch (const Error&) {
    return nullptr;
  }
}

}  // namespace tenon::test

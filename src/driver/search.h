// Where to look for NVRTC, as options and environment say.
#pragma once

#include "runtime/cuda/nvrtc.h"
#include "tenon/compile.h"

namespace tenon::src {

runtime::cuda::NvrtcSearch nvrtc_search(const Options& options);

}  // namespace tenon::src

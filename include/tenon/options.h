// What a caller may ask of the compiler and the runtime.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "tenon/shape.h"

namespace tenon {

/// Every switch of Tenon. Plain data: `default_options()` fills it from the environment, and nothing else reads the
/// environment.
struct Options {
  bool fuse = true;               ///< false: one kernel for each operator, to compare
  std::set<std::string> disable;  ///< what is switched off (TENON_DISABLE): names that `tenon switches` lists. Another
                                  ///< name is an Error(argument) when a graph is compiled, here and in `print`
  std::set<std::string> print;    ///< levels printed to stderr while compiling (TENON_PRINT): graph, plan, schedule,
                                  ///< kernel, source
  Bindings typical;               ///< typical symbol values, for the planner's estimates
  double max_live_bytes = 0;      ///< of intermediates alive at once at the typical sizes, 0: no limit. Kernels are not
                                  ///< merged beyond it; a graph that does not fit is an Error(resource)

  bool cache = true;      ///< keep compiled kernels on disk, and the plans of graphs of many operators
  std::string cache_dir;  ///< TENON_CACHE_DIR; empty: $XDG_CACHE_HOME/tenon or ~/.cache/tenon
  std::uint64_t cache_bytes = std::uint64_t{1} << 30;  ///< TENON_CACHE_BYTES

  bool replay = false;  ///< runs of several kernels are recorded as a CUDA graph and repeated with one call
                        ///< (TENON_REPLAY); worth it for small kernels and buffers that stay where they are

  bool tune = false;  ///< the first run at new sizes tries several schedules for each kernel on the caller's buffers,
                      ///< checks and times them, and keeps the fastest in the disk cache (TENON_TUNE). Once kept it is
                      ///< used with and without this option, unless `disable` has "tuned"

  std::string nvtx_tool;  ///< NVTX_INJECTION64_PATH, which NVIDIA's profilers set: the library of the tool that is told
                          ///< of each run and kernel (an NVTX range each), unless `disable` has "nvtx"; empty: no tool

  std::string nvrtc_path;  ///< TENON_NVRTC_PATH: libnvrtc, or its folder; empty: search
  int device = 0;          ///< CUDA ordinal
  int threads = 0;         ///< CPU threads; 0: as many as the process may use (TENON_THREADS)
};

/// The options that the environment asks for.
Options default_options();

/// One variable that default_options() reads.
struct EnvironmentVariable {
  std::string name, value, doc;  ///< value is empty when unset
};
std::vector<EnvironmentVariable> environment();

}  // namespace tenon

// How long each kernel of an executable takes at given sizes. Relies on kernels never writing what they read: a launch
// may be repeated, and leaves the same result.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tenon/compile.h"

namespace tenon::runtime {

/// One kernel's times, by the host's clock. A sample is a batch of launches that are waited for together, long enough
/// to hide the wait, divided by their number; what the launch itself costs shows only where it is longer than the
/// kernel. Batches repeat, so what fits in a cache is read from there.
struct KernelTimes {
  std::string name;
  std::size_t group = 0;      ///< of the plan
  std::int64_t launches = 0;  ///< in all samples
  double mean_us = 0, min_us = 0, max_us = 0;
  std::int64_t bytes = 0;                ///< its inputs and outputs once
  double begin_us = 0, duration_us = 0;  ///< in one run with a wait after each kernel, from that run's begin
};

/// Runs the executable on these buffers and times its kernels, in launch order, for about `seconds` each.
std::vector<KernelTimes> profile(const Executable& executable, std::span<const Buffer> inputs,
                                 std::span<const Buffer> outputs, const Bindings& bindings, double seconds);

/// The run as a Chrome trace (JSON, the "Trace Event Format"; Perfetto opens it).
std::string chrome_trace(const std::vector<KernelTimes>& kernels, const std::string& target);

/// A line for each kernel: launches, mean, min and max time, bytes, GB/s, and the share of `peak_gbps` (0: not known).
std::string profile_table(const std::vector<KernelTimes>& kernels, double peak_gbps);

}  // namespace tenon::runtime

// What each kernel of an executable costs at given sizes, and how near it comes to the device's roof. Relies on kernels
// never writing what they read: a launch may be repeated, and leaves the same result.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "ir/fusion/roofline.h"
#include "runtime/stopwatch.h"
#include "tenon/compile.h"

namespace tenon::runtime {

/// One kernel's times by the target's own clock: CUDA events, the host's clock on the CPU.
struct KernelTimes {
  std::string name;
  std::vector<int> groups;               ///< of the plan: one, or those of a pack
  Times times;                           ///< of launches by themselves, the caches written over before each
  double begin_us = 0, duration_us = 0;  ///< in one whole run, from the begin of its first kernel

  double mean_us() const { return 1e3 * times.mean; }
};

struct Timings {
  std::vector<KernelTimes> kernels;  ///< in launch order
  std::vector<Times> beside;
};

/// Runs the executable on these buffers, then times its kernels and what they are compared with, `beside`, in turn: for
/// about `seconds` each, with `flush_bytes` written before each launch.
Timings profile(const Executable& executable, std::span<const Buffer> inputs, std::span<const Buffer> outputs,
                const Bindings& bindings, double seconds, std::int64_t flush_bytes,
                const std::vector<std::function<void()>>& beside = {});

/// One kernel as it is shown: its times beside what the planner counted of it. The estimate is right for the sizes that
/// the plan was made for.
struct KernelProfile {
  KernelTimes kernel;
  std::string kernel_class, operators;     ///< "reduce", "sum div mul"; "pack", its members' with semicolons
  std::vector<std::string> reads, writes;  ///< values, by name
  double bytes = 0;                        ///< read and written, each element once
  ir::Roofline roof;                       ///< the least that the device's peak rates allow

  double gb_s() const { return bytes / (1e3 * kernel.mean_us()); }
  double roof_share() const { return roof.us() / kernel.mean_us(); }
};

struct Profile {
  std::string graph, device;
  ir::CostModel peaks;  ///< the roof
  std::vector<KernelProfile> kernels;
};

/// `peaks`: the device's bandwidth and rates.
Profile describe(const ir::Plan& plan, std::vector<KernelTimes> kernels, const ir::CostModel& peaks,
                 const std::string& device);

/// A line for each kernel, and what a whole run took. docs/profiling.md explains the columns.
std::string profile_table(const Profile& profile);
/// The same for programs.
nlohmann::ordered_json profile_json(const Profile& profile);

/// The run as a Chrome trace (JSON, the "Trace Event Format"; Perfetto opens it).
std::string chrome_trace(const Profile& profile);

}  // namespace tenon::runtime

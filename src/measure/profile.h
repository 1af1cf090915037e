// Each kernel of an executable timed beside the device's roof: what profiles and `tenon explain --measure` show.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "codegen/target/target.h"
#include "ir/interpret/interpret.h"
#include "runtime/profile.h"
#include "tenon/compile.h"

namespace tenon::src {

/// Enough to write over what the last-level cache holds.
std::int64_t flush_bytes(const codegen::Target& target);

/// Times the kernels on these inputs for about `seconds` each.
runtime::Timings time_kernels(const Executable& executable, const std::vector<ir::HostArray>& inputs,
                              const Bindings& bindings, double seconds);

struct ProfileSettings {
  double seconds = 0.2;  ///< for each kernel
  std::int64_t flush_bytes = 0;
};

/// The same beside the executable's plan, which should have been made for these sizes, and the device's roof: a copy
/// measured now, and the rates of arithmetic that `tenon calibrate` kept for the device or that are assumed.
runtime::Profile profile(const Executable& executable, std::span<const Buffer> inputs, std::span<const Buffer> outputs,
                         const Bindings& bindings, const ProfileSettings& settings, const Options& options);
/// Of inputs on the host, which are brought to the target's memory.
runtime::Profile profile(const Executable& executable, const std::vector<ir::HostArray>& inputs,
                         const Bindings& bindings, const Options& options);

}  // namespace tenon::src

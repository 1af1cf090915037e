// What `tenon run --profile` and `--trace` do: a graph's inputs in the target's memory, each kernel timed.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ir/interpret/interpret.h"
#include "runtime/profile.h"
#include "tenon/compile.h"

namespace tenon::tools {

/// Times the kernels on these inputs, and what they are compared with, for about `seconds` each.
runtime::Timings time_kernels(const Executable& executable, const std::vector<ir::HostArray>& inputs,
                              const Bindings& bindings, double seconds,
                              const std::vector<std::function<void()>>& beside = {});

/// The same beside the executable's plan, which should have been made for these sizes, and the device's roof: a copy
/// measured now, and the rates of arithmetic that `tenon calibrate` kept for the device or that are assumed.
runtime::Profile profile(const Executable& executable, const std::vector<ir::HostArray>& inputs,
                         const Bindings& bindings, const Options& options);

}  // namespace tenon::tools

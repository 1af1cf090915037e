// What `tenon run --profile` and `--trace` do: a graph's inputs in the target's memory, each kernel timed.
#pragma once

#include <string>
#include <vector>

#include "ir/interpret.h"
#include "runtime/profile.h"
#include "tenon/compile.h"

namespace tenon::tools {

struct ProfileArguments {
  bool table = false;
  std::string trace;     ///< file of the Chrome trace; empty: none
  double seconds = 0.2;  ///< for each kernel
};

/// Times the kernels on these inputs, for about `seconds` each.
std::vector<runtime::KernelTimes> time_kernels(const Executable& executable, const std::vector<ir::HostArray>& inputs,
                                               const Bindings& bindings, double seconds);

/// Times the kernels on these inputs; prints the table and writes the trace that are asked for.
void profile(const Executable& executable, const std::vector<ir::HostArray>& inputs, const Bindings& bindings,
             const ProfileArguments& arguments);

}  // namespace tenon::tools

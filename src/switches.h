// Everything that Options::disable, TENON_DISABLE and --disable can switch off, by name.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "tenon/compile.h"

namespace tenon::src {

struct Switch {
  std::string name;
  std::string part;  ///< of Tenon that it belongs to: "pass", "planner", "kernels", "runtime"
  std::string what;
};

/// In the order in which a graph meets them.
std::vector<Switch> all_switches();

/// Error(argument) when `options` switches off or prints something that is not known, or counts below zero.
void check_options(const Options& options);

}  // namespace tenon::src

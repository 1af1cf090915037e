// Everything that Options::disable, TENON_DISABLE and --disable can switch off, by name: passes (ir/passes), what
// kernels do (codegen/target/features.def), and what switches.def lists.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "ir/fusion/plan.h"
#include "tenon/compile.h"

namespace tenon::src {

struct Switch {
  std::string name;
  std::string part;  ///< of Tenon that it belongs to: "pass", "planner", "kernels", "runtime"
  std::string what;
};

/// In the order in which a graph meets them.
std::vector<Switch> all_switches();

/// Leaves out of the planner what `names` switch off. Names that are no switch of the planner's are not looked at.
void switch_off(const std::set<std::string>& names, ir::PlanOptions& options);

/// What is around the planner and the kernels, and may be switched off.
struct Parts {
#define PLANNER_SWITCH(name, what, member, off)
#define PART_SWITCH(name, part, what) bool name = true;
#include "src/driver/switches.def"
};
Parts parts_without(const std::set<std::string>& names);

/// Error(argument) when `options` switches off or prints something that is not known, or counts below zero.
void check_options(const Options& options);

}  // namespace tenon::src

// The switches of the parts, and a check of the names that a user gives.
#include "src/switches.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "codegen/features.h"
#include "ir/passes/passes.h"
#include "ir/suggest.h"

namespace tenon::src {
namespace {

struct Row {
  const char *name, *what;
};

constexpr Row kOfPlanner[] = {
    {"fuse", "operators share kernels"},
    {"attention", "softmax(q k) v is found, and is one kernel"},
    {"siblings", "kernels that share inputs are merged"},
    {"mixed_order", "rows and columns of one tensor are reduced in one kernel (CUDA)"},
    {"duplicate", "what is cheap is computed again rather than stored"},
    {"places", "a value is stored before views that meet again multiply its loads"},
    {"windows", "pieces of neighbouring kernels are cut anew, exactly"},
    {"packing", "small independent kernels share a launch (CUDA)"},
    {"calibration", "costs are those that were measured on the device"},
};
constexpr Row kOfRuntime[] = {
    {"tuned", "schedules that won on the device are used"},
    {"nvtx", "profilers are told of runs and kernels"},
};
constexpr std::string_view kLevels[] = {"graph", "plan", "schedule", "kernel", "source"};

void check(const std::set<std::string>& names, std::span<const std::string_view> known, const std::string& what,
           const std::string& argument, const std::string& where) {
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string_view meant = ir::nearest(name, known);
    throw Error(ErrorKind::argument, fmt::format("'{}' is nothing that can be {}", name, what),
                Place{{}, 0, 0, {}, argument},
                fmt::format("{}{} takes {}", meant.empty() ? "" : fmt::format("did you mean '{}'? ", meant), where,
                            ir::join(known)));
  }
}

}  // namespace

std::vector<Switch> all_switches() {
  std::vector<Switch> switches;
  for (const ir::Pass& pass : ir::pass_table())
    if (pass.name != "decompose") switches.push_back({std::string(pass.name), "pass", std::string(pass.doc)});
  for (const Row& row : kOfPlanner) switches.push_back({row.name, "planner", row.what});
  for (const codegen::Feature& feature : codegen::all_features())
    switches.push_back({feature.name, "kernels", feature.what});
  for (const Row& row : kOfRuntime) switches.push_back({row.name, "runtime", row.what});
  return switches;
}

void check_options(const Options& options) {
  const std::vector<Switch> switches = all_switches();
  std::vector<std::string_view> names;
  for (const Switch& row : switches) names.push_back(row.name);
  check(options.disable, names, "switched off", "options.disable", "Options::disable (TENON_DISABLE)");
  check(options.print, kLevels, "printed", "options.print", "Options::print (TENON_PRINT)");
  if (options.threads < 0)
    throw Error(ErrorKind::argument, fmt::format("{} threads", options.threads), Place{{}, 0, 0, {}, "options.threads"},
                "use 0 for as many as the process may use, or a number above it");
}

}  // namespace tenon::src

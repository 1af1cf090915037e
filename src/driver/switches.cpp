// The switches as a list, what each does to options, and a check of the names that a user gives.
#include "src/driver/switches.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "codegen/target/features.h"
#include "ir/ops/suggest.h"
#include "ir/passes/passes.h"

namespace tenon::src {
namespace {

struct Row {
  std::string_view name, part, what;
};

constexpr Row kRows[] = {
#define PLANNER_SWITCH(name, what, member, off) {#name, "planner", what},
#define PART_SWITCH(name, part, what) {#name, #part, what},
#include "src/driver/switches.def"
};

void append_part(std::string_view part, std::vector<Switch>& switches) {
  for (const Row& row : kRows)
    if (row.part == part) switches.push_back({std::string(row.name), std::string(row.part), std::string(row.what)});
}

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
  append_part("planner", switches);
  for (const codegen::Feature& feature : codegen::all_features())
    switches.push_back({feature.name, "kernels", feature.what});
  append_part("runtime", switches);
  return switches;
}

void switch_off(const std::set<std::string>& names, ir::PlanOptions& options) {
#define PLANNER_SWITCH(name, what, member, off) \
  if (names.count(#name)) options.member = off;
#define PART_SWITCH(name, part, what)
#include "src/driver/switches.def"
}

Parts parts_without(const std::set<std::string>& names) {
  Parts parts;
#define PLANNER_SWITCH(name, what, member, off)
#define PART_SWITCH(name, part, what) parts.name = !names.count(#name);
#include "src/driver/switches.def"
  return parts;
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

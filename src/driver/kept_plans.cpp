// See kept_plans.h. A plan is the metadata of a cache entry without a binary.
#include "src/driver/kept_plans.h"

#include <fmt/format.h>

#include "ir/fusion/plan_bytes.h"
#include "ir/passes/passes.h"
#include "runtime/dynamic_library.h"
#include "src/driver/backends.h"
#include "src/driver/switches.h"
#include "tenon_build.h"

namespace tenon::src {
namespace {

constexpr std::size_t kLeastNodes = 32;  // of a graph whose plan takes longer than reading it

// Between two commits a planner may change, and what plans are made of: the build that has the code tells them apart.
std::string build_of_planner() { return runtime::build_id_of_address(reinterpret_cast<const void*>(&kept_plan)); }

std::string key_of(const ir::Graph& graph, const ir::PlanOptions& plan_options, const Options& options,
                   const std::string& build) {
  return runtime::CacheKey{TENON_VERSION " " TENON_COMMIT, "planner " + build, "",
                           fmt::format("without {}", fmt::join(options.disable, ",")),
                           ir::to_bytes(graph, plan_options)}
      .text();
}

}  // namespace

ir::Plan kept_plan(const ir::Graph& graph, const ir::PlanOptions& plan_options, const Options& options) {
  const auto make = [&] { return ir::cut_into_groups(ir::run_passes(graph, options.disable), plan_options); };
  if (!options.cache || !parts_without(options.disable).plans || graph.nodes.size() < kLeastNodes) return make();
  const std::string build = build_of_planner();
  if (build.empty()) return make();
  const auto disk = open_cache(options)->disk();
  const std::string key = key_of(graph, plan_options, options, build);
  if (const auto entry = disk->load(key))
    if (auto kept = ir::plan_from_bytes(entry->metadata)) return *std::move(kept);
  ir::Plan plan = make();
  disk->store(key, {ir::to_bytes(plan), {}});
  return plan;
}

}  // namespace tenon::src

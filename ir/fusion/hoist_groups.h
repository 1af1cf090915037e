// Kernels of a plan that would do the same in every run.
#pragma once

#include <optional>
#include <vector>

#include "ir/fusion/plan.h"
#include "ir/passes/split_weights.h"

namespace tenon::ir {

struct HoistedGroups {
  SplitGraph split;  ///< of the plan's graph: `once` computes what the groups stored that are gone
  Plan plan;         ///< of split.each: the other groups, as they were
};

/// Takes out the groups that read nothing but inputs at the marked positions, or each other's results, where nothing
/// depends on a symbol and no result is the graph's. The plan is not made anew: what it decided for the other groups,
/// it decided with these kernels apart. Nothing where there are no such groups.
std::optional<HoistedGroups> hoist_groups(const Plan& plan, const std::vector<bool>& bound);

}  // namespace tenon::ir

// Plans in the folder of the kernel cache, so that a process which compiles a large graph again does not plan it again.
#pragma once

#include "ir/fusion/plan.h"
#include "tenon/compile.h"

namespace tenon::src {

/// The plan that the passes and cut_into_groups make of `graph`: read, where this build of Tenon has kept it under the
/// same graph and options, else made and kept. Graphs of a few operators are planned anew, which takes less time. A
/// file that is damaged is a miss. Nothing is kept where options.disable names `plans`, or where the program or library
/// that Tenon is linked into has no build id: nothing else tells one planner from the next.
ir::Plan kept_plan(const ir::Graph& graph, const ir::PlanOptions& plan_options, const Options& options);

}  // namespace tenon::src

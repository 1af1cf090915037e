// The user's options in the planner's words.
#pragma once

#include "codegen/target/target.h"
#include "ir/fusion/plan.h"
#include "tenon/compile.h"

namespace tenon::src {

ir::PlanOptions plan_options(codegen::TargetKind target, const Options& options, const ir::CostModel& cost);

}  // namespace tenon::src

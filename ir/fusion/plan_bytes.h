// Plans as bytes, for the process that made them or another of the same build to read again. Not a file format: the
// layout follows the structures, and changes with them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "ir/fusion/plan.h"

namespace tenon::ir {

std::string to_bytes(const Plan& plan);

/// The plan that `bytes` are of, equal in every field; nothing where they are not exactly those of a plan.
std::optional<Plan> plan_from_bytes(std::string_view bytes);

/// All that cut_into_groups looks at: equal bytes, equal plans.
std::string to_bytes(const Graph& graph, const PlanOptions& options);

}  // namespace tenon::ir

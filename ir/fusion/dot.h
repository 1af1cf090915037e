// The plan as a Graphviz drawing: kernels as boxes, operators inside them.
#pragma once

#include <string>

#include "ir/fusion/plan.h"

namespace tenon::ir {

/// Deterministic DOT text, for `dot -Tsvg`.
std::string dot(const Plan& plan);

}  // namespace tenon::ir

// Results that update inputs (Graph::updates): who reads the old content goes before the kernel that writes the new
// one, so that it can be written in place.
#pragma once

#include <vector>

#include "ir/fusion/plan.h"

namespace tenon::ir::fusion {

/// For each group the others that read an input which the group updates.
std::vector<std::vector<std::size_t>> readers_of_updated(const Graph& graph, const std::vector<Group>& groups);

}  // namespace tenon::ir::fusion

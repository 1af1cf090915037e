// Large graphs for the planner: chains, diamonds, row and column reductions and matmuls of a few shapes, knotted
// together. Primitives only, so that the number of nodes is the planner's. The same seed gives the same graph.
#pragma once

#include <cstdint>

#include "ir/graph/graph.h"

namespace tenon::test {

/// A graph of at least `nodes` nodes (a few more), each of which some result needs.
/// `far` is the share of second operands that are taken from anywhere before rather than from the last few values:
/// 0.02 resembles a network with residuals, 0.5 a random DAG.
ir::Graph large_graph(std::uint64_t seed, int nodes, double far);

}  // namespace tenon::test

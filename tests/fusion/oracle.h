// The exact optimum of a small graph: every cut into legal kernels, by the planner's own legality and cost functions.
#pragma once

#include "ir/fusion/partition.h"

namespace tenon::test {

/// Predicted microseconds of a partition's living clusters.
double predicted_time(const ir::fusion::Context& context, const ir::fusion::Partition& partition);

/// The planner's cut without recomputation: greedy merging, then windows (unless the options leave them out).
ir::fusion::Partition planned_partition(const ir::fusion::Context& context);

/// The least predicted time of any cut, without recomputation: every kernel that some sequence of legal merges makes
/// (the cheapest way of making it). At most 20 clusters to start from.
double least_time(const ir::fusion::Context& context);

/// A random graph of `nodes` computed nodes (views and literals aside): maps, row and column reductions, transposed
/// reads and matmuls on 64 MB tensors, without symbols.
ir::Graph oracle_graph(std::uint64_t seed, int nodes);

}  // namespace tenon::test

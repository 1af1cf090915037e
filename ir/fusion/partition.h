// Clusters merged until no merge saves time.
#pragma once

#include <vector>

#include "ir/fusion/cluster.h"
#include "ir/fusion/order.h"

namespace tenon::ir::fusion {

/// The clusters of a graph with who makes and who reads each value. Steps of the planner change it; finish.cpp turns it
/// into the groups of a plan.
struct Partition {
  std::vector<Cluster> clusters;
  std::vector<bool> alive;
  std::vector<int> order;                 ///< the living clusters in an order in which they can run
  std::vector<int> maker;                 ///< by value: the cluster that stores it; -1 for inputs and the rest
  std::vector<std::vector<int>> readers;  ///< by value: living clusters that read it, in no order

  Cluster& at(int cluster) { return clusters[static_cast<std::size_t>(cluster)]; }
  const Cluster& at(int cluster) const { return clusters[static_cast<std::size_t>(cluster)]; }
};

/// `seeds` in definition order, none merged.
Partition make_partition(const Context& context, std::vector<Cluster> seeds);

/// Merges producer-consumer and sibling pairs, the one that saves most first, while that saves time.
void merge_clusters(const Context& context, Partition& partition);

/// Computes values again in all their readers where that is cheaper than storing them. Whether anything changed.
bool recompute_cheap(const Context& context, Partition& partition);

/// Bytes that a cluster moves.
double bytes_of(const Context& context, const Cluster& cluster);

/// Who reads what a cluster makes, for Order.
Order::Successors cluster_successors(const Partition& partition);

/// The values that `first` makes and `second` reads may be needed by others too.
NeededElsewhere needed_elsewhere(const Context& context, const Partition& partition, int first, int second);

/// Why each pair of clusters that share a value in memory is not one: for the refusals of a plan. Groups are numbered
/// as clusters.
std::vector<Refusal> explain_cuts(const Context& context, const Partition& partition);

}  // namespace tenon::ir::fusion

// Clusters merged until no merge saves time.
#pragma once

#include <vector>

#include "ir/fusion/cluster.h"
#include "ir/fusion/order.h"

namespace tenon::ir::fusion {

/// A cluster as it was before it was merged into another, so that the merge can be undone. The pieces of a living
/// cluster form a tree of its merges; the root's `cluster` is empty, since it is the living one.
struct Piece {
  Cluster cluster;            ///< without its nodes
  std::vector<NodeId> nodes;  ///< of a seed
  int left = -1, right = -1;  ///< pieces; -1: a seed
  int leaves = 1;
};

/// The clusters of a graph with who makes and who reads each value. Steps of the planner change it; finish.cpp turns it
/// into the groups of a plan.
struct Partition {
  std::vector<Cluster> clusters;
  std::vector<bool> alive;
  std::vector<int> order;                 ///< the living clusters in an order in which they can run
  std::vector<int> maker;                 ///< by value: the cluster that stores it; -1 for inputs and the rest
  std::vector<std::vector<int>> readers;  ///< by value: living clusters that read it, in no order

  std::vector<Piece> pieces;  ///< empty when merges are not to be undone
  std::vector<int> piece_of;  ///< by cluster

  Cluster& at(int cluster) { return clusters[static_cast<std::size_t>(cluster)]; }
  const Cluster& at(int cluster) const { return clusters[static_cast<std::size_t>(cluster)]; }
  const Piece& piece(int i) const { return pieces[static_cast<std::size_t>(i)]; }
  int add_piece(Cluster cluster, int left, int right);
  int add_cluster();  ///< a number more
  std::vector<NodeId> nodes_of(int piece) const;
};

/// `seeds` in definition order, none merged.
Partition make_partition(const Context& context, std::vector<Cluster> seeds);

/// Merges producer-consumer and sibling pairs, the one that saves most first, while that saves time.
void merge_clusters(const Context& context, Partition& partition);

/// Cuts windows of neighbouring clusters anew where that saves time. Whether anything changed.
bool resolve_windows(const Context& context, Partition& partition);

/// The living clusters in an order in which they can run, the earliest first.
std::vector<int> run_order(const Partition& partition);

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

// Recompute instead of store: a value that a few cheap maps make from values already in memory is computed again in
// each of its readers when the bytes saved outweigh the work repeated.
#include <algorithm>

#include "ir/fusion/partition.h"

namespace tenon::ir::fusion {
namespace {

constexpr double kConeSlots = 48;  // instructions an element
constexpr std::size_t kConeNodes = 24;

class Recompute {
 public:
  Recompute(const Context& context, Partition& partition)
      : context_(context), partition_(partition), member_(context.graph.nodes.size(), -1) {}

  bool run() {
    bool changed = false;
    for (int cluster : partition_.order) {
      for (NodeId node : partition_.at(cluster).nodes) member_[static_cast<std::size_t>(node)] = cluster;
      const std::vector<Result> results = partition_.at(cluster).results;  // a copy: it shrinks
      for (const Result& result : results) changed = try_value(cluster, result.value) || changed;
    }
    auto& order = partition_.order;
    order.erase(std::remove_if(order.begin(), order.end(),
                               [&](int cluster) { return !partition_.alive[static_cast<std::size_t>(cluster)]; }),
                order.end());
    return changed;
  }

 private:
  // The computed nodes between `value` and memory, inside its cluster; empty when they are not few cheap maps.
  std::vector<NodeId> cone(int cluster, ValueId value) const {
    std::vector<NodeId> nodes;
    std::vector<ValueId> pending{value};
    std::set<ValueId> seen;
    double slots = 0;
    while (!pending.empty()) {
      const ValueId next = pending.back();
      pending.pop_back();
      if (context_.is_input(next) || !seen.insert(next).second) continue;
      const NodeId id = context_.graph.value(next).producer;
      const Node& node = context_.graph.node(id);
      if (context_.stored(next)) {
        if (member_[static_cast<std::size_t>(id)] != cluster) continue;  // read from memory
        if (kind_of(node.op) != Kind::map) {
          if (next != value && partition_.maker[static_cast<std::size_t>(next)] == cluster) continue;
          return {};
        }
        nodes.push_back(id);
        slots += info(node.op).cost;
        if (nodes.size() > kConeNodes || slots > kConeSlots) return {};
      }
      pending.insert(pending.end(), node.operands.begin(), node.operands.end());
    }
    return nodes;
  }

  bool try_value(int cluster, ValueId value) {
    const auto& readers = partition_.readers[static_cast<std::size_t>(value)];
    if (context_.graph_output[static_cast<std::size_t>(value)] || readers.empty()) return false;
    std::vector<NodeId> nodes = cone(cluster, value);
    if (nodes.empty()) return false;
    const Cluster copy = map_cluster(context_, value, nodes);
    const auto nowhere = [](ValueId) { return false; };
    std::vector<Cluster> merged(readers.size());
    double saved = saved_by_maker(cluster, value);
    for (std::size_t i = 0; i < readers.size(); ++i) {
      const Cluster& reader = partition_.at(readers[i]);
      if (!fuse_consumer(context_, copy, reader, nowhere, merged[i]).legal()) return false;
      saved += time_of(context_, reader, bytes_of(context_, reader)) -
               time_of(context_, merged[i], bytes_of(context_, merged[i]));
    }
    if (saved <= 0) return false;
    apply(cluster, value, nodes, std::move(merged));
    return true;
  }

  double saved_by_maker(int cluster, ValueId value) const {
    const Cluster& maker = partition_.at(cluster);
    const double bytes = bytes_of(context_, maker);
    const double without = bytes - context_.bytes[static_cast<std::size_t>(value)];
    const double time = time_of(context_, maker, bytes);
    return maker.results.size() == 1 ? time : time - time_of(context_, maker, without);
  }

  void apply(int cluster, ValueId value, const std::vector<NodeId>& nodes, std::vector<Cluster> merged) {
    const std::vector<int> readers = std::move(partition_.readers[static_cast<std::size_t>(value)]);
    partition_.readers[static_cast<std::size_t>(value)].clear();
    for (std::size_t i = 0; i < readers.size(); ++i) {
      Cluster& reader = partition_.at(readers[i]);
      merged[i].nodes = std::move(reader.nodes);
      merged[i].nodes.insert(merged[i].nodes.end(), nodes.begin(), nodes.end());
      for (const Read& read : merged[i].reads)
        if (reader.find_read(read.value) == nullptr)
          partition_.readers[static_cast<std::size_t>(read.value)].push_back(readers[i]);
      reader = std::move(merged[i]);
    }
    partition_.maker[static_cast<std::size_t>(value)] = -1;
    Cluster& maker = partition_.at(cluster);
    maker.results.erase(std::remove_if(maker.results.begin(), maker.results.end(),
                                       [&](const Result& result) { return result.value == value; }),
                        maker.results.end());
    if (!maker.results.empty()) return;
    for (const Read& read : maker.reads) {
      auto& others = partition_.readers[static_cast<std::size_t>(read.value)];
      others.erase(std::remove(others.begin(), others.end(), cluster), others.end());
    }
    partition_.alive[static_cast<std::size_t>(cluster)] = false;
  }

  const Context& context_;
  Partition& partition_;
  std::vector<int> member_;
};

}  // namespace

bool recompute_cheap(const Context& context, Partition& partition) {
  partition.pieces.clear();  // what a cluster computes is no longer what its merges say
  partition.piece_of.clear();
  return Recompute(context, partition).run();
}

}  // namespace tenon::ir::fusion

// Recompute instead of store: a value that a few cheap maps make from values already in memory is computed again in
// each of its readers when the bytes saved outweigh the work repeated. Where the maps also need a statistic of the row
// (norm backward: the reciprocal deviation), the statistic is stored instead: a number a row for a whole tensor.
#include <algorithm>

#include "ir/fusion/partition.h"

namespace tenon::ir::fusion {
namespace {

constexpr double kConeSlots = 48;  // instructions an element
constexpr std::size_t kConeNodes = 24;
constexpr double kStatisticShare = 1.0 / 16;  // of the bytes of the value that is no longer stored

// What makes a value again.
struct Cone {
  std::vector<NodeId> nodes;       // empty: nothing cheap does
  std::vector<Result> statistics;  // of the value's cluster, to be stored from now on
};

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
  bool in_cluster(int cluster, ValueId value) const {
    return context_.stored(value) && !context_.is_input(value) &&
           member_[static_cast<std::size_t>(context_.graph.value(value).producer)] == cluster;
  }

  bool is_stored(int cluster, ValueId value) const {
    return partition_.maker[static_cast<std::size_t>(value)] == cluster;
  }

  bool is_small(ValueId part, ValueId whole) const {
    return context_.bytes[static_cast<std::size_t>(part)] <=
           kStatisticShare * context_.bytes[static_cast<std::size_t>(whole)];
  }

  // The cheap maps between `value` and memory, inside its cluster. With `keep_small` they stop at small values too,
  // which are then to be stored.
  Cone cone(int cluster, ValueId value, bool keep_small) const {
    Cone found;
    std::vector<ValueId> pending{value}, small;
    std::set<ValueId> seen;
    double slots = 0;
    while (!pending.empty()) {
      const ValueId next = pending.back();
      pending.pop_back();
      if (context_.is_input(next) || !seen.insert(next).second) continue;
      const NodeId id = context_.graph.value(next).producer;
      const Node& node = context_.graph.node(id);
      if (context_.stored(next)) {
        if (!in_cluster(cluster, next)) continue;  // read from memory
        const bool map = kind_of(node.op) == Kind::map;
        if (next != value && (!map || keep_small) && is_stored(cluster, next)) continue;
        if (next != value && keep_small && is_small(next, value)) {
          small.push_back(next);
          continue;
        }
        if (!map) return {};
        found.nodes.push_back(id);
        slots += info(node.op).cost;
        if (found.nodes.size() > kConeNodes || slots > kConeSlots) return {};
      }
      pending.insert(pending.end(), node.operands.begin(), node.operands.end());
    }
    if (keep_small && (small.empty() || !place(cluster, small, found.statistics))) return {};
    return found;
  }

  // Where the cluster can store these values: one number for each row.
  bool place(int number, const std::vector<ValueId>& values, std::vector<Result>& results) const {
    const Cluster& cluster = partition_.at(number);
    if (cluster.kernel_class != KernelClass::reduce) return false;
    const auto from_memory = [&](ValueId value) {
      return context_.is_input(value) || (context_.stored(value) && !in_cluster(number, value));
    };
    Needs needs;
    const Combined combined = combined_axes(context_.graph, cluster.kernel_class, cluster.domain, -1);
    for (const Result& result : cluster.results)
      demand(context_.graph, result.value, result.layout, from_memory, combined, needs);
    const std::uint32_t rows = axis_bits(cluster.domain, 0, cluster.domain.kept);
    for (ValueId value : values) {
      const auto computed = needs.computed.find(value);
      if (computed == needs.computed.end() || computed->second.size() != 1 ||
          covered(computed->second.front(), cluster.domain) != rows)
        return false;
      results.push_back({value, computed->second.front(), std::max(1, cluster.rounds)});
    }
    return true;
  }

  bool try_value(int cluster, ValueId value) {
    const auto& readers = partition_.readers[static_cast<std::size_t>(value)];
    if (context_.graph_output[static_cast<std::size_t>(value)] || readers.empty()) return false;
    return try_cone(cluster, value, cone(cluster, value, false)) ||
           try_cone(cluster, value, cone(cluster, value, true));
  }

  // The maker stores its statistics in place of the value: that may be a pointer more.
  bool has_room(const Cluster& maker, const Cone& cone) const {
    return maker.reads.size() + maker.results.size() + cone.statistics.size() <=
           static_cast<std::size_t>(context_.options.max_operands) + 1;
  }

  bool try_cone(int cluster, ValueId value, const Cone& cone) {
    if (cone.nodes.empty() || !has_room(partition_.at(cluster), cone)) return false;
    const auto& readers = partition_.readers[static_cast<std::size_t>(value)];
    const std::optional<Cluster> copy = map_cluster(context_, value, cone.nodes);
    if (!copy) return false;
    const auto nowhere = [](ValueId) { return false; };
    std::vector<Cluster> merged(readers.size());
    double saved = saved_by_maker(cluster, value, cone);
    for (std::size_t i = 0; i < readers.size(); ++i) {
      const Cluster& reader = partition_.at(readers[i]);
      if (!fuse_consumer(context_, *copy, reader, nowhere, merged[i]).legal()) return false;
      saved += time_of(context_, reader, bytes_of(context_, reader)) -
               time_of(context_, merged[i], bytes_of(context_, merged[i]));
    }
    if (saved <= 0) return false;
    apply(cluster, value, cone, std::move(merged));
    return true;
  }

  double saved_by_maker(int cluster, ValueId value, const Cone& cone) const {
    const Cluster& maker = partition_.at(cluster);
    const double bytes = bytes_of(context_, maker);
    double without = bytes - context_.bytes[static_cast<std::size_t>(value)];
    for (const Result& result : cone.statistics) without += context_.bytes[static_cast<std::size_t>(result.value)];
    const double time = time_of(context_, maker, bytes);
    return maker.results.size() == 1 && cone.statistics.empty() ? time : time - time_of(context_, maker, without);
  }

  void apply(int cluster, ValueId value, const Cone& cone, std::vector<Cluster> merged) {
    const std::vector<int> readers = std::move(partition_.readers[static_cast<std::size_t>(value)]);
    partition_.readers[static_cast<std::size_t>(value)].clear();
    for (std::size_t i = 0; i < readers.size(); ++i) {
      Cluster& reader = partition_.at(readers[i]);
      merged[i].nodes = std::move(reader.nodes);
      merged[i].nodes.insert(merged[i].nodes.end(), cone.nodes.begin(), cone.nodes.end());
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
    for (const Result& result : cone.statistics) {
      const auto at = std::lower_bound(maker.results.begin(), maker.results.end(), result.value,
                                       [](const Result& have, ValueId wanted) { return have.value < wanted; });
      maker.results.insert(at, result);
      partition_.maker[static_cast<std::size_t>(result.value)] = cluster;
    }
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

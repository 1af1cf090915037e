// Greedy merging by predicted time saved. A heap holds every candidate pair with the versions of its clusters; a merge
// makes the pairs around it stale and adds new ones. Ties go to contractions' epilogues, then to the earlier pair.
#include "ir/fusion/partition.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>

#include "ir/fusion/memory.h"
#include "ir/graph/check.h"

namespace tenon::ir::fusion {
namespace {

constexpr double kEpilogueBonus = 1.02;  // a map between a contraction and another kernel goes with the contraction

constexpr double kTies = 1e4;  // savings within 0.1 ns of each other are equal

struct Candidate {
  double saved;
  int first, second;  // cluster numbers; first produces for second, or they are siblings
  bool sibling;
  int first_version, second_version;
};

struct Less {
  bool operator()(const Candidate& a, const Candidate& b) const {
    if (a.saved != b.saved) return a.saved < b.saved;
    if (a.sibling != b.sibling) return a.sibling;
    return std::pair(a.first, a.second) > std::pair(b.first, b.second);
  }
};

class Merging {
 public:
  Merging(const Context& context, Partition& partition)
      : context_(context),
        partition_(partition),
        order_(partition.order, partition.clusters.size()),
        versions_(partition.clusters.size()),
        crowded_(partition.clusters.size()),
        successors_(cluster_successors(partition)) {
    if (limited()) peak_ = peak_live_bytes(context, partition, partition.order);
  }

  void run() {
    for (auto& readers : partition_.readers) std::sort(readers.begin(), readers.end());
    for (int cluster : partition_.order) add_candidates(cluster, true);
    while (merge_candidates())
      for (int cluster : partition_.order)
        if (alive(cluster) && crowded_[static_cast<std::size_t>(cluster)]) add_candidates(cluster, false);
    auto& order = partition_.order;
    order.erase(std::remove_if(order.begin(), order.end(), [&](int cluster) { return !alive(cluster); }), order.end());
    std::sort(order.begin(), order.end(), [&](int a, int b) { return order_.position(a) < order_.position(b); });
  }

 private:
  bool alive(int cluster) const { return partition_.alive[static_cast<std::size_t>(cluster)]; }

  // Whether any of the candidates was worth it.
  bool merge_candidates() {
    bool merged = false;
    while (!heap_.empty()) {
      const Candidate candidate = heap_.top();
      heap_.pop();
      if (!current(candidate) || !order_.convex(candidate.first, candidate.second, successors_)) continue;
      merge(candidate);
      merged = true;
    }
    return merged;
  }

  bool current(const Candidate& candidate) const {
    return alive(candidate.first) && alive(candidate.second) &&
           versions_[static_cast<std::size_t>(candidate.first)] == candidate.first_version &&
           versions_[static_cast<std::size_t>(candidate.second)] == candidate.second_version;
  }

  Verdict fuse(int first, int second, bool sibling, Cluster& merged) const {
    if (sibling) return fuse_siblings(context_, partition_.at(first), partition_.at(second), merged);
    const NeededElsewhere elsewhere = needed_elsewhere(context_, partition_, first, second);
    return fuse_consumer(context_, partition_.at(first), partition_.at(second), elsewhere, merged);
  }

  void consider(int first, int second, bool sibling) {
    const Cluster& maker = partition_.at(first);
    const Cluster& reader = partition_.at(second);
    if (!sibling && maker.holds_contraction() && reader.kernel_class != KernelClass::map && maker.paired < 0) return;
    Cluster merged;
    if (!fuse(first, second, sibling, merged).legal()) return;
    const Cluster& a = partition_.at(first);
    const Cluster& b = partition_.at(second);
    double saved = time_of(context_, a, bytes_of(context_, a)) + time_of(context_, b, bytes_of(context_, b)) -
                   time_of(context_, merged, bytes_of(context_, merged));
    if (saved <= 0) return;
    if (a.holds_contraction()) saved *= kEpilogueBonus;
    saved = std::round(saved * kTies) / kTies;
    heap_.push({saved, first, second, sibling, versions_[static_cast<std::size_t>(first)],
                versions_[static_cast<std::size_t>(second)]});
  }

  // Pairs of `cluster` with its neighbours; `forward` leaves out those that a later call adds.
  void add_candidates(int cluster, bool forward) {
    std::vector<int> consumers, producers, siblings;
    for (const Result& result : partition_.at(cluster).results) {
      const auto& readers = partition_.readers[static_cast<std::size_t>(result.value)];
      consumers.insert(consumers.end(), readers.begin(),
                       readers.begin() + first_of(readers, static_cast<std::size_t>(context_.options.max_readers)));
    }
    for (const Read& read : partition_.at(cluster).reads) {
      const int maker = partition_.maker[static_cast<std::size_t>(read.value)];
      if (maker >= 0) producers.push_back(maker);
      add_siblings(cluster, read.value, forward, siblings);
    }
    for (int consumer : distinct(consumers)) consider(cluster, consumer, false);
    if (!forward)
      for (int producer : distinct(producers)) consider(producer, cluster, false);
    if (!context_.options.siblings) return;
    const std::vector<int> near = distinct(consumers), before = distinct(producers);
    for (int sibling : distinct(siblings))
      if (!std::binary_search(near.begin(), near.end(), sibling) &&
          !std::binary_search(before.begin(), before.end(), sibling))
        consider(std::min(cluster, sibling), std::max(cluster, sibling), true);
  }

  // Readers of `value` with which `cluster` could fit into the pointers of one kernel. At first `readers` is in order.
  void add_siblings(int cluster, ValueId value, bool forward, std::vector<int>& siblings) {
    const Cluster& self = partition_.at(cluster);
    if (self.holds_contraction()) return;
    const auto& readers = partition_.readers[static_cast<std::size_t>(value)];
    const auto room =
        static_cast<std::size_t>(context_.options.max_operands) -
        std::min<std::size_t>(self.results.size() + 1, static_cast<std::size_t>(context_.options.max_operands));
    for (auto reader = forward ? std::upper_bound(readers.begin(), readers.end(), cluster) : readers.begin();
         reader != readers.end(); ++reader) {
      const Cluster& other = partition_.at(*reader);
      if (*reader == cluster || other.holds_contraction() || other.results.size() > room) continue;
      if (siblings.size() == static_cast<std::size_t>(context_.options.max_siblings)) {
        crowded_[static_cast<std::size_t>(cluster)] = true;
        return;
      }
      siblings.push_back(*reader);
    }
  }

  static std::ptrdiff_t first_of(const std::vector<int>& list, std::size_t most) {
    return static_cast<std::ptrdiff_t>(std::min(list.size(), most));
  }

  static std::vector<int> distinct(std::vector<int> list) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
    return list;
  }

  // The merged cluster takes the number of the one with more nodes, so that each node moves O(log n) times.
  void merge(const Candidate& candidate) {
    int keep = candidate.first, drop = candidate.second;
    if (partition_.at(keep).nodes.size() < partition_.at(drop).nodes.size()) std::swap(keep, drop);
    Cluster merged;
    if (!fuse(candidate.first, candidate.second, candidate.sibling, merged).legal() || !fits(keep, drop)) return;
    order_.merge(keep, drop);
    replace(keep, drop, std::move(merged));
    ++versions_[static_cast<std::size_t>(keep)];
    add_candidates(keep, false);
  }

  bool limited() const { return context_.options.max_live_bytes > 0; }

  // Whether the intermediates stay within the limit, or are no worse than they were beyond it.
  bool fits(int keep, int drop) {
    if (!limited()) return true;
    const double peak = peak_live_bytes_after(context_, partition_, order_, keep, drop);
    if (peak > std::max(peak_, context_.options.max_live_bytes)) return false;
    peak_ = peak;
    return true;
  }

  void replace(int keep, int drop, Cluster merged) {
    for (int old : {keep, drop}) {
      for (const Read& read : partition_.at(old).reads) forget_reader(read.value, old);
      for (const Result& result : partition_.at(old).results)
        partition_.maker[static_cast<std::size_t>(result.value)] = -1;
    }
    merged.nodes = std::move(partition_.at(keep).nodes);
    const auto& added = partition_.at(drop).nodes;
    merged.nodes.insert(merged.nodes.end(), added.begin(), added.end());
    keep_pieces(keep, drop);
    for (const Read& read : merged.reads) partition_.readers[static_cast<std::size_t>(read.value)].push_back(keep);
    for (const Result& result : merged.results) partition_.maker[static_cast<std::size_t>(result.value)] = keep;
    partition_.at(keep) = std::move(merged);
    partition_.at(drop) = Cluster{};
    partition_.alive[static_cast<std::size_t>(drop)] = false;
  }

  // What is merged stays known, so that windows can undo it.
  void keep_pieces(int keep, int drop) {
    if (partition_.pieces.empty()) return;
    const auto piece = [&](int cluster) { return partition_.piece_of[static_cast<std::size_t>(cluster)]; };
    for (int cluster : {keep, drop}) {
      Cluster& kept = partition_.pieces[static_cast<std::size_t>(piece(cluster))].cluster;
      kept = std::move(partition_.at(cluster));
      kept.nodes.clear();
    }
    partition_.piece_of[static_cast<std::size_t>(keep)] = partition_.add_piece({}, piece(keep), piece(drop));
  }

  void forget_reader(ValueId value, int cluster) {
    auto& readers = partition_.readers[static_cast<std::size_t>(value)];
    readers.erase(std::remove(readers.begin(), readers.end(), cluster), readers.end());
  }

  const Context& context_;
  Partition& partition_;
  Order order_;
  std::vector<int> versions_;
  std::vector<bool> crowded_;  // by cluster: it has more siblings than were tried
  Order::Successors successors_;
  double peak_ = 0;  // of live intermediates, where they are limited
  std::priority_queue<Candidate, std::vector<Candidate>, Less> heap_;
};

}  // namespace

// An attention is seeded at its last node, so definition order need not be an order of clusters.
std::vector<int> run_order(const Partition& partition) {
  const std::size_t count = partition.clusters.size();
  std::vector<int> waiting(count), order;
  std::size_t living = 0;
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (std::size_t i = 0; i < count; ++i) {
    if (!partition.alive[i]) continue;
    ++living;
    for (const Read& read : partition.clusters[i].reads)
      waiting[i] += partition.maker[static_cast<std::size_t>(read.value)] >= 0;
    if (waiting[i] == 0) ready.push(static_cast<int>(i));
  }
  while (!ready.empty()) {
    const int cluster = ready.top();
    ready.pop();
    order.push_back(cluster);
    for (const Result& result : partition.at(cluster).results)
      for (int reader : partition.readers[static_cast<std::size_t>(result.value)])
        if (--waiting[static_cast<std::size_t>(reader)] == 0) ready.push(reader);
  }
  TENON_CHECK(order.size() == living, "the clusters of a graph depend on each other in a circle");
  return order;
}

int Partition::add_piece(Cluster cluster, int left, int right) {
  pieces.push_back({std::move(cluster), {}, left, right, piece(left).leaves + piece(right).leaves});
  return static_cast<int>(pieces.size()) - 1;
}

int Partition::add_cluster() {
  clusters.emplace_back();
  alive.push_back(false);
  piece_of.push_back(-1);
  return static_cast<int>(clusters.size()) - 1;
}

std::vector<NodeId> Partition::nodes_of(int piece_number) const {
  std::vector<NodeId> nodes;
  std::vector<int> pending{piece_number};
  while (!pending.empty()) {
    const Piece& next = piece(pending.back());
    pending.pop_back();
    nodes.insert(nodes.end(), next.nodes.begin(), next.nodes.end());
    if (next.left >= 0) pending.insert(pending.end(), {next.right, next.left});
  }
  return nodes;
}

double bytes_of(const Context& context, const Cluster& cluster) {
  double bytes = 0;
  for (const Read& read : cluster.reads) bytes += bytes_of(context, cluster, read);
  for (const Result& result : cluster.results) bytes += context.bytes[static_cast<std::size_t>(result.value)];
  return bytes;
}

Order::Successors cluster_successors(const Partition& partition) {
  return [&partition](int cluster, const std::function<void(int)>& visit) {
    for (const Result& result : partition.at(cluster).results)
      for (int reader : partition.readers[static_cast<std::size_t>(result.value)]) visit(reader);
  };
}

NeededElsewhere needed_elsewhere(const Context& context, const Partition& partition, int first, int second) {
  return [&context, &partition, first, second](ValueId value) {
    if (context.graph_output[static_cast<std::size_t>(value)]) return true;
    const auto& readers = partition.readers[static_cast<std::size_t>(value)];
    return std::any_of(readers.begin(), readers.end(), [&](int reader) { return reader != first && reader != second; });
  };
}

Partition make_partition(const Context& context, std::vector<Cluster> seeds) {
  Partition partition;
  const std::size_t values = context.graph.values.size();
  partition.clusters = std::move(seeds);
  partition.alive.assign(partition.clusters.size(), true);
  partition.maker.assign(values, -1);
  partition.readers.resize(values);
  for (std::size_t i = 0; i < partition.clusters.size(); ++i) {
    for (const Read& read : partition.clusters[i].reads)
      partition.readers[static_cast<std::size_t>(read.value)].push_back(static_cast<int>(i));
  }
  for (std::size_t i = 0; i < partition.clusters.size(); ++i) {
    auto& results = partition.clusters[i].results;
    results.erase(std::remove_if(results.begin(), results.end(),
                                 [&](const Result& result) {
                                   const auto value = static_cast<std::size_t>(result.value);
                                   return partition.readers[value].empty() && !context.graph_output[value];
                                 }),
                  results.end());
    for (const Result& result : results) partition.maker[static_cast<std::size_t>(result.value)] = static_cast<int>(i);
  }
  partition.order = run_order(partition);
  if (!context.options.fuse || context.options.window < 2) return partition;
  for (std::size_t i = 0; i < partition.clusters.size(); ++i) {
    partition.pieces.push_back({{}, partition.clusters[i].nodes, -1, -1, 1});
    partition.piece_of.push_back(static_cast<int>(i));
  }
  return partition;
}

void merge_clusters(const Context& context, Partition& partition) { Merging(context, partition).run(); }

}  // namespace tenon::ir::fusion

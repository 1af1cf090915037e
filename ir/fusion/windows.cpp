// Windows of neighbouring clusters, cut anew exactly: what greedy merging got wrong by going one step at a time is put
// right here. Operators move from one kernel to another, leave it, or change sides together. Here are the windows
// chosen and the new cuts applied; window_cut.cpp finds them.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <unordered_map>

#include "ir/fusion/window.h"

namespace tenon::ir::fusion {
namespace {

constexpr int kFewElements = 8;             // of a window whose kernels are too many with more
constexpr std::int64_t kAttempts = 60000;   // merges tried for one graph: about half a second
constexpr std::int64_t kVisits = 10000000;  // clusters looked at for convexity, for one graph: as long at most
constexpr std::size_t kNeighbours = 8;      // of a cluster that a window is opened with
constexpr std::size_t kReadersLooked = 16;  // of one value
constexpr int kPasses = 3;                  // over all clusters; a new cut makes new windows around it

class Windows {
 public:
  Windows(const Context& context, Partition& partition) : context_(context), partition_(partition) { renumber(); }

  bool run() {
    bool changed = false, again = true;
    for (int pass = 0; again && pass < kPasses; ++pass) {
      again = false;
      const std::vector<int> order = partition_.order;
      for (int cluster : order)
        if (attempts_ > 0 && visits_ > 0 && alive(cluster)) again = around(cluster) || again;
      changed = changed || again;
    }
    return changed;
  }

 private:
  bool alive(int cluster) const { return partition_.alive[static_cast<std::size_t>(cluster)]; }
  int position(int cluster) const { return positions_[static_cast<std::size_t>(cluster)]; }
  int leaves(int cluster) const {
    return partition_.piece(partition_.piece_of[static_cast<std::size_t>(cluster)]).leaves;
  }

  void renumber() {
    partition_.order = run_order(partition_);
    positions_.assign(partition_.clusters.size(), -1);
    marked_.resize(partition_.clusters.size());
    for (std::size_t i = 0; i < partition_.order.size(); ++i)
      positions_[static_cast<std::size_t>(partition_.order[i])] = static_cast<int>(i);
  }

  // Clusters that share a value with this one, those that share most bytes first.
  std::vector<int> neighbours(int cluster) const {
    std::map<int, double> shared;
    const auto meet = [&](int other, ValueId value) {
      if (other >= 0 && other != cluster) shared[other] += context_.bytes[static_cast<std::size_t>(value)];
    };
    const auto meet_readers = [&](ValueId value) {
      const auto& readers = partition_.readers[static_cast<std::size_t>(value)];
      for (std::size_t i = 0; i < std::min(readers.size(), kReadersLooked); ++i) meet(readers[i], value);
    };
    for (const Result& result : partition_.at(cluster).results) meet_readers(result.value);
    for (const Read& read : partition_.at(cluster).reads) {
      meet(partition_.maker[static_cast<std::size_t>(read.value)], read.value);
      if (context_.options.siblings) meet_readers(read.value);
    }
    std::vector<int> found;
    for (const auto& [other, bytes] : shared) found.push_back(other);
    std::stable_sort(found.begin(), found.end(), [&](int a, int b) { return shared.at(a) > shared.at(b); });
    found.resize(std::min(found.size(), kNeighbours));
    return found;
  }

  bool around(int cluster) {
    const std::vector<int> near = neighbours(cluster);
    for (int other : near) {
      std::vector<int> window{cluster, other};
      if (!convex(window)) continue;
      grow(window, near);
      if (room(window) > 0) grow(window, neighbours(other));
      std::sort(window.begin(), window.end());
      if (resolve(window)) return true;
    }
    return false;
  }

  // Adds what fits as whole nodes and keeps the window convex.
  void grow(std::vector<int>& window, const std::vector<int>& list) {
    for (int next : list) {
      if (leaves(next) > room(window) || std::find(window.begin(), window.end(), next) != window.end()) continue;
      window.push_back(next);
      if (!convex(window)) window.pop_back();
    }
  }

  // Elements that it may still have when all merges are undone.
  int room(const std::vector<int>& window) const {
    int room = context_.options.window;
    for (int cluster : window) room -= leaves(cluster);
    return room;
  }

  // Whether no path leaves the window and comes back.
  bool convex(const std::vector<int>& window) {
    const auto inside = [&](int cluster) { return std::find(window.begin(), window.end(), cluster) != window.end(); };
    int last = 0;
    for (int cluster : window) last = std::max(last, position(cluster));
    std::vector<int> pending, seen;
    bool back = false;
    const auto visit = [&](int next, bool from_inside) {
      --visits_;
      if (inside(next)) {
        back = back || !from_inside;
      } else if (position(next) < last && !marked_[static_cast<std::size_t>(next)]) {
        marked_[static_cast<std::size_t>(next)] = true;
        seen.push_back(next);
        pending.push_back(next);
      }
    };
    const auto visit_readers = [&](int cluster, bool from_inside) {
      for (const Result& result : partition_.at(cluster).results)
        for (int reader : partition_.readers[static_cast<std::size_t>(result.value)]) visit(reader, from_inside);
    };
    for (int cluster : window) visit_readers(cluster, true);
    while (!pending.empty() && !back) {
      const int next = pending.back();
      pending.pop_back();
      visit_readers(next, false);
    }
    for (int cluster : seen) marked_[static_cast<std::size_t>(cluster)] = false;
    return !back;
  }

  bool resolve(const std::vector<int>& clusters) {
    std::vector<int> pieces;
    for (int cluster : clusters) pieces.push_back(partition_.piece_of[static_cast<std::size_t>(cluster)]);
    if (!tried_.insert(pieces).second) return false;
    for (Split how : {Split::youngest, Split::meeting})
      for (int most : {context_.options.window, kFewElements}) {
        const Window window = open_window(context_, partition_, clusters, how, most);
        if (window.elements.size() < 2) return false;
        const std::optional<std::string> key = key_of(context_, partition_, window);
        const auto known = key ? settled_.find(*key) : settled_.end();
        bool crowded = known != settled_.end() && known->second;
        if (known == settled_.end()) {
          const Cut cut = cheapest_cut(context_, partition_, window, attempts_);
          if (!cut.kernels.empty()) {
            apply(window, cut);
            return true;
          }
          crowded = cut.crowded;
          if (key) settled_.emplace(*key, crowded);
        }
        if (crowded) continue;                              // all kernels of a smaller window may be few enough
        if (is_in_nodes(partition_, window)) return false;  // as good as it gets
        break;
      }
    return false;
  }

  void apply(const Window& window, const Cut& cut) {
    std::vector<std::pair<Cluster, int>> made;  // with the piece
    for (int kernel : cut.kernels)
      if (const int living = cut.candidates[static_cast<std::size_t>(kernel)].living; living >= 0)
        made.emplace_back(partition_.at(living), partition_.piece_of[static_cast<std::size_t>(living)]);
    for (int cluster : window.clusters) retire(cluster);
    for (int kernel : cut.kernels) {
      if (cut.candidates[static_cast<std::size_t>(kernel)].living >= 0) continue;
      const int piece = keep(window, cut, kernel);
      Cluster cluster = partition_.piece(piece).cluster;
      cluster.nodes = partition_.nodes_of(piece);
      made.emplace_back(std::move(cluster), piece);
    }
    for (std::size_t i = 0; i < made.size(); ++i)
      settle(i < window.clusters.size() ? window.clusters[i] : partition_.add_cluster(), std::move(made[i].first),
             made[i].second);
    renumber();
  }

  // What a cluster is, kept as a piece; nobody reads through it any more.
  void retire(int number) {
    Cluster& cluster = partition_.at(number);
    for (const Read& read : cluster.reads) {
      auto& readers = partition_.readers[static_cast<std::size_t>(read.value)];
      readers.erase(std::remove(readers.begin(), readers.end(), number), readers.end());
    }
    for (const Result& result : cluster.results) partition_.maker[static_cast<std::size_t>(result.value)] = -1;
    cluster.nodes.clear();
    partition_.pieces[static_cast<std::size_t>(partition_.piece_of[static_cast<std::size_t>(number)])].cluster =
        std::move(cluster);
    cluster = Cluster{};
    partition_.alive[static_cast<std::size_t>(number)] = false;
  }

  // The piece that a candidate becomes.
  int keep(const Window& window, const Cut& cut, int kernel) {
    const Candidate& candidate = cut.candidates[static_cast<std::size_t>(kernel)];
    const int element = window.elements[static_cast<std::size_t>(candidate.element)].piece;
    if (candidate.smaller < 0) return element;
    const int smaller = keep(window, cut, candidate.smaller);
    return partition_.add_piece(candidate.cluster, smaller, element);
  }

  void settle(int number, Cluster cluster, int piece) {
    for (const Read& read : cluster.reads) {
      auto& readers = partition_.readers[static_cast<std::size_t>(read.value)];
      readers.insert(std::lower_bound(readers.begin(), readers.end(), number), number);
    }
    for (const Result& result : cluster.results) partition_.maker[static_cast<std::size_t>(result.value)] = number;
    partition_.at(number) = std::move(cluster);
    partition_.alive[static_cast<std::size_t>(number)] = true;
    partition_.piece_of[static_cast<std::size_t>(number)] = piece;
  }

  const Context& context_;
  Partition& partition_;
  std::vector<int> positions_;                     // in the order, by cluster
  std::vector<bool> marked_;                       // by cluster: scratch
  std::set<std::vector<int>> tried_;               // windows, as pieces
  std::unordered_map<std::string, bool> settled_;  // those whose cut stays, by their keys; whether they were crowded
  std::int64_t attempts_ = kAttempts, visits_ = kVisits;
};

}  // namespace

bool resolve_windows(const Context& context, Partition& partition) {
  if (partition.pieces.empty()) return false;
  for (auto& readers : partition.readers) std::sort(readers.begin(), readers.end());
  return Windows(context, partition).run();
}

}  // namespace tenon::ir::fusion

// Windows of neighbouring clusters, cut anew exactly. The last merges inside a window are undone until it consists of a
// few pieces; every kernel that can be made of them is tried, and a dynamic programme over the sets of pieces that may
// have run (down-sets) picks the cheapest cut. What greedy merging got wrong by going one step at a time is put right
// here: pieces move from one kernel to another, leave it, or change sides together.
#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "ir/check.h"
#include "ir/fusion/partition.h"

namespace tenon::ir::fusion {
namespace {

using Mask = std::uint32_t;

constexpr int kMostPieces = 16;
constexpr int kFewPieces = 8;               // of a window whose kernels are too many with more
constexpr std::size_t kMostWays = 3;        // of one set of pieces
constexpr std::size_t kMostSets = 400;      // kernels tried for one window
constexpr std::int64_t kAttempts = 60000;   // merges tried for one graph
constexpr double kWorthwhile = 0.01;        // microseconds: below, the cut stays
constexpr std::size_t kNeighbours = 8;      // of a cluster that a window is opened with
constexpr std::size_t kReadersLooked = 16;  // of one value
constexpr int kPasses = 3;

Mask bit(std::size_t i) { return Mask{1} << i; }

struct Element {
  int piece = -1;
  const Cluster* cluster = nullptr;
  Mask before = 0, near = 0;  // elements whose results it reads; and those, its readers, and those that read the same
};

// A kernel that can be made of some elements.
struct Candidate {
  Mask mask = 0;
  Cluster cluster;
  double us = 0;
  int smaller = -1;  // the candidate that it extends by `element`; -1: it is that element
  int element = -1;
  int living = -1;  // it is this cluster, as it stands
};

// Which merges of a window are undone.
enum class Split : std::uint8_t {
  youngest,  // the last ones: those that saved least
  meeting,   // those that hide what makes or reads the values that the clusters pass to each other
};

class Window {
 public:
  Window(const Context& context, const Partition& partition, const std::vector<int>& clusters, Split how, int most,
         std::int64_t& attempts)
      : context_(context), partition_(partition), clusters_(clusters), attempts_(attempts) {
    split(how, static_cast<std::size_t>(std::min(most, kMostPieces)));
  }

  // The cheapest cut when it is better than what stands: indices of candidates in an order in which they can run.
  std::vector<int> solve() {
    connect();
    for (std::size_t i = 0; i < elements_.size(); ++i) {
      add({bit(i), *elements_[i].cluster, 0, -1, static_cast<int>(i), -1});
    }
    for (std::size_t i = 0; i < candidates_.size() && !crowded(); ++i) extend(static_cast<int>(i));
    const double now = add_living();
    std::vector<int> cut;
    return cheapest(cut) < now - kWorthwhile ? cut : std::vector<int>{};
  }

  bool crowded() const { return candidates_.size() >= kMostSets; }
  // Whether every node is a piece of its own.
  bool in_nodes() const {
    return std::none_of(elements_.begin(), elements_.end(), [&](const Element& element) { return merged(element); });
  }
  std::size_t size() const { return elements_.size(); }
  const std::vector<int>& clusters() const { return clusters_; }
  const std::vector<Element>& elements() const { return elements_; }
  Candidate& candidate(int i) { return candidates_[static_cast<std::size_t>(i)]; }

 private:
  void split(Split how, std::size_t most) {
    for (int cluster : clusters_)
      elements_.push_back({partition_.piece_of[static_cast<std::size_t>(cluster)], &partition_.at(cluster), 0, 0});
    const std::set<ValueId> passed = how == Split::meeting ? passed_values() : std::set<ValueId>{};
    const auto rank = [&](const Element& element) {
      return std::tuple(merged(element), meets(element, passed), element.piece);
    };
    while (elements_.size() < most) {
      const auto next = std::max_element(elements_.begin(), elements_.end(),
                                         [&](const Element& a, const Element& b) { return rank(a) < rank(b); });
      if (!merged(*next)) break;
      const Piece& piece = partition_.piece(next->piece);
      *next = {piece.left, &partition_.piece(piece.left).cluster, 0, 0};
      elements_.push_back({piece.right, &partition_.piece(piece.right).cluster, 0, 0});
    }
  }

  // What one cluster of the window makes and another reads.
  std::set<ValueId> passed_values() const {
    std::set<ValueId> passed;
    for (int cluster : clusters_)
      for (const Read& read : partition_.at(cluster).reads)
        if (std::find(clusters_.begin(), clusters_.end(), partition_.maker[static_cast<std::size_t>(read.value)]) !=
            clusters_.end())
          passed.insert(read.value);
    return passed;
  }

  static bool meets(const Element& element, const std::set<ValueId>& values) {
    return std::any_of(values.begin(), values.end(), [&](ValueId value) {
      return element.cluster->find_read(value) != nullptr || element.cluster->find_result(value) != nullptr;
    });
  }

  bool merged(const Element& element) const { return partition_.piece(element.piece).left >= 0; }

  void connect() {
    std::map<ValueId, std::size_t> maker;
    for (std::size_t i = 0; i < elements_.size(); ++i) {
      for (const Read& read : elements_[i].cluster->reads) readers_[read.value] |= bit(i);
      for (const Result& result : elements_[i].cluster->results) maker[result.value] = i;
    }
    for (const auto& [value, readers] : readers_) {
      const auto made = maker.find(value);
      const Mask all = readers | (made == maker.end() ? 0 : bit(made->second));
      for (std::size_t i = 0; i < elements_.size(); ++i) {
        if ((all >> i & 1U) != 0) elements_[i].near |= all & ~bit(i);
        if (made != maker.end() && made->second != i && (readers >> i & 1U) != 0)
          elements_[i].before |= bit(made->second);
      }
    }
    for (const auto& [value, element] : maker) outside_[value] = needed_outside(value);
    close();
  }

  bool needed_outside(ValueId value) const {
    if (context_.graph_output[static_cast<std::size_t>(value)]) return true;
    const auto& readers = partition_.readers[static_cast<std::size_t>(value)];
    return std::any_of(readers.begin(), readers.end(), [&](int reader) {
      return std::find(clusters_.begin(), clusters_.end(), reader) == clusters_.end();
    });
  }

  // `ancestors_`: all that must have run before an element.
  void close() {
    ancestors_.resize(elements_.size());
    for (std::size_t round = 0; round < elements_.size(); ++round)
      for (std::size_t i = 0; i < elements_.size(); ++i) {
        Mask all = elements_[i].before;
        for (std::size_t k = 0; k < elements_.size(); ++k)
          if ((elements_[i].before >> k & 1U) != 0) all |= ancestors_[k];
        ancestors_[i] = all;
      }
  }

  Mask before(Mask mask) const {
    Mask all = 0;
    for (std::size_t i = 0; i < elements_.size(); ++i)
      if ((mask >> i & 1U) != 0) all |= elements_[i].before;
    return all & ~mask;
  }

  bool convex(Mask mask) const {
    Mask above = 0;
    for (std::size_t i = 0; i < elements_.size(); ++i)
      if ((mask >> i & 1U) != 0) above |= ancestors_[i];
    for (std::size_t i = 0; i < elements_.size(); ++i)
      if ((above & ~mask) >> i & 1U && (ancestors_[i] & mask) != 0) return false;
    return true;
  }

  // Merged in another order, the same nodes may lie otherwise on another domain: a few ways of each set are kept.
  void add(Candidate candidate) {
    candidate.us = time_of(context_, candidate.cluster, bytes_of(context_, candidate.cluster));
    std::vector<int>& ways = index_[candidate.mask];
    const auto same = std::find_if(ways.begin(), ways.end(), [&](int way) {
      return alike(candidates_[static_cast<std::size_t>(way)].cluster, candidate.cluster);
    });
    if (same != ways.end()) {
      Candidate& kept = candidates_[static_cast<std::size_t>(*same)];
      if (candidate.us < kept.us) kept = std::move(candidate);
    } else if (ways.size() < kMostWays) {
      ways.push_back(static_cast<int>(candidates_.size()));
      candidates_.push_back(std::move(candidate));
    }
  }

  static bool alike(const Cluster& a, const Cluster& b) {
    const auto same_read = [](const Read& x, const Read& y) { return x.layouts == y.layouts; };
    const auto same_result = [](const Result& x, const Result& y) { return x.layout == y.layout; };
    return a.kernel_class == b.kernel_class && a.domain.extents == b.domain.extents && a.domain.kept == b.domain.kept &&
           a.persistent == b.persistent &&
           std::equal(a.reads.begin(), a.reads.end(), b.reads.begin(), b.reads.end(), same_read) &&
           std::equal(a.results.begin(), a.results.end(), b.results.begin(), b.results.end(), same_result);
  }

  void extend(int from) {
    const Mask mask = candidates_[static_cast<std::size_t>(from)].mask;
    for (std::size_t i = 0; i < elements_.size(); ++i) {
      if ((mask >> i & 1U) != 0 || (elements_[i].near & mask) == 0 || !convex(mask | bit(i))) continue;
      for (Cluster& merged : fused(candidates_[static_cast<std::size_t>(from)], i))
        add({mask | bit(i), std::move(merged), 0, from, static_cast<int>(i), -1});
    }
  }

  // The candidate and one element more, as one kernel: in no way, in one, or in two.
  std::vector<Cluster> fused(const Candidate& candidate, std::size_t i) const {
    const Cluster& element = *elements_[i].cluster;
    const Mask mask = candidate.mask | bit(i);
    const auto elsewhere = [&](ValueId value) {
      const auto readers = readers_.find(value);
      const auto outside = outside_.find(value);
      return (outside != outside_.end() && outside->second) ||
             (readers != readers_.end() && (readers->second & ~mask) != 0);
    };
    std::vector<Cluster> ways;
    Cluster merged;
    const auto take = [&](const Verdict& verdict) {
      --attempts_;
      if (verdict.legal()) ways.push_back(std::move(merged));
      merged = Cluster{};
    };
    if ((elements_[i].before & candidate.mask) != 0) {
      take(fuse_consumer(context_, candidate.cluster, element, elsewhere, merged));
    } else if ((before(candidate.mask) & bit(i)) != 0) {
      take(fuse_consumer(context_, element, candidate.cluster, elsewhere, merged));
    } else if (context_.options.siblings) {
      take(fuse_siblings(context_, candidate.cluster, element, merged));
      if (element.kernel_class == candidate.cluster.kernel_class)
        take(fuse_siblings(context_, element, candidate.cluster, merged));
    }
    return ways;
  }

  // The clusters as they stand are candidates too. Returns their time.
  double add_living() {
    double now = 0;
    for (int cluster : clusters_) {
      const Mask mask = mask_of(partition_.piece_of[static_cast<std::size_t>(cluster)]);
      const double us = time_of(context_, partition_.at(cluster), bytes_of(context_, partition_.at(cluster)));
      now += us;
      candidates_.push_back({mask, {}, us, -1, -1, cluster});
    }
    return now;
  }

  // The elements below a piece.
  Mask mask_of(int piece) const {
    Mask mask = 0;
    std::vector<int> pending{piece};
    while (!pending.empty()) {
      const int next = pending.back();
      pending.pop_back();
      const auto found = std::find_if(elements_.begin(), elements_.end(),
                                      [&](const Element& element) { return element.piece == next; });
      if (found != elements_.end()) {
        mask |= bit(static_cast<std::size_t>(found - elements_.begin()));
        continue;
      }
      pending.push_back(partition_.piece(next).left);
      pending.push_back(partition_.piece(next).right);
    }
    return mask;
  }

  double cheapest(std::vector<int>& cut) const {
    constexpr double kNever = std::numeric_limits<double>::infinity();
    struct Way {
      double us = kNever;
      int last = -1;
    };
    const Mask all = bit(elements_.size()) - 1;
    std::vector<Mask> needs;
    for (const Candidate& candidate : candidates_) needs.push_back(before(candidate.mask));
    std::vector<Way> ways(std::size_t{all} + 1);
    ways[0].us = 0;
    for (Mask done = 0; done < all; ++done) {
      if (ways[done].us == kNever) continue;
      for (std::size_t i = 0; i < candidates_.size(); ++i) {
        const Mask mask = candidates_[i].mask;
        if ((mask & done) != 0 || (needs[i] & ~done) != 0) continue;
        Way& way = ways[done | mask];
        const double us = ways[done].us + candidates_[i].us;
        if (us < way.us) way = {us, static_cast<int>(i)};
      }
    }
    for (Mask done = all; done != 0 && ways[done].last >= 0;) {
      cut.push_back(ways[done].last);
      done &= ~candidates_[static_cast<std::size_t>(cut.back())].mask;
    }
    std::reverse(cut.begin(), cut.end());
    return ways[all].us;
  }

  const Context& context_;
  const Partition& partition_;
  const std::vector<int>& clusters_;
  std::int64_t& attempts_;
  std::vector<Element> elements_;
  std::map<ValueId, Mask> readers_;         // among the elements
  std::map<ValueId, bool> outside_;         // results of elements: needed outside the window
  std::vector<Mask> ancestors_;             // by element
  std::deque<Candidate> candidates_;        // smaller ones first
  std::map<Mask, std::vector<int>> index_;  // candidates of these elements
};

class Windows {
 public:
  Windows(const Context& context, Partition& partition) : context_(context), partition_(partition) { renumber(); }

  bool run() {
    bool changed = false, again = true;
    for (int pass = 0; again && pass < kPasses; ++pass) {
      again = false;
      const std::vector<int> order = partition_.order;
      for (int cluster : order)
        if (attempts_ > 0 && alive(cluster)) again = around(cluster) || again;
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
      int room = context_.options.window - leaves(cluster) - leaves(other);
      for (const std::vector<int>& list : {near, room > 0 ? neighbours(other) : std::vector<int>{}})
        for (int third : list) {
          if (leaves(third) > room || std::find(window.begin(), window.end(), third) != window.end()) continue;
          window.push_back(third);
          if (convex(window)) {
            room -= leaves(third);
          } else {
            window.pop_back();
          }
        }
      std::sort(window.begin(), window.end());
      if (resolve(window)) return true;
    }
    return false;
  }

  // Whether no path leaves the window and comes back.
  bool convex(const std::vector<int>& window) {
    const auto inside = [&](int cluster) { return std::find(window.begin(), window.end(), cluster) != window.end(); };
    int last = 0;
    for (int cluster : window) last = std::max(last, position(cluster));
    std::vector<int> pending, seen;
    bool back = false;
    const auto visit = [&](int next, bool from_inside) {
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
    for (Split how : {Split::youngest, Split::meeting}) {
      int most = context_.options.window;
      while (true) {
        Window window(context_, partition_, clusters, how, most, attempts_);
        if (window.size() < 2) return false;
        const std::vector<int> cut = window.solve();
        if (!cut.empty()) {
          apply(window, cut);
          return true;
        }
        if (window.in_nodes() && !window.crowded()) return false;  // as good as it gets
        if (!window.crowded() || most <= kFewPieces) break;
        most = kFewPieces;
      }
    }
    return false;
  }

  void apply(Window& window, const std::vector<int>& cut) {
    std::vector<std::pair<Cluster, int>> made;  // with the piece
    for (int choice : cut)
      if (const int living = window.candidate(choice).living; living >= 0)
        made.emplace_back(partition_.at(living), partition_.piece_of[static_cast<std::size_t>(living)]);
    for (int cluster : window.clusters()) retire(cluster);
    for (int choice : cut) {
      if (window.candidate(choice).living >= 0) continue;
      const int piece = keep(window, choice);
      Cluster cluster = partition_.piece(piece).cluster;
      cluster.nodes = partition_.nodes_of(piece);
      made.emplace_back(std::move(cluster), piece);
    }
    for (std::size_t i = 0; i < made.size(); ++i)
      settle(i < window.clusters().size() ? window.clusters()[i] : partition_.add_cluster(), std::move(made[i].first),
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
  int keep(Window& window, int choice) {
    Candidate& candidate = window.candidate(choice);
    const int element = window.elements()[static_cast<std::size_t>(candidate.element)].piece;
    if (candidate.smaller < 0) return element;
    const int smaller = keep(window, candidate.smaller);
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
  std::vector<int> positions_;        // in the order, by cluster
  std::vector<bool> marked_;          // by cluster: scratch
  std::set<std::vector<int>> tried_;  // windows, as pieces
  std::int64_t attempts_ = kAttempts;
};

}  // namespace

bool resolve_windows(const Context& context, Partition& partition) {
  if (partition.pieces.empty()) return false;
  for (auto& readers : partition.readers) std::sort(readers.begin(), readers.end());
  return Windows(context, partition).run();
}

}  // namespace tenon::ir::fusion

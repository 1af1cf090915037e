// The cheapest cut of a window: every kernel that some sequence of legal merges makes of its elements, one element more
// at a time, then a dynamic programme over the sets of elements that may have run (down-sets).
#include <algorithm>
#include <limits>

#include "ir/fusion/window.h"

namespace tenon::ir::fusion {
namespace {

constexpr std::size_t kMostWays = 3;    // kept of one set of elements: merged in another order, it may lie otherwise
constexpr std::size_t kMostSets = 400;  // kernels tried for one window
constexpr double kWorthwhile = 0.01;    // microseconds: below, the cut stays
constexpr double kNever = std::numeric_limits<double>::infinity();

// Whether what can be merged with one can be merged with the other, as far as layouts tell. Both are of the same nodes.
bool alike(const Cluster& a, const Cluster& b) {
  const auto same_read = [](const Read& x, const Read& y) { return x.layouts == y.layouts; };
  const auto same_result = [](const Result& x, const Result& y) {
    return x.layout == y.layout && x.rounds == y.rounds;
  };
  return a.kernel_class == b.kernel_class && a.domain.extents == b.domain.extents && a.domain.kept == b.domain.kept &&
         a.persistent == b.persistent && a.rounds == b.rounds && a.sweep_of == b.sweep_of && a.paired == b.paired &&
         a.computed == b.computed &&
         std::equal(a.reads.begin(), a.reads.end(), b.reads.begin(), b.reads.end(), same_read) &&
         std::equal(a.results.begin(), a.results.end(), b.results.begin(), b.results.end(), same_result);
}

// All kernels of a window that are worth a look.
class Enumeration {
 public:
  Enumeration(const Context& context, const Window& window, std::int64_t& attempts)
      : context_(context), window_(window), attempts_(attempts) {}

  std::deque<Candidate> run() {
    for (std::size_t i = 0; i < window_.elements.size(); ++i)
      add({bit(i), *window_.elements[i].cluster, 0, -1, static_cast<int>(i), -1});
    for (std::size_t i = 0; i < candidates_.size() && candidates_.size() < kMostSets; ++i) extend(i);
    return std::move(candidates_);
  }

 private:
  void add(Candidate candidate) {
    candidate.us = time_of(context_, candidate.cluster, bytes_of(context_, candidate.cluster));
    std::vector<std::size_t>& ways = index_[candidate.mask];
    const auto same = std::find_if(ways.begin(), ways.end(),
                                   [&](std::size_t way) { return alike(candidates_[way].cluster, candidate.cluster); });
    if (same != ways.end()) {
      Candidate& kept = candidates_[*same];
      if (candidate.us < kept.us) kept = std::move(candidate);
    } else if (ways.size() < kMostWays) {
      ways.push_back(candidates_.size());
      candidates_.push_back(std::move(candidate));
    }
  }

  void extend(std::size_t from) {
    const Mask mask = candidates_[from].mask;
    for (std::size_t i = 0; i < window_.elements.size(); ++i) {
      if (has(mask, i) || (window_.elements[i].near & mask) == 0 || !is_convex(window_, mask | bit(i))) continue;
      for (Cluster& merged : fused(candidates_[from], i))
        add({mask | bit(i), std::move(merged), 0, static_cast<int>(from), static_cast<int>(i), -1});
    }
  }

  // The candidate and one element more, as one kernel: in no way, in one, or in two.
  std::vector<Cluster> fused(const Candidate& candidate, std::size_t i) {
    const Cluster& element = *window_.elements[i].cluster;
    const Mask mask = candidate.mask | bit(i);
    const auto elsewhere = [&](ValueId value) {
      const auto readers = window_.readers.find(value);
      return window_.outside.count(value) != 0 || (readers != window_.readers.end() && (readers->second & ~mask) != 0);
    };
    std::vector<Cluster> ways;
    Cluster merged;
    const auto take = [&](const Verdict& verdict) {
      --attempts_;
      if (verdict.legal()) ways.push_back(std::move(merged));
      merged = Cluster{};
    };
    if ((window_.elements[i].before & candidate.mask) != 0) {
      take(fuse_consumer(context_, candidate.cluster, element, elsewhere, merged));
    } else if (has(needs(window_, candidate.mask), i)) {
      take(fuse_consumer(context_, element, candidate.cluster, elsewhere, merged));
    } else if (context_.options.siblings) {
      take(fuse_siblings(context_, candidate.cluster, element, merged));
      if (element.kernel_class == candidate.cluster.kernel_class)
        take(fuse_siblings(context_, element, candidate.cluster, merged));
    }
    return ways;
  }

  const Context& context_;
  const Window& window_;
  std::int64_t& attempts_;
  std::deque<Candidate> candidates_;  // smaller ones first: a candidate is replaced only before it is extended
  std::map<Mask, std::vector<std::size_t>> index_;  // candidates of these elements
};

// The clusters as they stand are candidates too. Returns their time.
double add_living(const Context& context, const Partition& partition, const Window& window,
                  std::deque<Candidate>& candidates) {
  double now = 0;
  for (int cluster : window.clusters) {
    const Mask mask = mask_of(partition, window, partition.piece_of[static_cast<std::size_t>(cluster)]);
    const double us = time_of(context, partition.at(cluster), bytes_of(context, partition.at(cluster)));
    now += us;
    candidates.push_back({mask, {}, us, -1, -1, cluster});
  }
  return now;
}

// The least time of candidates that make up the window, and which they are.
double shortest(const Window& window, const std::deque<Candidate>& candidates, std::vector<int>& kernels) {
  struct Way {
    double us = kNever;
    int last = -1;  // candidate
  };
  const Mask all = bit(window.elements.size()) - 1;
  std::vector<Mask> needed;
  for (const Candidate& candidate : candidates) needed.push_back(needs(window, candidate.mask));
  std::vector<Way> ways(std::size_t{all} + 1);  // to have run these elements
  ways[0].us = 0;
  for (Mask done = 0; done < all; ++done) {
    if (ways[done].us == kNever) continue;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const Mask mask = candidates[i].mask;
      if ((mask & done) != 0 || (needed[i] & ~done) != 0) continue;
      const double us = ways[done].us + candidates[i].us;
      if (us < ways[done | mask].us) ways[done | mask] = {us, static_cast<int>(i)};
    }
  }
  for (Mask done = all; done != 0 && ways[done].last >= 0;) {
    kernels.push_back(ways[done].last);
    done &= ~candidates[static_cast<std::size_t>(kernels.back())].mask;
  }
  std::reverse(kernels.begin(), kernels.end());
  return ways[all].us;
}

}  // namespace

Mask mask_of(const Partition& partition, const Window& window, int piece) {
  Mask mask = 0;
  std::vector<int> pending{piece};
  while (!pending.empty()) {
    const int next = pending.back();
    pending.pop_back();
    const auto found = std::find_if(window.elements.begin(), window.elements.end(),
                                    [&](const Element& element) { return element.piece == next; });
    if (found != window.elements.end()) {
      mask |= bit(static_cast<std::size_t>(found - window.elements.begin()));
    } else {
      pending.insert(pending.end(), {partition.piece(next).left, partition.piece(next).right});
    }
  }
  return mask;
}

Cut cheapest_cut(const Context& context, const Partition& partition, const Window& window, std::int64_t& attempts) {
  Cut cut;
  cut.candidates = Enumeration(context, window, attempts).run();
  cut.crowded = cut.candidates.size() >= kMostSets;
  const double now = add_living(context, partition, window, cut.candidates);
  if (shortest(window, cut.candidates, cut.kernels) >= now - kWorthwhile) cut.kernels.clear();
  return cut;
}

}  // namespace tenon::ir::fusion

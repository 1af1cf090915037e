// The oracle: all convex kernels, smallest first, then a shortest path over the sets of nodes that may have run.
#include "tests/fusion/oracle.h"

#include <algorithm>
#include <limits>
#include <map>
#include <random>
#include <stdexcept>
#include <unordered_map>

#include "ir/graph/build.h"

namespace tenon::test {
namespace {

using namespace ir;
using namespace ir::fusion;
using Bits = std::uint32_t;

double time_of(const Context& context, const Cluster& cluster) {
  return fusion::time_of(context, cluster, bytes_of(context, cluster));
}

constexpr std::size_t kMostVariants = 8;  // of one set of nodes: merged in another order, it may lie otherwise

class Oracle {
 public:
  explicit Oracle(const Context& context)
      : context_(context), seeds_(make_partition(context, seed_clusters(context, {}))) {
    const std::size_t count = seeds_.clusters.size();
    if (count > 20) throw std::invalid_argument("too many nodes for the oracle");
    all_ = (Bits{1} << count) - 1;
    for (std::size_t i = 0; i < count; ++i)
      for (const Read& read : seeds_.clusters[i].reads) readers_[read.value] |= Bits{1} << i;
    before_.resize(count);
    for (std::size_t i = 0; i < count; ++i)
      for (const Read& read : seeds_.clusters[i].reads)
        if (const int maker = seeds_.maker[static_cast<std::size_t>(read.value)]; maker >= 0)
          before_[i] |= Bits{1} << maker;
  }

  double least() {
    for (std::size_t i = 0; i < seeds_.clusters.size(); ++i) kernels_[1][Bits{1} << i].push_back(seeds_.clusters[i]);
    for (std::size_t size = 2; size <= seeds_.clusters.size(); ++size) grow(size);
    return shortest();
  }

 private:
  Bits needs(Bits kernel) const {
    Bits all = 0;
    for (std::size_t i = 0; i < before_.size(); ++i)
      if (kernel >> i & 1U) all |= before_[i];
    return all & ~kernel;
  }

  // No path leaves the kernel and returns: nothing that it needs, at any distance, needs it.
  bool convex(Bits kernel) const {
    Bits needed = needs(kernel), reached = needed;
    while (reached != 0) {
      Bits next = 0;
      for (std::size_t i = 0; i < before_.size(); ++i)
        if (reached >> i & 1U) next |= before_[i];
      if (next & kernel) return false;
      reached = next & ~needed;
      needed |= next;
    }
    return true;
  }

  // Kernels of `size` nodes, from two smaller ones.
  void grow(std::size_t size) {
    for (std::size_t less = 1; 2 * less <= size; ++less)
      for (const auto& [a, first] : kernels_[less])
        for (const auto& [b, second] : kernels_[size - less])
          if ((a & b) == 0 && (2 * less < size || a < b) && convex(a | b))
            for (const Cluster& one : first)
              for (const Cluster& other : second) join(size, a, one, b, other);
  }

  void join(std::size_t size, Bits a, const Cluster& first, Bits b, const Cluster& second) {
    const Bits both = a | b;
    const auto elsewhere = [&](ValueId value) {
      const auto readers = readers_.find(value);
      return context_.graph_output[static_cast<std::size_t>(value)] ||
             (readers != readers_.end() && (readers->second & ~both) != 0);
    };
    const auto shares = [&](const Read& read) { return first.find_read(read.value) != nullptr; };
    Cluster merged;
    if (needs(b) & a) {
      if (fuse_consumer(context_, first, second, elsewhere, merged).legal()) keep(size, both, std::move(merged));
    } else if (needs(a) & b) {
      if (fuse_consumer(context_, second, first, elsewhere, merged).legal()) keep(size, both, std::move(merged));
    } else if (std::any_of(second.reads.begin(), second.reads.end(), shares)) {
      if (fuse_siblings(context_, first, second, merged).legal()) keep(size, both, std::move(merged));
      merged = {};
      if (fuse_siblings(context_, second, first, merged).legal()) keep(size, both, std::move(merged));
    }
  }

  void keep(std::size_t size, Bits both, Cluster merged) {
    std::vector<Cluster>& variants = kernels_[size][both];
    const auto same =
        std::find_if(variants.begin(), variants.end(), [&](const Cluster& variant) { return alike(variant, merged); });
    if (same == variants.end()) {
      if (variants.size() < kMostVariants) variants.push_back(std::move(merged));
    } else if (time_of(context_, merged) < time_of(context_, *same)) {
      *same = std::move(merged);
    }
  }

  // Whether what can be merged with one can be merged with the other, as far as layouts tell.
  static bool alike(const Cluster& a, const Cluster& b) {
    const auto same_read = [](const Read& x, const Read& y) { return x.layouts == y.layouts; };
    const auto same_result = [](const Result& x, const Result& y) {
      return x.layout == y.layout && x.rounds == y.rounds;
    };
    return a.kernel_class == b.kernel_class && a.domain.extents == b.domain.extents && a.persistent == b.persistent &&
           std::equal(a.reads.begin(), a.reads.end(), b.reads.begin(), b.reads.end(), same_read) &&
           std::equal(a.results.begin(), a.results.end(), b.results.begin(), b.results.end(), same_result);
  }

  double shortest() const {
    struct Kernel {
      Bits bits, needs;
      double us;
    };
    std::vector<Kernel> kernels;
    for (const auto& [size, list] : kernels_)
      for (const auto& [bits, variants] : list)
        for (const Cluster& variant : variants) kernels.push_back({bits, needs(bits), time_of(context_, variant)});
    std::vector<double> best(std::size_t{all_} + 1, std::numeric_limits<double>::infinity());
    best[0] = 0;
    for (Bits done = 0; done < all_; ++done) {
      if (best[done] == std::numeric_limits<double>::infinity()) continue;
      for (const Kernel& kernel : kernels)
        if ((kernel.bits & done) == 0 && (kernel.needs & ~done) == 0)
          best[done | kernel.bits] = std::min(best[done | kernel.bits], best[done] + kernel.us);
    }
    return best[all_];
  }

  const Context& context_;
  Partition seeds_;
  Bits all_ = 0;
  std::unordered_map<ValueId, Bits> readers_;
  std::vector<Bits> before_;
  std::map<std::size_t, std::map<Bits, std::vector<Cluster>>> kernels_;  // by size
};

class Grower {
 public:
  explicit Grower(std::uint64_t seed) : random_(seed) {
    for (int i = 0; i < 3; ++i)
      full_.push_back(append_input(graph_, "x" + std::to_string(i), DType::f32, {kExtent, kExtent}));
    rows_.push_back(append_input(graph_, "r", DType::f32, {kExtent, 1}));
  }

  Graph run(int nodes) {
    for (int i = 0; i < nodes; ++i) step();
    const auto users = users_of(graph_);
    for (std::size_t i = 0; i < graph_.values.size(); ++i)
      if (graph_.producer(static_cast<ValueId>(i)).op != Op::input && (users[i].empty() || pick(12) == 0))
        append_output(graph_, static_cast<ValueId>(i), "y" + std::to_string(i));
    return std::move(graph_);
  }

 private:
  static constexpr std::int64_t kExtent = 4096;

  std::size_t pick(std::size_t count) { return static_cast<std::size_t>(random_() % count); }
  ValueId any(const std::vector<ValueId>& from) {
    return pick(2) == 0 ? from[pick(from.size())] : from[from.size() - 1 - pick(std::min<std::size_t>(3, from.size()))];
  }

  ValueId reduce(Op op, ValueId value, std::int64_t axis) {
    return append_one(graph_, op, {value}, {{"axis", std::vector<std::int64_t>{axis}}, {"keepdims", true}});
  }

  void step() {
    switch (pick(12)) {
      case 0: rows_.push_back(reduce(Op::sum, any(full_), 1)); return;
      case 1: rows_.push_back(reduce(Op::max, any(full_), 1)); return;
      case 2: columns_.push_back(reduce(Op::sum, any(full_), 0)); return;
      case 3: full_.push_back(append_one(graph_, Op::matmul, {any(full_), any(full_)})); return;
      case 4: rows_.push_back(append_one(graph_, Op::rsqrt, {any(rows_)})); return;
      case 5:
      case 6: full_.push_back(append_one(graph_, Op::mul, {any(full_), any(rows_)})); return;
      case 7:
        if (!columns_.empty()) {
          full_.push_back(append_one(graph_, Op::sub, {any(full_), any(columns_)}));
          return;
        }
        [[fallthrough]];
      case 8: full_.push_back(append_one(graph_, Op::exp, {any(full_)})); return;
      case 9: {
        const ValueId turned = append_one(graph_, Op::transpose, {any(full_)});
        full_.push_back(append_one(graph_, Op::add, {any(full_), turned}));
        return;
      }
      default: full_.push_back(append_one(graph_, Op::add, {any(full_), any(full_)})); return;
    }
  }

  Graph graph_;
  std::mt19937_64 random_;
  std::vector<ValueId> full_, rows_, columns_;
};

}  // namespace

double predicted_time(const Context& context, const Partition& partition) {
  double us = 0;
  for (int cluster : partition.order) us += time_of(context, partition.at(cluster));
  return us;
}

Partition planned_partition(const Context& context) {
  Partition partition = make_partition(context, seed_clusters(context, {}));
  merge_clusters(context, partition);
  if (resolve_windows(context, partition)) merge_clusters(context, partition);
  return partition;
}

double least_time(const Context& context) { return Oracle(context).least(); }

Graph oracle_graph(std::uint64_t seed, int nodes) { return Grower(seed).run(nodes); }

}  // namespace tenon::test

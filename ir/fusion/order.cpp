// Search and reordering, both within the stretch of the order between the two clusters.
#include "ir/fusion/order.h"

#include <algorithm>

namespace tenon::ir::fusion {

Order::Order(const std::vector<int>& clusters, std::size_t count)
    : position_(count, -1), at_(clusters), marked_(count) {
  for (std::size_t i = 0; i < clusters.size(); ++i)
    position_[static_cast<std::size_t>(clusters[i])] = static_cast<int>(i);
}

bool Order::convex(int first, int second, const Successors& successors) {
  if (position(first) > position(second)) std::swap(first, second);
  for (int cluster : reached_) marked_[static_cast<std::size_t>(cluster)] = false;
  reached_.clear();
  bool through_third = false;
  std::vector<int> pending{first};
  while (!pending.empty() && !through_third) {
    const int cluster = pending.back();
    pending.pop_back();
    successors(cluster, [&](int next) {
      if (next == second) {
        through_third = through_third || cluster != first;
        return;
      }
      if (next == first || marked_[static_cast<std::size_t>(next)] || position(next) > position(second)) return;
      marked_[static_cast<std::size_t>(next)] = true;
      reached_.push_back(next);
      pending.push_back(next);
    });
  }
  return !through_third;
}

void Order::merge(int first, int second) {
  const int low = std::min(position(first), position(second)), high = std::max(position(first), position(second));
  // What the earlier one reaches moves behind the merged cluster; the rest keeps its place before it.
  std::vector<int> before, after;
  for (int i = low; i <= high; ++i) {
    const int cluster = at_[static_cast<std::size_t>(i)];
    if (cluster < 0 || cluster == first || cluster == second) continue;
    (marked_[static_cast<std::size_t>(cluster)] ? after : before).push_back(cluster);
  }
  before.push_back(first);
  before.insert(before.end(), after.begin(), after.end());
  for (int i = low; i <= high; ++i) {
    const auto k = static_cast<std::size_t>(i - low);
    at_[static_cast<std::size_t>(i)] = k < before.size() ? before[k] : -1;
    if (k < before.size()) position_[static_cast<std::size_t>(before[k])] = i;
  }
}

}  // namespace tenon::ir::fusion

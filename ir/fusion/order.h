// A topological order of clusters that is kept while clusters merge, and by it the convexity of a merge: no path
// between the two may pass through a third. (Pearce & Kelly, "A dynamic topological sort algorithm", 2006, for
// contractions.)
#pragma once

#include <functional>
#include <vector>

namespace tenon::ir::fusion {

class Order {
 public:
  /// The living clusters in an order in which they can run; `count` is one more than the largest number.
  Order(const std::vector<int>& clusters, std::size_t count);

  /// One more than the largest position.
  std::size_t size() const { return at_.size(); }
  int position(int cluster) const { return position_[static_cast<std::size_t>(cluster)]; }

  /// Calls visit(successor) for each cluster that needs one of `cluster`'s results.
  using Successors = std::function<void(int cluster, const std::function<void(int)>& visit)>;

  /// Whether merging is convex. The search stays between the two in the order.
  bool convex(int first, int second, const Successors& successors);
  /// Merges `second` into `first`; convex(first, second) must have just returned true.
  void merge(int first, int second);

 private:
  std::vector<int> position_;  // by cluster
  std::vector<int> at_;        // by position; -1 where a merged cluster was
  std::vector<int> reached_;   // by the last convex(): what the earlier one reaches
  std::vector<bool> marked_;
};

}  // namespace tenon::ir::fusion

// What every pass does: walk the old graph in order and build the new one, with a map from old values to new ones.
#pragma once

#include <vector>

#include "ir/graph/graph.h"

namespace tenon::ir {

class Rewrite {
 public:
  explicit Rewrite(const Graph& old);

  /// The graph being built.
  Graph graph;

  ValueId operator[](ValueId old) const { return map_[static_cast<std::size_t>(old)]; }
  std::vector<ValueId> mapped(const std::vector<ValueId>& old) const;
  /// `now` stands for `old` from here on, and takes its name if it has none.
  void replace(ValueId old, ValueId now);
  void replace(const std::vector<ValueId>& old, const std::vector<ValueId>& now);
  /// Copies a node of the old graph, with its types and names.
  void copy(const Node& node);
  /// The new graph, with inputs and outputs in the old order.
  Graph finish();

 private:
  const Graph& old_;
  std::vector<ValueId> map_;
};

}  // namespace tenon::ir

// The map from old values to new ones.
#include "ir/passes/rewrite.h"

#include "ir/graph/check.h"
#include "ir/ops/infer.h"

namespace tenon::ir {

Rewrite::Rewrite(const Graph& old) : old_(old), map_(old.values.size(), -1) {
  graph.name = old.name;
  graph.symbols = old.symbols;
  graph.values.reserve(old.values.size());
  graph.nodes.reserve(old.nodes.size());
}

std::vector<ValueId> Rewrite::mapped(const std::vector<ValueId>& old) const {
  std::vector<ValueId> now;
  now.reserve(old.size());
  for (ValueId value : old) now.push_back((*this)[value]);
  return now;
}

void Rewrite::replace(ValueId old, ValueId now) {
  map_[static_cast<std::size_t>(old)] = now;
  Value& value = graph.values[static_cast<std::size_t>(now)];
  if (value.name.empty()) value.name = old_.value(old).name;
}

void Rewrite::replace(const std::vector<ValueId>& old, const std::vector<ValueId>& now) {
  TENON_CHECK(old.size() == now.size(), "a node was replaced by another number of results");
  for (std::size_t i = 0; i < old.size(); ++i) replace(old[i], now[i]);
}

void Rewrite::copy(const Node& node) {
  std::vector<Type> types;
  for (ValueId result : node.results) types.push_back(old_.type(result));
  replace(node.results,
          push_node(graph, {node.op, mapped(node.operands), node.attrs, {}, node.place}, std::move(types)));
}

Graph Rewrite::finish() {
  graph.inputs = mapped(old_.inputs);
  graph.outputs = mapped(old_.outputs);
  graph.outputs_names = old_.outputs_names;
  graph.updates = old_.updates;
  return std::move(graph);
}

}  // namespace tenon::ir

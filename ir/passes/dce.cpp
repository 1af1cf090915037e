// Drops what no result needs. One walk backwards marks, one forwards copies.
#include "ir/passes/passes.h"
#include "ir/passes/rewrite.h"

namespace tenon::ir {

Graph eliminate_dead_code(const Graph& graph) {
  std::vector<bool> needed(graph.nodes.size(), false);
  for (ValueId output : graph.outputs) needed[static_cast<std::size_t>(graph.value(output).producer)] = true;
  for (std::size_t i = graph.nodes.size(); i-- > 0;) {
    if (!needed[i]) continue;
    for (ValueId operand : graph.nodes[i].operands)
      needed[static_cast<std::size_t>(graph.value(operand).producer)] = true;
  }
  Rewrite rewrite(graph);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i)
    if (needed[i] || graph.nodes[i].op == Op::input) rewrite.copy(graph.nodes[i]);
  return rewrite.finish();
}

}  // namespace tenon::ir

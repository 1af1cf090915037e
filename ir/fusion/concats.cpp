// Level by level: the operands are dealt to as few concats as hold them, whose results are the operands of the next
// level.
#include "ir/fusion/concats.h"

#include <algorithm>

#include "ir/graph/build.h"
#include "ir/graph/check.h"
#include "ir/passes/rewrite.h"

namespace tenon::ir::fusion {
namespace {

bool is_long(const Node& node, std::size_t most) { return node.op == Op::concat && node.operands.size() > most; }

// One level: even shares of neighbours, each a concat of its own.
std::vector<ValueId> joined(Graph& graph, const std::vector<ValueId>& operands, std::size_t most, const Node& node) {
  const std::size_t shares = (operands.size() + most - 1) / most;
  std::vector<ValueId> results;
  for (std::size_t i = 0; i < shares; ++i) {
    const auto at = [&](std::size_t share) {
      return operands.begin() + static_cast<std::ptrdiff_t>(share * operands.size() / shares);
    };
    results.push_back(append_one(graph, Op::concat, {at(i), at(i + 1)}, node.attrs, node.place));
  }
  return results;
}

}  // namespace

Graph cut_concats(const Graph& graph, std::size_t most) {
  TENON_CHECK(most >= 2, "concats of one operand");
  if (std::none_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) { return is_long(node, most); }))
    return graph;
  Rewrite rewrite(graph);
  for (const Node& node : graph.nodes) {
    if (!is_long(node, most)) {
      rewrite.copy(node);
      continue;
    }
    std::vector<ValueId> pieces = rewrite.mapped(node.operands);
    while (pieces.size() > most) pieces = joined(rewrite.graph, pieces, most, node);
    rewrite.replace(node.results[0], append_one(rewrite.graph, Op::concat, pieces, node.attrs, node.place));
  }
  return rewrite.finish();
}

}  // namespace tenon::ir::fusion

// Counts on the graph as written, before passes and planning.
#include "src/measure/work.h"

#include <algorithm>
#include <set>
#include <vector>

namespace tenon::src {
namespace {

using ir::Graph;
using ir::Node;
using ir::Op;
using ir::ValueId;

std::int64_t bytes_of(const Graph& graph, ValueId value, const Bindings& bindings) {
  const ir::Type& type = graph.type(value);
  return (element_count(type.shape) * Dim(size_of(type.dtype))).evaluate(bindings);
}

std::int64_t elements_of(const Graph& graph, ValueId value, const Bindings& bindings) {
  return element_count(graph.type(value).shape).evaluate(bindings);
}

// Of the composites, those that are views.
bool moves_elements(Op op) { return op == Op::split || op == Op::stack || op == Op::expand_dims || op == Op::squeeze; }

// Of an operand, at most: what `needed` elements of a result take.
std::int64_t taken(const Graph& graph, const Node& node, std::size_t operand, std::int64_t needed,
                   const Bindings& bindings) {
  const std::int64_t all = elements_of(graph, node.operands[operand], bindings);
  if (needed == 0) return 0;
  switch (ir::kind_of(node.op)) {
    case ir::Kind::map: return std::min(all, needed);
    case ir::Kind::view: return node.op == Op::take && operand == 1 ? all : std::min(all, needed);
    case ir::Kind::reduce: return std::min(all, needed * (all / elements_of(graph, node.results[0], bindings)));
    case ir::Kind::composite: return moves_elements(node.op) ? std::min(all, needed) : all;
    case ir::Kind::source:
    case ir::Kind::random:
    case ir::Kind::contract: return all;
  }
  return all;
}

// How many elements of each value the outputs depend on, at most: parts that several users take are added up.
std::vector<std::int64_t> needed_elements(const Graph& graph, const Bindings& bindings) {
  std::vector<std::int64_t> needed(graph.values.size(), 0);
  const auto need = [&](ValueId value, std::int64_t more) {
    std::int64_t& count = needed[static_cast<std::size_t>(value)];
    count = std::min(count + more, elements_of(graph, value, bindings));
  };
  for (const ValueId output : graph.outputs) need(output, elements_of(graph, output, bindings));
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node)
    for (const ValueId result : node->results)
      for (std::size_t i = 0; i < node->operands.size(); ++i)
        need(node->operands[i], taken(graph, *node, i, needed[static_cast<std::size_t>(result)], bindings));
  return needed;
}

std::int64_t extent(const Graph& graph, ValueId value, int from_end, const Bindings& bindings) {
  const Shape& shape = graph.type(value).shape;
  return shape[shape.size() - static_cast<std::size_t>(from_end)].evaluate(bindings);
}

// Pairs of a query and a key that it sees: keys from i + sk - sq - window to i + sk - sq (causal) or to the last.
double visible_pairs(const Node& node, std::int64_t queries, std::int64_t keys) {
  const bool causal = node.attrs.get_or<bool>("causal", false);
  const std::int64_t window = node.attrs.get_or<std::int64_t>("window", -1);
  double pairs = 0;
  for (std::int64_t i = 0; i < queries; ++i) {
    const std::int64_t diagonal = i + keys - queries;
    const std::int64_t first = window < 0 ? 0 : std::max<std::int64_t>(0, diagonal - window);
    const std::int64_t last = causal ? std::min(diagonal, keys - 1) : keys - 1;
    pairs += static_cast<double>(std::max<std::int64_t>(0, last - first + 1));
  }
  return pairs;
}

double attention_flops(const Graph& graph, const Node& node, const Bindings& bindings) {
  const ValueId q = node.operands[0], k = node.operands[1], v = node.operands[2];
  const std::int64_t queries = extent(graph, q, 2, bindings), keys = extent(graph, k, 2, bindings);
  const std::int64_t depth = extent(graph, q, 1, bindings), value_depth = extent(graph, v, 1, bindings);
  const std::int64_t elements = element_count(graph.type(q).shape).evaluate(bindings);
  if (elements == 0) return 0;
  const auto heads = static_cast<double>(elements / queries / depth);
  return 2 * heads * visible_pairs(node, queries, keys) * static_cast<double>(depth + value_depth);
}

}  // namespace

std::int64_t unavoidable_bytes(const Graph& graph, const Bindings& bindings) {
  const std::vector<std::int64_t> needed = needed_elements(graph, bindings);
  std::int64_t bytes = 0;
  for (const ValueId input : graph.inputs)
    bytes += needed[static_cast<std::size_t>(input)] * size_of(graph.type(input).dtype);
  for (const ValueId output : std::set<ValueId>(graph.outputs.begin(), graph.outputs.end()))
    bytes += bytes_of(graph, output, bindings);
  return bytes;
}

double contraction_flops(const Graph& graph, const Bindings& bindings) {
  double flops = 0;
  for (const Node& node : graph.nodes) {
    if (node.op == Op::attention) flops += attention_flops(graph, node, bindings);
    if (node.op != Op::matmul && node.op != Op::linear) continue;
    const auto results = static_cast<double>(element_count(graph.type(node.results[0]).shape).evaluate(bindings));
    flops += 2 * results * static_cast<double>(extent(graph, node.operands[0], 1, bindings));
  }
  return flops;
}

}  // namespace tenon::src

// Counts on the graph as written, before passes and planning.
#include "tools/work.h"

#include <algorithm>
#include <set>

namespace tenon::tools {
namespace {

using ir::Graph;
using ir::Node;
using ir::Op;
using ir::ValueId;

std::int64_t bytes_of(const Graph& graph, ValueId value, const Bindings& bindings) {
  const ir::Type& type = graph.type(value);
  return (element_count(type.shape) * Dim(size_of(type.dtype))).evaluate(bindings);
}

// As much of an input as its users take, where all of them take parts.
std::int64_t read_bytes(const Graph& graph, ValueId input, const std::vector<ir::NodeId>& users,
                        const Bindings& bindings) {
  std::int64_t taken = 0;
  for (const ir::NodeId user : users) {
    const Node& node = graph.node(user);
    const bool part = node.op == Op::slice || (node.op == Op::take && node.operands[0] == input);
    taken += bytes_of(graph, part ? node.results[0] : input, bindings);
  }
  return std::min(taken, bytes_of(graph, input, bindings));
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
  const auto users = users_of(graph);
  std::int64_t bytes = 0;
  for (const ValueId input : graph.inputs)
    bytes += read_bytes(graph, input, users[static_cast<std::size_t>(input)], bindings);
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

}  // namespace tenon::tools

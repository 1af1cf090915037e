// From the user's operators to the few that the planner knows: composites are expanded, a reduction's `dtype` becomes
// a cast before it, and matmul's 1-D operands become matrices.
#include <fmt/format.h>

#include "ir/graph/build.h"
#include "ir/graph/limits.h"
#include "ir/passes/passes.h"
#include "ir/passes/rewrite.h"

namespace tenon::ir {
namespace {

ValueId widening_reduction(Graph& graph, const Node& node, ValueId operand) {
  const DType dtype = node.attrs.get<DType>("dtype");
  Attrs attrs;
  for (const auto& [name, value] : node.attrs.items())
    if (name != "dtype") attrs.set(name, value);
  if (graph.type(operand).dtype != dtype)
    operand = append_one(graph, Op::cast, {operand}, {{"dtype", dtype}}, node.place);
  return append_one(graph, node.op, {operand}, attrs, node.place);
}

ValueId as_matrix(Graph& graph, ValueId operand, bool left, const Place& place) {
  const Shape shape = graph.type(operand).shape;
  if (shape.size() != 1) return operand;
  const Shape matrix = left ? Shape{Dim(1), shape[0]} : Shape{shape[0], Dim(1)};
  return append_one(graph, Op::reshape, {operand}, {{"shape", matrix}}, place);
}

ValueId matrix_product(Graph& graph, const Node& node, ValueId a, ValueId b, const Shape& result) {
  a = as_matrix(graph, a, true, node.place);
  b = as_matrix(graph, b, false, node.place);
  const ValueId product = append_one(graph, node.op, {a, b}, node.attrs, node.place);
  return append_one(graph, Op::reshape, {product}, {{"shape", result}}, node.place);
}

// Each composite is a bounded number of primitives, but a file may hold many of them.
void check_size(const Graph& graph, const Place& place) {
  constexpr std::size_t kMost = 4 * kMaxNodes;
  if (graph.nodes.size() > kMost)
    throw Error(ErrorKind::resource, fmt::format("a graph of more than {} primitive operators", kMost), place,
                "split the graph");
}

bool has_vector_operand(const Graph& graph, const Node& node) {
  return graph.type(node.operands[0]).shape.size() == 1 || graph.type(node.operands[1]).shape.size() == 1;
}

}  // namespace

Graph decompose(const Graph& graph) {
  Rewrite rewrite(graph);
  for (const Node& node : graph.nodes) {
    const std::vector<ValueId> operands = rewrite.mapped(node.operands);
    const Kind kind = kind_of(node.op);
    if (kind == Kind::composite) {
      rewrite.replace(node.results, expand_composite(rewrite.graph, node.op, operands, node.attrs, node.place));
    } else if (kind == Kind::reduce && node.attrs.has("dtype")) {
      rewrite.replace(node.results[0], widening_reduction(rewrite.graph, node, operands[0]));
    } else if (kind == Kind::contract && has_vector_operand(graph, node)) {
      const Shape& shape = graph.type(node.results[0]).shape;
      rewrite.replace(node.results[0], matrix_product(rewrite.graph, node, operands[0], operands[1], shape));
    } else {
      rewrite.copy(node);
    }
    check_size(rewrite.graph, node.place);
  }
  return rewrite.finish();
}

}  // namespace tenon::ir

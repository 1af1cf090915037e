// Maps of constants become constants, evaluated with the interpreter's own functions; a dimension's value that no
// symbol decides becomes a literal.
#include <algorithm>

#include "ir/ops/evaluate.h"
#include "ir/ops/infer.h"
#include "ir/passes/passes.h"
#include "ir/passes/rewrite.h"

namespace tenon::ir {
namespace {

// A constant as its dtype holds it: 0.1 as f32 is 0x1.99999ap-4.
Scalar held(const Graph& graph, ValueId constant) {
  const DType dtype = graph.type(constant).dtype;
  return convert(graph.producer(constant).attrs.get<Scalar>("value"), is_real(dtype) ? DType::f64 : dtype, dtype);
}

ValueId constant(Graph& graph, const Type& type, const Scalar& value, const Place& place) {
  Attrs attrs{{"shape", type.shape}, {"value", fit_scalar(value, type.dtype)}, {"dtype", type.dtype}};
  return push_node(graph, {Op::full, {}, std::move(attrs), {}, place}, {type})[0];
}

bool is_constant(const Graph& graph, ValueId value) { return graph.producer(value).op == Op::full; }

bool all_constant(const Graph& graph, const std::vector<ValueId>& values) {
  return std::all_of(values.begin(), values.end(), [&](ValueId value) { return is_constant(graph, value); });
}

Scalar evaluated(const Graph& graph, const Node& node, const std::vector<ValueId>& operands, DType result) {
  std::vector<Scalar> scalars;
  for (ValueId operand : operands) scalars.push_back(held(graph, operand));
  return evaluate(node.op, graph.type(operands.back()).dtype, result, scalars);
}

}  // namespace

Graph fold_constants(const Graph& graph) {
  Rewrite rewrite(graph);
  for (const Node& node : graph.nodes) {
    const std::vector<ValueId> operands = rewrite.mapped(node.operands);
    const Type& type = graph.type(node.results[0]);
    if (kind_of(node.op) == Kind::map && all_constant(rewrite.graph, operands)) {
      const Scalar value = evaluated(rewrite.graph, node, operands, type.dtype);
      rewrite.replace(node.results[0], constant(rewrite.graph, type, value, node.place));
    } else if (node.op == Op::dim_value && node.attrs.get<std::vector<Dim>>("value")[0].is_constant()) {
      const Scalar value = convert(node.attrs.get<std::vector<Dim>>("value")[0].constant(), DType::i64, type.dtype);
      rewrite.replace(node.results[0], constant(rewrite.graph, type, value, node.place));
    } else {
      rewrite.copy(node);
    }
  }
  return rewrite.finish();
}

}  // namespace tenon::ir

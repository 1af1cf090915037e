// Operands to values: finds the graph, gives numbers their dtype, appends.
#include "src/api/recorder.h"

#include <fmt/format.h>

#include "ir/graph/build.h"
#include "ir/graph/check.h"
#include "ir/text/literal.h"

namespace tenon::src {
namespace {

using GraphPointer = std::shared_ptr<ir::Graph>;

// The one graph that all tensors belong to.
GraphPointer graph_of(ir::Op op, const std::vector<Operand>& operands) {
  const auto fail = [&](const std::string& message, const std::string& remedy) {
    throw Error(ErrorKind::argument, fmt::format("{}: {}", ir::name_of(op), message),
                operands.empty() ? Place{} : place_of(operands.front().location()), remedy);
  };
  GraphPointer graph;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const Tensor* tensor = operands[i].tensor();
    if (tensor == nullptr) continue;
    const GraphPointer& own = Tensor::Access::graph(*tensor);
    if (!own) fail(fmt::format("operand {} is an empty Tensor", i + 1), "assign it before it is used");
    if (graph && graph != own) fail("operands belong to different graphs", "record all of them in one Graph");
    graph = own;
  }
  if (!graph) fail("no operand is a tensor", "make one with Graph::literal");
  return graph;
}

std::vector<std::optional<DType>> known_dtypes(const std::vector<Operand>& operands) {
  std::vector<std::optional<DType>> dtypes;
  for (const Operand& operand : operands)
    dtypes.push_back(operand.tensor() ? std::optional(operand.tensor()->dtype()) : std::nullopt);
  return dtypes;
}

ir::ValueId append_literal(ir::Graph& graph, ir::Op op, const Scalar& value, DType dtype, const Place& place) {
  try {
    return ir::append_literal(graph, value.value, dtype, place);
  } catch (const Error& error) {
    throw Error(error.kind(), fmt::format("{}: {}", ir::name_of(op), error.message()), error.place(), error.remedy());
  }
}

ir::ValueId literal_value(ir::Graph& graph, ir::Op op, const Operand& operand, std::size_t index,
                          const std::vector<std::optional<DType>>& known) {
  const Place place = place_of(operand.location());
  const std::optional<DType> dtype = ir::literal_dtype(op, index, known);
  if (!dtype)
    throw Error(ErrorKind::type,
                fmt::format("{}: no operand gives the literal {} a dtype", ir::name_of(op),
                            ir::format_scalar(operand.scalar()->value)),
                place, "make it a tensor with Graph::literal");
  return append_literal(graph, op, *operand.scalar(), *dtype, place);
}

ir::Attrs without_defaults(ir::Op op, const ir::Attrs& attrs) {
  const ir::Attrs defaults = ir::with_defaults(op, {});
  ir::Attrs given;
  for (const auto& [name, value] : attrs.items()) {
    const ir::AttrValue* usual = defaults.find(name);
    if (usual == nullptr || !(*usual == value)) given.set(name, value);
  }
  return given;
}

Tensor append_source(const GraphPointer& graph, ir::Op op, const ir::Attrs& attrs, const Location& at) {
  return Tensor::Access::make(graph, ir::append_one(*graph, op, {}, without_defaults(op, attrs), place_of(at)));
}

}  // namespace

Place place_of(const Location& at, const std::string& value) {
  return {at.file_name(), static_cast<int>(at.line()), 0, value};
}

std::vector<Tensor> record(ir::Op op, const std::vector<Operand>& operands, ir::Attrs attrs) {
  const GraphPointer graph = graph_of(op, operands);
  const auto known = known_dtypes(operands);
  std::vector<ir::ValueId> values;
  for (std::size_t i = 0; i < operands.size(); ++i)
    values.push_back(operands[i].tensor() ? Tensor::Access::value(*operands[i].tensor())
                                          : literal_value(*graph, op, operands[i], i, known));
  std::vector<Tensor> results;
  for (ir::ValueId value :
       ir::append(*graph, op, std::move(values), without_defaults(op, attrs), place_of(operands.front().location())))
    results.push_back(Tensor::Access::make(graph, value));
  return results;
}

Tensor record_one(ir::Op op, const std::vector<Operand>& operands, ir::Attrs attrs) {
  const std::vector<Tensor> results = record(op, operands, std::move(attrs));
  TENON_CHECK(results.size() == 1, fmt::format("{} has {} results", ir::name_of(op), results.size()));
  return results.front();
}

Tensor record_source(const Graph& graph, ir::Op op, ir::Attrs attrs, const Location& at) {
  return append_source(Tensor::Access::graph(graph), op, attrs, at);
}
Tensor record_source(const Tensor& beside, ir::Op op, ir::Attrs attrs, const Location& at) {
  return append_source(Tensor::Access::graph(beside), op, attrs, at);
}

Tensor record_literal(ir::Op op, const Tensor& beside, const Scalar& value, DType dtype, const Location& at) {
  const GraphPointer& graph = Tensor::Access::graph(beside);
  return Tensor::Access::make(graph, append_literal(*graph, op, value, dtype, place_of(at)));
}

const Tensor& tensor_of(const std::string& name, const Operand& x, std::size_t number) {
  const Place place = place_of(x.location());
  if (!x.tensor())
    throw Error(ErrorKind::argument, fmt::format("{}: no operand is a tensor", name), place,
                "make one with Graph::literal");
  if (!Tensor::Access::graph(*x.tensor()))
    throw Error(ErrorKind::argument, fmt::format("{}: operand {} is an empty Tensor", name, number), place,
                "assign it before it is used");
  return *x.tensor();
}

const Symbols& symbols_of(const Tensor& tensor) { return Tensor::Access::graph(tensor)->symbols; }

}  // namespace tenon::src

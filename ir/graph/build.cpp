// Growing a graph by one node: check, infer, append. The only writers of Graph besides the passes.
#include "ir/graph/build.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ir/graph/check.h"
#include "ir/ops/infer.h"

namespace tenon::ir {
namespace {

// A symbol is known to the graph from its first use; the parser may have bounded it before.
void declare_symbols(Graph& graph, const Attrs& attrs) {
  for (const auto& [name, value] : attrs.items()) {
    const auto* dims = std::get_if<std::vector<Dim>>(&value);
    if (dims == nullptr) continue;
    std::set<std::string> symbols;
    for (const Dim& dim : *dims)
      if (!dim.is_constant()) dim.collect_symbols(symbols);
    for (const std::string& symbol : symbols) graph.symbols.try_emplace(symbol);
  }
}

std::vector<Type> types_of(const Graph& graph, const std::vector<ValueId>& operands) {
  std::vector<Type> types;
  types.reserve(operands.size());
  for (ValueId operand : operands) {
    TENON_CHECK(operand >= 0 && static_cast<std::size_t>(operand) < graph.values.size(),
                fmt::format("operand {} is no value of the graph", operand));
    types.push_back(graph.type(operand));
  }
  return types;
}

}  // namespace

std::vector<ValueId> push_node(Graph& graph, Node node, std::vector<Type> types) {
  const auto id = static_cast<NodeId>(graph.nodes.size());
  node.results.clear();
  for (std::size_t i = 0; i < types.size(); ++i) {
    node.results.push_back(static_cast<ValueId>(graph.values.size()));
    graph.values.push_back({std::move(types[i]), id, static_cast<int>(i), ""});
  }
  if (node.op == Op::input) graph.inputs.push_back(node.results[0]);
  graph.nodes.push_back(std::move(node));
  return graph.nodes.back().results;
}

std::vector<ValueId> append(Graph& graph, Op op, std::vector<ValueId> operands, Attrs attrs, Place place) {
  try {
    std::vector<Type> types = infer(op, types_of(graph, operands), attrs, graph.symbols);
    attrs = normalize_attributes(op, std::move(attrs));
    declare_symbols(graph, attrs);
    return push_node(graph, {op, std::move(operands), std::move(attrs), {}, place}, std::move(types));
  } catch (const Error& error) {
    throw error.at(place);
  }
}

ValueId append_one(Graph& graph, Op op, std::vector<ValueId> operands, Attrs attrs, Place place) {
  const auto results = append(graph, op, std::move(operands), std::move(attrs), std::move(place));
  TENON_CHECK(results.size() == 1, fmt::format("{} has {} results, one was expected", name_of(op), results.size()));
  return results[0];
}

ValueId append_input(Graph& graph, const std::string& name, DType dtype, Shape shape, Place place) {
  for (ValueId input : graph.inputs)
    if (graph.value(input).name == name)
      throw Error(ErrorKind::type, fmt::format("input '{}' is declared twice", name), place,
                  "give each input its own name");
  const ValueId value =
      append_one(graph, Op::input, {}, {{"dtype", dtype}, {"shape", std::move(shape)}}, std::move(place));
  graph.values[static_cast<std::size_t>(value)].name = name;
  return value;
}

ValueId append_literal(Graph& graph, Scalar value, DType dtype, Place place) {
  try {
    value = fit_scalar(value, dtype);
  } catch (const Error& error) {
    throw Error(error.kind(), "literal " + error.message(), place, error.remedy());
  }
  return append_one(graph, Op::full, {}, {{"shape", std::vector<Dim>{}}, {"value", value}, {"dtype", dtype}},
                    std::move(place));
}

void append_output(Graph& graph, ValueId value, const std::string& name) {
  TENON_CHECK(value >= 0 && static_cast<std::size_t>(value) < graph.values.size(),
              fmt::format("output {} is no value of the graph", value));
  if (std::find(graph.outputs_names.begin(), graph.outputs_names.end(), name) != graph.outputs_names.end())
    throw Error(ErrorKind::type, fmt::format("there are two results named '{}'", name), {},
                "give each result its own name");
  graph.outputs.push_back(value);
  graph.outputs_names.push_back(name);
  graph.updates.push_back(-1);
}

void append_update(Graph& graph, ValueId value, const std::string& name, ValueId input, Place place) {
  const auto found = std::find(graph.inputs.begin(), graph.inputs.end(), input);
  if (found == graph.inputs.end())
    throw Error(ErrorKind::type, fmt::format("'{}' updates '{}', which is no input", name, display_name(graph, input)),
                place, "update an input: its memory is the caller's");
  const auto number = static_cast<int>(found - graph.inputs.begin());
  const std::string& state = graph.value(input).name;
  if (const auto other = std::find(graph.updates.begin(), graph.updates.end(), number); other != graph.updates.end())
    throw Error(ErrorKind::type,
                fmt::format("input '{}' is updated already, by '{}'", state,
                            graph.outputs_names[static_cast<std::size_t>(other - graph.updates.begin())]),
                place, "update it once, by its last value");
  if (graph.type(value) != graph.type(input))
    throw Error(ErrorKind::type,
                fmt::format("'{}' is {}, but input '{}', which it updates, is {}", name, str(graph.type(value)), state,
                            str(graph.type(input))),
                place, "make it of the input's dtype and shape");
  append_output(graph, value, name);
  graph.updates.back() = number;
}

}  // namespace tenon::ir

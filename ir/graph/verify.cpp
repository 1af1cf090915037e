// verify(): what must hold between any two passes. A violation is a defect of Tenon, reported with the whole graph.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ir/graph/build.h"
#include "ir/graph/check.h"
#include "ir/ops/infer.h"
#include "ir/text/text.h"

namespace tenon::ir {
namespace {

std::string describe(const Graph& graph, std::size_t index) {
  return fmt::format("node {} ({})", index, name_of(graph.nodes[index].op));
}

bool is_value(const Graph& graph, ValueId value) {
  return value >= 0 && static_cast<std::size_t>(value) < graph.values.size();
}

// Operands point backwards and results point back at their node: after this the graph can be printed.
void check_links(const Graph& graph) {
  std::size_t results = 0;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    for (ValueId operand : node.operands) {
      TENON_CHECK(is_value(graph, operand), describe(graph, i) + " has an operand that does not exist");
      TENON_CHECK(static_cast<std::size_t>(graph.value(operand).producer) < i,
                  describe(graph, i) + " uses a value before its definition");
    }
    for (std::size_t k = 0; k < node.results.size(); ++k) {
      TENON_CHECK(is_value(graph, node.results[k]), describe(graph, i) + " has a result that does not exist");
      const Value& value = graph.value(node.results[k]);
      TENON_CHECK(value.producer == static_cast<NodeId>(i) && value.result == static_cast<int>(k),
                  describe(graph, i) + " and its result disagree on who made it");
    }
    results += node.results.size();
  }
  TENON_CHECK(results == graph.values.size(), "a value has no producer");
  for (ValueId output : graph.outputs) TENON_CHECK(is_value(graph, output), "an output does not exist");
  TENON_CHECK(graph.outputs.size() == graph.outputs_names.size(), "outputs and their names differ in number");
  TENON_CHECK(graph.outputs.size() == graph.updates.size(), "outputs and what they update differ in number");
}

void check_updates(const Graph& graph) {
  std::set<int> updated;
  for (std::size_t i = 0; i < graph.updates.size(); ++i) {
    const int input = graph.updates[i];
    if (input < 0) continue;
    TENON_CHECK(static_cast<std::size_t>(input) < graph.inputs.size(), "an input that is updated does not exist");
    TENON_CHECK(updated.insert(input).second, "an input is updated twice");
    TENON_CHECK(graph.type(graph.outputs[i]) == graph.type(graph.inputs[static_cast<std::size_t>(input)]),
                "an input is updated by a value of another type");
  }
}

void check_inputs(const Graph& graph) {
  std::set<ValueId> listed(graph.inputs.begin(), graph.inputs.end());
  TENON_CHECK(listed.size() == graph.inputs.size(), "an input is listed twice");
  for (const Node& node : graph.nodes)
    if (node.op == Op::input) TENON_CHECK(listed.erase(node.results[0]) == 1, "an input is missing from the signature");
  TENON_CHECK(listed.empty(), "the signature names a value that is no input");
}

void check_names(const Graph& graph) {
  std::set<std::string> names;
  for (const Value& value : graph.values)
    TENON_CHECK(value.name.empty() || names.insert(value.name).second,
                fmt::format("two values are named '{}'", value.name));
  const std::set<std::string> outputs(graph.outputs_names.begin(), graph.outputs_names.end());
  TENON_CHECK(outputs.size() == graph.outputs_names.size(), "two outputs have one name");
}

void check_symbols(const Graph& graph) {
  std::set<std::string> used;
  for (const Value& value : graph.values)
    for (const Dim& extent : value.type.shape)
      if (!extent.is_constant()) extent.collect_symbols(used);
  for (const std::string& symbol : used)
    TENON_CHECK(graph.symbols.contains(symbol), fmt::format("dimension '{}' is not declared", symbol));
}

// Names and types only: a NaN attribute does not equal itself.
bool same_form(const Attrs& a, const Attrs& b) {
  const auto same = [](const auto& x, const auto& y) {
    return x.first == y.first && x.second.index() == y.second.index();
  };
  return std::equal(a.items().begin(), a.items().end(), b.items().begin(), b.items().end(), same);
}

void check_types(const Graph& graph) {
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    std::vector<Type> operands, results;
    for (ValueId operand : node.operands) operands.push_back(graph.type(operand));
    for (ValueId result : node.results) results.push_back(graph.type(result));
    TENON_CHECK(same_form(normalize_attributes(node.op, node.attrs), node.attrs),
                describe(graph, i) + " has attributes that are not in its signature's form");
    TENON_CHECK(infer(node.op, operands, node.attrs, graph.symbols) == results,
                describe(graph, i) + " has a type that inference does not give");
  }
}

}  // namespace

void verify(const Graph& graph) {
  check_links(graph);
  try {
    TENON_CHECK(!graph.outputs.empty(), "it returns nothing");
    check_inputs(graph);
    check_updates(graph);
    check_names(graph);
    check_symbols(graph);
    check_types(graph);
  } catch (const Error& error) {
    throw Error(ErrorKind::internal, fmt::format("invalid graph: {}\n{}", error.message(), print(graph)), error.place(),
                error.remedy());
  }
}

}  // namespace tenon::ir

// Graph to JSON, one node a line. Every real keeps its bits: JSON has no infinities and no NaN, so these are strings.
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ir/text/literal.h"
#include "ir/text/naming.h"
#include "ir/text/text.h"

namespace tenon::ir {
namespace {

using Json = nlohmann::ordered_json;

Json real_json(double value) { return std::isfinite(value) ? Json(value) : Json(format_real(value)); }

Json scalar_json(const Scalar& scalar, DType dtype) {
  const Scalar canonical = canonical_scalar(scalar, dtype);
  if (const auto* integer = std::get_if<std::int64_t>(&canonical)) return *integer;
  if (const auto* boolean = std::get_if<bool>(&canonical)) return *boolean;
  return real_json(std::get<double>(canonical));
}

Json dim_json(const Dim& dim) { return dim.is_constant() ? Json(dim.constant()) : Json(dim.str()); }

Json shape_json(const std::vector<Dim>& shape) {
  Json list = Json::array();
  for (const Dim& dim : shape) list.push_back(dim_json(dim));
  return list;
}

Json attr_json(const AttrSpec& spec, const AttrValue& value, DType dtype) {
  switch (spec.type) {
    case AttrType::integer: return std::get<std::int64_t>(value);
    case AttrType::integers: return std::get<std::vector<std::int64_t>>(value);
    case AttrType::real: return real_json(std::get<double>(value));
    case AttrType::boolean: return std::get<bool>(value);
    case AttrType::string: return std::get<std::string>(value);
    case AttrType::dtype: return std::string(tenon::name_of(std::get<DType>(value)));
    case AttrType::dims: return shape_json(std::get<std::vector<Dim>>(value));
    case AttrType::scalar: return scalar_json(std::get<Scalar>(value), dtype);
  }
  return {};
}

class Writer {
 public:
  explicit Writer(const Graph& graph)
      : graph_(graph), inlined_(inline_literals(graph)), names_(printed_names(graph, inlined_)) {}

  std::string run() {
    text_ = "{\n";
    text_ += "  \"format\": \"tenon-graph\",\n  \"version\": 1,\n";
    text_ += "  \"name\": " + Json(names_.graph).dump() + ",\n";
    text_ += "  \"symbols\": " + symbols().dump() + ",\n";
    std::vector<Json> inputs, nodes, outputs;
    for (ValueId input : graph_.inputs) inputs.push_back(declaration(input));
    for (const Node& node : graph_.nodes)
      if (node.op != Op::input && !inlined_[static_cast<std::size_t>(node.results.front())])
        nodes.push_back(node_json(node));
    for (std::size_t i = 0; i < graph_.outputs.size(); ++i) {
      outputs.push_back({{"name", names_.outputs[i]}, {"value", name(graph_.outputs[i])}});
      if (graph_.updates[i] >= 0)
        outputs.back()["into"] = name(graph_.inputs[static_cast<std::size_t>(graph_.updates[i])]);
    }
    list("inputs", inputs, ",\n");
    list("nodes", nodes, ",\n");
    list("outputs", outputs, "\n");
    return text_ + "}\n";
  }

 private:
  const std::string& name(ValueId value) const { return names_.values[static_cast<std::size_t>(value)]; }

  Json declaration(ValueId value) const {
    const Type& type = graph_.type(value);
    return {
        {"name", name(value)}, {"dtype", std::string(tenon::name_of(type.dtype))}, {"shape", shape_json(type.shape)}};
  }

  Json symbols() const {
    Json object = Json::object();
    const SymbolBounds any;
    for (const auto& [symbol, bounds] : graph_.symbols) {
      Json& item = object[symbol] = Json::object();
      if (bounds.min != any.min) item["min"] = bounds.min;
      if (bounds.max != any.max) item["max"] = bounds.max;
      if (bounds.divisor != any.divisor) item["divisor"] = bounds.divisor;
    }
    return object;
  }

  Json node_json(const Node& node) const {
    Json operands = Json::array(), attrs = Json::object(), results = Json::array();
    for (ValueId operand : node.operands) operands.push_back(operand_json(operand));
    for (const AttrSpec& spec : info(node.op).attributes)
      if (const AttrValue* value = node.attrs.find(spec.name))
        attrs[spec.name] = attr_json(spec, *value, graph_.type(node.results.front()).dtype);
    for (ValueId result : node.results) results.push_back(declaration(result));
    return {{"op", std::string(name_of(node.op))}, {"operands", operands}, {"attrs", attrs}, {"results", results}};
  }

  Json operand_json(ValueId operand) const {
    if (!inlined_[static_cast<std::size_t>(operand)]) return name(operand);
    return {{"value", scalar_json(graph_.producer(operand).attrs.get<Scalar>("value"), graph_.type(operand).dtype)},
            {"dtype", std::string(tenon::name_of(graph_.type(operand).dtype))}};
  }

  void list(const char* key, const std::vector<Json>& items, const char* end) {
    text_ += std::string("  \"") + key + "\": [";
    for (std::size_t i = 0; i < items.size(); ++i) text_ += (i ? ",\n    " : "\n    ") + items[i].dump();
    text_ += items.empty() ? "]" : "\n  ]";
    text_ += end;
  }

  const Graph& graph_;
  std::vector<bool> inlined_;
  Names names_;
  std::string text_;
};

}  // namespace

std::string print_json(const Graph& graph) { return Writer(graph).run(); }

}  // namespace tenon::ir

// Graph and Tensor: the public handles over ir::Graph. What they refuse here are names; the rest is ir/graph/build.h's.
#include "tenon/graph.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/graph/build.h"
#include "ir/graph/host_memory.h"
#include "ir/graph/limits.h"
#include "ir/text/lexer.h"
#include "ir/text/naming.h"
#include "ir/text/read_checks.h"
#include "ir/text/text.h"
#include "src/api/recorder.h"

namespace tenon {
namespace {

void check_name(const std::string& what, const std::string& name, const Location& at) {
  const auto fail = [&](const std::string& why, const std::string& remedy) {
    throw Error(ErrorKind::type, fmt::format("{} '{}' {}", what, name, why), src::place_of(at), remedy);
  };
  if (name.size() > ir::kMaxNameLength)
    throw Error(ErrorKind::type, fmt::format("{} name of {} characters", what, name.size()), src::place_of(at),
                fmt::format("use at most {}", ir::kMaxNameLength));
  if (!ir::is_identifier(name)) fail("is no name", "use a letter or '_', then letters, digits and '_'");
  if (ir::is_reserved(name)) fail("is a word of the text form", "use another name");
}

const ir::Value& value_of(const Tensor& tensor) {
  const auto& graph = Tensor::Access::graph(tensor);
  if (!graph) throw Error(ErrorKind::argument, "the tensor is empty", {}, "assign it before it is used");
  return graph->value(Tensor::Access::value(tensor));
}

std::vector<Port> ports(const std::shared_ptr<ir::Graph>& graph, const std::vector<ir::ValueId>& values,
                        const std::vector<std::string>& names) {
  std::vector<Port> result;
  for (std::size_t i = 0; i < values.size(); ++i)
    result.push_back({names[i], Tensor::Access::make(graph, values[i]), {}});
  return result;
}

}  // namespace

DType Tensor::dtype() const { return value_of(*this).type.dtype; }
Shape Tensor::shape() const { return value_of(*this).type.shape; }
int Tensor::rank() const { return static_cast<int>(value_of(*this).type.shape.size()); }

Tensor Tensor::named(const std::string& name, Location at) const {
  value_of(*this);
  check_name("value", name, at);
  auto& values = graph_->values;
  const auto other = std::find_if(values.begin(), values.end(), [&](const ir::Value& v) { return v.name == name; });
  if (other != values.end() && other - values.begin() != value_)
    throw Error(ErrorKind::type, fmt::format("there are two values named '{}'", name), src::place_of(at, name),
                "give each value its own name");
  if (graph_->producer(value_).op == ir::Op::input && values[static_cast<std::size_t>(value_)].name != name)
    throw Error(ErrorKind::type,
                fmt::format("input '{}' cannot be renamed '{}'", values[static_cast<std::size_t>(value_)].name, name),
                src::place_of(at, name), "name it where Graph::input declares it");
  values[static_cast<std::size_t>(value_)].name = name;
  return *this;
}

Graph::Graph(const std::string& name, Location at) : graph_(std::make_shared<ir::Graph>()) {
  check_name("graph", name, at);
  graph_->name = name;
}

Graph::Graph(ir::Graph graph) : graph_(std::make_shared<ir::Graph>(std::move(graph))) {}

Dim Graph::dim(const std::string& name, SymbolBounds bounds, Location at) {
  check_name("dimension", name, at);
  ir::check_bounds(name, bounds, src::place_of(at));
  const auto [symbol, fresh] = graph_->symbols.try_emplace(name, bounds);
  if (!fresh && !(symbol->second == bounds))
    throw Error(ErrorKind::type, fmt::format("dimension '{}' has other bounds already", name), src::place_of(at),
                "declare it once, before its first use");
  return Dim::symbol(name);
}

Tensor Graph::input(const std::string& name, DType dtype, const Shape& shape, Location at) {
  check_name("input", name, at);
  for (const ir::Value& value : graph_->values)
    if (value.name == name)
      throw Error(ErrorKind::type, fmt::format("input '{}': another value has this name", name),
                  src::place_of(at, name), "give each value its own name");
  return Tensor::Access::make(graph_, ir::append_input(*graph_, name, dtype, shape, src::place_of(at, name)));
}

Tensor Graph::literal(Scalar value, DType dtype, Location at) {
  return Tensor::Access::make(graph_, ir::append_literal(*graph_, value.value, dtype, src::place_of(at)));
}

void Graph::output(const std::string& name, const Tensor& value, Location at) {
  check_name("output", name, at);
  value_of(value);
  if (Tensor::Access::graph(value) != graph_)
    throw Error(ErrorKind::argument, fmt::format("output '{}' is a value of another graph", name), src::place_of(at),
                "record it in this Graph");
  try {
    ir::append_output(*graph_, Tensor::Access::value(value), name);
  } catch (const Error& error) {
    throw error.at(src::place_of(at, name));
  }
}

void Graph::update(const Tensor& input, const Tensor& value, Location at) {
  const ir::Value& state = value_of(input);
  for (const Tensor& tensor : {input, value})
    if (value_of(tensor); Tensor::Access::graph(tensor) != graph_)
      throw Error(ErrorKind::argument, fmt::format("what updates '{}' is of another graph", state.name),
                  src::place_of(at), "record all of it in this Graph");
  try {
    ir::append_update(*graph_, Tensor::Access::value(value), state.name + "_next", Tensor::Access::value(input));
  } catch (const Error& error) {
    throw error.at(src::place_of(at));
  }
}

std::vector<Port> Graph::inputs() const {
  std::vector<std::string> names;
  for (ir::ValueId input : graph_->inputs) names.push_back(graph_->value(input).name);
  return ports(graph_, graph_->inputs, names);
}

std::vector<Port> Graph::outputs() const {
  std::vector<Port> outputs = ports(graph_, graph_->outputs, graph_->outputs_names);
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (const int input = graph_->updates[i]; input >= 0)
      outputs[i].updates = graph_->value(graph_->inputs[static_cast<std::size_t>(input)]).name;
  return outputs;
}

Graph Graph::load(const std::string& path) {
  return Graph(ir::with_host_memory(fmt::format("the graph in '{}'", path), [&] { return ir::read_file(path); }));
}
Graph Graph::parse(const std::string& text) {
  return Graph(ir::with_host_memory("a graph", [&] { return ir::parse(text); }));
}
std::string Graph::str() const { return ir::print(*graph_); }
std::string Graph::json() const { return ir::print_json(*graph_); }

}  // namespace tenon

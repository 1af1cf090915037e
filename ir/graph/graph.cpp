// Small questions asked of a graph.
#include "ir/graph/graph.h"

#include <fmt/format.h>

#include "ir/graph/check.h"

namespace tenon::ir {

std::string str(const Type& type) {
  return std::string(tenon::name_of(type.dtype)) + (type.shape.empty() ? "[]" : tenon::str(type.shape));
}

void Attrs::set(std::string name, AttrValue value) {
  for (auto& [key, old] : items_)
    if (key == name) {
      old = std::move(value);
      return;
    }
  items_.emplace_back(std::move(name), std::move(value));
}

const AttrValue* Attrs::find(std::string_view name) const {
  for (const auto& [key, value] : items_)
    if (key == name) return &value;
  return nullptr;
}

template <typename T>
const T& Attrs::get(std::string_view name) const {
  const AttrValue* value = find(name);
  TENON_CHECK(value != nullptr && std::holds_alternative<T>(*value),
              fmt::format("attribute '{}' is absent or of another type", name));
  return std::get<T>(*value);
}

template const std::int64_t& Attrs::get(std::string_view) const;
template const std::vector<std::int64_t>& Attrs::get(std::string_view) const;
template const double& Attrs::get(std::string_view) const;
template const bool& Attrs::get(std::string_view) const;
template const std::string& Attrs::get(std::string_view) const;
template const DType& Attrs::get(std::string_view) const;
template const std::vector<Dim>& Attrs::get(std::string_view) const;
template const Scalar& Attrs::get(std::string_view) const;

std::vector<std::size_t> own_outputs(const Graph& graph) {
  std::vector<std::size_t> own;
  for (std::size_t i = 0; i < graph.updates.size(); ++i)
    if (graph.updates[i] < 0) own.push_back(i);
  return own;
}

std::vector<std::vector<NodeId>> users_of(const Graph& graph) {
  std::vector<std::vector<NodeId>> users(graph.values.size());
  for (std::size_t i = 0; i < graph.nodes.size(); ++i)
    for (ValueId operand : graph.nodes[i].operands)
      users[static_cast<std::size_t>(operand)].push_back(static_cast<NodeId>(i));
  return users;
}

std::string display_name(const Graph& graph, ValueId value) {
  const std::string& name = graph.value(value).name;
  return name.empty() ? fmt::format("%{}", value) : name;
}

}  // namespace tenon::ir

// Names for printing. Deterministic: they depend on the graph's order and its names only.
#include "ir/text/naming.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "ir/text/lexer.h"

namespace tenon::ir {
namespace {

bool may_name_value(std::string_view name) { return is_identifier(name) && !is_reserved(name); }

std::vector<std::string> names_of_outputs(const Graph& graph) {
  std::vector<std::string> names;
  std::unordered_set<std::string> taken(graph.outputs_names.begin(), graph.outputs_names.end());
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
    std::string name = graph.outputs_names[i];
    for (std::size_t k = i; !is_identifier(name); ++k)
      if (auto candidate = fmt::format("out{}", k); taken.insert(candidate).second) name = std::move(candidate);
    names.push_back(std::move(name));
  }
  return names;
}

}  // namespace

bool is_reserved(std::string_view name) {
  constexpr std::string_view kWords[] = {"return", "true", "false", "inf", "nan"};
  return std::find(std::begin(kWords), std::end(kWords), name) != std::end(kWords);
}

std::string output_name(std::size_t position, const std::vector<std::string>& taken) {
  std::string name = fmt::format("out{}", position);
  while (std::find(taken.begin(), taken.end(), name) != taken.end()) name = fmt::format("out{}", ++position);
  return name;
}

Names printed_names(const Graph& graph, const std::vector<bool>& inlined) {
  Names names{is_identifier(graph.name) ? graph.name : "main", std::vector<std::string>(graph.values.size()),
              names_of_outputs(graph)};
  std::unordered_set<std::string> taken;
  const auto keep = [&](ValueId value, const std::string& name) {
    std::string& printed = names.values[static_cast<std::size_t>(value)];
    if (printed.empty() && may_name_value(name) && taken.insert(name).second) printed = name;
  };
  for (ValueId input : graph.inputs) keep(input, graph.value(input).name);
  for (std::size_t v = 0; v < graph.values.size(); ++v) keep(static_cast<ValueId>(v), graph.values[v].name);
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) keep(graph.outputs[i], names.outputs[i]);
  std::size_t next = 0;
  for (const Node& node : graph.nodes)
    for (ValueId result : node.results) {
      std::string& printed = names.values[static_cast<std::size_t>(result)];
      if (inlined[static_cast<std::size_t>(result)]) continue;
      while (printed.empty())
        if (auto candidate = fmt::format("v{}", next++); taken.insert(candidate).second) printed = std::move(candidate);
    }
  return names;
}

}  // namespace tenon::ir

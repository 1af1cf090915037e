// Which arrays of a model are which inputs of a graph.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "ir/graph/limits.h"
#include "ir/ops/suggest.h"
#include "ir/text/json_document.h"
#include "src/driver/bind.h"
#include "tenon/error.h"

namespace tenon::src {
namespace {

// "h.0.weight" as a graph may call it: h_0_weight.
std::string graph_name(std::string_view name) {
  std::string result(name);
  for (char& c : result)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return result;
}

using Names = std::map<std::string, std::vector<const Weights::Entry*>, std::less<>>;

const Weights::Entry* find(const std::string& input, const Weights& weights, const Names& by_graph_name) {
  if (const Weights::Entry* entry = weights.find(input)) return entry;
  const auto found = by_graph_name.find(input);
  if (found == by_graph_name.end()) return nullptr;
  if (found->second.size() > 1)
    throw Error(ErrorKind::argument,
                fmt::format("input '{}' may be {} or {}", input, ir::display(found->second[0]->name),
                            ir::display(found->second[1]->name)),
                {}, fmt::format("call one of them '{}'", input));
  return found->second.front();
}

void check(const ir::Value& input, const Weights::Entry& entry) {
  const WeightView& view = entry.view;
  const Shape& shape = input.type.shape;
  bool fits = view.dtype == input.type.dtype && view.shape.size() == shape.size();
  for (std::size_t i = 0; fits && i < shape.size(); ++i) fits = !shape[i].is_constant() || shape[i].is(view.shape[i]);
  if (fits) return;
  throw Error(ErrorKind::argument,
              fmt::format("input '{}' is {}, the array {} is {}[{}]", input.name, ir::str(input.type),
                          ir::display(entry.name), name_of(view.dtype), fmt::join(view.shape, ", ")),
              {},
              view.dtype == input.type.dtype ? "give it the input's shape, or the input its"
                                             : "convert it: view.array().cast(dtype)");
}

[[noreturn]] void refuse_all(const ir::Graph& graph, const Weights& weights) {
  const auto some = [](const auto& names, auto&& name_of_each) {
    constexpr std::size_t kShown = 5;
    std::vector<std::string> shown;
    for (const auto& each : names)
      if (shown.size() < kShown) shown.push_back(ir::display(name_of_each(each)));
    return fmt::format("{}{}", fmt::join(shown, ", "), std::size(names) > kShown ? ", …" : "");
  };
  throw Error(ErrorKind::argument,
              fmt::format("no input of graph '{}' is called as one of {} arrays", graph.name, weights.size()), {},
              weights.empty() ? "give some"
                              : fmt::format("its inputs are {}; the arrays are {}",
                                            some(graph.inputs, [&](ir::ValueId id) { return graph.value(id).name; }),
                                            some(weights, [](const Weights::Entry& entry) { return entry.name; })));
}

void check_all_used(const std::vector<const Weights::Entry*>& found, const Weights& weights, const ir::Graph& graph) {
  std::vector<std::string_view> names;
  for (const ir::ValueId input : graph.inputs) names.push_back(graph.value(input).name);
  for (const Weights::Entry& entry : weights) {
    if (std::find(found.begin(), found.end(), &entry) != found.end()) continue;
    const std::string_view near = ir::nearest(entry.name, names);
    throw Error(ErrorKind::argument,
                fmt::format("graph '{}' has no input that may take the array {}", graph.name, ir::display(entry.name)),
                {}, near.empty() ? "leave it out, or bind without `strict`" : fmt::format("did you mean {}?", near));
  }
}

}  // namespace

std::vector<const Weights::Entry*> match_weights(const ir::Graph& graph, const Weights& weights, bool strict) {
  Names by_graph_name;
  for (const Weights::Entry& entry : weights) by_graph_name[graph_name(entry.name)].push_back(&entry);
  std::vector<const Weights::Entry*> found;
  for (const ir::ValueId input : graph.inputs) {
    found.push_back(find(graph.value(input).name, weights, by_graph_name));
    if (found.back() != nullptr) check(graph.value(input), *found.back());
  }
  if (std::all_of(found.begin(), found.end(), [](const auto* entry) { return entry == nullptr; }))
    refuse_all(graph, weights);
  if (strict) check_all_used(found, weights, graph);
  return found;
}

}  // namespace tenon::src

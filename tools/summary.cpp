// Which values to return, and the two forms that show what they are like.
#include "tools/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "ir/graph/build.h"
#include "ir/ops/suggest.h"

namespace tenon::tools {
namespace {

bool is_unnamed_literal(const ir::Graph& graph, ir::ValueId value) {
  return graph.value(value).name.empty() && graph.producer(value).op == ir::Op::full;
}

std::optional<std::size_t> position_of(const std::vector<ir::ValueId>& values, ir::ValueId value) {
  const auto found = std::find(values.begin(), values.end(), value);
  if (found == values.end()) return std::nullopt;
  return static_cast<std::size_t>(found - values.begin());
}

// A value that is neither input nor output becomes an output under an unused name.
Observed::Place place_of(ir::Graph& graph, ir::ValueId value) {
  const std::string name = ir::display_name(graph, value);
  if (const auto input = position_of(graph.inputs, value)) return {name, true, *input};
  if (const auto output = position_of(graph.outputs, value)) return {name, false, *output};
  std::string unused = name;
  while (std::find(graph.outputs_names.begin(), graph.outputs_names.end(), unused) != graph.outputs_names.end())
    unused += "_";
  ir::append_output(graph, value, unused);
  return {name, false, graph.outputs.size() - 1};
}

void observe_all(Observed& observed) {
  for (std::size_t i = 0; i < observed.graph.values.size(); ++i)
    if (const auto value = static_cast<ir::ValueId>(i); !is_unnamed_literal(observed.graph, value))
      observed.places.push_back(place_of(observed.graph, value));
}

std::string remedy(const ir::Graph& graph, const std::string& name) {
  std::vector<std::string_view> names(graph.outputs_names.begin(), graph.outputs_names.end());
  for (const ir::Value& value : graph.values)
    if (!value.name.empty()) names.push_back(value.name);
  const std::string_view meant = ir::nearest(name, names);
  const std::string where = "tenon dump --emit graph shows every value's name; 'all' takes them all";
  return meant.empty() ? where : fmt::format("did you mean {}? {}", meant, where);
}

void observe_one(Observed& observed, const std::string& name) {
  ir::Graph& graph = observed.graph;
  for (std::size_t i = 0; i < graph.values.size(); ++i)
    if (const auto value = static_cast<ir::ValueId>(i); ir::display_name(graph, value) == name) {
      observed.places.push_back(place_of(graph, value));
      return;
    }
  const auto output = std::find(graph.outputs_names.begin(), graph.outputs_names.end(), name);
  if (output == graph.outputs_names.end())
    throw Error(ErrorKind::argument, fmt::format("--summary {}: the graph has no such value", name), {},
                remedy(graph, name));
  observed.places.push_back({name, false, static_cast<std::size_t>(output - graph.outputs_names.begin())});
}

}  // namespace

Observed observe(ir::Graph graph, const std::vector<std::string>& names) {
  Observed observed{std::move(graph), {}};
  for (const std::string& name : names) {
    if (name == "all") {
      observe_all(observed);
    } else {
      observe_one(observed, name);
    }
  }
  return observed;
}

std::string summary_table(const Observed& observed, const std::vector<Array>& inputs,
                          const std::vector<Array>& outputs) {
  if (observed.places.empty()) return "";
  std::string text = fmt::format("{:<20} {:<24} {:>13} {:>13} {:>13} {:>13} {:>9} {:>9} {:>9}\n", "value", "type",
                                 "min", "max", "mean", "std", "NaN", "Inf", "zeros");
  for (const Observed::Place& place : observed.places) {
    const Array& array = (place.is_input ? inputs : outputs)[place.position];
    const Summary s = summarize(array);
    text += fmt::format("{:<20} {:<24} {:>13.6g} {:>13.6g} {:>13.6g} {:>13.6g} {:>9} {:>9} {:>9}\n", place.name,
                        fmt::format("{}[{}]", name_of(array.dtype), fmt::join(array.shape, ", ")), s.min, s.max, s.mean,
                        s.standard_deviation, s.nans, s.infinities, s.zeros);
  }
  return text;
}

nlohmann::ordered_json summary_json(const Observed& observed, const std::vector<Array>& inputs,
                                    const std::vector<Array>& outputs) {
  auto list = nlohmann::ordered_json::array();
  for (const Observed::Place& place : observed.places) {
    const Array& array = (place.is_input ? inputs : outputs)[place.position];
    const Summary s = summarize(array);
    list.push_back({{"name", place.name},
                    {"dtype", name_of(array.dtype)},
                    {"shape", array.shape},
                    {"min", s.min},
                    {"max", s.max},
                    {"mean", s.mean},
                    {"std", s.standard_deviation},
                    {"nan", s.nans},
                    {"inf", s.infinities},
                    {"zeros", s.zeros},
                    {"elements", s.elements}});
  }
  return list;
}

}  // namespace tenon::tools

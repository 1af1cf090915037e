// Which values to return.
#include "src/measure/observe.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "ir/graph/build.h"
#include "ir/ops/suggest.h"
#include "tenon/error.h"

namespace tenon::src {
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
    throw Error(ErrorKind::argument, fmt::format("the graph has no value '{}'", name), {}, remedy(graph, name));
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
std::vector<ValueSummary> summaries_of(const Observed& observed, const ArrayRefs& inputs, const ArrayRefs& results) {
  std::vector<ValueSummary> summaries;
  for (const Observed::Place& place : observed.places) {
    const Array& array = (place.is_input ? inputs : results)[place.position];
    summaries.push_back({place.name, array.dtype, array.shape, summarize(array)});
  }
  return summaries;
}

}  // namespace tenon::src

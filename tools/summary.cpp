// Which values to return, what they are like, and the table that shows it.
#include "tools/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/build.h"

namespace tenon::tools {
namespace {

long double element(const ir::HostArray& array, std::int64_t i) {
  return is_real(array.dtype) ? static_cast<long double>(ir::get_real(array, i))
                              : static_cast<long double>(ir::get_integer(array, i));
}

bool is_unnamed_literal(const ir::Graph& graph, ir::ValueId value) {
  return graph.value(value).name.empty() && graph.producer(value).op == ir::Op::full;
}

// The position of the result that returns `value`; a new one under an unused name when there is none.
std::size_t result_of(ir::Graph& graph, ir::ValueId value) {
  const auto found = std::find(graph.outputs.begin(), graph.outputs.end(), value);
  if (found != graph.outputs.end()) return static_cast<std::size_t>(found - graph.outputs.begin());
  std::string name = ir::display_name(graph, value);
  while (std::find(graph.outputs_names.begin(), graph.outputs_names.end(), name) != graph.outputs_names.end())
    name += "_";
  ir::append_output(graph, value, name);
  return graph.outputs.size() - 1;
}

void observe_all(Observed& observed) {
  for (std::size_t i = 0; i < observed.graph.values.size(); ++i)
    if (const auto value = static_cast<ir::ValueId>(i); !is_unnamed_literal(observed.graph, value))
      observed.results.push_back({ir::display_name(observed.graph, value), result_of(observed.graph, value)});
}

void observe_one(Observed& observed, const std::string& name) {
  ir::Graph& graph = observed.graph;
  for (std::size_t i = 0; i < graph.values.size(); ++i)
    if (const auto value = static_cast<ir::ValueId>(i); ir::display_name(graph, value) == name) {
      observed.results.push_back({name, result_of(graph, value)});
      return;
    }
  const auto output = std::find(graph.outputs_names.begin(), graph.outputs_names.end(), name);
  if (output == graph.outputs_names.end())
    throw Error(ErrorKind::argument, fmt::format("--summary {}: the graph has no such value", name), {},
                "tenon dump --emit graph shows every value's name; 'all' takes them all");
  observed.results.push_back({name, static_cast<std::size_t>(output - graph.outputs_names.begin())});
}

}  // namespace

Summary summarize(const ir::HostArray& array) {
  constexpr long double kNan = std::numeric_limits<long double>::quiet_NaN();
  Summary summary{ir::element_count(array), 0, 0, kNan, kNan, kNan};
  long double sum = 0;
  for (std::int64_t i = 0; i < summary.elements; ++i) {
    const long double x = element(array, i);
    summary.nans += std::isnan(x);
    summary.infinities += std::isinf(x);
    if (!std::isfinite(x)) continue;
    summary.min = std::fmin(summary.min, x);  // fmin and fmax pass over the NaN that they start from
    summary.max = std::fmax(summary.max, x);
    sum += x;
  }
  if (const std::int64_t finite = summary.elements - summary.nans - summary.infinities; finite > 0)
    summary.mean = sum / static_cast<long double>(finite);
  return summary;
}

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

std::string summary_table(const Observed& observed, const std::vector<ir::HostArray>& outputs) {
  if (observed.results.empty()) return "";
  std::string text = fmt::format("{:<20} {:<24} {:>13} {:>13} {:>13} {:>9} {:>9}\n", "value", "type", "min", "max",
                                 "mean", "NaN", "Inf");
  for (const Observed::Result& result : observed.results) {
    const ir::HostArray& array = outputs[result.output];
    const Summary s = summarize(array);
    text += fmt::format("{:<20} {:<24} {:>13.6g} {:>13.6g} {:>13.6g} {:>9} {:>9}\n", result.name,
                        fmt::format("{}[{}]", name_of(array.dtype), fmt::join(array.shape, ", ")), s.min, s.max, s.mean,
                        s.nans, s.infinities);
  }
  return text;
}

}  // namespace tenon::tools

// Limits and declarations, checked alike for text and JSON.
#include "ir/text/read_checks.h"

#include <fmt/format.h>

#include "ir/graph/limits.h"

namespace tenon::ir {

void check_file_size(std::size_t bytes, const std::string& file) {
  if (bytes > kMaxFileBytes)
    throw Error(ErrorKind::resource, fmt::format("a graph file of {} bytes; at most {} are read", bytes, kMaxFileBytes),
                {file, 0, 0, {}}, "split the graph");
}

void check_node_count(const Graph& graph, const Place& place) {
  if (graph.nodes.size() >= kMaxNodes)
    throw Error(ErrorKind::resource, fmt::format("a graph of more than {} nodes", kMaxNodes), place, "split the graph");
}

void check_border_count(std::size_t count, const Place& place) {
  if (count >= kMaxInputs)
    throw Error(ErrorKind::resource, fmt::format("more than {} inputs or outputs", kMaxInputs), place,
                "split the graph");
}

void check_bounds(const std::string& symbol, const SymbolBounds& bounds, const Place& place) {
  const auto fail = [&](const std::string& why, const std::string& remedy) {
    throw Error(ErrorKind::type, fmt::format("dimension '{}': {}", symbol, why), place, remedy);
  };
  if (bounds.min < 0) fail(fmt::format("the lower bound {} is negative", bounds.min), "extents are 0 or more");
  if (bounds.divisor < 1) fail(fmt::format("the divisor {} is not positive", bounds.divisor), "divisors are 1 or more");
  const bool none = bounds.max < bounds.min || bounds.max - bounds.max % bounds.divisor < bounds.min;
  if (none && bounds.divisor == 1)
    fail(fmt::format("no value lies in [{}, {}]", bounds.min, bounds.max), "widen the bounds");
  if (none)
    fail(fmt::format("no multiple of {} lies in [{}, {}]", bounds.divisor, bounds.min, bounds.max), "widen the bounds");
}

std::set<std::string> decided_symbols(const Graph& graph) {
  std::set<std::string> decided;
  for (ValueId input : graph.inputs)
    for (const Dim& extent : graph.type(input).shape) {
      std::set<std::string> names;
      extent.collect_symbols(names);
      if (names.size() == 1 && extent == Dim::symbol(*names.begin())) decided.insert(*names.begin());
    }
  return decided;
}

void check_symbols_decided(const Graph& graph, const std::set<std::string>& bound_by_caller, const Place& place) {
  const std::set<std::string> decided = decided_symbols(graph);
  for (const auto& [symbol, bounds] : graph.symbols)
    if (!decided.contains(symbol) && !bound_by_caller.contains(symbol))
      throw Error(ErrorKind::type,
                  fmt::format("dimension '{}' stands only inside expressions, so no input's shape decides it", symbol),
                  place, fmt::format("give an input the extent {0}, or let callers bind it: where {0} >= 0", symbol));
}

}  // namespace tenon::ir

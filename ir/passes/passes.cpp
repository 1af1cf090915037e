// The list of passes: what the pipeline runs, in this order.
#include "ir/passes/passes.h"

#include <fmt/format.h>

#include "ir/text/text.h"

namespace tenon::ir {
namespace {

// What is known to be wrong with any verified graph, so that no later step fails without saying where.
void check_graph(const Graph& graph) {
  if (graph.outputs.empty())
    throw Error(ErrorKind::argument, fmt::format("graph '{}' returns nothing", graph.name),
                Place{{}, 0, 0, {}, "graph.outputs"}, "name at least one output");
  for (std::size_t i = 0; i < graph.values.size(); ++i) {
    const auto value = static_cast<ValueId>(i);
    try {
      (void)element_count(graph.type(value).shape);
    } catch (const Error& error) {
      throw error.at(Place{{}, 0, 0, display_name(graph, value), {}});
    }
  }
}

}  // namespace

std::span<const Pass> pass_table() {
  static constexpr Pass kPasses[] = {
      {"decompose", decompose, "composites become primitives"},
      {"canonicalize", canonicalize, "one spelling for each thing, exactly"},
      {"pools", unroll_pools, "small windows that are reduced again become maps"},
      {"row_sums", split_sums, "sums over all rows are taken along each row first, where the row is reduced anyway"},
      {"fold", fold_constants, "maps of literals are evaluated"},
      {"powers", expand_powers, "powers by small constants are products, roots and quotients"},
      {"cse", eliminate_common_subexpressions, "equal nodes are merged"},
      {"window_order", order_windows,
       "the terms of a window are combined along rows first, where neighbours share them"},
      {"dce", eliminate_dead_code, "what no result needs is dropped"},
  };
  return kPasses;
}

Graph run_passes(const Graph& graph, const std::set<std::string>& disabled) {
  check_graph(graph);
  Graph result = graph;
  for (const Pass& pass : pass_table())
    if (pass.name == "decompose" || disabled.count(std::string(pass.name)) == 0) result = pass.run(result);
  return result;
}

}  // namespace tenon::ir

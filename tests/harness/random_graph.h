// Random graphs for differential tests: any op of the table on any dtype, patterns that other people's graphs have,
// odd and empty sizes, symbolic dimensions. The same seed gives the same graph and data on every machine.
// What is drawn, and how often, is in random_graph/draws.h; docs/coverage.md counts what came of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/interpret.h"

namespace tenon::test {

struct RandomCase {
  ir::Graph graph;
  Bindings bindings;                  ///< a value for every symbol
  std::vector<ir::HostArray> inputs;  ///< data that fits the graph at these bindings
  std::vector<std::string> draws;     ///< the kinds of draw that it grew by, in order; empty where it was shrunk
};

/// A case of 1 to `max_nodes` draws.
RandomCase random_case(std::uint64_t seed, int max_nodes = 40);

/// Data for the graph's inputs: reals mostly in [-3, 3], or of any size, large, whole, special; small integers.
std::vector<ir::HostArray> random_inputs(const ir::Graph& graph, const Bindings& bindings, std::uint64_t seed);

}  // namespace tenon::test

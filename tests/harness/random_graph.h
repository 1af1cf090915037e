// Random graphs for differential tests: any op of the table on any dtype, odd and empty sizes, symbolic dimensions.
// The same seed gives the same graph and data on every machine.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/graph.h"
#include "ir/interpret.h"

namespace tenon::test {

struct RandomCase {
  ir::Graph graph;
  Bindings bindings;                  ///< a value for every symbol
  std::vector<ir::HostArray> inputs;  ///< data that fits the graph at these bindings
};

/// A case of 1 to `max_nodes` recorded operators.
RandomCase random_case(std::uint64_t seed, int max_nodes = 40);

/// Data for the graph's inputs: reals mostly in [-3, 3], sometimes special values; small integers.
std::vector<ir::HostArray> random_inputs(const ir::Graph& graph, const Bindings& bindings, std::uint64_t seed);

}  // namespace tenon::test

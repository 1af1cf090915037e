// Random graphs for differential tests: any op of the table on any dtype, patterns that other people's graphs have,
// odd and empty sizes, symbolic dimensions. The same seed gives the same graph and data on every machine.
// What is drawn, and how often, is in random_graph/draws.h; docs/coverage.md counts what came of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/interpret/interpret.h"

namespace tenon::test {

struct RandomCase {
  ir::Graph graph;
  Bindings bindings;                  ///< a value for every symbol
  std::vector<ir::HostArray> inputs;  ///< data that fits the graph at these bindings
  std::vector<std::string> draws;     ///< the kinds of draw that it grew by, in order; empty where it was shrunk
};

/// Small ones run in a moment. Large ones are beyond the caches, for schedules that small data never asks for: to be
/// planned and built, not run.
enum class Sizes : std::uint8_t { small, large };

/// A case of 1 to 40 draws; without data where it is large.
RandomCase random_case(std::uint64_t seed, Sizes sizes = Sizes::small);

/// Data for the graph's inputs: reals mostly in [-3, 3], or of any size, large, whole, special; small integers.
std::vector<ir::HostArray> random_inputs(const ir::Graph& graph, const Bindings& bindings, std::uint64_t seed);

}  // namespace tenon::test

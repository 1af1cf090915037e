// Numeric summaries of a graph's values, intermediate ones too: the graph is made to return what is asked for, so that
// any target can be asked, and the results are counted on the host.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/interpret.h"

namespace tenon::tools {

/// What the elements of an array are like. Minimum, maximum and mean are of the finite elements; NaN when there are
/// none. They are kept in long double, which holds every element of every dtype exactly on x86-64.
struct Summary {
  std::int64_t elements = 0, nans = 0, infinities = 0;
  long double min = 0, max = 0, mean = 0;
};
Summary summarize(const ir::HostArray& array);

/// A graph that also returns the values named by `names` ("all": every value but unnamed literals), and which of its
/// results these are. A value that is returned already is not returned twice. A value without a name is written "%12".
struct Observed {
  ir::Graph graph;
  struct Result {
    std::string name;  ///< as the user asked for it
    std::size_t output = 0;
  };
  std::vector<Result> results;
};
/// Error(argument) for a name that no value has.
Observed observe(ir::Graph graph, const std::vector<std::string>& names);

/// A line for each observed value.
std::string summary_table(const Observed& observed, const std::vector<ir::HostArray>& outputs);

}  // namespace tenon::tools

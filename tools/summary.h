// Numeric summaries of a graph's values, intermediate ones too: the graph is made to return what is asked for, so that
// any target can be asked, and the results are counted on the host.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "ir/graph/graph.h"
#include "tenon/summary.h"

namespace tenon::tools {

/// A graph that also returns the values named by `names` ("all": every value but unnamed literals), and where these are
/// found. A value that is returned already is not returned twice, an input not at all. A value without a name is
/// written "%12".
struct Observed {
  ir::Graph graph;
  struct Place {
    std::string name;       ///< as the user asked for it
    bool is_input = false;  ///< else an output
    std::size_t position = 0;
  };
  std::vector<Place> places;
};
/// Error(argument) for a name that no value has.
Observed observe(ir::Graph graph, const std::vector<std::string>& names);

/// A line for each observed value; nothing when there are none.
std::string summary_table(const Observed& observed, const std::vector<Array>& inputs,
                          const std::vector<Array>& outputs);
/// An object for each observed value; a number that is none (NaN, infinity) is null.
nlohmann::ordered_json summary_json(const Observed& observed, const std::vector<Array>& inputs,
                                    const std::vector<Array>& outputs);

}  // namespace tenon::tools

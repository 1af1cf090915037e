// A graph made to return values on the way too, so that any target can be asked what they are.
#pragma once

#include <string>
#include <vector>

#include "ir/graph/graph.h"
#include "tenon/measure.h"

namespace tenon::src {

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
/// What the observed values are like, in numbers.
std::vector<ValueSummary> summaries_of(const Observed& observed, const ArrayRefs& inputs, const ArrayRefs& results);

}  // namespace tenon::src

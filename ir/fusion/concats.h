// Concats of more pieces than one kernel takes, as concats of concats.
#pragma once

#include <cstddef>

#include "ir/graph/graph.h"

namespace tenon::ir::fusion {

/// `graph` (decomposed) with no concat of more than `most` (2 or more) operands: a longer one becomes a concat of even
/// concats of its neighbours, in as many levels as that takes. What is joined, and in which order, stays.
Graph cut_concats(const Graph& graph, std::size_t most);

}  // namespace tenon::ir::fusion

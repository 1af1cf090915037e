// Rows that consist of many short pieces of memory: a channel of images whose axes of space are few elements, a group
// of channels that lie innermost. Threads that read such a row find few neighbours, and no wide vector divides its
// pieces. Yet the pieces of neighbouring rows lie one behind the other.
#pragma once

#include "ir/fusion/cluster.h"
#include "ir/fusion/plan.h"

namespace tenon::ir::fusion {

/// `graph` (decomposed) where reductions of such rows go in two steps: over the pieces first, down columns as long as
/// all of them, and then along what is one piece. Squares around a mean take those around the mean of each column, and
/// add those of the columns' means:
///   sum (x - m)^2 = sum over columns of (sum (x - mc)^2 + n (mc - m)^2), where column c has mean mc and n elements
/// (Chan, Golub and LeVeque 1983). Sums add the same elements in another order (docs/numerics.md, sums).
/// `found`: whether there were any.
Graph reduce_pieces_first(const Graph& graph, bool& found);

/// How many times as long as its bytes would otherwise take the memory traffic of a Reduce cluster takes, for the
/// pieces that its rows consist of.
double slowdown_of_pieces(const Context& context, const Cluster& cluster);

}  // namespace tenon::ir::fusion

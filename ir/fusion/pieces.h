// Rows that consist of many pieces of memory. Of short ones (a channel of images whose axes of space are few elements,
// a group of channels that lie innermost) threads find few neighbours, and no wide vector divides them; yet the pieces
// of neighbouring rows lie one behind the other. Long ones that no vector divides (a channel of images of 75 x 75) are
// read element by element; yet vectors can be peeled off each as a row of its own.
#pragma once

#include "ir/fusion/cluster.h"
#include "ir/fusion/plan.h"

namespace tenon::ir::fusion {

/// `graph` (decomposed) where reductions of such rows go in two steps: over short pieces first, down columns as long as
/// all of them, and then along what is one piece; along each long piece first, and then over the pieces. Squares around
/// a mean take those around the mean of what the first step makes one, and add those of these means:
///   sum (x - m)^2 = sum over c of (sum (x - mc)^2 + n (mc - m)^2), where column or piece c has mean mc and n elements
/// (Chan, Golub and LeVeque 1983). Sums add the same elements in another order (docs/numerics.md, sums).
/// `found`: whether there were any.
Graph reduce_pieces_first(const Graph& graph, bool& found);

/// How many times as long as its bytes would otherwise take the memory traffic of a Reduce cluster takes, for the
/// pieces that its rows consist of.
double slowdown_of_pieces(const Context& context, const Cluster& cluster);

}  // namespace tenon::ir::fusion

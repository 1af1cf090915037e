// A graph cut in two where some of its inputs, weights, are the same in every run: what depends on these alone and is
// worth keeping is computed once, and the rest in each run.
#pragma once

#include <vector>

#include "ir/graph/graph.h"

namespace tenon::ir {

/// For each value whether it is the same in every run where the inputs at the marked positions are: it depends on some
/// of these, on no other input, and on no symbol.
std::vector<bool> same_in_each_run(const Graph& graph, const std::vector<bool>& bound);

/// The values that save work when they are kept. A kept value is read from memory in place of the bound inputs that it
/// is made of, so it must not be larger than these: values that share bound inputs are kept together, where they take
/// no more bytes than the bound inputs that need not be read then. Nothing is kept that only moves elements (views,
/// which kernels read through) or makes them wider (casts); then what it is made of is looked at.
std::vector<ValueId> worth_keeping(const Graph& graph, const std::vector<bool>& bound);

struct SplitGraph {
  Graph once;                    ///< its results are the kept values
  std::vector<int> once_inputs;  ///< for each input of `once` its position among the graph's
  Graph each;                    ///< its inputs: the free ones in their order, then those that are the same in each run
  std::vector<int> each_bound;   ///< for each of the latter its position among the graph's inputs; behind all of these
                                 ///< (inputs.size() + i) the i-th result of `once`
  std::vector<ValueId> each_values;  ///< for each value of the graph the one of `each` that stands for it; -1: none
};

/// Cuts the graph at `kept`, values for which same_in_each_run holds. Bound inputs that are not read any more are left
/// out. The bound ones are not updated.
SplitGraph split_weights(const Graph& graph, const std::vector<bool>& bound, const std::vector<ValueId>& kept);

}  // namespace tenon::ir

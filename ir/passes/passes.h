// Graph rewrites. Each takes a verified graph and returns a new, verified one that means the same; none relies on
// another having run, except where it says so.
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>

#include "ir/graph/graph.h"

namespace tenon::ir {

/// Replaces every composite by its composition of primitives. What is left is map, reduce (without `dtype`: a cast
/// stands before it), view, source, random_bits and matmul (both operands of rank 2 or more).
Graph decompose(const Graph& graph);

/// One spelling for each thing: x*1, x-0 and double negation where exact; reshape of reshape, transpose of transpose,
/// and views that change nothing go away. Never changes a bit of any result, NaN and signed zero included.
Graph canonicalize(const Graph& graph);

/// Reductions of a few elements whose results are reduced again become maps of slices, so that one kernel does both.
Graph unroll_pools(const Graph& graph);

/// Sums over everything of what rows made of their own reductions are taken along the rows first; so are reductions
/// beside an equal one over rows, of the rows' results.
Graph split_sums(const Graph& graph);

/// Evaluates map operators on literals, and full tensors of them, with the interpreter's own functions.
Graph fold_constants(const Graph& graph);

/// Powers by small constants as products, roots and quotients; exact in what is special about pow.
Graph expand_powers(const Graph& graph);

/// Combines the terms of a window (slices of one tensor) by rows, in halves, where their order changes no bit.
Graph order_windows(const Graph& graph);

/// Merges nodes with the same op, operands and attributes (random ops too: they are pure).
Graph eliminate_common_subexpressions(const Graph& graph);

/// Drops nodes that no result needs; inputs stay.
Graph eliminate_dead_code(const Graph& graph);

struct Pass {
  std::string_view name;
  Graph (*run)(const Graph&);
  std::string_view doc;
};

/// The passes between the user's graph and the planner, in order. `tenon dump --emit graph` can stop after each, and
/// `disable` can leave out any but decompose.
std::span<const Pass> pass_table();

/// All passes in order, but those that `disabled` names. Error(argument) where a graph returns nothing or a value has
/// more elements than can be counted.
Graph run_passes(const Graph& graph, const std::set<std::string>& disabled = {});

}  // namespace tenon::ir

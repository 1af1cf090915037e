// What is computed once of inputs that are the same in every run.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/fusion/plan.h"
#include "ir/passes/split_weights.h"
#include "tenon/compile.h"

namespace tenon::src {

using MakePlan = std::function<ir::Plan(const ir::Graph&)>;

/// A graph with bound inputs as what is run once, one after another, and what is run each time.
struct Hoisted {
  std::vector<ir::SplitGraph> steps;  ///< at least one. Each cuts what runs each time by the one before
  ir::Plan plan;                      ///< for `each` of the last

  const ir::Graph& graph() const { return steps.back().each; }
  /// What is computed once, for people: a line for each value. Empty: nothing is.
  std::string text() const;
};

/// Hoists what `options` allows. There are two reasons to keep a value that depends on bound inputs alone: it is not
/// larger than the inputs that it is read in place of (ir::worth_keeping), or the planner stores it anyway, in a kernel
/// that would run each time (ir::hoist_groups: a matrix in aligned rows, parts of f32 operands, what is dequantised
/// once for many rows). What a kernel computes as it reads is left to it, unless the former holds.
Hoisted hoist(const ir::Graph& graph, const std::vector<bool>& bound, const Options& options, const MakePlan& plan);

}  // namespace tenon::src

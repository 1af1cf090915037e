// The Plan: a decomposed graph cut into groups, one group = one kernel, with a reason for every cut.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace tenon::ir {

enum class KernelClass : std::uint8_t { map, reduce, contract, attend };
const char* name_of(KernelClass kernel_class);

/// One kernel's share of the graph. Views, literals and cheap values may belong to several groups: they are computed
/// again in each. A view of a result may belong to the group that produces the result, which then writes it in the
/// view's layout.
struct Group {
  KernelClass kernel_class = KernelClass::map;
  std::vector<NodeId> nodes;     ///< all that is computed inside, in definition order
  std::vector<ValueId> inputs;   ///< read from memory: graph inputs and other groups' outputs, in first-use order
  std::vector<ValueId> outputs;  ///< written to memory: what other groups or the user need, in definition order
};

/// Why two groups, or a producer and its consumer, are not one kernel.
struct Refusal {
  ValueId value = -1;  ///< what passes through memory because of it; -1 for siblings
  int producer = -1;   ///< index of a group in the final plan
  int consumer = -1;
  std::string rule;        ///< short and stable, for tests: "different-reduced-axes"
  std::string reason;      ///< a sentence with the numbers
  std::int64_t bytes = 0;  ///< traffic that merging would have saved, at the default binding of the symbols
};

struct Plan {
  Graph graph;                ///< decomposed; the groups' nodes are its nodes
  std::vector<Group> groups;  ///< in an order in which they can run
  std::vector<Refusal> refusals;
};

/// The numbers by which the planner predicts time (guides: t = launch + max(memory, compute) + 0.05 min(memory,
/// compute)). The defaults describe one H100.
struct CostModel {
  double launch_us = 2.0;
  double bandwidth_gb_s = 3000;  ///< of a device copy, bytes read plus bytes written
  double l2_bytes = 30e6;
  double gigaslots_s = 29000;  ///< lane instructions per second, in 1e9
  double tensor_tflops = 700;  ///< 16-bit contraction
};

struct PlanOptions {
  bool fuse = true;  ///< false: every primitive its own kernel (views and literals are still absorbed)
  bool find_attention = true;
  bool siblings = true;   ///< merge groups that share inputs
  bool duplicate = true;  ///< recompute cheap values rather than store them
  int max_operands = 24;  ///< pointers of one kernel
  Bindings typical;       ///< symbol values for cost estimates; others count as 1024 (clamped to bounds)
  CostModel cost;
};

/// Cuts `graph` (any verified graph; it is decomposed and cleaned first by the passes that `disabled_passes` leaves
/// on).
Plan make_plan(const Graph& graph, const PlanOptions& options = {}, const std::set<std::string>& disabled_passes = {});

/// Throws Error(internal) unless every needed node is in a group, groups can run in order, and inputs and outputs fit.
void verify(const Plan& plan);

/// The plan as text, for people and for fusion regression tests; deterministic.
std::string print(const Plan& plan);

/// The refusals as sentences for `tenon explain`.
std::string explain(const Plan& plan);

/// Bytes that a group must move at `bindings`: each input and output once.
std::int64_t unavoidable_bytes(const Plan& plan, const Group& group, const Bindings& bindings);

}  // namespace tenon::ir

// The Plan: a decomposed graph cut into groups, one group = one kernel, with a reason for every cut.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "ir/fusion/rules.h"
#include "ir/graph/graph.h"
#include "ir/ops/contraction.h"

namespace tenon::ir {

enum class KernelClass : std::uint8_t { map, reduce, contract, attend };
const char* name_of(KernelClass kernel_class);

/// A mixed-radix digit of a point of a group's domain: (axis / divisor) mod extent. The axes are the group's kept
/// extents, then its reduced ones. Inside the planner a digit may also be a coordinate that is no such digit (a slice,
/// a gather).
struct Digit {
  int axis = -1;
  Dim divisor = 1;
  Dim extent = 1;
  std::uint32_t depends = 0;  ///< bit a: varies along axis a
  int terms = 1;              ///< inside the planner: atoms of the coordinate, which views that do not divide multiply
  std::shared_ptr<const struct Cut> cut = nullptr;  ///< inside the planner: of a piece of digits that were cut unevenly
  int piece = 0;                                    ///< which one, from the outermost
  bool operator==(const Digit& other) const {
    return axis == other.axis && divisor == other.divisor && extent == other.extent && depends == other.depends &&
           terms == other.terms;
  }
};

/// Where the elements of a value lie on a domain: its row-major order, as digits from the outermost in. Digits of
/// extent 1 are left out and neighbours are merged, so equal layouts mean equal coordinates, however dimensions group.
using Layout = std::vector<Digit>;

/// Digits that a view cuts within one of them, and the extents of the pieces: these, in order, are the digits again.
struct Cut {
  Layout whole;
  Shape extents;
};

/// A map through which weights pass linearly.
struct Scaling {
  NodeId node = -1;
  std::size_t weights = 0;  ///< the operand that they are
};

/// The pieces of softmax(scores) v in an attend group. Everything on a path from `scores` to `mix` is in the group.
struct Attention {
  NodeId scores = -1;    ///< the first matmul: q k'
  NodeId mix = -1;       ///< the second: weights (its operand 0) times v
  ValueId score = -1;    ///< what is exponentiated, before the shift: (..., i, j)
  ValueId shift = -1;    ///< subtracted from it, one for each row: the maximum, perhaps guarded; -1 when there is none
  ValueId maximum = -1;  ///< max of score over j; -1 when there is none
  ValueId weight = -1;   ///< exp(score - shift)
  ValueId sum = -1;      ///< of weight over j
  std::vector<Scaling> scaling;  ///< from weight to the operand of `mix`, in order: casts, and factors, quotients and
                                 ///< selections against 0 by what is of a row, or known without the scores
};

/// The numbers by which the planner predicts a kernel's time: launch + max(M, C) + overlap * min(M, C), where M is the
/// time of its memory traffic and C that of its instructions. Every decision of the planner goes through them. Plain
/// data: whoever knows the device (a calibration) hands its own numbers in. The defaults describe one H100; each is the
/// guide's figure or derived from the datasheet, not fitted to Tenon's kernels.
struct CostModel {
  std::string device = "H100";      ///< what the numbers describe, for texts
  double launch_us = 2.0;           ///< from one kernel to the next on a stream
  double bandwidth_gb_s = 3000;     ///< of a device copy, bytes read plus bytes written
  double l2_bandwidth_gb_s = 7500;  ///< of what is read again from the last-level cache
  double l2_bytes = 30e6;           ///< that such data may take
  double sector_bytes = 32;         ///< that a store moves to memory if none beside it comes soon; 0: caches wait
  double gigaslots_s = 29000;       ///< lane instructions per second, in 1e9
  double tensor_tflops = 700;       ///< 16-bit contraction
  double depth_parts = 64;          ///< blocks that can divide the depth of one tile among them
  double fed_elements_ns = 15.8;   ///< of a product's operand that threads of a multiprocessor compute on its way in, a
                                   ///< nanosecond; 0: threads bring all operands, as there are no boxes
  bool paired_products = true;     ///< whether kernels multiply the same rows by two matrices at once
  bool tile_tests = true;          ///< whether attention kernels ask masks of whole tiles of keys
  bool product_bounds = true;      ///< whether products skip what masks of positions hide
  bool online = true;              ///< whether kernels take a maximum and the sum that it shifts in one sweep
  bool moments = true;             ///< and a mean and the squares around it
  double lane_tflops = 35;         ///< contraction that tensor cores do not take (f32), as Tenon's kernels reach it
  double f32_tflops = 50;          ///< the same of f32 in parts that tensor cores take; 0: they take none
  double attend_extent = 256;      ///< depth and width up to which tensor cores take an attention; 0: there is no limit
  double attend_columns = 128;     ///< of values of 4 bytes that plain lanes mix at once; scores are computed for each
  double attend_rows = 64;         ///< queries of a tile of theirs, which takes as long with fewer
  double moved_load_slots = 4;     ///< lane instructions of a load beside the kernel's own element (slice, flip)
  double guarded_load_slots = 12;  ///< and of one behind a condition (pad, concat), with the condition
  double neighbour_load_slots = 4;  ///< of further ones of a value behind conditions, whose threads load its neighbours
  double overlap = 0.05;            ///< share of the shorter of M and C that the longer one does not hide
  double threads = 132 * 2048;      ///< resident at once: each computes what is the same for all elements
  double block_gb_s = 56;           ///< bandwidth that one block can draw
  double row_blocks = 8;            ///< blocks of a cluster, which can hold one row together
  double row_block_bytes = 200e3;   ///< of a row that each of them can hold
  double grid_row_bytes = 34e6;   ///< of rows that all blocks hold, where they meet in memory; 0: they cannot. What is
                                  ///< longer than both is read again by one block
  double meeting_us = 2.8;        ///< that such blocks wait for each other, for a row, beside what others move
  double outer_elements = 24576;  ///< of a row and of the sums over rows beside it that a block can keep
  double outer_blocks = 264;      ///< such blocks, each with sums of its own that are then combined
  TensorCores tensor_cores;       ///< what they multiply; the rest is for plain lanes
  bool operator==(const CostModel&) const = default;
};

/// Extents of what lies across a kernel's innermost axis from which on it passes through a tile: below it the caches
/// serve it, since neighbouring threads use a line of theirs up.
constexpr int kTransposedExtent = 16;

/// The numbers of a CPU with this many cores: one "block" is one core.
CostModel cpu_cost_model(int cores);

/// What the planner predicts of one kernel at the typical binding.
struct Estimate {
  double us = 0;            ///< the whole kernel, launch included
  double memory_us = 0;     ///< M
  double compute_us = 0;    ///< C
  double bytes = 0;         ///< read plus written, each element once
  double slots = 0;         ///< lane instructions, loads included
  double flops = 0;         ///< of contractions
  double tensor_flops = 0;  ///< of them, those of tensor cores; tf32 counts twice, as it takes twice the time
  double lane_flops = 0;    ///< and those of plain lanes; f64 counts twice
};

/// One kernel's share of the graph. Views, literals and cheap values may belong to several groups: they are computed
/// again in each. A view of a result may belong to the group that produces the result, which then writes it in the
/// view's layout.
///
/// What a lowering may rely on, by class; verify(plan) checks it. Maps may be needed at several coordinates in one
/// group (they are computed again at each); the rest may not:
///   map       outputs cover `kept`, each in its own order of the axes.
///   reduce    every reduction but those in `outer` has the extents `reduced`, in that order (extents of 1 aside), and
///             its result lies on all kept axes; outputs cover the kept axes, or the kept and the reduced ones. Those
///             in `outer` combine the kept axes, in that order; their results and what is made of them are needed on
///             the reduced axes only, and are such outputs too.
///   contract  one matmul, or a pair that shares its first operand; `kept` is their results' shape, `reduced` their
///   inner
///             extent. Results are needed only at the domain's own point; outputs cover `kept`. Prologues are maps.
///   attend    `attention` says which node is what. `kept` is the shape of `mix`'s result, `reduced` is {keys, depth}.
///             The result of `mix` is needed only at the domain's own point, that of `scores` only at (batch, i, j).
///             Outputs cover `kept`, or `kept` without its last axis.
struct Group {
  KernelClass kernel_class = KernelClass::map;
  std::vector<NodeId> nodes;     ///< all that is computed inside, in definition order
  std::vector<ValueId> inputs;   ///< read from memory: graph inputs and other groups' outputs, in first-use order
  std::vector<ValueId> outputs;  ///< written to memory: what other groups or the user need, in definition order
  std::vector<Dim> kept;         ///< the domain: extents of the axes that outputs run over
  std::vector<Dim> reduced;      ///< and of those that reductions and contractions combine away
  std::vector<Layout> layouts;   ///< where each output lies on the domain
  std::vector<NodeId> outer;     ///< reduce only: reductions that combine the kept axes, beside others
  Attention attention;           ///< attend only
  Estimate estimate;             ///< what the planner expects of it
};

/// Why two groups, or a producer and its consumer, are not one kernel, or not one launch.
struct Refusal {
  ValueId value = -1;  ///< what passes through memory because of it; -1 for siblings
  int producer = -1;   ///< index of a group in the final plan
  int consumer = -1;
  bool launch = false;  ///< of two small groups: why they are not packed
  Rule rule = Rule::none;
  std::string reason;      ///< a sentence with the numbers
  std::int64_t bytes = 0;  ///< traffic that merging would have saved, at the default binding of the symbols
};

struct Plan {
  /// Decomposed; the groups' nodes are its nodes. Its outputs are distinct values and none is an input: a result that
  /// repeats another, or an input, is an added view of it.
  Graph graph;
  std::vector<Group> groups;  ///< in an order in which they can run
  /// Neighbouring groups (maps and reductions, or products; small, none needs another) that CUDA runs side by side in
  /// one launch; numbers in `groups`. The CPU target runs each by itself. A member whose schedule takes a second
  /// function, a cluster or tiles of a transpose after all is launched by itself as well.
  std::vector<std::vector<int>> packs;
  std::vector<Refusal> refusals;
  CostModel cost;         ///< the numbers that it was made with
  double live_bytes = 0;  ///< most bytes of intermediates that are alive at once, at the typical binding
};

struct PlanOptions {
  bool fuse = true;  ///< false: every primitive its own kernel (views and literals are still absorbed)
  bool find_attention = true;
  bool siblings = true;      ///< merge groups that share inputs
  bool duplicate = true;     ///< recompute cheap values rather than store them
  bool mixed_order = false;  ///< reductions over rows and over columns of the same tensors in one kernel, where the
                             ///< target's code generator has it
  bool pad_rows = false;     ///< operands of products are copied where their rows begin off 16-byte boundaries
  bool turn_f8 = false;      ///< operands of f8 products are copied where they do not lie along the depth
  bool turn_few = false;     ///< and few rows or columns beside a large matrix
  bool split_depth = false;  ///< few tiles of a product with a long depth become batches of parts of it, and their sum
  bool split_f32 = false;    ///< f32 products that tensor cores do not take become three of f16 parts
  bool pair_products =
      false;  ///< two products of the same rows share a kernel where one is needed at the other's points
  bool split_pieces = false;  ///< rows of pieces are reduced in two steps (pieces.h), where that is faster
  bool rows_apart = true;     ///< few rows that are more than blocks hold: each sweep a kernel, where that is faster
  bool turned_apart = true;   ///< results across a kernel's rows are those of a kernel apart, where that is faster
  int max_operands = 24;      ///< pointers of one kernel that is merged of several
  int max_pointers = 128;     ///< and those that one operator takes through the views before it: beyond, some of these
                              ///< are stored, and concats of more operands are cut
  int max_nodes = 1024;       ///< computed nodes of one kernel
  int max_places = 128;   ///< values that one kernel computes or loads again, at other places than the first, before
                          ///< it stores them (views that meet again multiply them); 0: 1,024
  int max_readers = 64;   ///< readers of one value with which its maker is tried
  int max_siblings = 16;  ///< siblings that are tried for each value that a kernel reads
  int window = 10;        ///< pieces of neighbouring kernels that are cut anew exactly, 2 to 16; 0: greedy merging only
  int max_packed = 8;     ///< groups that one launch runs side by side; 1: no packs
  double max_live_bytes = 0;  ///< of intermediates alive at once, at the typical binding; 0: no limit. A graph that no
                              ///< plan was found for is an Error(resource)
  Bindings typical;           ///< symbol values for cost estimates; others count as 1024 (clamped to bounds)
  CostModel cost;
};

/// Cuts a graph that run_passes (ir/passes/passes.h) gave into the groups that become kernels.
Plan cut_into_groups(const Graph& graph, const PlanOptions& options);

/// All passes on `graph`, any verified one, and cut_into_groups.
Plan make_plan(const Graph& graph, const PlanOptions& options = {});

/// The sets of groups that one launch runs: packs, and the other groups each by itself.
std::vector<std::vector<int>> launched_together(const Plan& plan);

/// The launch that each of `groups` groups runs in, counted in order: the members of a pack share theirs.
std::vector<int> launch_steps(std::size_t groups, const std::vector<std::vector<int>>& packs);

/// Where the group needs the values that it computes: for each the distinct layouts on its domain. For values with one
/// only, in plain digits, a lowering may take its word (what it finds by arithmetic on indices may be less simple).
std::map<ValueId, std::vector<Layout>> computed_layouts(const Graph& graph, const Group& group);

/// Throws Error(internal) unless every needed node is in a group, groups can run in order, and inputs and outputs fit.
void verify(const Plan& plan);

/// The plan as text, for people and for fusion regression tests; deterministic.
std::string print(const Plan& plan);

/// The refusals as sentences for `tenon explain`.
std::string explain(const Plan& plan);

/// The predicted time of each kernel with the numbers behind it, for `tenon explain`, and beside it the one in
/// `measured_us`: empty, or one for each group (0: not measured; a launch of several counts at the first).
std::string print_estimates(const Plan& plan, const std::vector<double>& measured_us = {});

/// Microseconds of all launches, as predicted.
double predicted_us(const Plan& plan);

/// Bytes that a group must move at `bindings`: each input and output once.
std::int64_t unavoidable_bytes(const Plan& plan, const Group& group, const Bindings& bindings);

}  // namespace tenon::ir

// A cluster: a group while the planner is still merging. It holds what legality and cost need, so that a merge is
// judged in time O(rank * operands) and never by looking at its nodes.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/fusion/demand.h"
#include "ir/fusion/layout.h"

namespace tenon::ir::fusion {

/// A value taken from memory, with the distinct layouts at which it is needed.
struct Read {
  ValueId value = -1;
  std::vector<Layout> layouts;
  bool of_mask = false;  ///< only masks that are asked of tiles of keys need it (tile_masks.cpp)
};

/// A value that the cluster computes at exactly one layout that covers its domain, so that it can be stored.
struct Result {
  ValueId value = -1;
  Layout layout;
  int rounds = 0;  ///< reductions of this cluster behind it, each of which needs the sweep of the one before
  bool late() const { return rounds > 0; }  ///< known only after a reduction of this cluster
};

/// What a sum of a Reduce cluster can share its sweep with (shared_sweeps.cpp).
enum class SweepOf : std::uint8_t {
  own,      ///< none
  maximum,  ///< that shifts the exponentials which it adds up
  mean,     ///< around which it adds up squares
  any,      ///< it picks one element of a row, which takes no sweep (codegen/lower/select.cpp)
};

struct Cluster {
  KernelClass kernel_class = KernelClass::map;
  Domain domain;
  std::vector<NodeId> nodes;                ///< computed nodes, in no order; what is cloned is added at the end
  int node_count = 0;                       ///< of them; also where a piece of a larger cluster no longer lists them
  std::vector<Read> reads;                  ///< by value
  std::vector<Result> results;              ///< by value: those that may be needed outside
  std::vector<Layout> places;               ///< the distinct layouts of what it reduces and contracts
  int depth = 0;                            ///< nodes, cloned ones too, that may need one another's results in turn
  int repeats = 0;                          ///< nodes computed again, at other places than the first
  double slots = 0;                         ///< lane instructions of one run
  double mask_slots = 0;                    ///< map: of them, those of masks that are asked of tiles of keys
  double flops = 0;                         ///< of contractions
  double tensor_flops = 0, lane_flops = 0;  ///< see Estimate
  int rounds = 0;                           ///< the most of what it reduces
  SweepOf sweep_of = SweepOf::own;  ///< reduce: why what it reduces first can share the sweep of what that needs
  bool chained = false;             ///< some of what it reduces needs a result of another, in one sweep or in two
  bool persistent = false;          ///< one block (or cluster) has a row, whatever is needed of it again
  bool random = false;
  ValueId paired = -1;  ///< contract: the first operand of its product, where another with this operand may join it
  // contract, of its operands as bits (1: the first, 2: the second):
  unsigned boxed = 0;                        ///< those that boxes would bring if they were in memory (feeds.h)
  unsigned computed = 0;                     ///< those that are computed on their way in
  std::array<double, 4> shares{1, 1, 1, 1};  ///< by `computed`: of the products, those that masks of positions leave
  Attention attention;

  const Read* find_read(ValueId value) const;
  const Result* find_result(ValueId value) const;
  bool holds_contraction() const {
    return kernel_class == KernelClass::contract || kernel_class == KernelClass::attend;
  }
  double share() const { return shares[computed]; }
};

/// The facts of a graph that every step of the planner asks for.
struct Context {
  const Graph& graph;
  const PlanOptions& options;
  Bindings typical;  ///< a value for every symbol
  std::vector<std::vector<NodeId>> users;
  std::vector<bool> live;          ///< node: some result needs it
  std::vector<bool> cloned;        ///< node: computed again wherever it is needed, never a kernel of its own
  std::vector<int> pointers;       ///< value: most that whoever needs it takes, itself or what it is computed from
  std::vector<int> depth;          ///< value: cloned nodes in turn between it and what is read for it
  std::vector<bool> graph_output;  ///< value
  std::vector<bool> tile_mask;     ///< value: attention kernels ask it of tiles of keys, and nothing else needs it
  bool rows_apart = false;    ///< no kernel reads rows again where kernels apart would take less time (long_rows.h)
  bool turned_apart = false;  ///< nor stores results across its rows (across_rows.h)
  std::vector<double> count, bytes;  ///< of each value, at the typical binding

  Context(const Graph& g, const PlanOptions& o);
  double extent(const Dim& dim) const;
  /// Points of the axes [first, last).
  double points(const Domain& domain, int first, int last) const;
  double points(const Domain& domain) const { return points(domain, 0, domain.rank()); }
  bool is_input(ValueId value) const { return graph.producer(value).op == Op::input; }
  /// Whether the value is read from memory by whoever does not compute it.
  bool stored(ValueId value) const {
    return is_input(value) || !cloned[static_cast<std::size_t>(graph.value(value).producer)];
  }
};

/// The attention groups that were found, and why others were not.
struct AttentionSearch {
  std::vector<Attention> found;
  std::vector<std::vector<NodeId>> nodes;  ///< of each
  std::vector<Refusal> refusals;           ///< without groups: `value` is the second matmul's result
  double apart_gain = 0;  ///< times that a plan has to be faster without those that are wide; 0: there are none
};
/// `wide`: also those that a kernel does not hold well (wide_attention.h). `parts`: results of matmuls that are no
/// attention's.
AttentionSearch find_attention(const Context& context, bool wide = true, const std::vector<ValueId>& parts = {});

/// Marks the values that attention kernels ask of tiles of keys (Context::tile_mask).
void find_tile_masks(Context& context, const AttentionSearch& attention);

/// Marks views to be stored (no longer cloned) whose operands a kernel would read at too many places through them.
void store_meeting_views(Context& context);

/// One cluster for each node that is computed, for each attention, and for each result that is only a view.
std::vector<Cluster> seed_clusters(const Context& context, const AttentionSearch& attention);

/// The cluster that computes `root` alone by the maps `nodes`; its domain is the shape of `root`. Nothing where that
/// repeats more than options.max_places.
std::optional<Cluster> map_cluster(const Context& context, ValueId root, std::vector<NodeId> nodes);

/// One of Cluster::places, unless it is there already.
void add_place(std::vector<Layout>& places, const Layout& layout);

/// Whether a layout on the domain of a Reduce cluster is that of a reduction over its kept axes: it varies along
/// reduced ones only.
bool is_outer(const Domain& domain, const Layout& layout);

/// The axes that a reduction or contraction combines in a cluster or group of this class and domain.
Combined combined_axes(const Graph& graph, KernelClass kernel_class, const Domain& domain, NodeId first_matmul);

/// The loops of a kernel that computes the node alone.
Domain domain_of(const Graph& graph, const Node& node);

/// Places at which the cluster computes and loads values beyond one for each.
int repeats_of(const Cluster& cluster);

/// The first operand of a matmul that may be one of a pair in a kernel of warpgroups, -1 of any other node: its
/// operands and result are of 16 bits, and no class of sizes has few rows or columns.
ValueId paired_operand(const Graph& graph, const PlanOptions& options, const Node& node);

/// Shape without extents of 1.
Shape without_ones(const Shape& shape);

// ---- cost.cpp --------------------------------------------------------------------------------------------------

/// Bytes that `read` moves: no more than the value, no more than what its layouts take.
double bytes_of(const Context& context, const Cluster& cluster, const Read& read);
/// Points of the axes of `domain` whose bits are set in `axes`.
double points_along(const Context& context, const Domain& domain, std::uint32_t axes);
/// Whether `layout` is where the operands of a contraction are loaded, rather than where its result or its scores are.
bool is_operand(const Cluster& cluster, const Layout& layout);
/// The reduction that a sum depends on whose sweep it can be taken in, where the target's kernels have that.
SweepOf sweep_of(const Context& context, const Node& node);
/// Sweeps over the rows of a Reduce cluster, if nothing holds them: of reductions, one after the other, and of the
/// elements that are stored when they are known. 1 for other classes.
int sweeps_of(const Cluster& cluster);
/// Whether rows are needed again after their reduction.
inline bool needs_rows_again(const Cluster& cluster) { return cluster.persistent || sweeps_of(cluster) > 1; }
/// How often a map is evaluated that is needed at `layout` of the cluster's domain.
double evaluations(const Context& context, const Cluster& cluster, const Layout& layout);
/// Lane instructions of `producer`, a map, for each point at which `consumer` computes it.
double slots_inside(const Context& context, const Cluster& producer, const Cluster& consumer);
/// What options.cost predicts of a kernel that moves `bytes`: t = L + max(M, C) + overlap * min(M, C), of the
/// launch, the memory and the computation.
Estimate estimate_of(const Context& context, const Cluster& cluster, double bytes);
/// Its microseconds.
double time_of(const Context& context, const Cluster& cluster, double bytes);

// ---- legality.cpp ----------------------------------------------------------------------------------------------

struct Verdict {
  Rule rule = Rule::none;
  std::string reason;
  bool legal() const { return rule == Rule::none; }
};

/// Whether `value` is needed by someone other than the two clusters in question.
using NeededElsewhere = std::function<bool(ValueId)>;

/// The two as one kernel, where `consumer` reads what `producer` computes. `merged` is filled (but for its nodes) when
/// legal.
Verdict fuse_consumer(const Context& context, const Cluster& producer, const Cluster& consumer,
                      const NeededElsewhere& elsewhere, Cluster& merged);
/// The two as one kernel, where neither needs the other and both read a value.
Verdict fuse_siblings(const Context& context, const Cluster& first, const Cluster& second, Cluster& merged);

}  // namespace tenon::ir::fusion

// The planner as a list: cut long concats, arrange products, find attention, seed, merge, recompute, lay out, pack,
// write down why not.
#include "ir/fusion/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "ir/fusion/across_rows.h"
#include "ir/fusion/concats.h"
#include "ir/fusion/feeds.h"
#include "ir/fusion/finish.h"
#include "ir/fusion/long_rows.h"
#include "ir/fusion/memory.h"
#include "ir/fusion/packing.h"
#include "ir/fusion/pieces.h"
#include "ir/fusion/products.h"
#include "ir/graph/build.h"
#include "ir/passes/passes.h"

namespace tenon::ir {
namespace {

using namespace fusion;

// Each output a value of its own that some kernel writes: repeated ones and inputs get a view that copies.
void separate_outputs(Graph& graph) {
  std::set<ValueId> written(graph.inputs.begin(), graph.inputs.end());
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
    const ValueId output = graph.outputs[i];
    if (written.insert(output).second) continue;
    const Shape shape = graph.type(output).shape;
    graph.outputs[i] = append_one(graph, Op::reshape, {output}, {{"shape", shape}});
    written.insert(graph.outputs[i]);
  }
}

void number_by_group(std::vector<Refusal>& refusals, const std::vector<int>& group_of,
                     const std::vector<ValueId>& replaced) {
  for (Refusal& refusal : refusals) {
    refusal.producer = group_of[static_cast<std::size_t>(refusal.producer)];
    refusal.consumer = group_of[static_cast<std::size_t>(refusal.consumer)];
    if (refusal.value >= 0 && replaced[static_cast<std::size_t>(refusal.value)] >= 0)
      refusal.value = replaced[static_cast<std::size_t>(refusal.value)];
  }
  std::stable_sort(refusals.begin(), refusals.end(), [](const Refusal& a, const Refusal& b) {
    return std::pair(a.producer, a.consumer) < std::pair(b.producer, b.consumer);
  });
}

// Near misses of attention, said of the group that holds the second matmul.
void add_near_misses(Plan& plan, std::vector<Refusal> misses) {
  for (Refusal& miss : misses) {
    const NodeId mix = plan.graph.value(miss.value).producer;
    for (std::size_t i = 0; i < plan.groups.size(); ++i)
      if (std::binary_search(plan.groups[i].nodes.begin(), plan.groups[i].nodes.end(), mix))
        miss.consumer = static_cast<int>(i);
    plan.refusals.push_back(std::move(miss));
  }
}

// The groups in launch order, with their packs and the reasons against others; `group_of` follows.
std::vector<Refusal> pack(const Context& context, const Partition& partition, Plan& plan, std::vector<int>& group_of) {
  std::vector<const Cluster*> clusters(plan.groups.size());
  for (std::size_t cluster = 0; cluster < group_of.size(); ++cluster)
    if (group_of[cluster] >= 0) clusters[static_cast<std::size_t>(group_of[cluster])] = &partition.clusters[cluster];
  Packing packing = pack_groups(context, plan.groups, clusters);
  std::vector<Group> groups;
  std::vector<int> position(plan.groups.size());
  for (std::size_t group : packing.order) {
    position[group] = static_cast<int>(groups.size());
    groups.push_back(std::move(plan.groups[group]));
  }
  for (int& group : group_of)
    if (group >= 0) group = position[static_cast<std::size_t>(group)];
  plan.groups = std::move(groups);
  plan.packs = std::move(packing.packs);
  return std::move(packing.refusals);
}

// Steps that look at time alone are taken back when they keep too much alive.
bool keep_if_it_fits(const Context& context, Partition& partition,
                     const std::function<bool(const Context&, Partition&)>& step) {
  const double limit = context.options.max_live_bytes;
  if (limit <= 0) return step(context, partition);
  Partition before = partition;
  if (!step(context, partition)) return false;
  if (peak_live_bytes(context, partition, partition.order) <=
      std::max(limit, peak_live_bytes(context, before, before.order)))
    return true;
  partition = std::move(before);
  return false;
}

}  // namespace

Plan make_plan(const Graph& graph, const PlanOptions& options) { return cut_into_groups(run_passes(graph), options); }

namespace {

// What a plan is made without, to see whether it is faster so.
struct Without {
  bool wide = false;    // attention that a kernel does not hold well
  bool rows = false;    // kernels that read few long rows again
  bool across = false;  // kernels that store results across their rows
};

// What there is to be without.
struct Found {
  double apart_gain = 0;  // see AttentionSearch
  bool rows = false, across = false;
};

Plan cut(const Graph& graph, const PlanOptions& options, const Without& without, Found& found) {
  Plan plan;
  Products products =
      arrange_products(cut_concats(graph, static_cast<std::size_t>(options.max_pointers)), options, !without.wide);
  plan.graph = std::move(products.graph);
  plan.cost = options.cost;
  separate_outputs(plan.graph);
  Context context(plan.graph, options);
  for (ValueId value : products.stored)
    context.cloned[static_cast<std::size_t>(plan.graph.value(value).producer)] = false;
  context.rows_apart = without.rows;
  context.turned_apart = without.across;
  store_meeting_views(context);
  AttentionSearch attention;
  if (options.fuse && options.find_attention) attention = find_attention(context, !without.wide, products.parts);
  found.apart_gain = attention.apart_gain;
  if (options.fuse) price_cloned_operands(context, attention);
  if (options.cost.tile_tests) find_tile_masks(context, attention);
  Partition partition = make_partition(context, seed_clusters(context, attention));
  if (options.fuse) {
    merge_clusters(context, partition);
    if (keep_if_it_fits(context, partition, resolve_windows)) merge_clusters(context, partition);
    if (options.duplicate && keep_if_it_fits(context, partition, recompute_cheap)) merge_clusters(context, partition);
    plan.refusals = explain_cuts(context, partition);
  }
  const std::vector<ValueId> replaced = absorb_views(context, partition);
  for (int number : partition.order) {
    const Cluster& cluster = partition.at(number);
    found.rows = found.rows || are_better_apart(context, cluster);
    found.across = found.across || is_better_turned(context, cluster, cluster.results);
  }
  std::vector<int> group_of;
  plan.groups = make_groups(context, partition, group_of);
  const std::vector<Refusal> not_packed = pack(context, partition, plan, group_of);
  plan.live_bytes = peak_live_bytes(context, plan.groups, launch_steps(plan.groups.size(), plan.packs));
  number_by_group(plan.refusals, group_of, replaced);
  plan.refusals.insert(plan.refusals.end(), not_packed.begin(), not_packed.end());
  for (Refusal& refusal : products.apart)
    if (std::none_of(attention.refusals.begin(), attention.refusals.end(),
                     [&](const Refusal& other) { return other.value == refusal.value; }))
      attention.refusals.push_back(std::move(refusal));
  add_near_misses(plan, std::move(attention.refusals));
  return plan;
}

// Both predictions, behind the reasons of what is apart.
void add_times(Plan& apart, Rule rule, double one_us, double apart_us) {
  for (Refusal& refusal : apart.refusals)
    if (refusal.rule == rule)
      refusal.reason +=
          fmt::format("; all kernels would take {:.1f} us with it as one, {:.1f} us without", one_us, apart_us);
}

// Scores in memory take more of it: no plan has them where that is limited, or beyond what leaves room for the rest.
Plan without_wide(Plan together, const Graph& graph, const PlanOptions& options, Without& without, Found& found) {
  constexpr double kMostBytes = 16e9;  // of intermediates
  const double gain = found.apart_gain;
  if (gain == 0 || options.max_live_bytes > 0) return together;
  Found found_apart;
  Plan apart = cut(graph, options, {.wide = true}, found_apart);
  const double one_us = predicted_us(together), apart_us = predicted_us(apart);
  if (one_us < gain * apart_us || apart.live_bytes > kMostBytes) return together;
  add_times(apart, Rule::attention_apart, one_us, apart_us);
  without.wide = true;
  found = found_apart;
  return apart;
}

Plan without_kernels(Plan together, const Graph& graph, const PlanOptions& options, bool Without::* some, Rule rule,
                     Without& without, Found& found) {
  Without less = without;
  less.*some = true;
  Found found_apart;
  Plan apart = cut(graph, options, less, found_apart);
  const double one_us = predicted_us(together), apart_us = predicted_us(apart);
  if (one_us <= apart_us || (options.max_live_bytes > 0 && apart.live_bytes > options.max_live_bytes)) return together;
  add_times(apart, rule, one_us, apart_us);
  without = less;
  found = found_apart;
  return apart;
}

Plan plan_of(const Graph& graph, const PlanOptions& options) {
  Without without;
  Found found;
  Plan plan = cut(graph, options, without, found);
  if (!options.fuse) return plan;
  plan = without_wide(std::move(plan), graph, options, without, found);
  if (options.rows_apart && found.rows)
    plan = without_kernels(std::move(plan), graph, options, &Without::rows, Rule::rows_apart, without, found);
  if (options.turned_apart && found.across)
    plan = without_kernels(std::move(plan), graph, options, &Without::across, Rule::turned_apart, without, found);
  return plan;
}

// The plan of the same graph with rows of pieces reduced in two steps, where that is faster.
Plan or_pieces_first(Plan whole, const Graph& graph, const PlanOptions& options) {
  if (!options.split_pieces || !options.fuse) return whole;
  bool found = false;
  const Graph in_steps = reduce_pieces_first(graph, found);
  if (!found) return whole;
  Plan split = plan_of(eliminate_dead_code(eliminate_common_subexpressions(in_steps)), options);
  const double whole_us = predicted_us(whole), split_us = predicted_us(split);
  if (whole_us <= split_us || (options.max_live_bytes > 0 && split.live_bytes > options.max_live_bytes)) return whole;
  for (Refusal& refusal : split.refusals)
    if (refusal.rule == Rule::different_reduced_axes)
      refusal.reason += fmt::format(
          "; rows of pieces are reduced in two steps: all kernels would take {:.1f} us with whole rows, {:.1f} us so",
          whole_us, split_us);
  return split;
}

}  // namespace

Plan cut_into_groups(const Graph& graph, const PlanOptions& options) {
  return or_pieces_first(plan_of(graph, options), graph, options);
}

std::vector<std::vector<int>> launched_together(const Plan& plan) {
  std::vector<std::vector<int>> sets;
  auto pack = plan.packs.begin();
  for (int group = 0; group < static_cast<int>(plan.groups.size()); group = sets.back().back() + 1) {
    const bool packed = pack != plan.packs.end() && pack->front() == group;
    sets.push_back(packed ? *pack++ : std::vector<int>{group});
  }
  return sets;
}

std::vector<int> launch_steps(std::size_t groups, const std::vector<std::vector<int>>& packs) {
  std::vector<int> steps(groups, 1);
  for (const std::vector<int>& pack : packs)
    for (std::size_t i = 1; i < pack.size(); ++i) steps[static_cast<std::size_t>(pack[i])] = 0;
  int step = -1;
  for (int& each : steps) each = step += each;
  return steps;
}

std::int64_t unavoidable_bytes(const Plan& plan, const Group& group, const Bindings& bindings) {
  std::int64_t bytes = 0;
  for (const auto* list : {&group.inputs, &group.outputs})
    for (ValueId value : *list) {
      const Type& type = plan.graph.type(value);
      bytes += (element_count(type.shape) * Dim(size_of(type.dtype))).evaluate(bindings);
    }
  return bytes;
}

}  // namespace tenon::ir

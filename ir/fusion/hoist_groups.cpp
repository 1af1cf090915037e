// Finds the groups, cuts the graph at what the others read of theirs, and renumbers the others for what is left of it.
#include "ir/fusion/hoist_groups.h"

#include <algorithm>
#include <set>

namespace tenon::ir {
namespace {

template <typename T>
bool has(const std::vector<T>& list, const T& one) {
  return std::find(list.begin(), list.end(), one) != list.end();
}

// For each group whether it does the same in every run, and nobody else needs that it does.
std::vector<bool> same_groups(const Plan& plan, const std::vector<bool>& bound) {
  const std::vector<bool> same = same_in_each_run(plan.graph, bound);
  std::vector<bool> found;
  for (const Group& group : plan.groups)
    found.push_back(std::all_of(group.outputs.begin(), group.outputs.end(), [&](ValueId value) {
      return same[static_cast<std::size_t>(value)] && !has(plan.graph.outputs, value);
    }));
  return found;
}

// What the other groups read of them.
std::vector<ValueId> read_of(const Plan& plan, const std::vector<bool>& taken) {
  std::set<ValueId> stored, read;
  for (std::size_t i = 0; i < taken.size(); ++i) {
    const Group& group = plan.groups[i];
    if (taken[i]) stored.insert(group.outputs.begin(), group.outputs.end());
    for (const ValueId value : group.inputs)
      if (!taken[i] && stored.contains(value)) read.insert(value);
  }
  return {read.begin(), read.end()};
}

// Whether a group that stays computes one of these again for itself: in the graph that is left they are inputs.
bool are_computed_again(const Plan& plan, const std::vector<bool>& taken, const std::vector<ValueId>& values) {
  for (std::size_t i = 0; i < taken.size(); ++i)
    for (const ValueId value : values)
      if (!taken[i] && has(plan.groups[i].nodes, plan.graph.value(value).producer)) return true;
  return false;
}

// Numbers of a plan's graph as those of what is left of it.
class Renumber {
 public:
  Renumber(const Graph& old, const SplitGraph& split) : old_(old), split_(split) {}

  void value(ValueId& id) const {
    if (id >= 0) id = split_.each_values[static_cast<std::size_t>(id)];
  }
  void node(NodeId& id) const {
    if (id < 0) return;
    ValueId result = old_.node(id).results.front();
    value(result);
    id = split_.each.value(result).producer;
  }
  void group(Group& group) const {
    for (auto* nodes : {&group.nodes, &group.outer})
      for (NodeId& id : *nodes) node(id);
    for (auto* values : {&group.inputs, &group.outputs})
      for (ValueId& id : *values) value(id);
    Attention& attention = group.attention;
    for (NodeId* id : {&attention.scores, &attention.mix}) node(*id);
    for (ValueId* id : {&attention.score, &attention.shift, &attention.maximum, &attention.weight, &attention.sum})
      value(*id);
    for (Scaling& scaling : attention.scaling) node(scaling.node);
  }

 private:
  const Graph& old_;
  const SplitGraph& split_;
};

// For each group its number among those that stay; -1: it does not.
std::vector<int> places_of(const std::vector<bool>& taken) {
  std::vector<int> places;
  int next = 0;
  for (const bool gone : taken) places.push_back(gone ? -1 : next++);
  return places;
}

// What is said of groups that stay.
std::vector<Refusal> refusals_of(const Plan& plan, const std::vector<int>& places, const Renumber& renumber) {
  std::vector<Refusal> refusals;
  for (Refusal refusal : plan.refusals) {
    const bool said_of_value = refusal.value >= 0;
    renumber.value(refusal.value);
    for (int* group : {&refusal.producer, &refusal.consumer})
      if (*group >= 0) *group = places[static_cast<std::size_t>(*group)];
    if (refusal.producer >= 0 && refusal.consumer >= 0 && (refusal.value >= 0 || !said_of_value))
      refusals.push_back(std::move(refusal));
  }
  return refusals;
}

std::vector<std::vector<int>> packs_of(const Plan& plan, const std::vector<int>& places) {
  std::vector<std::vector<int>> packs;
  for (const std::vector<int>& pack : plan.packs) {
    std::vector<int> stay;
    for (const int group : pack)
      if (const int place = places[static_cast<std::size_t>(group)]; place >= 0) stay.push_back(place);
    if (stay.size() > 1) packs.push_back(std::move(stay));
  }
  return packs;
}

}  // namespace

std::optional<HoistedGroups> hoist_groups(const Plan& plan, const std::vector<bool>& bound) {
  const std::vector<bool> taken = same_groups(plan, bound);
  const std::vector<ValueId> kept = read_of(plan, taken);
  if (kept.empty() || are_computed_again(plan, taken, kept)) return std::nullopt;
  HoistedGroups hoisted{split_weights(plan.graph, bound, kept), {}};
  const Renumber renumber(plan.graph, hoisted.split);
  const std::vector<int> places = places_of(taken);
  Plan& rest = hoisted.plan;
  rest.graph = hoisted.split.each;
  rest.cost = plan.cost;
  rest.live_bytes = plan.live_bytes;  // or less: some of the intermediates are gone
  for (std::size_t i = 0; i < taken.size(); ++i) {
    if (taken[i]) continue;
    rest.groups.push_back(plan.groups[i]);
    renumber.group(rest.groups.back());
  }
  rest.packs = packs_of(plan, places);
  rest.refusals = refusals_of(plan, places, renumber);
  verify(rest);
  return hoisted;
}

}  // namespace tenon::ir

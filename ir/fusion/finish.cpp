// Layouts, then contents: what each kernel stores is fixed first, then a walk back from it collects every node that the
// kernel computes (clones included) and what it reads, in first-use order.
#include "ir/fusion/finish.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <queue>

#include "ir/fusion/across_rows.h"
#include "ir/fusion/memory.h"
#include "ir/fusion/updates.h"
#include "ir/graph/check.h"

namespace tenon::ir::fusion {
namespace {

// The live users of a value, each once.
std::vector<NodeId> live_users(const Context& context, ValueId value) {
  std::vector<NodeId> users;
  for (NodeId user : context.users[static_cast<std::size_t>(value)])
    if (context.live[static_cast<std::size_t>(user)] && (users.empty() || users.back() != user)) users.push_back(user);
  return users;
}

// Whether contractions alone read `value`: they load a transposed operand as well as a plain one.
bool only_contractions_read(const Context& context, const Partition& partition, ValueId value) {
  const auto& readers = partition.readers[static_cast<std::size_t>(value)];
  (void)context;
  return std::all_of(readers.begin(), readers.end(),
                     [&](int reader) { return partition.at(reader).holds_contraction(); });
}

// The last of the bijective views that are, one after the other, the only use of `result`.
Result last_view(const Context& context, const Partition& partition, const Cluster& cluster, Result result) {
  const ValueId stored = result.value;
  const bool keeps_inner = !cluster.holds_contraction() && only_contractions_read(context, partition, stored);
  while (!context.graph_output[static_cast<std::size_t>(result.value)]) {
    const std::vector<NodeId> users = live_users(context, result.value);
    if (users.size() != 1 || !context.cloned[static_cast<std::size_t>(users[0])]) return result;
    const Node& view = context.graph.node(users[0]);
    const auto layout =
        kind_of(view.op) == Kind::view ? viewed_layout(context.graph, view, result.layout) : std::nullopt;
    if (!layout || partition.maker[static_cast<std::size_t>(view.results[0])] >= 0) return result;
    if (keeps_inner && !layout->empty() && !result.layout.empty() && !(layout->back() == result.layout.back()))
      return result;
    const Result viewed{view.results[0], *layout, result.rounds};
    if (context.turned_apart && is_better_turned(context, cluster, {viewed})) return result;
    result = viewed;
  }
  return result;
}

class Builder {
 public:
  Builder(const Context& context, const Partition& partition) : context_(context) {
    for (int cluster : partition.order)
      for (const Result& result : partition.at(cluster).results) written_.insert(result.value);
  }

  Group build(const Cluster& cluster) const {
    const Graph& graph = context_.graph;
    const std::set<NodeId> inside(cluster.nodes.begin(), cluster.nodes.end());
    std::set<ValueId> own;
    for (const Result& result : cluster.results) own.insert(result.value);
    const auto from_memory = [&](ValueId value) {
      if (context_.is_input(value)) return true;
      if (own.count(value) != 0 || inside.count(graph.value(value).producer) != 0) return false;
      return context_.stored(value) ||
             (written_.count(value) != 0 && !context_.graph_output[static_cast<std::size_t>(value)]);
    };
    std::vector<Result> results = cluster.results;
    std::sort(results.begin(), results.end(), [&](const Result& a, const Result& b) {
      return graph.value(a.value).producer < graph.value(b.value).producer;
    });
    Group group;
    group.kernel_class = cluster.kernel_class;
    group.attention = cluster.attention;
    group.estimate = estimate_of(context_, cluster, bytes_of(context_, cluster));
    const double across = across_us(context_, cluster);
    group.estimate.memory_us += across, group.estimate.us += across;
    group.kept.assign(cluster.domain.extents.begin(), cluster.domain.extents.begin() + cluster.domain.kept);
    group.reduced.assign(cluster.domain.extents.begin() + cluster.domain.kept, cluster.domain.extents.end());
    Needs needs;
    const Combined combined = combined_axes(graph, cluster.kernel_class, cluster.domain, cluster.attention.scores);
    for (const Result& result : results) {
      group.outputs.push_back(result.value);
      group.layouts.push_back(result.layout);
      demand(graph, result.value, result.layout, from_memory, combined, needs);
    }
    for (const auto& [value, layouts] : needs.computed) {
      const NodeId id = graph.value(value).producer;
      group.nodes.push_back(id);
      if (cluster.kernel_class == KernelClass::reduce && kind_of(graph.node(id).op) == Kind::reduce &&
          is_outer(cluster.domain, layouts.front()))
        group.outer.push_back(id);
    }
    std::sort(group.nodes.begin(), group.nodes.end());
    std::sort(group.outer.begin(), group.outer.end());
    group.inputs = needs.read_order;
    return group;
  }

 private:
  const Context& context_;
  std::set<ValueId> written_;
};

bool reaches(const std::vector<std::vector<std::size_t>>& next, std::size_t from, std::size_t to) {
  std::vector<bool> seen(next.size());
  std::vector<std::size_t> pending{from};
  while (!pending.empty()) {
    const std::size_t group = pending.back();
    pending.pop_back();
    if (group == to) return true;
    if (seen[group]) continue;
    seen[group] = true;
    pending.insert(pending.end(), next[group].begin(), next[group].end());
  }
  return false;
}

// Groups in run order, the one with the earliest last node first, so that the order follows the graph. Who reads an
// input goes before who updates it, unless it needs the new content too.
std::vector<std::size_t> run_order(const Graph& graph, const std::vector<Group>& groups) {
  std::vector<int> maker(graph.values.size(), -1), waiting(groups.size());
  std::vector<std::vector<std::size_t>> next(groups.size());
  for (std::size_t i = 0; i < groups.size(); ++i)
    for (ValueId output : groups[i].outputs) maker[static_cast<std::size_t>(output)] = static_cast<int>(i);
  for (std::size_t i = 0; i < groups.size(); ++i)
    for (ValueId input : groups[i].inputs)
      if (const int from = maker[static_cast<std::size_t>(input)]; from >= 0) {
        next[static_cast<std::size_t>(from)].push_back(i);
        ++waiting[i];
      }
  const std::vector<std::vector<std::size_t>> readers = readers_of_updated(graph, groups);
  for (std::size_t i = 0; i < groups.size(); ++i)
    for (const std::size_t reader : readers[i])
      if (!reaches(next, i, reader)) {
        next[reader].push_back(i);
        ++waiting[i];
      }
  using Ready = std::pair<NodeId, std::size_t>;
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
  for (std::size_t i = 0; i < groups.size(); ++i)
    if (waiting[i] == 0) ready.emplace(groups[i].nodes.back(), i);
  std::vector<std::size_t> order;
  while (!ready.empty()) {
    const std::size_t group = ready.top().second;
    ready.pop();
    order.push_back(group);
    for (std::size_t user : next[group])
      if (--waiting[user] == 0) ready.emplace(groups[user].nodes.back(), user);
  }
  TENON_CHECK(order.size() == groups.size(), "groups of a plan depend on each other in a circle");
  return order;
}

std::vector<Group> ordered(const std::vector<Group>& groups, const std::vector<std::size_t>& order) {
  std::vector<Group> result;
  for (std::size_t i : order) result.push_back(groups[i]);
  return result;
}

// The order of the graph, unless that keeps too much alive: then that of merging, or a frugal one.
std::vector<std::size_t> fitting_order(const Context& context, const std::vector<Group>& groups) {
  const std::vector<std::size_t> natural = run_order(context.graph, groups);
  const double limit = context.options.max_live_bytes;
  if (limit <= 0) return natural;
  std::vector<std::size_t> merged(groups.size());
  std::iota(merged.begin(), merged.end(), 0);
  double least = std::numeric_limits<double>::infinity();
  for (const auto& order : {natural, merged, frugal_order(context, groups, natural)}) {
    const double peak = peak_live_bytes(context, ordered(groups, order), launch_steps(groups.size(), {}));
    if (peak <= limit) return order;
    least = std::min(least, peak);
  }
  throw Error(
      ErrorKind::resource,
      fmt::format("the plan of '{}' keeps {} of intermediates alive at once at the typical sizes, the limit is {}",
                  context.graph.name, bytes_text(least), bytes_text(limit)),
      {}, "raise max_live_bytes, or give smaller typical sizes");
}

}  // namespace

std::vector<ValueId> absorb_views(const Context& context, Partition& partition) {
  std::vector<ValueId> replaced(context.graph.values.size(), -1);
  for (int number : partition.order) {
    Cluster& cluster = partition.at(number);
    for (Result& result : cluster.results) {
      const Result last = last_view(context, partition, cluster, result);
      if (last.value == result.value) continue;
      replaced[static_cast<std::size_t>(result.value)] = last.value;
      result = last;
    }
  }
  return replaced;
}

std::vector<Group> make_groups(const Context& context, const Partition& partition, std::vector<int>& group_of) {
  const Builder builder(context, partition);
  std::vector<Group> unordered;
  for (int cluster : partition.order) unordered.push_back(builder.build(partition.at(cluster)));
  std::vector<Group> groups;
  group_of.assign(partition.clusters.size(), -1);
  for (std::size_t i : fitting_order(context, unordered)) {
    group_of[static_cast<std::size_t>(partition.order[i])] = static_cast<int>(groups.size());
    groups.push_back(std::move(unordered[i]));
  }
  return groups;
}

}  // namespace tenon::ir::fusion

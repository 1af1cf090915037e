// Lifetimes as intervals of the order; the peak is the largest sum of those that overlap.
#include "ir/fusion/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "ir/graph/check.h"

namespace tenon::ir::fusion {
namespace {

class Lifetimes {
 public:
  explicit Lifetimes(std::size_t steps) : change_(steps + 1) {}

  // Alive while the steps from `born` to `dies` run. What one step makes and reads itself is never in memory.
  void add(std::size_t born, std::size_t dies, double bytes) {
    if (dies <= born) return;
    change_[born] += bytes;
    change_[dies + 1] -= bytes;
  }

  double peak() const {
    double alive = 0, most = 0;
    for (double change : change_) most = std::max(most, alive += change);
    return most;
  }

 private:
  std::vector<double> change_;
};

// `position(cluster)`: its step.
template <typename Position>
double peak(const Context& context, const Partition& partition, std::size_t steps, const Position& position) {
  Lifetimes lifetimes(steps);
  for (std::size_t value = 0; value < partition.maker.size(); ++value) {
    if (partition.maker[value] < 0 || context.graph_output[value]) continue;
    std::size_t last = 0;
    for (int reader : partition.readers[value]) last = std::max(last, position(reader));
    lifetimes.add(position(partition.maker[value]), last, context.bytes[value]);
  }
  return lifetimes.peak();
}

// Who makes and who reads each value.
struct Flow {
  std::vector<int> maker;
  std::vector<std::vector<std::size_t>> readers;
};

Flow flow_of(const Context& context, const std::vector<Group>& groups) {
  Flow flow{std::vector<int>(context.graph.values.size(), -1), {}};
  flow.readers.resize(context.graph.values.size());
  for (std::size_t i = 0; i < groups.size(); ++i) {
    for (ValueId value : groups[i].outputs) flow.maker[static_cast<std::size_t>(value)] = static_cast<int>(i);
    for (ValueId value : groups[i].inputs) flow.readers[static_cast<std::size_t>(value)].push_back(i);
  }
  return flow;
}

}  // namespace

double peak_live_bytes(const Context& context, const Partition& partition, const std::vector<int>& order) {
  std::vector<std::size_t> positions(partition.clusters.size());
  for (std::size_t i = 0; i < order.size(); ++i) positions[static_cast<std::size_t>(order[i])] = i;
  return peak(context, partition, order.size(),
              [&](int cluster) { return positions[static_cast<std::size_t>(cluster)]; });
}

double peak_live_bytes_after(const Context& context, const Partition& partition, const Order& order, int first,
                             int second) {
  Order trial = order;
  trial.merge(first, second);
  return peak(context, partition, trial.size(), [&](int cluster) {
    return static_cast<std::size_t>(trial.position(cluster == second ? first : cluster));
  });
}

double peak_live_bytes(const Context& context, const std::vector<Group>& groups, const std::vector<int>& steps) {
  const Flow flow = flow_of(context, groups);
  Lifetimes lifetimes(groups.size());
  for (std::size_t value = 0; value < flow.maker.size(); ++value) {
    if (flow.maker[value] < 0 || context.graph_output[value]) continue;
    int last = 0;
    for (std::size_t reader : flow.readers[value]) last = std::max(last, steps[reader]);
    lifetimes.add(static_cast<std::size_t>(steps[static_cast<std::size_t>(flow.maker[value])]),
                  static_cast<std::size_t>(last), context.bytes[value]);
  }
  return lifetimes.peak();
}

std::vector<std::size_t> frugal_order(const Context& context, const std::vector<Group>& groups,
                                      const std::vector<std::size_t>& any_order) {
  const Flow flow = flow_of(context, groups);
  const auto at = [](ValueId value) { return static_cast<std::size_t>(value); };
  std::vector<std::size_t> waiting(groups.size()), left(context.graph.values.size()), order, ready;
  for (std::size_t value = 0; value < left.size(); ++value) left[value] = flow.readers[value].size();
  for (std::size_t i = 0; i < groups.size(); ++i) {
    for (ValueId input : groups[i].inputs) waiting[i] += flow.maker[at(input)] >= 0;
    if (waiting[i] == 0) ready.push_back(i);
  }
  std::vector<int> height(groups.size());  // kernels in a row that wait for it
  for (auto group = any_order.rbegin(); group != any_order.rend(); ++group)
    for (ValueId output : groups[*group].outputs)
      for (std::size_t reader : flow.readers[at(output)]) height[*group] = std::max(height[*group], height[reader] + 1);
  const auto added = [&](std::size_t group) {
    double bytes = 0;
    for (ValueId output : groups[group].outputs)
      bytes += context.graph_output[at(output)] ? 0 : context.bytes[at(output)];
    for (ValueId input : groups[group].inputs)
      if (flow.maker[at(input)] >= 0 && !context.graph_output[at(input)] && left[at(input)] == 1)
        bytes -= context.bytes[at(input)];
    return bytes;
  };
  while (!ready.empty()) {
    const auto next = std::min_element(ready.begin(), ready.end(), [&](std::size_t a, std::size_t b) {
      return std::tuple(added(a), -height[a], groups[a].nodes.back()) <
             std::tuple(added(b), -height[b], groups[b].nodes.back());
    });
    const std::size_t group = *next;
    ready.erase(next);
    order.push_back(group);
    for (ValueId input : groups[group].inputs) --left[at(input)];
    for (ValueId output : groups[group].outputs)
      for (std::size_t reader : flow.readers[at(output)])
        if (--waiting[reader] == 0) ready.push_back(reader);
  }
  TENON_CHECK(order.size() == groups.size(), "groups of a plan depend on each other in a circle");
  return order;
}

std::string bytes_text(double bytes) {
  if (bytes < 10000) return fmt::format("{:.0f} bytes", bytes);
  if (bytes < 10000000) return fmt::format("{:.1f} KB", bytes * 1e-3);
  return fmt::format("{:.1f} MB", bytes * 1e-6);
}

}  // namespace tenon::ir::fusion

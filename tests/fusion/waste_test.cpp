// Plans are checked for waste: what was refused is asked once more. The numbers of a reason are compared, its two sides
// must differ, and where the axes of two kernels are said not to fit, no assignment of the one's axes to the other's
// may make a kernel that its class allows and the cost model likes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <regex>
#include <sstream>

#include "ir/fusion/legality.h"
#include "ir/passes/passes.h"
#include "ir/text/text.h"
#include "tests/fusion/oracle.h"
#include "tests/harness/random_graph.h"

namespace tenon::ir {
namespace {

using namespace fusion;

std::vector<std::pair<std::string, Graph>> graphs() {
  std::vector<std::pair<std::string, Graph>> all;
  for (const char* folder : {"tests/fusion", "bench/cases"})
    for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(TENON_SOURCE_DIR) / folder)) {
      if (entry.path().extension() != ".tn") continue;
      std::ifstream file(entry.path());
      std::stringstream text;
      text << file.rdbuf();
      all.emplace_back(entry.path().stem().string(), parse(text.str()));
    }
  for (std::uint64_t seed = 0; seed < 300; ++seed)
    all.emplace_back(fmt::format("random {}", seed), test::random_case(seed).graph);
  return all;
}

// What a reason compares: a pattern of two numbers or two texts, and how they must lie to each other.
struct Sides {
  const char* pattern;
  bool (*holds)(const std::string& a, const std::string& b);
};

bool differ(const std::string& a, const std::string& b) { return a != b; }
bool exceeds(const std::string& a, const std::string& b) { return std::stod(a) > std::stod(b); }
bool is_no_less(const std::string& a, const std::string& b) { return std::stod(a) >= std::stod(b); }
bool is_no_more(const std::string& a, const std::string& b) { return std::stod(a) <= std::stod(b); }

const Sides kSides[] = {
    {"one runs over (.*), the other over (.*)", differ},
    {"one reduces (.*), the other (.*)", differ},
    {"the points (.*) of one do not run along the axes (.*) of the other", differ},
    {"would (?:compute|take) ([0-9]+) (?:nodes|pointers), the limit is ([0-9]+)", exceeds},
    {"again at ([0-9]+) other places[^;]*; the limit is ([0-9]+)", exceeds},
    {"an expression of ([0-9]+) terms, .*; the limit is ([0-9]+)", exceeds},
    {"([0-9.e+]+) instructions an element .*; the limit is ([0-9]+)", exceeds},
    {"predicted to take ([0-9.]+) us, apart ([0-9.]+) us", is_no_less},
    {"together they would take ([0-9.]+) us, apart ([0-9.]+) us", is_no_more},
};

TEST(Waste, ReasonsHold) {
  int compared = 0;
  for (const auto& [name, graph] : graphs())
    for (const Refusal& refusal : make_plan(graph).refusals)
      for (const Sides& sides : kSides) {
        std::smatch match;
        if (!std::regex_search(refusal.reason, match, std::regex(sides.pattern))) continue;
        ++compared;
        EXPECT_TRUE(sides.holds(match[1], match[2]))
            << name << ": [" << name_of(refusal.rule) << "] " << refusal.reason;
      }
  EXPECT_GT(compared, 50);
}

// Calls f with each assignment of the axes of `guest` to those of `host` that have the same extent.
void for_each_assignment(const Domain& guest, const Domain& host, const std::function<void(const AxisMap&)>& f) {
  AxisMap axes(static_cast<std::size_t>(guest.rank()));
  const std::function<void(int, std::uint32_t)> assign = [&](int axis, std::uint32_t taken) {
    if (axis == guest.rank()) return f(axes);
    const Dim& extent = guest.extents[static_cast<std::size_t>(axis)];
    auto& image = axes[static_cast<std::size_t>(axis)];
    if (extent.is(1)) {
      image = Layout{};
      return assign(axis + 1, taken);
    }
    for (int to = 0; to < host.rank(); ++to) {
      if ((taken >> to & 1U) != 0 || host.extents[static_cast<std::size_t>(to)] != extent) continue;
      image = host.axes(to, to + 1);
      assign(axis + 1, taken | 1U << to);
    }
  };
  assign(0, 0);
}

bool about_axes(Rule rule) {
  return rule == Rule::different_domain || rule == Rule::other_layout || rule == Rule::different_reduced_axes;
}

bool reads_plainly(const Cluster& producer, const Cluster& consumer) {
  return std::all_of(consumer.reads.begin(), consumer.reads.end(), [&](const Read& read) {
    return producer.find_result(read.value) == nullptr || (read.layouts.size() == 1 && is_plain(read.layouts[0]));
  });
}

// Whether a value that each reads at one place would be read at several, as with a transposed operand.
bool reads_across(const Cluster& a, const Cluster& b, const Cluster& merged) {
  const auto places = [](const Cluster& cluster, ValueId value) {
    const Read* read = cluster.find_read(value);
    return read == nullptr ? std::size_t{0} : read->layouts.size();
  };
  return std::any_of(merged.reads.begin(), merged.reads.end(), [&](const Read& read) {
    return read.layouts.size() > std::max(places(a, read.value), places(b, read.value));
  });
}

double us_of(const Context& context, const Cluster& cluster) {
  return time_of(context, cluster, bytes_of(context, cluster));
}

TEST(Waste, NoAssignmentOfAxesWasMissed) {
  int looked = 0;
  for (const auto& [name, original] : graphs()) {
    const Graph graph = run_passes(original);
    PlanOptions options;
    options.find_attention = false;
    const Context context(graph, options);
    const Partition partition = test::planned_partition(context);
    Order order(partition.order, partition.clusters.size());
    for (int consumer : partition.order)
      for (const Read& read : partition.at(consumer).reads) {
        const int producer = partition.maker[static_cast<std::size_t>(read.value)];
        if (producer < 0 || partition.at(producer).kernel_class == KernelClass::map) continue;
        const Cluster &a = partition.at(producer), &b = partition.at(consumer);
        const NeededElsewhere elsewhere = needed_elsewhere(context, partition, producer, consumer);
        Cluster merged;
        const Verdict verdict = fuse_consumer(context, a, b, elsewhere, merged);
        if (verdict.legal() || !about_axes(verdict.rule) || !reads_plainly(a, b) || a.domain.rank() > 6) continue;
        if (context.points(a.domain) == 0) continue;  // an empty one costs nothing
        if (!order.convex(producer, consumer, cluster_successors(partition))) continue;
        ++looked;
        for_each_assignment(b.domain, a.domain, [&](const AxisMap& axes) {
          Cluster other;
          if (!extend_along(context, a, b, axes, elsewhere, other).legal() || reads_across(a, b, other)) return;
          EXPECT_GE(us_of(context, other), us_of(context, a) + us_of(context, b) - 0.01)
              << name << ": [" << name_of(verdict.rule) << "] " << verdict.reason << "\n"
              << print(graph);
        });
      }
  }
  std::cout << looked << " refusals looked at\n";
  EXPECT_GT(looked, 30);
}

}  // namespace
}  // namespace tenon::ir

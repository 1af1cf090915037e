// The sweep. A unit is a pack, or a group that others may still join; places are numbers that grow along the order, so
// that a pack moves by taking a new one. What a group needs is a matter of its makers' places alone: no path is
// searched.
#include "ir/fusion/packing.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <numeric>

#include "ir/fusion/memory.h"
#include "ir/fusion/roofline.h"
#include "ir/fusion/updates.h"

namespace tenon::ir::fusion {
namespace {

constexpr double kLongest = 2;  // launches that a member takes beside its own: a longer one hides the next
// The same of a matrix that streams, which begins slowly and ends with few blocks, and of a product of warpgroups,
// whose last tiles leave multiprocessors idle (queries, keys and values of 512 tokens on an H100: 59 us apart, 47 in a
// pack).
constexpr double kLongestProduct = 20;
constexpr std::int64_t kFewRows = 24;   // that it streams past where warpgroups could multiply them
constexpr std::size_t kOpenUnits = 16;  // that a group may join
constexpr std::int64_t kDistance = 64;  // places between it and them: what lies between lives longer
constexpr int kMostOperands = 200;      // of a pack
constexpr double kStripBytes = 512;     // of each row that a block reads when its threads lie across the rows

double row_length(const Context& context, const Cluster& cluster) {
  return context.points(cluster.domain, cluster.domain.kept, cluster.domain.rank());
}

// Bytes that one block reads where nobody shares its rows: a row, or a strip of rows that lie side by side.
double block_bytes(const Context& context, const Cluster& cluster) {
  const Domain& domain = cluster.domain;
  const std::uint32_t reduced = axis_bits(domain, domain.kept, domain.rank());
  double bytes = 0;
  for (const Read& read : cluster.reads)
    for (const Layout& layout : read.layouts) {
      if ((depends_of(layout) & reduced) == 0 || layout.empty()) continue;
      const auto size = static_cast<double>(size_of(context.graph.type(read.value).dtype));
      const bool across = layout.back().axis >= 0 && layout.back().axis < domain.kept;
      const double strip = std::min(kStripBytes, size * context.points(domain, 0, domain.kept));
      bytes += row_length(context, cluster) * (across ? strip : size);
    }
  return bytes;
}

// Whether an operand lies across the innermost axis, so that it may pass through a tile in shared memory.
bool lies_across(const Context& context, const Cluster& cluster) {
  const Domain& domain = cluster.domain;
  const int inner = domain.rank() - 1;
  const auto long_enough = [&](int axis) {
    return context.extent(domain.extents[static_cast<std::size_t>(axis)]) >= kTransposedExtent;
  };
  const auto across = [&](const Layout& layout) {
    if (layout.empty() || layout.back().axis < 0 || layout.back().axis == inner) return false;
    return (depends_of(layout) >> inner & 1U) != 0 && long_enough(inner) && long_enough(layout.back().axis);
  };
  for (const Read& read : cluster.reads)
    if (std::any_of(read.layouts.begin(), read.layouts.end(), across)) return true;
  return std::any_of(cluster.results.begin(), cluster.results.end(),
                     [&](const Result& result) { return across(result.layout); });
}

// What a group can be packed with. The threads of a product need far more registers than those of a map.
enum class Packed : std::uint8_t { never, with_elements, with_products };

Packed packed(const Group& group) {
  switch (group.kernel_class) {
    case KernelClass::map:
    case KernelClass::reduce: return Packed::with_elements;
    case KernelClass::contract: return Packed::with_products;
    case KernelClass::attend: return Packed::never;
  }
  return Packed::never;
}

Verdict takes_long(double own, double most) {
  if (own <= most) return {};
  return {Rule::pack_long,
          fmt::format("takes {:.1f} us beside its launch, a member of a pack at most {:.1f} us", own, most)};
}

// A product, as codegen/schedule/contract.cpp will choose it.
Verdict alone_as_product(const Context& context, const Group& group, const Cluster& cluster) {
  const CostModel& cost = context.options.cost;
  const Domain& domain = cluster.domain;
  const auto few_along = [&](int axis) {  // a product with a vector has one axis, or none
    return axis < 0 || context.extent(domain.extents[static_cast<std::size_t>(axis)]) <= kFewRows;
  };
  const bool few = few_along(domain.kept - 2) || few_along(domain.kept - 1);
  const double longest = few || cost.fed_elements_ns > 0 ? kLongestProduct : kLongest;
  return takes_long(group.estimate.us - cost.launch_us, longest * cost.launch_us);
}

// Why a group that might be packed is launched by itself; the reason follows "kernel 3".
Verdict alone(const Context& context, const Group& group, const Cluster& cluster) {
  if (group.kernel_class == KernelClass::contract) return alone_as_product(context, group, cluster);
  const CostModel& cost = context.options.cost;
  if (const Verdict verdict = takes_long(group.estimate.us - cost.launch_us, kLongest * cost.launch_us);
      !verdict.legal())
    return verdict;
  if (group.kernel_class == KernelClass::map) {
    if (!lies_across(context, cluster)) return {};
    return {Rule::pack_tile, "reads or writes across its innermost axis, through tiles in shared memory"};
  }
  if (!group.outer.empty()) return {Rule::pack_split, "reduces its kept axes too, in two steps"};
  const double block_us = bytes_us(block_bytes(context, cluster), cost.block_gb_s);
  if (block_us <= cost.launch_us) return {};
  return {Rule::pack_split, fmt::format("has rows that would take a block {:.1f} us: several share each", block_us)};
}

struct Unit {
  std::vector<std::size_t> members;
  std::int64_t place = 0;
  int operands = 0;
  bool read = false;  // by what is placed behind it
};

// Two groups that follow each other and are not one launch, and which of them is why.
struct Apart {
  std::size_t first = 0, second = 0, culprit = 0;
  Verdict verdict;
};

class Sweep {
 public:
  Sweep(const Context& context, const std::vector<Group>& groups, const std::vector<const Cluster*>& clusters)
      : context_(context),
        groups_(groups),
        readers_(readers_of_updated(context.graph, groups)),
        maker_(context.graph.values.size(), -1),
        unit_of_(groups.size()) {
    for (std::size_t i = 0; i < groups.size(); ++i) {
      for (ValueId output : groups[i].outputs) maker_[static_cast<std::size_t>(output)] = static_cast<int>(i);
      alone_.push_back(packed(groups[i]) != Packed::never ? alone(context, groups[i], *clusters[i]) : Verdict{});
    }
  }

  Packing run() {
    for (std::size_t group = 0; group < groups_.size(); ++group) put(group);
    std::vector<std::size_t> by_place(units_.size());
    std::iota(by_place.begin(), by_place.end(), 0);
    std::sort(by_place.begin(), by_place.end(),
              [&](std::size_t a, std::size_t b) { return units_[a].place < units_[b].place; });
    Packing packing;
    std::vector<int> position(groups_.size());
    for (std::size_t unit : by_place) {
      std::vector<int> pack;
      for (std::size_t member : units_[unit].members) {
        position[member] = static_cast<int>(packing.order.size());
        pack.push_back(position[member]);
        packing.order.push_back(member);
      }
      if (pack.size() > 1) packing.packs.push_back(std::move(pack));
    }
    for (const Apart& apart : apart_) packing.refusals.push_back(refusal(apart, position));
    return packing;
  }

 private:
  // The last place at which something that `group` reads is made, or the old content of what it updates is read.
  std::int64_t last_maker(std::size_t group) {
    std::int64_t last = -1;
    for (ValueId input : groups_[group].inputs)
      if (const int maker = maker_[static_cast<std::size_t>(input)]; maker >= 0) {
        Unit& unit = units_[unit_of_[static_cast<std::size_t>(maker)]];
        unit.read = true;
        last = std::max(last, unit.place);
      }
    for (const std::size_t reader : readers_[group])  // of what the group updates
      if (reader < group) {
        Unit& unit = units_[unit_of_[reader]];
        unit.read = true;
        last = std::max(last, unit.place);
      }
    return last;
  }

  int operands(std::size_t group) const {
    return static_cast<int>(groups_[group].inputs.size() + groups_[group].outputs.size());
  }

  bool fits(const Unit& unit, std::size_t group) const {
    return packed(groups_[unit.members.front()]) == packed(groups_[group]) &&
           static_cast<int>(unit.members.size()) < context_.options.max_packed &&
           unit.operands + operands(group) <= kMostOperands;
  }

  // Everything that the group reads is there before the unit, or nothing reads yet what the unit makes.
  static bool can_meet(const Unit& unit, std::int64_t last_maker) { return last_maker < unit.place || !unit.read; }

  void put(std::size_t group) {
    const std::int64_t last = last_maker(group);
    const bool candidate = packed(groups_[group]) != Packed::never;
    if (candidate && alone_[group].legal()) {
      while (!open_.empty() && units_[open_.front()].place < next_ - kDistance) open_.pop_front();
      for (std::size_t unit : open_)
        if (fits(units_[unit], group) && can_meet(units_[unit], last)) return join(unit, group, last);
    }
    if (candidate) say_why(group, last);
    unit_of_[group] = units_.size();
    units_.push_back({{group}, next_++, operands(group), false});
    if (candidate) latest(group) = static_cast<int>(group);
    if (!candidate || !alone_[group].legal()) return;
    open_.push_back(units_.size() - 1);
    if (open_.size() > kOpenUnits) open_.pop_front();
  }

  void join(std::size_t number, std::size_t group, std::int64_t last) {
    Unit& unit = units_[number];
    if (last >= unit.place) unit.place = next_++;
    unit.members.push_back(group);
    unit.operands += operands(group);
    unit_of_[group] = number;
    latest(group) = static_cast<int>(group);
  }

  // The last group before `group` that might be packed with it.
  int& latest(std::size_t group) { return latest_[static_cast<std::size_t>(packed(groups_[group]))]; }

  // One line for each group at most: about the one before it. What reads it directly is explained elsewhere.
  void say_why(std::size_t group, std::int64_t last) {
    if (latest(group) < 0) return;
    const auto other = static_cast<std::size_t>(latest(group));
    const auto& outputs = groups_[other].outputs;
    const bool reads = std::any_of(groups_[group].inputs.begin(), groups_[group].inputs.end(), [&](ValueId input) {
      return std::find(outputs.begin(), outputs.end(), input) != outputs.end();
    });
    if (reads) return;
    const bool meet = can_meet(units_[unit_of_[other]], last);
    const bool one = alone_[other].legal(), two = alone_[group].legal();
    if (one && two && !meet)
      apart_.push_back(
          {other, group, group, {Rule::pack_order, "reads what is made only after the results of the other are read"}});
    if (one == two || !meet) return;  // neither is small: nobody expects them to be packed
    const std::size_t culprit = one ? group : other;
    apart_.push_back({other, group, culprit, alone_[culprit]});
  }

  static Refusal refusal(const Apart& apart, const std::vector<int>& position) {
    Refusal refusal;
    refusal.producer = position[apart.first];
    refusal.consumer = position[apart.second];
    refusal.launch = true;
    refusal.rule = apart.verdict.rule;
    refusal.reason = fmt::format("kernel {} {}", position[apart.culprit], apart.verdict.reason);
    return refusal;
  }

  const Context& context_;
  const std::vector<Group>& groups_;
  const std::vector<std::vector<std::size_t>> readers_;  // of what each group updates
  std::vector<int> maker_;                               // by value
  std::vector<Verdict> alone_;
  std::vector<Unit> units_;
  std::vector<std::size_t> unit_of_;  // by group
  std::deque<std::size_t> open_;
  std::int64_t next_ = 0;
  std::array<int, 3> latest_{-1, -1, -1};  // by Packed
  std::vector<Apart> apart_;
};

double peak_of(const Context& context, const std::vector<Group>& groups, const Packing& packing) {
  std::vector<int> steps(groups.size());
  const std::vector<int> at = launch_steps(groups.size(), packing.packs);
  for (std::size_t i = 0; i < packing.order.size(); ++i) steps[packing.order[i]] = at[i];
  return peak_live_bytes(context, groups, steps);
}

}  // namespace

Packing pack_groups(const Context& context, const std::vector<Group>& groups,
                    const std::vector<const Cluster*>& clusters) {
  Packing none;
  none.order.resize(groups.size());
  std::iota(none.order.begin(), none.order.end(), 0);
  if (!context.options.fuse || context.options.max_packed < 2) return none;
  Packing packing = Sweep(context, groups, clusters).run();
  const double limit = context.options.max_live_bytes;
  return limit > 0 && peak_of(context, groups, packing) > limit ? none : packing;
}

}  // namespace tenon::ir::fusion

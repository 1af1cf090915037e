// The reasons of a finished partition: each pair of clusters that meet in memory is asked once more, and what stopped
// it is written down with its numbers.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "ir/fusion/feeds.h"
#include "ir/fusion/memory.h"

namespace tenon::ir::fusion {
namespace {

double time_of(const Context& context, const Cluster& cluster) {
  return time_of(context, cluster, bytes_of(context, cluster));
}

// A legal pair that was not merged: it saves nothing, another kernel stands between the two, or memory is short.
Verdict unmerged(const Context& context, const Partition& partition, Order& order, std::pair<int, int> pair,
                 const Cluster& merged) {
  const Cluster& a = partition.at(pair.first);
  const Cluster& b = partition.at(pair.second);
  if (!order.convex(pair.first, pair.second, cluster_successors(partition)))
    return {Rule::not_convex, "a third kernel needs a result of the first and makes an operand of the second"};
  const double apart = time_of(context, a) + time_of(context, b), together = time_of(context, merged);
  const double limit = context.options.max_live_bytes;
  if (together < apart && limit > 0)
    if (const double peak = peak_live_bytes_after(context, partition, order, pair.first, pair.second); peak > limit)
      return {Rule::live_memory,
              fmt::format("together they would keep {} of intermediates alive at once, the limit is {}",
                          bytes_text(peak), bytes_text(limit))};
  if (together < apart)
    return {Rule::not_tried,
            fmt::format("together they would take {:.1f} us, apart {:.1f} us, but the planner looks at {} "
                        "readers and {} siblings of each at most",
                        together, apart, context.options.max_readers, context.options.max_siblings)};
  if (feed_us(context, merged) > feed_us(context, b))
    return {Rule::prologue_fed,
            fmt::format("together they are predicted to take {:.1f} us, apart {:.1f} us: threads would "
                        "compute the operand again for every tile, and boxes bring it where it is stored",
                        together, apart)};
  std::string why = "work would be repeated";
  if (needs_rows_again(merged) && !needs_rows_again(a) && !needs_rows_again(b))
    why = fmt::format("{:.0f} rows would keep only as many blocks busy",
                      context.points(merged.domain, 0, merged.domain.kept));
  return {Rule::no_gain,
          fmt::format("together they are predicted to take {:.1f} us, apart {:.1f} us: {}", together, apart, why)};
}

Refusal refusal_of(const Verdict& verdict, ValueId value, int producer, int consumer, double bytes) {
  Refusal refusal;
  refusal.value = value;
  refusal.producer = producer;
  refusal.consumer = consumer;
  refusal.rule = verdict.rule;
  refusal.reason = verdict.reason;
  refusal.bytes = static_cast<std::int64_t>(bytes);
  return refusal;
}

// The values that each pair of clusters passes on, by the consumer's reads.
using Pairs = std::map<std::pair<int, int>, std::vector<ValueId>>;

Pairs passing_pairs(const Partition& partition) {
  Pairs pairs;
  for (int cluster : partition.order)
    for (const Read& read : partition.at(cluster).reads)
      if (const int maker = partition.maker[static_cast<std::size_t>(read.value)]; maker >= 0)
        pairs[{maker, cluster}].push_back(read.value);
  return pairs;
}

Pairs sibling_pairs(const Partition& partition, const Pairs& passing, int most) {
  Pairs pairs;
  for (std::size_t value = 0; value < partition.readers.size(); ++value) {
    std::vector<int> readers = partition.readers[value];
    std::sort(readers.begin(), readers.end());
    readers.resize(std::min(readers.size(), static_cast<std::size_t>(most)));
    for (std::size_t i = 0; i < readers.size(); ++i)
      for (std::size_t j = i + 1; j < readers.size(); ++j)
        if (passing.count({readers[i], readers[j]}) == 0 && passing.count({readers[j], readers[i]}) == 0)
          pairs[{readers[i], readers[j]}].push_back(static_cast<ValueId>(value));
  }
  return pairs;
}

}  // namespace

std::vector<Refusal> explain_cuts(const Context& context, const Partition& partition) {
  std::vector<Refusal> refusals;
  const auto largest = [&](const std::vector<ValueId>& values) {
    return *std::max_element(values.begin(), values.end(), [&](ValueId a, ValueId b) {
      return context.bytes[static_cast<std::size_t>(a)] < context.bytes[static_cast<std::size_t>(b)];
    });
  };
  Order order(partition.order, partition.clusters.size());
  const Pairs passing = passing_pairs(partition);
  for (const auto& [pair, values] : passing) {
    const Cluster& a = partition.at(pair.first);
    const Cluster& b = partition.at(pair.second);
    const NeededElsewhere elsewhere = needed_elsewhere(context, partition, pair.first, pair.second);
    Cluster merged;
    Verdict verdict = fuse_consumer(context, a, b, elsewhere, merged);
    if (verdict.legal()) verdict = unmerged(context, partition, order, pair, merged);
    double bytes = 0;
    for (ValueId value : values) bytes += context.bytes[static_cast<std::size_t>(value)] * (elsewhere(value) ? 1 : 2);
    refusals.push_back(refusal_of(verdict, largest(values), pair.first, pair.second, bytes));
  }
  if (!context.options.siblings) return refusals;
  for (const auto& [pair, values] : sibling_pairs(partition, passing, context.options.max_siblings)) {
    const Cluster& a = partition.at(pair.first);
    const Cluster& b = partition.at(pair.second);
    Cluster merged;
    Verdict verdict = fuse_siblings(context, a, b, merged);
    if (verdict.rule == Rule::different_domain || verdict.rule == Rule::other_layout) continue;  // never alike
    if (verdict.legal()) verdict = unmerged(context, partition, order, pair, merged);
    double bytes = 0;
    for (ValueId value : values) bytes += context.bytes[static_cast<std::size_t>(value)];
    refusals.push_back(refusal_of(verdict, -1, pair.first, pair.second, bytes));
  }
  return refusals;
}

}  // namespace tenon::ir::fusion

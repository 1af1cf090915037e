// A map cluster computed inside its consumer, at every element that the consumer reads: loops disappear, work may be
// done again. What an operand of a contraction may cost is limited, since each tile that loads it computes it again.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "ir/fusion/feeds.h"
#include "ir/fusion/legality.h"

namespace tenon::ir::fusion {
namespace {

// An operand's prologue is computed again for each tile that loads it: one instruction an element, a few where it reads
// less than the operand itself would take (dequantisation).
constexpr double kPrologueSlots = 1;
constexpr double kNarrowingSlots = 4;
constexpr double kNarrowingBytes = 0.75;  // read for each byte that the operand itself would have
constexpr double kPrologueBytes = 1.1;

Verdict check_prologue(const Context& context, const Cluster& producer, ValueId value, bool needed_elsewhere) {
  const double elements = std::max(1.0, context.points(producer.domain));
  const NodeId maker = context.graph.value(value).producer;
  const Op op = context.graph.node(maker).op;
  if ((op == Op::pad || op == Op::concat || op == Op::transpose) && !context.cloned[static_cast<std::size_t>(maker)])
    return no(Rule::prologue_rows,
              fmt::format("{} is stored as boxes bring it: {}", name(context, value),
                          op == Op::pad         ? "its rows begin at 16-byte boundaries"
                          : op == Op::transpose ? "it lies along the depth"
                                                : "the parts of its elements lie along the depth"));
  if (needed_elsewhere)
    return no(Rule::prologue_shared,
              fmt::format("{} is an operand of a contraction and is needed elsewhere too", name(context, value)));
  double bytes = 0;
  for (const Read& read : producer.reads) bytes += bytes_of(context, producer, read);
  const double own = context.bytes[static_cast<std::size_t>(value)];
  const double limit = bytes <= kNarrowingBytes * own ? kNarrowingSlots : kPrologueSlots;
  if (producer.slots > limit * elements)
    return no(Rule::prologue_cost,
              fmt::format(
                  "{:.3g} instructions an element would be repeated for every tile that loads {}; the limit is {:.0f}",
                  producer.slots / elements, name(context, value), limit));
  if (bytes > kPrologueBytes * own)
    return no(Rule::prologue_bytes, fmt::format("every tile would read {:.0f} bytes in place of the {:.0f} bytes of {}",
                                                bytes, own, name(context, value)));
  return {};
}

// Whether an operand of a contraction varies along its result's columns: the second.
bool is_of_columns(const Cluster& cluster, const Layout& layout) {
  return (depends_of(layout) >> (cluster.domain.kept - 1) & 1U) != 0;
}

// A coordinate along `axis` that `layout` does not give as digits of its own.
Digit elsewhere_on(const Layout& layout, const Domain& domain, int axis) {
  return moved(layout, domain.extents[static_cast<std::size_t>(axis)], axis);
}

}  // namespace

Verdict absorb(const Context& context, const Cluster& producer, const Cluster& consumer,
               const NeededElsewhere& elsewhere, Cluster& merged) {
  merged.kernel_class = consumer.kernel_class;
  merged.domain = consumer.domain;
  merged.results = consumer.results;
  merged.places = consumer.places;
  merged.attention = consumer.attention;
  merged.rounds = consumer.rounds;
  merged.sweep_of = consumer.sweep_of;
  merged.chained = consumer.chained;
  merged.persistent = consumer.persistent;
  merged.paired = consumer.paired;
  merged.boxed = consumer.boxed;
  merged.computed = consumer.computed;
  merged.shares = consumer.shares;
  merged.slots = consumer.slots;
  merged.mask_slots = consumer.mask_slots;
  merged.flops = consumer.flops;
  merged.tensor_flops = consumer.tensor_flops;
  merged.lane_flops = consumer.lane_flops;
  merged.random = producer.random || consumer.random;
  merged.node_count = producer.node_count + consumer.node_count;
  merged.depth = producer.depth + consumer.depth;
  std::vector<AxisMap> maps;
  for (const Read& read : consumer.reads) {
    const Result* made = producer.find_result(read.value);
    if (made == nullptr) {
      merged.reads.push_back(read);
      continue;
    }
    for (const Layout& layout : read.layouts) {
      if (is_gathered(layout))
        return no(Rule::gathered_table,
                  fmt::format("{} is indexed by other values, so all of it must be in memory first",
                              name(context, read.value)));
      if (is_operand(consumer, layout)) {
        if (Verdict verdict = check_prologue(context, producer, read.value, elsewhere(read.value)); !verdict.legal())
          return verdict;
        if (!is_of_columns(consumer, layout)) merged.paired = -1;  // what is computed here is no operand in memory
        if (merged.kernel_class == KernelClass::contract) compute_operand(merged, layout);
      }
      AxisMap map = align(layout, made->layout, producer.domain);
      for (int axis = 0; axis < producer.domain.rank(); ++axis)  // what does not map is computed at other elements
        if (!map[static_cast<std::size_t>(axis)])
          map[static_cast<std::size_t>(axis)] = Layout{elsewhere_on(layout, producer.domain, axis)};
      if (std::find(maps.begin(), maps.end(), map) != maps.end()) continue;
      const double times = evaluations(context, consumer, layout);
      merged.slots += slots_inside(context, producer, consumer) * times;
      merged.mask_slots += producer.mask_slots / std::max(1.0, context.points(producer.domain)) * times;
      maps.push_back(std::move(map));
    }
  }
  // A result may order its axes so that they do not run along the consumer's where both cut a row elsewhere.
  const auto store = std::find_if(maps.begin(), maps.end(), [&](const AxisMap& map) {
    const Rebase rebase(producer.domain, consumer.domain, map);
    return storable(consumer, image_of(map)) &&
           std::all_of(producer.results.begin(), producer.results.end(), [&](const Result& result) {
             return !elsewhere(result.value) || storable(consumer, rebase(result.layout));
           });
  });
  for (const Result& result : producer.results) {
    if (!elsewhere(result.value)) continue;
    if (store == maps.end()) return different_domain(producer, consumer);
    add_result(merged.results, {result.value, Rebase(producer.domain, consumer.domain, *store)(result.layout), 0});
  }
  merged.repeats = consumer.repeats + static_cast<int>(maps.size()) * (producer.repeats + producer.node_count) -
                   (maps.empty() ? 0 : producer.node_count);
  for (const AxisMap& map : maps) {
    const Rebase rebase(producer.domain, consumer.domain, map);
    for (const Read& read : producer.reads)
      for (const Layout& layout : read.layouts) add_read(merged.reads, read, rebase(layout));
    if (Verdict verdict = check_places(context, producer, consumer, merged); !verdict.legal()) return verdict;
  }
  return check_outer_reads(context, merged);
}

}  // namespace tenon::ir::fusion

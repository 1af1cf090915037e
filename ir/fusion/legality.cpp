// Whether two clusters can be one kernel. Two questions only: do the axes of one map onto the axes of the other, and
// does the kernel class allow what would then be inside. Nothing is built to find out.
//
// What holds afterwards (plan.h, Group): reductions of one cluster combine the same reduced axes in the same order and
// lie on all kept axes, but for outer ones, which combine the kept axes and are known to no one inside before the end;
// a contraction's result is needed at its own point only; stored results cover the domain.
#include "ir/fusion/legality.h"

#include <fmt/format.h>

#include <algorithm>

namespace tenon::ir::fusion {

std::string name(const Context& context, ValueId value) {
  const std::string& given = context.graph.value(value).name;
  return given.empty() ? fmt::format("the result of {}", name_of(context.graph.producer(value).op)) : given;
}

std::string extents(const Domain& domain, int first, int last) {
  return str(Shape(domain.extents.begin() + first, domain.extents.begin() + last));
}

std::string describe(const Domain& domain) {
  if (domain.kept == domain.rank()) return extents(domain, 0, domain.kept);
  return fmt::format("{} x {}", extents(domain, 0, domain.kept), extents(domain, domain.kept, domain.rank()));
}

namespace {

int longest_coordinate(const Cluster& cluster) {
  int longest = 0;
  for (const Read& read : cluster.reads)
    for (const Layout& layout : read.layouts) longest = std::max(longest, terms_of(layout));
  return longest;
}

}  // namespace

Verdict different_domain(const Cluster& a, const Cluster& b) {
  const std::string one = describe(a.domain), other = describe(b.domain);
  return no(Rule::different_domain,
            one == other ? fmt::format("both run over {}, but a point of one needs other points of the other", one)
                         : fmt::format("one runs over {}, the other over {}", one, other));
}

int repeats_of(const Cluster& cluster) {
  auto places = cluster.repeats;
  for (const Read& read : cluster.reads) places += static_cast<int>(read.layouts.size()) - 1;
  return places;
}

Verdict check_places(const Context& context, const Cluster& a, const Cluster& b, const Cluster& merged) {
  constexpr int kBackstop = 1024;  // where nobody wants a limit, planning shall end all the same
  const int limit = context.options.max_places > 0 ? context.options.max_places : kBackstop;
  const int places = repeats_of(merged);
  if (places > limit && places > std::max(repeats_of(a), repeats_of(b))) {
    const auto widest = std::max_element(merged.reads.begin(), merged.reads.end(), [](const Read& x, const Read& y) {
      return x.layouts.size() < y.layouts.size();
    });
    const std::string of = widest == merged.reads.end() || widest->layouts.size() < 2
                               ? ""
                               : fmt::format(", {} at {}", name(context, widest->value), widest->layouts.size());
    return no(Rule::too_many_places,
              fmt::format("one kernel would compute or load values again at {} other places{}; the "
                          "limit is {}",
                          places, of, limit));
  }
  const int longest = longest_coordinate(merged);
  if (longest > limit && longest > std::max(longest_coordinate(a), longest_coordinate(b)))
    return no(Rule::too_many_places,
              fmt::format("a coordinate would be an expression of {} terms, through views that do "
                          "not divide; the limit is {}",
                          longest, limit));
  return {};
}

void add_read(std::vector<Read>& reads, const Read& of, const Layout& layout) {
  auto at = std::lower_bound(reads.begin(), reads.end(), of.value,
                             [](const Read& read, ValueId wanted) { return read.value < wanted; });
  if (at == reads.end() || at->value != of.value) at = reads.insert(at, Read{of.value, {}, of.of_mask});
  at->of_mask = at->of_mask && of.of_mask;
  if (std::find(at->layouts.begin(), at->layouts.end(), layout) == at->layouts.end()) at->layouts.push_back(layout);
}

void add_result(std::vector<Result>& results, Result result) {
  const auto at = std::lower_bound(results.begin(), results.end(), result.value,
                                   [](const Result& have, ValueId wanted) { return have.value < wanted; });
  results.insert(at, std::move(result));
}

bool storable(const Cluster& cluster, const Layout& digits) {
  const Domain& domain = cluster.domain;
  const auto axes = covered(digits, domain);
  if (!axes) return false;
  const std::uint32_t kept = axis_bits(domain, 0, domain.kept);
  switch (cluster.kernel_class) {
    case KernelClass::map:
    case KernelClass::contract: return *axes == kept;
    case KernelClass::reduce: return *axes == kept || *axes == axis_bits(domain, 0, domain.rank());
    case KernelClass::attend: return *axes == kept || *axes == axis_bits(domain, 0, domain.kept - 1);
  }
  return false;
}

Layout image_of(const AxisMap& map) {
  Layout all;
  for (const auto& image : map)
    if (image) all.insert(all.end(), image->begin(), image->end());
  return all;
}

namespace {

// Pointers and nodes of both as one kernel. Checked first: it is cheap, and often what stops a large kernel.
Verdict check_limits(const Context& context, const Cluster& a, const Cluster& b, const NeededElsewhere& elsewhere) {
  const int nodes = a.node_count + b.node_count;
  if (nodes > context.options.max_nodes)
    return no(Rule::too_many_nodes,
              fmt::format("one kernel would compute {} nodes, the limit is {}", nodes, context.options.max_nodes));
  const int depth = a.depth + b.depth, max_depth = 2 * context.options.max_nodes;
  if (depth > max_depth)
    return no(Rule::too_many_nodes,
              fmt::format("one kernel would compute {} nodes and views in turn, the limit is {}", depth, max_depth));
  auto operands = static_cast<int>(a.reads.size() + b.results.size());
  for (const Read& read : b.reads)
    operands += a.find_read(read.value) == nullptr && a.find_result(read.value) == nullptr;
  for (const Result& result : a.results) operands += elsewhere(result.value);
  if (operands > context.options.max_operands)
    return no(Rule::too_many_operands, fmt::format("one kernel would take {} pointers, the limit is {}", operands,
                                                   context.options.max_operands));
  return {};
}

}  // namespace

Verdict fuse_consumer(const Context& context, const Cluster& producer, const Cluster& consumer,
                      const NeededElsewhere& elsewhere, Cluster& merged) {
  if (Verdict verdict = check_limits(context, producer, consumer, elsewhere); !verdict.legal()) return verdict;
  if (producer.kernel_class == KernelClass::map) return absorb(context, producer, consumer, elsewhere, merged);
  if (may_pair(producer, consumer)) return pair(context, producer, consumer, elsewhere, merged);
  if (producer.holds_contraction() && consumer.holds_contraction())
    return no(Rule::one_contraction, "a kernel has one contraction, or the two of an attention");
  if (consumer.holds_contraction())
    return no(Rule::full_row_needed, "a contraction's operand would need whole reduced rows before its first tile");
  if (producer.holds_contraction() && consumer.kernel_class == KernelClass::reduce)
    return no(Rule::full_row_needed, "a reduction needs more of the result than one tile of the contraction holds");
  return extend(context, producer, consumer, elsewhere, merged);
}

Verdict fuse_siblings(const Context& context, const Cluster& first, const Cluster& second, Cluster& merged) {
  // Only maps and reductions share a kernel because they read the same.
  if (first.holds_contraction() || second.holds_contraction()) return different_domain(first, second);
  if (Verdict verdict = check_limits(context, first, second, [](ValueId) { return true; }); !verdict.legal())
    return verdict;
  const bool reduce = first.kernel_class == KernelClass::reduce;
  if (reduce != (second.kernel_class == KernelClass::reduce))
    return host_sibling(context, reduce ? first : second, reduce ? second : first, merged);
  // Layouts may say where the axes of one lie on the other, and not the other way round.
  Verdict verdict = host_sibling(context, first, second, merged);
  if (verdict.legal()) return verdict;
  merged = Cluster{};  // a refusal leaves what it had begun
  return host_sibling(context, second, first, merged).legal() ? Verdict{} : verdict;
}

}  // namespace tenon::ir::fusion

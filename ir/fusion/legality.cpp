// Whether two clusters can be one kernel. Two questions only: do the axes of one map onto the axes of the other, and
// does the kernel class allow what would then be inside. Nothing is built to find out.
//
// What holds afterwards (plan.h, Group): reductions of one cluster combine the same reduced axes in the same order and
// lie on all kept axes, but for outer ones, which combine the kept axes and are known to no one inside before the end;
// a contraction's result is needed at its own point only; stored results cover the domain.
#include <fmt/format.h>

#include <algorithm>

#include "ir/fusion/cluster.h"

namespace tenon::ir::fusion {
namespace {

// An operand's prologue is computed again for each tile that loads it: one instruction an element, a few where it reads
// less than the operand itself would take (dequantisation).
constexpr double kPrologueSlots = 1;
constexpr double kNarrowingSlots = 4;
constexpr double kNarrowingBytes = 0.75;  // read for each byte that the operand itself would have
constexpr double kPrologueBytes = 1.1;

Verdict no(std::string rule, std::string reason) { return {std::move(rule), std::move(reason)}; }

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

// Layouts of one domain on another: most often the axes are the same, and nothing changes.
class Rebase {
 public:
  Rebase(const Domain& from, const Domain& to, const AxisMap& map)
      : from_(from), map_(map), identity_(is_identity(map, from, to)) {}
  Layout operator()(const Layout& layout) const { return identity_ ? layout : substitute(layout, from_, map_); }

 private:
  const Domain& from_;
  const AxisMap& map_;
  bool identity_;
};

Verdict different_domain(const Cluster& a, const Cluster& b) {
  return no("different-domain",
            fmt::format("one runs over {}, the other over {}", describe(a.domain), describe(b.domain)));
}

void add_read(std::vector<Read>& reads, ValueId value, const Layout& layout) {
  auto at = std::lower_bound(reads.begin(), reads.end(), value,
                             [](const Read& read, ValueId wanted) { return read.value < wanted; });
  if (at == reads.end() || at->value != value) at = reads.insert(at, Read{value, {}});
  if (std::find(at->layouts.begin(), at->layouts.end(), layout) == at->layouts.end()) at->layouts.push_back(layout);
}

void add_result(std::vector<Result>& results, Result result) {
  const auto at = std::lower_bound(results.begin(), results.end(), result.value,
                                   [](const Result& have, ValueId wanted) { return have.value < wanted; });
  results.insert(at, std::move(result));
}

// Pointers and nodes of both as one kernel. Checked first: it is cheap, and often what stops a large kernel.
Verdict check_limits(const Context& context, const Cluster& a, const Cluster& b, const NeededElsewhere& elsewhere) {
  const int nodes = a.node_count + b.node_count;
  if (nodes > context.options.max_nodes)
    return no("too-many-nodes",
              fmt::format("one kernel would compute {} nodes, the limit is {}", nodes, context.options.max_nodes));
  auto operands = static_cast<int>(a.reads.size() + b.results.size());
  for (const Read& read : b.reads)
    operands += a.find_read(read.value) == nullptr && a.find_result(read.value) == nullptr;
  for (const Result& result : a.results) operands += elsewhere(result.value);
  if (operands > context.options.max_operands)
    return no("too-many-operands", fmt::format("one kernel would take {} pointers, the limit is {}", operands,
                                               context.options.max_operands));
  return {};
}

// ---- a map cluster computed inside its consumer ----------------------------------------------------------------

Verdict check_prologue(const Context& context, const Cluster& producer, ValueId value, bool needed_elsewhere) {
  const double elements = std::max(1.0, context.points(producer.domain));
  if (needed_elsewhere)
    return no("prologue-shared",
              fmt::format("{} is an operand of a contraction and is needed elsewhere too", name(context, value)));
  double bytes = 0;
  for (const Read& read : producer.reads) bytes += bytes_of(context, producer, read);
  const double own = context.bytes[static_cast<std::size_t>(value)];
  const double limit = bytes <= kNarrowingBytes * own ? kNarrowingSlots : kPrologueSlots;
  if (producer.slots > limit * elements)
    return no("prologue-cost",
              fmt::format(
                  "{:.3g} instructions an element would be repeated for every tile that loads {}; the limit is {:.0f}",
                  producer.slots / elements, name(context, value), limit));
  if (bytes > kPrologueBytes * own)
    return no("prologue-bytes", fmt::format("every tile would read {:.0f} bytes in place of the {:.0f} bytes of {}",
                                            bytes, own, name(context, value)));
  return {};
}

// Whether a result on `digits` of the domain can be stored by a kernel of this class: it covers the kept axes, all
// axes, or (attend) one number for each row.
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

// A coordinate along `axis` that `layout` does not give as digits of its own.
Digit elsewhere_on(const Layout& layout, const Domain& domain, int axis) {
  std::int64_t id = axis;
  for (const Digit& digit : layout)
    if (digit.axis < 0) id = id * 4096 + digit.divisor.constant();
  return moved(layout, domain.extents[static_cast<std::size_t>(axis)], id);
}

Verdict absorb(const Context& context, const Cluster& producer, const Cluster& consumer,
               const NeededElsewhere& elsewhere, Cluster& merged) {
  merged.kernel_class = consumer.kernel_class;
  merged.domain = consumer.domain;
  merged.results = consumer.results;
  merged.attention = consumer.attention;
  merged.persistent = consumer.persistent;
  merged.slots = consumer.slots;
  merged.flops = consumer.flops;
  merged.random = producer.random || consumer.random;
  merged.node_count = producer.node_count + consumer.node_count;
  std::vector<AxisMap> maps;
  for (const Read& read : consumer.reads) {
    const Result* made = producer.find_result(read.value);
    if (made == nullptr) {
      merged.reads.push_back(read);
      continue;
    }
    for (const Layout& layout : read.layouts) {
      if (is_gathered(layout))
        return no("gathered-table", fmt::format("{} is indexed by other values, so all of it must be in memory first",
                                                name(context, read.value)));
      if (is_operand(consumer, layout))
        if (Verdict verdict = check_prologue(context, producer, read.value, elsewhere(read.value)); !verdict.legal())
          return verdict;
      AxisMap map = align(layout, made->layout, producer.domain);
      for (int axis = 0; axis < producer.domain.rank(); ++axis)  // what does not map is computed at other elements
        if (!map[static_cast<std::size_t>(axis)])
          map[static_cast<std::size_t>(axis)] = Layout{elsewhere_on(layout, producer.domain, axis)};
      if (std::find(maps.begin(), maps.end(), map) != maps.end()) continue;
      merged.slots +=
          producer.slots / std::max(1.0, context.points(producer.domain)) * evaluations(context, consumer, layout);
      maps.push_back(std::move(map));
    }
  }
  const auto store =
      std::find_if(maps.begin(), maps.end(), [&](const AxisMap& map) { return storable(consumer, image_of(map)); });
  for (const Result& result : producer.results) {
    if (!elsewhere(result.value)) continue;
    if (store == maps.end()) return different_domain(producer, consumer);
    add_result(merged.results, {result.value, Rebase(producer.domain, consumer.domain, *store)(result.layout), false});
  }
  for (const AxisMap& map : maps) {
    const Rebase rebase(producer.domain, consumer.domain, map);
    for (const Read& read : producer.reads)
      for (const Layout& layout : read.layouts) add_read(merged.reads, read.value, rebase(layout));
  }
  return {};
}

// ---- a consumer computed on the domain of a reduction or contraction --------------------------------------------

// What the values that both clusters name say about the axes of `guest`, in terms of those of `host`.
void learn(AxisMap& axes, const AxisMap& learned) {
  for (std::size_t i = 0; i < axes.size(); ++i)
    if (!axes[i] && learned[i]) axes[i] = learned[i];
}

bool complete(const AxisMap& axes) {
  return std::all_of(axes.begin(), axes.end(), [](const auto& image) { return image.has_value(); });
}

void learn_from_reads(const Cluster& host, const Cluster& guest, AxisMap& axes) {
  for (const Read& read : guest.reads) {
    if (complete(axes)) return;
    const Read* same = host.find_read(read.value);
    if (same == nullptr || read.layouts.size() != 1 || !is_plain(read.layouts[0])) continue;
    for (const Layout& layout : same->layouts)
      if (is_plain(layout)) {
        learn(axes, align(layout, read.layouts[0], guest.domain));
        break;
      }
  }
}

// How a guest lies on its host.
enum class Order : std::uint8_t {
  same,   // it reduces the axes that the host reduces, or none
  mixed,  // it reduces the axes that the host keeps
};

// Whether the axes of `b` from `first` on are the axes [begin, end) of the host, in order.
bool runs_along(const Domain& host, int begin, int end, const AxisMap& axes, int first, int last) {
  bool same = end - begin == last - first;
  for (int i = 0; same && first + i < last; ++i)
    same = *axes[static_cast<std::size_t>(first + i)] == host.axes(begin + i, begin + i + 1);
  return same;
}

// Whether the tensors that a Reduce cluster reads lie along the axes that it reduces.
bool reads_along_rows(const Cluster& cluster) {
  const std::uint32_t kept = axis_bits(cluster.domain, 0, cluster.domain.kept);
  for (const Read& read : cluster.reads)
    for (const Layout& layout : read.layouts)
      if ((depends_of(layout) & kept) != 0 && (depends_of(layout) & ~kept) != 0 &&
          layout.back().axis < cluster.domain.kept)
        return false;
  return true;
}

std::ptrdiff_t outer_results(const Cluster& cluster) {
  return std::count_if(cluster.results.begin(), cluster.results.end(),
                       [&](const Result& result) { return is_outer(cluster.domain, result.layout); });
}

// The blocks that walk the host's rows keep the guest's reductions beside them: the rows lie one behind the other, what
// the guest reduces is one number for each of its own rows, and there is room for as many as a row has elements.
Verdict check_mixed(const Context& context, const Cluster& host, const Cluster& guest, const AxisMap& axes) {
  const Domain& a = host.domain;
  const Domain& b = guest.domain;
  const std::uint32_t reduced = axis_bits(a, a.kept, a.rank());
  Layout image;
  for (int axis = 0; axis < b.kept; ++axis)
    image.insert(image.end(), axes[static_cast<std::size_t>(axis)]->begin(),
                 axes[static_cast<std::size_t>(axis)]->end());
  // One number for each of its rows, known at the end, or one for each element, known at once.
  const bool storable_results = std::all_of(guest.results.begin(), guest.results.end(), [&](const Result& result) {
    const bool of_rows = (depends_of(result.layout) & ~axis_bits(b, 0, b.kept)) == 0;
    return of_rows == result.late;
  });
  Dim length(1);
  for (int axis = a.kept; axis < a.rank(); ++axis) length = length * a.extents[static_cast<std::size_t>(axis)];
  const bool fits = context.options.mixed_order && axis_bits(a, 0, a.kept) != 0 && reduced != 0 &&
                    runs_along(a, 0, a.kept, axes, b.kept, b.rank()) && covered(image, a) == reduced &&
                    storable_results && !guest.persistent && outer_results(guest) == 0 && length.is_constant() &&
                    reads_along_rows(host);
  if (!fits)
    return no("different-reduced-axes",
              fmt::format("one reduces {} of {}, the other {} of {}", extents(a, a.kept, a.rank()), describe(a),
                          extents(b, b.kept, b.rank()), describe(b)));
  const auto made = std::count_if(guest.results.begin(), guest.results.end(), [](const Result& r) { return r.late; });
  const auto sums = static_cast<double>(outer_results(host) + made);
  if ((sums + 1) * static_cast<double>(length.constant()) > context.options.cost.outer_elements)
    return no("outer-elements",
              fmt::format("a block that walks the rows {} would keep {:.0f} reductions of {} elements beside one, the "
                          "limit is {:.0f} elements",
                          describe(a), sums, length.str(), context.options.cost.outer_elements));
  return {};
}

// Whether the guest's axes cover the host's as the classes of both require. `of_outer`: it needs what is known at the
// end of all rows only.
Verdict check_axes(const Context& context, const Cluster& host, const Cluster& guest, const AxisMap& axes,
                   bool of_outer, Order& order) {
  order = Order::same;
  if (!complete(axes)) return different_domain(host, guest);
  const Domain& a = host.domain;
  const Domain& b = guest.domain;
  if (of_outer) {
    if (guest.kernel_class == KernelClass::map && covered(image_of(axes), a) == axis_bits(a, a.kept, a.rank()))
      return {};
    return no("outer-needed", fmt::format("it needs what is known when all of {} was read", describe(a)));
  }
  if (!storable(host, image_of(axes)))
    return no("other-layout",
              fmt::format("the points {} of one do not run along the axes {} of the other", describe(b), describe(a)));
  if (guest.kernel_class != KernelClass::reduce || runs_along(a, a.kept, a.rank(), axes, b.kept, b.rank())) return {};
  order = Order::mixed;
  return check_mixed(context, host, guest, axes);
}

bool covers_reduced(const Cluster& host, const AxisMap& axes) {
  return (depends_of(image_of(axes)) & ~axis_bits(host.domain, 0, host.domain.kept)) != 0;
}

// `host` with the work of `guest` on the axes given.
void join(const Cluster& host, const Cluster& guest, const AxisMap& axes, Order order, bool late, Cluster& merged) {
  merged.kernel_class = host.kernel_class;
  merged.domain = host.domain;
  merged.attention = host.attention;
  merged.slots = host.slots + guest.slots;
  merged.flops = host.flops;
  merged.random = host.random || guest.random;
  merged.node_count = host.node_count + guest.node_count;
  merged.persistent =
      host.persistent || guest.persistent || order == Order::mixed || (late && covers_reduced(host, axes));
  merged.reads = host.reads;
  const Rebase rebase(guest.domain, host.domain, axes);
  for (const Read& read : guest.reads)
    if (host.find_result(read.value) == nullptr)
      for (const Layout& layout : read.layouts) add_read(merged.reads, read.value, rebase(layout));
  for (const Result& result : guest.results)
    add_result(merged.results, {result.value, rebase(result.layout), result.late || late});
}

Verdict extend(const Context& context, const Cluster& producer, const Cluster& consumer,
               const NeededElsewhere& elsewhere, Cluster& merged) {
  AxisMap axes(static_cast<std::size_t>(consumer.domain.rank()));
  bool late = false, of_outer = false;
  for (const Read& read : consumer.reads) {
    const Result* made = producer.find_result(read.value);
    if (made == nullptr) continue;
    late = late || made->late;
    of_outer = of_outer || (producer.kernel_class == KernelClass::reduce && is_outer(producer.domain, made->layout));
    if (is_gathered(read.layouts[0]))
      return no("gathered-table", fmt::format("{} is indexed by other values, so all of it must be in memory first",
                                              name(context, read.value)));
    if (read.layouts.size() != 1 || !is_plain(read.layouts[0]))
      return no("other-elements",
                fmt::format("each point needs {} of {}",
                            read.layouts.size() != 1 ? "several elements" : "another element than its own",
                            name(context, read.value)));
    learn(axes, align(made->layout, read.layouts[0], consumer.domain));
  }
  learn_from_reads(producer, consumer, axes);
  Order order = Order::same;
  if (Verdict verdict = check_axes(context, producer, consumer, axes, of_outer, order); !verdict.legal())
    return verdict;
  for (const Read& read : consumer.reads)
    if (const Result* made = producer.find_result(read.value))
      if (substitute(read.layouts[0], consumer.domain, axes) != made->layout)
        return no("other-elements", fmt::format("{} is needed in another layout", name(context, read.value)));
  join(producer, consumer, axes, order, late, merged);
  for (const Result& result : producer.results)
    if (elsewhere(result.value)) add_result(merged.results, result);
  return {};
}

// The guest computed on the axes of the host, which it must share by what both read.
Verdict host_sibling(const Context& context, const Cluster& host, const Cluster& guest, Cluster& merged) {
  AxisMap axes(static_cast<std::size_t>(guest.domain.rank()));
  learn_from_reads(host, guest, axes);
  Order order = Order::same;
  if (Verdict verdict = check_axes(context, host, guest, axes, false, order); !verdict.legal()) return verdict;
  join(host, guest, axes, order, false, merged);
  for (const Result& result : host.results) add_result(merged.results, result);
  return {};
}

}  // namespace

Verdict fuse_consumer(const Context& context, const Cluster& producer, const Cluster& consumer,
                      const NeededElsewhere& elsewhere, Cluster& merged) {
  if (Verdict verdict = check_limits(context, producer, consumer, elsewhere); !verdict.legal()) return verdict;
  if (producer.kernel_class == KernelClass::map) return absorb(context, producer, consumer, elsewhere, merged);
  if (producer.holds_contraction() && consumer.holds_contraction())
    return no("one-contraction", "a kernel has one contraction, or the two of an attention");
  if (consumer.holds_contraction())
    return no("full-row-needed", "a contraction's operand would need whole reduced rows before its first tile");
  if (producer.holds_contraction() && consumer.kernel_class == KernelClass::reduce)
    return no("full-row-needed", "a reduction needs more of the result than one tile of the contraction holds");
  return extend(context, producer, consumer, elsewhere, merged);
}

Verdict fuse_siblings(const Context& context, const Cluster& first, const Cluster& second, Cluster& merged) {
  if (first.holds_contraction() || second.holds_contraction())
    return no("sibling-contraction", "only maps and reductions share a kernel because they read the same");
  if (Verdict verdict = check_limits(context, first, second, [](ValueId) { return true; }); !verdict.legal())
    return verdict;
  const bool reduce = first.kernel_class == KernelClass::reduce;
  if (reduce != (second.kernel_class == KernelClass::reduce))
    return host_sibling(context, reduce ? first : second, reduce ? second : first, merged);
  // Layouts may say where the axes of one lie on the other, and not the other way round.
  Verdict verdict = host_sibling(context, first, second, merged);
  if (!verdict.legal() && host_sibling(context, second, first, merged).legal()) return {};
  return verdict;
}

}  // namespace tenon::ir::fusion

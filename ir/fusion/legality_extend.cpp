// A guest on the axes of its host, a reduction or contraction: the consumer of what it makes, or a sibling that reads
// the same. The axes of one are found on those of the other from the values that both name; rows and columns of the
// same tensors may be reduced by one kernel (mixed order).
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "ir/fusion/across_rows.h"
#include "ir/fusion/legality.h"
#include "ir/fusion/long_rows.h"

namespace tenon::ir::fusion {
namespace {

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

// The axis along which alone a moved digit varies, where it takes the elements of that whole axis; -1 otherwise.
int moved_along(const Digit& digit) {
  const bool one = digit.depends != 0 && (digit.depends & (digit.depends - 1)) == 0;
  return digit.axis < 0 && one ? std::countr_zero(digit.depends) : -1;
}

// Both read a value through the same views, a concat or a take, say: the axes along which they move are the same.
void learn_from_moves(const Domain& host, const Layout& on_host, const Domain& guest, const Layout& on_guest,
                      AxisMap& axes) {
  if (on_host.size() != on_guest.size()) return;
  for (std::size_t i = 0; i < on_host.size(); ++i) {
    const int from = moved_along(on_guest[i]), to = moved_along(on_host[i]);
    if (from < 0 || to < 0 || on_host[i].axis != on_guest[i].axis || on_host[i].divisor != on_guest[i].divisor)
      continue;
    if (host.extents[static_cast<std::size_t>(to)] != guest.extents[static_cast<std::size_t>(from)]) continue;
    if (auto& image = axes[static_cast<std::size_t>(from)]; !image) image = host.axes(to, to + 1);
  }
}

// Axes that no value names digit for digit: what moves along them tells, else those left over on both sides are the
// same in their order. Any choice is right: what is computed at a point follows from the point, and whether results
// are needed where they are made is checked with the axes that are chosen.
void learn_the_rest(const Cluster& host, const Cluster& guest, AxisMap& axes) {
  for (const Read& read : guest.reads)
    if (const Read* same = host.find_read(read.value))
      for (const Layout& layout : read.layouts)
        for (const Layout& other : same->layouts) {
          if (complete(axes)) return;
          learn(axes, align(other, layout, guest.domain));
          learn_from_moves(host.domain, other, guest.domain, layout, axes);
        }
  std::uint32_t taken = 0;
  for (const auto& image : axes)
    if (image) taken |= depends_of(*image);
  std::vector<std::size_t> open;
  for (std::size_t axis = 0; axis < axes.size(); ++axis)
    if (!axes[axis]) open.push_back(axis);
  std::size_t next = 0;
  AxisMap filled = axes;
  for (int axis = 0; axis < host.domain.rank(); ++axis) {
    const Dim& extent = host.domain.extents[static_cast<std::size_t>(axis)];
    if ((taken >> axis & 1U) != 0 || extent.is(1)) continue;
    if (next == open.size() || guest.domain.extents[open[next]] != extent) return;
    filled[open[next++]] = host.domain.axes(axis, axis + 1);
  }
  if (next == open.size()) axes = filled;
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

// Whether what a Reduce cluster reads at `layout` lies along the axes that it reduces, if it varies along rows at all.
bool along_rows(const Domain& domain, const Layout& layout) {
  const std::uint32_t kept = axis_bits(domain, 0, domain.kept);
  return (depends_of(layout) & kept) == 0 || (depends_of(layout) & ~kept) == 0 || layout.back().axis >= domain.kept;
}

bool reads_along_rows(const Cluster& cluster) {
  return std::all_of(cluster.reads.begin(), cluster.reads.end(), [&](const Read& read) {
    return std::all_of(read.layouts.begin(), read.layouts.end(),
                       [&](const Layout& layout) { return along_rows(cluster.domain, layout); });
  });
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
    return of_rows == result.late();
  });
  Dim length(1);
  for (int axis = a.kept; axis < a.rank(); ++axis) length = length * a.extents[static_cast<std::size_t>(axis)];
  const bool fits = context.options.mixed_order && axis_bits(a, 0, a.kept) != 0 && reduced != 0 &&
                    runs_along(a, 0, a.kept, axes, b.kept, b.rank()) && covered(image, a) == reduced &&
                    storable_results && !needs_rows_again(guest) && !guest.chained && outer_results(guest) == 0 &&
                    length.is_constant() && reads_along_rows(host);
  if (!fits)
    return no(Rule::different_reduced_axes,
              describe(a) == describe(b)
                  ? fmt::format("both reduce {} of {}, but in another order of the elements that both read",
                                extents(a, a.kept, a.rank()), describe(a))
                  : fmt::format("one reduces {} of {}, the other {} of {}", extents(a, a.kept, a.rank()), describe(a),
                                extents(b, b.kept, b.rank()), describe(b)));
  const auto made = std::count_if(guest.results.begin(), guest.results.end(), [](const Result& r) { return r.late(); });
  const auto sums = static_cast<double>(outer_results(host) + made);
  if ((sums + 1) * static_cast<double>(length.constant()) > context.options.cost.outer_elements)
    return no(Rule::outer_elements,
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
  if (guest.kernel_class == KernelClass::contract)  // of a pair
    return is_identity(axes, b, a) ? Verdict{} : different_domain(host, guest);
  if (of_outer) {
    if (guest.kernel_class == KernelClass::map && covered(image_of(axes), a) == axis_bits(a, a.kept, a.rank()))
      return {};
    return no(Rule::outer_needed, fmt::format("it needs what is known when all of {} was read", describe(a)));
  }
  if (!storable(host, image_of(axes)))
    return no(
        Rule::other_layout,
        describe(a) == describe(b)
            ? fmt::format("both run over {}, but a point of one does not need what is at the same point of the other",
                          describe(a))
            : fmt::format("the points {} of one do not run along the axes {} of the other", describe(b), describe(a)));
  if (guest.kernel_class != KernelClass::reduce || runs_along(a, a.kept, a.rank(), axes, b.kept, b.rank())) return {};
  order = Order::mixed;
  return check_mixed(context, host, guest, axes);
}

bool covers_reduced(const Cluster& host, const AxisMap& axes) {
  return (depends_of(image_of(axes)) & ~axis_bits(host.domain, 0, host.domain.kept)) != 0;
}

// Whether `layout` is made of whole axes of the host, whatever their order.
Verdict check_place(const Cluster& host, const Cluster& guest, const Layout& layout) {
  if (covered(layout, host.domain)) return {};
  return no(Rule::other_layout,
            fmt::format("what one makes of the points {} in another order does not run along the axes "
                        "{} of the other",
                        describe(guest.domain), describe(host.domain)));
}

// Of two clusters that begin together, what the first reductions of both can share their sweep with.
SweepOf shared(const Cluster& a, const Cluster& b) {
  if (a.rounds == 0 || a.sweep_of == SweepOf::any) return b.sweep_of;
  return b.sweep_of == SweepOf::any || a.sweep_of == b.sweep_of ? a.sweep_of : SweepOf::own;
}

// `host` with the work of `guest` on the axes given; `behind`: rounds of the host that the guest needs the results of.
Verdict join(const Context& context, const Cluster& host, const Cluster& guest, const AxisMap& axes, Order order,
             int behind, Cluster& merged) {
  const bool late = behind > 0;
  const bool shares = late && guest.sweep_of != SweepOf::own;
  const auto rounds = [&](int own) { return own + behind - (shares && own > 0 ? 1 : 0); };
  merged.kernel_class = host.kernel_class;
  merged.domain = host.domain;
  merged.attention = host.attention;
  merged.slots = host.slots + guest.slots;
  merged.mask_slots = host.mask_slots + guest.mask_slots;
  merged.flops = host.flops + guest.flops;
  merged.tensor_flops = host.tensor_flops + guest.tensor_flops;
  merged.lane_flops = host.lane_flops + guest.lane_flops;
  merged.paired = guest.holds_contraction() ? -1 : host.paired;
  merged.boxed = host.boxed & (guest.holds_contraction() ? guest.boxed : host.boxed);
  merged.computed = host.computed | guest.computed;
  merged.shares = host.shares;
  merged.random = host.random || guest.random;
  merged.node_count = host.node_count + guest.node_count;
  merged.depth = host.depth + guest.depth;
  merged.repeats = host.repeats + guest.repeats;
  merged.rounds = std::max(host.rounds, guest.rounds > 0 ? rounds(guest.rounds) : 0);
  merged.sweep_of = late || guest.rounds == 0 ? host.sweep_of : shared(host, guest);
  merged.chained = host.chained || guest.chained || (late && guest.rounds > 0);
  merged.persistent = host.persistent || guest.persistent || order == Order::mixed ||
                      (late && host.kernel_class != KernelClass::reduce && covers_reduced(host, axes));
  merged.reads = host.reads;
  const Rebase rebase(guest.domain, host.domain, axes);
  for (const Read& read : guest.reads)
    if (host.find_result(read.value) == nullptr)
      for (const Layout& layout : read.layouts) add_read(merged.reads, read, rebase(layout));
  for (const Result& result : guest.results) {
    const Layout layout = rebase(result.layout);
    if (Verdict verdict = check_place(host, guest, layout); !verdict.legal()) return verdict;
    add_result(merged.results, {result.value, layout, rounds(result.rounds)});
  }
  merged.places = host.places;
  for (const Layout& place : guest.places) {
    add_place(merged.places, rebase(place));
    if (Verdict verdict = check_place(host, guest, merged.places.back()); !verdict.legal()) return verdict;
  }
  return check_outer_reads(context, merged);
}

}  // namespace

Verdict check_outer_reads(const Context& context, const Cluster& cluster) {
  const Domain& domain = cluster.domain;
  if (cluster.kernel_class != KernelClass::reduce ||
      std::none_of(cluster.places.begin(), cluster.places.end(),
                   [&](const Layout& place) { return is_outer(domain, place); }))
    return {};
  for (const Read& read : cluster.reads)
    for (const Layout& layout : read.layouts)
      if (!along_rows(domain, layout))
        return no(Rule::outer_reads, fmt::format("{} does not lie along the rows {} over which a block would walk",
                                                 name(context, read.value), describe(domain)));
  return {};
}

Verdict extend(const Context& context, const Cluster& producer, const Cluster& consumer,
               const NeededElsewhere& elsewhere, Cluster& merged) {
  AxisMap axes(static_cast<std::size_t>(consumer.domain.rank()));
  for (const Read& read : consumer.reads) {
    const Result* made = producer.find_result(read.value);
    if (made == nullptr) continue;
    if (is_gathered(read.layouts[0]))
      return no(Rule::gathered_table, fmt::format("{} is indexed by other values, so all of it must be in memory first",
                                                  name(context, read.value)));
    if (read.layouts.size() != 1 || !is_plain(read.layouts[0]))
      return no(Rule::other_elements,
                fmt::format("each point needs {} of {}",
                            read.layouts.size() != 1 ? "several elements" : "another element than its own",
                            name(context, read.value)));
    learn(axes, align(made->layout, read.layouts[0], consumer.domain));
  }
  learn_from_reads(producer, consumer, axes);
  if (!complete(axes)) learn_the_rest(producer, consumer, axes);
  return extend_along(context, producer, consumer, axes, elsewhere, merged);
}

Verdict extend_along(const Context& context, const Cluster& producer, const Cluster& consumer, const AxisMap& axes,
                     const NeededElsewhere& elsewhere, Cluster& merged) {
  int behind = 0;
  bool of_outer = false;
  for (const Read& read : consumer.reads)
    if (const Result* made = producer.find_result(read.value)) {
      behind = std::max(behind, made->rounds);
      of_outer = of_outer || (producer.kernel_class == KernelClass::reduce && is_outer(producer.domain, made->layout));
    }
  Order order = Order::same;
  if (Verdict verdict = check_axes(context, producer, consumer, axes, of_outer, order); !verdict.legal())
    return verdict;
  for (const Read& read : consumer.reads)
    if (const Result* made = producer.find_result(read.value))
      if (substitute(read.layouts[0], consumer.domain, axes) != made->layout)
        return no(Rule::other_elements, fmt::format("{} is needed in another layout", name(context, read.value)));
  if (Verdict verdict = join(context, producer, consumer, axes, order, behind, merged); !verdict.legal())
    return verdict;
  for (const Result& result : producer.results)
    if (elsewhere(result.value)) add_result(merged.results, result);
  if (Verdict verdict = check_rows(context, producer, consumer, merged); !verdict.legal()) return verdict;
  if (Verdict verdict = check_across(context, producer, consumer, merged); !verdict.legal()) return verdict;
  return check_places(context, producer, consumer, merged);
}

namespace {

// The axis of the domain along which the second operand of a contraction is contiguous: its columns or its depth; -1
// where its reads differ in that, or run along neither.
int inner_axis_of_columns(const Cluster& cluster) {
  const int columns = cluster.domain.kept - 1, depth = cluster.domain.kept;
  int inner = -1;
  for (const Read& read : cluster.reads)
    for (const Layout& layout : read.layouts) {
      const std::uint32_t depends = depends_of(layout);
      if ((depends >> columns & 1U) == 0 || (depends >> depth & 1U) == 0) continue;
      const int axis = layout.back().axis >= 0 ? layout.back().axis : moved_along(layout.back());
      if ((axis != columns && axis != depth) || (inner >= 0 && axis != inner)) return -1;
      inner = axis;
    }
  return inner;
}

}  // namespace

bool may_pair(const Cluster& producer, const Cluster& consumer) {
  return producer.paired >= 0 && producer.paired == consumer.paired &&
         producer.domain.extents == consumer.domain.extents && producer.domain.kept == consumer.domain.kept &&
         inner_axis_of_columns(producer) >= 0 && inner_axis_of_columns(producer) == inner_axis_of_columns(consumer);
}

Verdict pair(const Context& context, const Cluster& producer, const Cluster& consumer, const NeededElsewhere& elsewhere,
             Cluster& merged) {
  AxisMap axes;
  for (int axis = 0; axis < consumer.domain.rank(); ++axis) axes.push_back(producer.domain.axes(axis, axis + 1));
  return extend_along(context, producer, consumer, axes, elsewhere, merged);
}

Verdict host_sibling(const Context& context, const Cluster& host, const Cluster& guest, Cluster& merged) {
  AxisMap axes(static_cast<std::size_t>(guest.domain.rank()));
  learn_from_reads(host, guest, axes);
  if (!complete(axes)) learn_the_rest(host, guest, axes);
  Order order = Order::same;
  if (Verdict verdict = check_axes(context, host, guest, axes, false, order); !verdict.legal()) return verdict;
  if (Verdict verdict = join(context, host, guest, axes, order, 0, merged); !verdict.legal()) return verdict;
  for (const Result& result : host.results) add_result(merged.results, result);
  if (Verdict verdict = check_rows(context, host, guest, merged); !verdict.legal()) return verdict;
  if (Verdict verdict = check_across(context, host, guest, merged); !verdict.legal()) return verdict;
  return check_places(context, host, guest, merged);
}

}  // namespace tenon::ir::fusion

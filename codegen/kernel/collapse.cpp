// Fewer axes: those of extent 1 go, and neighbours that every index treats as one become one. A guard may ask for the
// outer of two alone: a pad of the columns of [W, 3] by k is one of 3 W elements by 3 k. Contract and attend keep their
// last axes, which have fixed meanings; rows of all batches are those of one matrix where they can be. A short axis
// goes where everything along it is written out.
#include <algorithm>

#include "codegen/kernel/kernel.h"
#include "codegen/kernel/uses.h"
#include "codegen/kernel/visit.h"
#include "ir/graph/check.h"
#include "ir/ops/combining.h"

namespace tenon::codegen {
namespace {

// `index` with axis a replaced by replacement[a].
Index replace_axes(const Index& index, const std::vector<Index>& replacement, const IndexContext& context) {
  Index result(index.constant());
  for (const IndexTerm& term : index.terms()) {
    const IndexAtom& atom = *term.atom;
    switch (atom.kind) {
      case IndexAtom::Kind::axis:
        result = result + replacement[static_cast<std::size_t>(atom.id)] * term.coefficient;
        break;
      case IndexAtom::Kind::value: result = result + Index::sum(0, {term}); break;
      case IndexAtom::Kind::floor_div:
        result = result +
                 floor_div(replace_axes(atom.operand, replacement, context), atom.divisor, context) * term.coefficient;
        break;
      case IndexAtom::Kind::mod:
        result =
            result + mod(replace_axes(atom.operand, replacement, context), atom.divisor, context) * term.coefficient;
        break;
    }
  }
  return result;
}

// Whether `outer` and `inner` occur in `index` only as outer * extent(inner) + inner, wherever they occur.
bool moves_as_one(const Index& index, int outer, int inner, const Dim& inner_extent) {
  Dim outer_coefficient(0), inner_coefficient(0);
  for (const IndexTerm& term : index.terms()) {
    if (term.atom->kind == IndexAtom::Kind::axis && term.atom->id == outer) outer_coefficient = term.coefficient;
    if (term.atom->kind == IndexAtom::Kind::axis && term.atom->id == inner) inner_coefficient = term.coefficient;
    if (!moves_as_one(term.atom->operand, outer, inner, inner_extent)) return false;
  }
  return outer_coefficient == inner_coefficient * inner_extent;
}

// The instructions combine both axes or neither, next to each other.
bool reduced_together(const Kernel& kernel, int outer, int inner) {
  return std::all_of(kernel.body.begin(), kernel.body.end(), [&](const Instr& instr) {
    const auto has = [&](int axis) {
      return std::find(instr.axes.begin(), instr.axes.end(), axis) != instr.axes.end();
    };
    return has(outer) == has(inner);
  });
}

// Rebuilds the kernel over `axes`, where old axis a is replacement[a] in terms of the new ones.
void rebuild(Kernel& kernel, std::vector<Axis> axes, const std::vector<Index>& replacement) {
  std::vector<std::uint64_t> mask(replacement.size(), 0);
  for (std::size_t old = 0; old < replacement.size(); ++old)
    for (std::size_t now = 0; now < axes.size(); ++now)
      if (replacement[old].depends_on(static_cast<int>(now))) mask[old] |= std::uint64_t{1} << now;
  const IndexContext context{&axes, &kernel.symbols};
  visit_indices(kernel, [&](Index& index) { index = replace_axes(index, replacement, context); });
  for (Instr& instr : kernel.body) {
    std::uint64_t depends = 0, reduced = 0;
    for (std::size_t old = 0; old < mask.size(); ++old)
      if (instr.depends >> old & 1) depends |= mask[old];
    for (int axis : instr.axes) reduced |= mask[static_cast<std::size_t>(axis)];
    instr.depends = depends;
    instr.axes.clear();
    for (std::size_t now = 0; now < axes.size(); ++now)
      if (reduced >> now & 1) instr.axes.push_back(static_cast<int>(now));
  }
  kernel.axes = std::move(axes);
}

bool drop_one(Kernel& kernel, std::size_t movable) {
  for (std::size_t axis = 0; axis < movable; ++axis) {
    const SymbolBounds extent = kernel.axes[axis].extent.bounds(kernel.symbols);
    const bool reduced = kernel.axes[axis].reduced;
    const auto alike =
        std::count_if(kernel.axes.begin(), kernel.axes.end(), [&](const Axis& a) { return a.reduced == reduced; });
    const bool last_needed =
        alike == 1 && (reduced || kernel.kernel_class == ir::KernelClass::map || has_outer(kernel));
    if (extent.min != 1 || extent.max != 1 || last_needed) continue;
    std::vector<Axis> axes = kernel.axes;
    axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(axis));
    std::vector<Index> replacement;
    for (std::size_t old = 0; old < kernel.axes.size(); ++old)
      replacement.push_back(old == axis ? Index(0) : Index::axis(static_cast<int>(old - (old > axis))));
    rebuild(kernel, std::move(axes), replacement);
    return true;
  }
  return false;
}

// Axes `axis` and `axis` + 1 as one.
void join(Kernel& kernel, std::size_t axis) {
  const Axis outer = kernel.axes[axis], inner = kernel.axes[axis + 1];
  std::vector<Axis> axes = kernel.axes;
  axes[axis] = {outer.name, outer.extent * inner.extent, outer.reduced};
  axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(axis) + 1);
  const IndexContext context{&axes, &kernel.symbols};
  const Index joined = Index::axis(static_cast<int>(axis));
  std::vector<Index> replacement;
  for (std::size_t old = 0; old < kernel.axes.size(); ++old) {
    if (old == axis) {
      replacement.push_back(floor_div(joined, inner.extent, context));
    } else if (old == axis + 1) {
      replacement.push_back(mod(joined, inner.extent, context));
    } else {
      replacement.push_back(Index::axis(static_cast<int>(old - (old > axis))));
    }
  }
  rebuild(kernel, std::move(axes), replacement);
}

constexpr std::int64_t kMostOf32Bits = 0x7fffffff;

// Whether some operand has `count` elements in neighbouring dimensions, as many as a kernel of 31-bit offsets has at
// most.
bool lies_in_operand(const Kernel& kernel, const Dim& count) {
  for (const Operand& operand : kernel.operands)
    for (std::size_t from = 0; from < operand.shape.size(); ++from) {
      Dim product(1);
      for (std::size_t to = from; to < operand.shape.size(); ++to) {
        product = product * operand.shape[to];
        if (product == count) return true;
      }
    }
  return false;
}

// Whether 32 bits tell a guard that holds from one that does not. Of a size that no symbol bounds the domain has less
// than 2^31 points, as the operand has elements; beyond them, not far, lie numbers that are taken for negative ones.
bool fits_offsets(const Kernel& kernel, const Guard& guard) {
  constexpr std::int64_t kNear = 1 << 28;
  if (kernel.wide_index) return true;
  const SymbolBounds range = bounds(guard.index, kernel.context());
  const std::int64_t most = guard.bound.bounds(kernel.symbols).max;
  if (range.min >= -kMostOf32Bits && range.max <= kMostOf32Bits && most <= kMostOf32Bits) return true;
  const Dim& constant = guard.index.constant();
  return lies_in_operand(kernel, guard.bound) && guard.index.terms().size() == 2 && constant.is_constant() &&
         std::abs(constant.constant()) <= kNear;
}

// `guard` of outer + k, or k - outer, as one of outer * extent(inner) + inner: it holds at the same points. Nothing
// where it asks for more of the two axes.
std::optional<Guard> widened(const Kernel& kernel, const Guard& guard, int outer, int inner) {
  const Dim& extent = kernel.axes[static_cast<std::size_t>(inner)].extent;
  const auto step = guard.index.coefficient(outer);
  if (!step || guard.index.depends_on(inner)) return std::nullopt;
  Guard wide{guard.index * extent, guard.bound * extent};
  if (step->is(1))
    wide.index = wide.index + Index::axis(inner);
  else if (step->is(-1))
    wide.index = wide.index + Index(extent - Dim(1)) - Index::axis(inner);
  else
    return std::nullopt;
  return fits_offsets(kernel, wide) ? std::optional(wide) : std::nullopt;
}

// Whether the axes may be joined, at the price of guards that ask for both.
bool move_as_one(const Kernel& kernel, int outer, int inner) {
  const Dim& extent = kernel.axes[static_cast<std::size_t>(inner)].extent;
  bool one = true;
  const auto look = [&](const Index& index) { one = one && moves_as_one(index, outer, inner, extent); };
  for (const Instr& instr : kernel.body) {
    look(instr.index);
    look(instr.access.offset);
  }
  for (const Store& store : kernel.stores) look(store.access.offset);
  visit_guards(kernel, [&](const Guard& guard) {
    one = one && (moves_as_one(guard.index, outer, inner, extent) || widened(kernel, guard, outer, inner));
  });
  return one;
}

bool merge_one(Kernel& kernel, std::size_t movable) {
  for (std::size_t axis = 0; axis + 1 < movable; ++axis) {
    const Axis outer = kernel.axes[axis], inner = kernel.axes[axis + 1];
    const int a = static_cast<int>(axis), b = a + 1;
    const bool alike = outer.reduced == inner.reduced && !inner.extent.is(0) && reduced_together(kernel, a, b);
    if (!alike || !move_as_one(kernel, a, b)) continue;
    visit_guards(kernel, [&](Guard& guard) {
      if (!moves_as_one(guard.index, a, b, inner.extent)) guard = *widened(kernel, guard, a, b);
    });
    join(kernel, axis);
    return true;
  }
  return false;
}

// Batches of one matrix of weights are more of its rows: the innermost batch axis of a contract kernel joins m where
// only the first operand and the results vary along it. Single queries of several heads that share keys and values are
// the queries of one.
bool join_batch(Kernel& kernel) {
  const bool attend = kernel.kernel_class == ir::KernelClass::attend;
  const std::size_t fixed = attend ? 4 : 3;
  if ((!attend && kernel.kernel_class != ir::KernelClass::contract) || kernel.axes.size() < fixed + 1) return false;
  const std::size_t m = kernel.axes.size() - fixed, batch = m - 1;
  const bool batched_weights = std::any_of(kernel.body.begin(), kernel.body.end(), [&](const Instr& instr) {
    return instr.kind == InstrKind::contract && (kernel.instr(instr.args[1]).depends >> batch & 1) != 0;
  });
  if (batched_weights) return false;
  const Dim rows = kernel.axes[m].extent;
  if (rows.is(0) || (attend && !rows.is(1))) return false;
  if (rows.is(1)) {  // the batch's number is the row's
    std::vector<Axis> axes = kernel.axes;
    axes[m].extent = axes[batch].extent;
    axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(batch));
    std::vector<Index> replacement;
    for (std::size_t old = 0; old < kernel.axes.size(); ++old)
      replacement.push_back(old == m ? Index(0) : Index::axis(static_cast<int>(old - (old > batch))));
    rebuild(kernel, std::move(axes), replacement);
    return true;
  }
  bool one = true;
  visit_indices(kernel, [&](const Index& index) {
    one = one && moves_as_one(index, static_cast<int>(batch), static_cast<int>(m), rows);
  });
  if (!one) return false;
  const std::string name = kernel.axes[m].name;
  join(kernel, batch);
  kernel.axes[batch].name = name;
  return true;
}

// Fewer bytes than this of an innermost axis are no access worth the instruction.
constexpr std::int64_t kShortAxisBytes = 8;

// The innermost axis is a small power of two, and every store treats it and its neighbour as one.
bool inner_axis_is_short(const Kernel& kernel) {
  if (kernel.kernel_class != ir::KernelClass::map || kernel.axes.size() < 2) return false;
  const Dim& extent = kernel.axes.back().extent;
  const bool small = extent.is(2) || extent.is(4);
  const int inner = static_cast<int>(kernel.axes.size()) - 1;
  return small && std::all_of(kernel.stores.begin(), kernel.stores.end(), [&](const Store& store) {
           const DType dtype = kernel.operands[static_cast<std::size_t>(store.access.operand)].dtype;
           return extent.constant() * size_of(dtype) < kShortAxisBytes && store.access.guards.empty() &&
                  moves_as_one(store.access.offset, inner - 1, inner, extent);
         });
}

}  // namespace

void collapse_axes(Kernel& kernel) {
  std::size_t fixed = 0;
  if (kernel.kernel_class == ir::KernelClass::contract) fixed = 3;
  if (kernel.kernel_class == ir::KernelClass::attend) fixed = 4;
  TENON_CHECK(kernel.axes.size() >= fixed, "a kernel lacks axes of its class\n" + print(kernel));
  while (drop_one(kernel, kernel.axes.size() - fixed)) {
  }
  while (merge_one(kernel, kernel.axes.size() - fixed)) {
  }
  while (join_batch(kernel)) {
  }
}

void reorder_axes(Kernel& kernel, const std::vector<int>& order) {
  std::vector<Axis> axes;
  std::vector<Index> replacement(order.size());
  for (const int old : order) {
    replacement[static_cast<std::size_t>(old)] = Index::axis(static_cast<int>(axes.size()));
    axes.push_back(kernel.axes[static_cast<std::size_t>(old)]);
  }
  rebuild(kernel, std::move(axes), replacement);
}

namespace {

// The reduction of `count` elements, one behind the other, as maps at the end of `body`. What is the same at all places
// is there once.
InstrId combined(const Instr& reduction, const std::vector<InstrId>& elements, std::int64_t count,
                 std::vector<Instr>& body) {
  const auto add = [&](ir::Op op, std::vector<InstrId> args) {
    Instr map;
    map.kind = InstrKind::map;
    map.op = op;
    map.dtype = reduction.dtype;
    map.args = std::move(args);
    map.depends = reduction.depends;
    body.push_back(std::move(map));
    return static_cast<InstrId>(body.size()) - 1;
  };
  const auto element = [&](std::int64_t place) {
    const InstrId id = elements[elements.size() == 1 ? 0 : static_cast<std::size_t>(place)];
    return body[static_cast<std::size_t>(id)].dtype == reduction.dtype ? id : add(ir::Op::cast, {id});
  };
  InstrId all = element(0);
  for (std::int64_t place = 1; place < count; ++place) {
    const InstrId next = element(place);
    all = add(*ir::combining(reduction.op), {all, next});
  }
  body[static_cast<std::size_t>(all)].note = reduction.note;
  return all;
}

}  // namespace

bool can_unroll(const Kernel& kernel, int axis) {
  bool plain = kernel.axes[static_cast<std::size_t>(axis)].extent.is_constant();
  for (const Instr& instr : kernel.body) plain = plain && (instr.kind != InstrKind::reduce || ir::combining(instr.op));
  visit_guards(kernel, [&](const Guard& guard) { plain = plain && !guard.index.depends_on(axis); });
  visit_indices(kernel, [&](const Index& index) { plain = plain && index.values().empty(); });
  return plain;
}

void unroll_axis(Kernel& kernel, int axis) {
  TENON_CHECK(can_unroll(kernel, axis), "not unrolled\n" + print(kernel));
  const std::int64_t count = kernel.axes[static_cast<std::size_t>(axis)].extent.constant();
  const auto at_place = [&](std::int64_t place) {
    std::vector<Index> replacement;
    for (int old = 0; old < static_cast<int>(kernel.axes.size()); ++old)
      replacement.push_back(old == axis ? Index(Dim(place)) : Index::axis(old));
    return replacement;
  };
  const IndexContext context = kernel.context();
  std::vector<Instr> body;
  std::vector<std::vector<InstrId>> copies;  // of each instruction: one where all places share it
  for (const Instr& instr : kernel.body) {
    copies.emplace_back();
    if (instr.kind == InstrKind::reduce && contains(instr.axes, axis)) {
      copies.back() = {combined(instr, copies[static_cast<std::size_t>(instr.args[0])], count, body)};
      continue;
    }
    for (std::int64_t place = 0; place < ((instr.depends >> axis & 1) != 0 ? count : 1); ++place) {
      Instr copy = instr;
      const std::vector<Index> replacement = at_place(place);
      copy.index = replace_axes(copy.index, replacement, context);
      copy.access.offset = replace_axes(copy.access.offset, replacement, context);
      for (InstrId& arg : copy.args) {
        const std::vector<InstrId>& of_arg = copies[static_cast<std::size_t>(arg)];
        arg = of_arg[of_arg.size() == 1 ? 0 : static_cast<std::size_t>(place)];
      }
      copies.back().push_back(static_cast<InstrId>(body.size()));
      body.push_back(std::move(copy));
    }
  }
  std::vector<Store> stores;
  for (const Store& store : kernel.stores) {
    const std::vector<InstrId>& values = copies[static_cast<std::size_t>(store.value)];
    for (std::int64_t place = 0; place < (store.access.offset.depends_on(axis) ? count : 1); ++place) {
      Store copy = store;
      copy.access.offset = replace_axes(copy.access.offset, at_place(place), context);
      copy.value = values[values.size() == 1 ? 0 : static_cast<std::size_t>(place)];
      stores.push_back(std::move(copy));
    }
  }
  kernel.body = std::move(body);
  kernel.stores = std::move(stores);
  std::vector<Axis> axes = kernel.axes;
  axes.erase(axes.begin() + axis);
  std::vector<Index> replacement;
  for (int old = 0; old < static_cast<int>(kernel.axes.size()); ++old)
    replacement.push_back(old == axis ? Index(0) : Index::axis(old - (old > axis)));
  rebuild(kernel, std::move(axes), replacement);
}

void lengthen_inner_axis(Kernel& kernel) {
  while (inner_axis_is_short(kernel)) join(kernel, kernel.axes.size() - 2);
}

}  // namespace tenon::codegen

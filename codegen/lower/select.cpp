// Sums that select: over the elements of a row, sum(where(position == target, x, 0)) has one term that is not 0. It
// becomes x at the target, where the target lies in the row (the loss of a classifier picks its logit so): a value of
// the row, which needs no sweep over it and can be had before or after any reduction.
#include <map>
#include <optional>

#include "codegen/kernel/uses.h"
#include "codegen/kernel/visit.h"
#include "codegen/lower/body.h"

namespace tenon::codegen {
namespace {

struct Selection {
  InstrId sum = -1;
  int axis = -1;
  InstrId target = -1;    ///< an integer of the row
  InstrId selected = -1;  ///< x
  InstrId zero = -1;
};

bool is_map(const Instr& instr, ir::Op op) { return instr.kind == InstrKind::map && instr.op == op; }

// x's instructions along the axis, in definition order; nothing when one of them cannot be had at a gathered position.
std::optional<std::vector<InstrId>> cone_of(const Kernel& kernel, InstrId root, int axis) {
  std::vector<InstrId> cone;
  std::vector<bool> marked(kernel.body.size(), false);
  marked[static_cast<std::size_t>(root)] = true;
  for (InstrId id = root; id >= 0; --id) {
    if (!marked[static_cast<std::size_t>(id)] || !varies(kernel, id, axis)) continue;
    const Instr& instr = kernel.instr(id);
    const bool plain = instr.kind == InstrKind::map || instr.kind == InstrKind::round ||
                       (instr.kind == InstrKind::load && instr.access.guards.empty() &&
                        instr.access.offset.values().empty() && instr.access.offset.coefficient(axis));
    if (!plain) return std::nullopt;
    for (InstrId arg : instr.args) marked[static_cast<std::size_t>(arg)] = true;
    cone.insert(cone.begin(), id);
  }
  return cone;
}

std::optional<Selection> find_selection(const Kernel& kernel) {
  for (std::size_t i = 0; i < kernel.body.size(); ++i) {
    const Instr& sum = kernel.body[i];
    if (sum.kind != InstrKind::reduce || sum.op != ir::Op::sum || sum.axes.size() != 1) continue;
    const int axis = sum.axes[0];
    if (!kernel.axes[static_cast<std::size_t>(axis)].reduced) continue;  // known at the end of all rows only
    const Dim& extent = kernel.axes[static_cast<std::size_t>(axis)].extent;
    if (extent.bounds(kernel.symbols).min < 1) continue;  // an empty row has no element to read
    const Instr& select = kernel.instr(sum.args[0]);
    if (!is_map(select, ir::Op::where) || !is_zero(kernel.instr(select.args[2])) || select.dtype != sum.dtype) continue;
    const Instr& test = kernel.instr(select.args[0]);
    if (!is_map(test, ir::Op::equal)) continue;
    for (std::size_t side = 0; side < 2; ++side) {
      const Instr& position = kernel.instr(test.args[side]);
      const InstrId target = test.args[1 - side];
      const bool whole = position.dtype == DType::i64 ||
                         (position.dtype == DType::i32 && extent.bounds(kernel.symbols).max < (std::int64_t{1} << 31));
      if (position.kind != InstrKind::index || !whole || !(position.index == Index::axis(axis))) continue;
      if (varies(kernel, target, axis) || !cone_of(kernel, select.args[1], axis)) continue;
      return Selection{static_cast<InstrId>(i), axis, target, select.args[1], select.args[2]};
    }
  }
  return std::nullopt;
}

// `access` with the axis at `position`.
Access gathered(Access access, int axis, const Index& position) {
  const Dim step = *access.offset.coefficient(axis);
  access.offset = access.offset - Index::axis(axis) * step + position * step;
  return access;
}

bool gathers_later(const Kernel& kernel, InstrId from) {
  bool later = false;
  visit_indices(kernel, [&](const Index& index) {
    for (const int id : index.values()) later = later || id >= from;
  });
  return later;
}

// What takes the sum's place.
class Replacement {
 public:
  Replacement(const Kernel& kernel, const Selection& selection) : kernel_(kernel), selection_(selection) {}

  std::vector<Instr> build() {
    const Instr& target = kernel_.instr(selection_.target);
    const Dim& extent = kernel_.axes[static_cast<std::size_t>(selection_.axis)].extent;
    const InstrId zero = add(InstrKind::literal, target.dtype);
    instrs_.back().literal = std::int64_t{0};
    const InstrId length = add(InstrKind::index, target.dtype);
    instrs_.back().index = Index(extent);
    const InstrId not_before = map(ir::Op::greater_equal, DType::bool_, {selection_.target, zero});
    const InstrId not_behind = map(ir::Op::less, DType::bool_, {selection_.target, length});
    const InstrId there = map(ir::Op::logical_and, DType::bool_, {not_before, not_behind});
    const InstrId place = map(ir::Op::where, target.dtype, {there, selection_.target, zero});
    std::map<InstrId, InstrId> copies;
    const std::vector<InstrId> cone = cone_of(kernel_, selection_.selected, selection_.axis).value();
    for (const InstrId id : cone) {
      Instr copy = kernel_.instr(id);
      copy.depends = (copy.depends & ~(std::uint64_t{1} << selection_.axis)) | target.depends;
      if (copy.kind == InstrKind::load)
        copy.access = gathered(copy.access, selection_.axis, Index::value(place, extent));
      for (InstrId& arg : copy.args)
        if (const auto found = copies.find(arg); found != copies.end()) arg = found->second;
      copies[id] = add(std::move(copy));
    }
    const auto selected = copies.find(selection_.selected);
    const DType dtype = kernel_.instr(selection_.sum).dtype;
    map(ir::Op::where, dtype,
        {there, selected == copies.end() ? selection_.selected : selected->second, selection_.zero});
    instrs_.back().note = kernel_.instr(selection_.sum).note;
    return std::move(instrs_);
  }

 private:
  InstrId add(Instr instr) {
    instrs_.push_back(std::move(instr));
    return selection_.sum + static_cast<InstrId>(instrs_.size()) - 1;
  }
  InstrId add(InstrKind kind, DType dtype) {
    Instr instr;
    instr.kind = kind;
    instr.dtype = dtype;
    return add(std::move(instr));
  }
  InstrId map(ir::Op op, DType dtype, std::vector<InstrId> args) {
    Instr instr;
    instr.kind = InstrKind::map;
    instr.dtype = dtype;
    instr.op = op;
    instr.args = std::move(args);
    for (const InstrId arg : instr.args)
      instr.depends |= arg < selection_.sum ? kernel_.instr(arg).depends
                                            : instrs_[static_cast<std::size_t>(arg - selection_.sum)].depends;
    return add(std::move(instr));
  }

  const Kernel& kernel_;
  const Selection& selection_;
  std::vector<Instr> instrs_;
};

}  // namespace

void gather_selected(Kernel& kernel) {
  while (const auto selection = find_selection(kernel)) {
    if (gathers_later(kernel, selection->sum)) return;
    std::vector<Instr> instead = Replacement(kernel, *selection).build();
    const auto by = static_cast<InstrId>(instead.size()) - 1;
    const auto moved = [&](InstrId id) { return id >= selection->sum ? id + by : id; };
    for (auto user = kernel.body.begin() + selection->sum; user != kernel.body.end(); ++user)
      for (InstrId& arg : user->args) arg = moved(arg);
    for (Store& store : kernel.stores) store.value = moved(store.value);
    kernel.body[static_cast<std::size_t>(selection->sum)] = instead.back();
    kernel.body.insert(kernel.body.begin() + selection->sum, instead.begin(), instead.end() - 1);
  }
}

}  // namespace tenon::codegen

// See row_shape.h.
#include "codegen/analysis/row_shape.h"

#include <algorithm>

#include "codegen/analysis/held.h"
#include "codegen/analysis/rounds.h"
#include "codegen/analysis/vectorize.h"

namespace tenon::codegen {
namespace {

bool varies_on(const Kernel& kernel, std::uint64_t depends, bool reduced) {
  for (std::size_t axis = 0; axis < kernel.axes.size(); ++axis)
    if (kernel.axes[axis].reduced == reduced && (depends >> axis & 1) != 0) return true;
  return false;
}

}  // namespace

RowShape shape_of(const Kernel& kernel) {
  RowShape shape;
  Dim length(1), rows(1);
  for (const Axis& axis : kernel.axes) {
    shape.kept += !axis.reduced;
    (axis.reduced ? length : rows) = (axis.reduced ? length : rows) * axis.extent;
  }
  shape.rows = rows.bounds(kernel.symbols).max;
  shape.least_rows = rows.bounds(kernel.symbols).min;
  const SymbolBounds bounds = length.bounds(kernel.symbols);
  shape.known = bounds.min == bounds.max;
  shape.length = bounds.max;
  return shape;
}

std::vector<const Instr*> row_loads(const Kernel& kernel) {
  std::vector<const Instr*> loads;
  for (const Instr& instr : kernel.body)
    if (instr.kind == InstrKind::load && varies_on(kernel, instr.depends, true)) loads.push_back(&instr);
  return loads;
}

std::vector<const Instr*> row_streams(const Kernel& kernel) {
  std::vector<const Instr*> all = row_loads(kernel), own;
  for (const Instr* load : all)
    if (varies_on(kernel, load->depends, false)) own.push_back(load);
  return own.empty() ? all : own;
}

bool stores_elements(const Kernel& kernel) {
  return std::any_of(kernel.stores.begin(), kernel.stores.end(), [&](const Store& store) {
    for (std::size_t axis = 0; axis < kernel.axes.size(); ++axis)
      if (kernel.axes[axis].reduced && store.access.offset.depends_on(static_cast<int>(axis))) return true;
    return false;
  });
}

std::int64_t widest_of(const Kernel& kernel) {
  std::int64_t widest = 1;
  for (const Instr* load : row_loads(kernel)) widest = std::max(widest, element_bytes(kernel, load->access));
  return widest;
}

std::int64_t stream_bytes(const Kernel& kernel) {
  std::int64_t bytes = 0;
  for (const Instr* load : row_streams(kernel)) bytes += element_bytes(kernel, load->access);
  return std::max<std::int64_t>(1, bytes);
}

std::int64_t held_bytes(const Kernel& kernel) {
  const Rounds rounds = rounds_of(kernel);
  std::int64_t loaded = 0, held = 0;  // at first, and from then on
  for (const InstrId id : rounds.sweeps.empty() ? std::vector<InstrId>{} : rounds.sweeps[0].instrs)
    if (is_plain_load(kernel, id)) loaded += held_size(kernel, id);
  for (const Held& each : held_values(kernel, rounds)) held += held_size(kernel, each.value);
  return std::max(loaded, held);
}

bool rereads(const Kernel& kernel) {
  std::vector<bool> after(kernel.body.size(), false);
  const auto is_after = [&](InstrId id) { return after[static_cast<std::size_t>(id)]; };
  for (std::size_t i = 0; i < kernel.body.size(); ++i) {
    const Instr& instr = kernel.body[i];
    const bool uses = std::any_of(instr.args.begin(), instr.args.end(), is_after);
    if (uses && (varies_on(kernel, instr.depends, true) || instr.kind == InstrKind::reduce)) return true;
    after[i] = uses || instr.kind == InstrKind::reduce;
  }
  return false;
}

bool stores_across(const Kernel& kernel) {
  const std::size_t kept = shape_of(kernel).kept;
  const auto lies_across = [&](const Store& store) {
    return kept > 0 && store.access.offset.depends_on(static_cast<int>(kernel.axes.size()) - 1) &&
           step_along(store.access.offset, static_cast<int>(kept) - 1, 1, kernel) == 1;
  };
  return std::any_of(kernel.stores.begin(), kernel.stores.end(), lies_across);
}

bool finds_index(const Kernel& kernel) {
  return std::any_of(kernel.body.begin(), kernel.body.end(), [](const Instr& instr) {
    return instr.kind == InstrKind::reduce && ir::info(instr.op).yields == ir::Yields::Index;
  });
}

}  // namespace tenon::codegen

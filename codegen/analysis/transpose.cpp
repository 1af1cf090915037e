// See transpose.h.
#include "codegen/analysis/transpose.h"

#include <algorithm>

#include "codegen/analysis/vectorize.h"
#include "codegen/kernel/uses.h"

namespace tenon::codegen {
namespace {

bool is_transposed(const Kernel& kernel, const Access& access, int axis) {
  const int inner = static_cast<int>(kernel.axes.size()) - 1;
  const auto along = access.offset.coefficient(axis), across = access.offset.coefficient(inner);
  if (!along || !along->is(1) || !across || across->is(0) || across->is(1)) return false;
  return access.offset.values().empty() && std::all_of(access.guards.begin(), access.guards.end(),
                                                       [](const Guard& guard) { return guard.index.values().empty(); });
}

// Calls visit(access) for each transposed access.
template <typename Visit>
void visit_accesses(const Kernel& kernel, const Transposed& transposed, const Visit& visit) {
  for (InstrId load : transposed.loads) visit(kernel.instr(load).access);
  for (int store : transposed.stores) visit(kernel.stores[static_cast<std::size_t>(store)].access);
}

}  // namespace

Transposed transposed_along(const Kernel& kernel, int axis) {
  Transposed transposed;
  for (std::size_t i = 0; i < kernel.body.size(); ++i)
    if (kernel.body[i].kind == InstrKind::load && is_transposed(kernel, kernel.body[i].access, axis))
      transposed.loads.push_back(static_cast<InstrId>(i));
  for (std::size_t i = 0; i < kernel.stores.size(); ++i)
    if (kernel.stores[i].access.guards.empty() && is_transposed(kernel, kernel.stores[i].access, axis))
      transposed.stores.push_back(static_cast<int>(i));
  return transposed;
}

int transposed_axis(const Kernel& kernel) {
  int best = -1;
  std::int64_t most = 0;
  for (int axis = 0; axis + 1 < static_cast<int>(kernel.axes.size()); ++axis) {
    std::int64_t bytes = 0;
    visit_accesses(kernel, transposed_along(kernel, axis),
                   [&](const Access& access) { bytes += element_bytes(kernel, access); });
    if (bytes > most) most = bytes, best = axis;
  }
  return best;
}

int transposed_vector(const Kernel& kernel, const Access& access, int axis, int limit) {
  const Dim& extent = kernel.axes[static_cast<std::size_t>(axis)].extent;
  const auto widest = std::min<std::int64_t>(limit, 16 / element_bytes(kernel, access));
  int vector = power_of_two_divisor(extent, static_cast<int>(widest), kernel.symbols);
  while (vector > 1 && vector_width(access, axis, vector, kernel) != vector) vector /= 2;
  return vector;
}

bool shifts_load(const Kernel& kernel, const MapSchedule& schedule, InstrId load) {
  const Access& access = kernel.instr(load).access;
  const auto whole = static_cast<int>(16 / element_bytes(kernel, access));
  return schedule.tile->shift && whole > 1 && transposed_vector(kernel, access, schedule.tile->axis, whole) < whole;
}

bool shifts_stores(const Kernel& kernel, const MapSchedule& schedule) {
  const int inner = static_cast<int>(kernel.axes.size()) - 1, vector = schedule.vector;
  return schedule.tile->shift && vector > 1 &&
         (power_of_two_divisor(kernel.axes.back().extent, vector, kernel.symbols) != vector ||
          std::any_of(kernel.stores.begin(), kernel.stores.end(),
                      [&](const Store& store) { return vector_width(store.access, inner, vector, kernel) != vector; }));
}

bool may_shift(const Kernel& kernel, const MapSchedule& schedule) {
  const Transposed transposed = transposed_along(kernel, schedule.tile->axis);
  const int inner = static_cast<int>(kernel.axes.size()) - 1;
  const bool unguarded = std::all_of(transposed.loads.begin(), transposed.loads.end(),
                                     [&](InstrId load) { return kernel.instr(load).access.guards.empty(); });
  return !schedule.flat && unguarded && transposed.stores.empty() &&
         std::all_of(kernel.stores.begin(), kernel.stores.end(), [&](const Store& store) {
           return store.access.guards.empty() && store.access.offset.values().empty() &&
                  (schedule.vector == 1 || peeled_width(store.access, kernel.stores[0].access, inner, schedule.vector,
                                                        kernel) == schedule.vector);
         });
}

bool gains_by_shift(const Kernel& kernel, const MapSchedule& schedule) {
  const Transposed transposed = transposed_along(kernel, schedule.tile->axis);
  return shifts_stores(kernel, schedule) ||
         std::any_of(transposed.loads.begin(), transposed.loads.end(),
                     [&](InstrId load) { return shifts_load(kernel, schedule, load); });
}

std::vector<InstrId> draws_along(const Kernel& kernel, const MapTile& tile) {
  constexpr int kWords = 4;  // of a block
  std::vector<InstrId> draws;
  if (tile.shift) return draws;
  for (std::size_t i = 0; i < kernel.body.size(); ++i) {
    const auto id = static_cast<InstrId>(i);
    const Instr& instr = kernel.instr(id);
    if (instr.kind == InstrKind::random && instr.word < 0 && !varies(kernel, instr.args[0], tile.axis) &&
        instr.index.values().empty() && counts_up(instr.index, tile.axis, false, kWords, kWords, kernel))
      draws.push_back(id);
  }
  return draws;
}

std::int64_t transpose_bytes(const Kernel& kernel, const MapTile& tile) {
  std::int64_t bytes = 0;
  const auto add = [&](std::int64_t size) {
    const std::int64_t word = std::max<std::int64_t>(1, 4 / size);
    const std::int64_t elements = tile.rows * (tile.columns + word) + (tile.rows + 31) / 32 * 4 * word;
    bytes += (elements * size + 15) / 16 * 16;
  };
  visit_accesses(kernel, transposed_along(kernel, tile.axis),
                 [&](const Access& access) { add(element_bytes(kernel, access)); });
  for (std::size_t draw = 0; draw < draws_along(kernel, tile).size(); ++draw) add(sizeof(std::uint32_t));
  return bytes;
}

}  // namespace tenon::codegen

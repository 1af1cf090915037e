// Vectors of a thread side by side along the outermost axis of a Map kernel: where they may lie so, and where that is
// the heuristics' choice. What is the same along that axis then passes from L2 once for all of them, and their gathers
// are under way together.
#include <algorithm>

#include "codegen/schedule_choices.h"
#include "codegen/vectorize.h"

namespace tenon::codegen {
namespace {

constexpr std::int64_t kLoadedBytes = 128;  // that a thread holds of what differs between its vectors: 32 registers
constexpr int kLeastUnroll = 4;             // two vectors took longer than one (bench/results/map-log.md)
constexpr int kWaves = 4;                   // blocks for each multiprocessor that must be left

bool varies(const Instr& instr, std::size_t axis) { return (instr.depends >> axis & 1) != 0; }

// A tensor that every point of the outermost axis reads again, element by element.
bool is_shared(const Kernel& kernel, const Instr& instr) {
  return instr.kind == InstrKind::load && !varies(instr, 0) && varies(instr, kernel.axes.size() - 1);
}

// Rows of a tensor that another tensor chooses.
bool is_gather(const Instr& instr) { return instr.kind == InstrKind::load && !instr.access.offset.values().empty(); }

// Of one point, loaded by each vector of a thread for itself.
std::int64_t own_bytes(const Kernel& kernel) {
  std::int64_t bytes = 0;
  for (const Instr& instr : kernel.body)
    if (instr.kind == InstrKind::load && varies(instr, 0) && varies(instr, kernel.axes.size() - 1))
      bytes += size_of(kernel.operands[static_cast<std::size_t>(instr.access.operand)].dtype);
  return bytes;
}

}  // namespace

bool may_spread(const Kernel& kernel, const MapSchedule& schedule) {
  Dim points(1);
  for (const Axis& axis : kernel.axes) points = points * axis.extent;
  const bool shared = std::any_of(kernel.body.begin(), kernel.body.end(), [](const Instr& instr) {
    return instr.kind == InstrKind::load && instr.depends != 0 && !varies(instr, 0);
  });
  return shared && kernel.axes.size() > 1 && !schedule.flat && schedule.tile_axis < 0 &&
         power_of_two_divisor(kernel.axes[0].extent, schedule.unroll, kernel.symbols) == schedule.unroll &&
         points.is_constant() &&
         points.constant() % (std::int64_t{schedule.threads} * schedule.vector * schedule.unroll) == 0;
}

MapSchedule spread_where_it_pays(const Kernel& kernel, const Target& target, const MapSchedule& chosen) {
  const auto any = [&](const auto& holds) { return std::any_of(kernel.body.begin(), kernel.body.end(), holds); };
  if (kernel.axes.size() < 2 || !any(is_gather) || !any([&](const Instr& instr) { return is_shared(kernel, instr); }))
    return chosen;
  MapSchedule spread = chosen;
  spread.spread = true;
  spread.threads = 128;
  for (spread.unroll = 8; spread.unroll >= kLeastUnroll; spread.unroll /= 2) {
    Dim points(1);
    for (const Axis& axis : kernel.axes) points = points * axis.extent;
    const std::int64_t per_block = std::int64_t{spread.threads} * spread.vector * spread.unroll;
    if (spread.unroll * spread.vector * own_bytes(kernel) <= kLoadedBytes && may_spread(kernel, spread) &&
        points.constant() / per_block >= std::int64_t{kWaves} * target.multiprocessors)
      return spread;
  }
  return chosen;
}

}  // namespace tenon::codegen

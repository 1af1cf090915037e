// Vectors of a thread side by side along the outermost axis of a Map kernel: where they may lie so, and where that is
// the heuristics' choice. What is the same along that axis is then loaded once for all of them, which pays where it
// would else come from memory anew for each: where more passes between two points of that axis than the caches keep.
#include <algorithm>

#include "codegen/analysis/vectorize.h"
#include "codegen/schedule/choices.h"

namespace tenon::codegen {
namespace {

constexpr int kKeptPercent = 32;            // of the L2, for a walk along the other axes: the next finds it there
constexpr std::int64_t kShare = 4;          // a fourth of what a point moves must be shared
constexpr std::int64_t kLoadedBytes = 256;  // that a thread holds of what differs between its vectors: 64 registers
constexpr int kLeastUnroll = 3;             // two vectors took longer than one (bench/results/map-log.md)
constexpr int kMostUnroll = 16;
// Where what the caches keep is so many times the rest (bf16 [131072, 768] by four vectors of its channels on an H200:
// 125 us as it lies, 97 by four vectors, 96 by two; [262144, 128] 41.4 and 35.4).
constexpr std::int64_t kCrowded = 2;
constexpr int kUnrollOfCached = 4;
constexpr std::int64_t kApart = 64;  // points of a row, of which a warp has different ones (f16 [.., 8]: 71 us, 90 so)
constexpr int kWaves = 4;            // blocks for each multiprocessor that must be left

bool varies(const Instr& instr, std::size_t axis) { return (instr.depends >> axis & 1) != 0; }

// What one point moves, of tensors that differ from element to element.
struct Bytes {
  std::int64_t shared = 0, own = 0, stored = 0;  // loaded by every point of the outermost axis alike, or for itself
  std::int64_t cached = 0;                       // what is alike and stays in the caches until it is loaded again
  std::int64_t all() const { return shared + own + stored; }
};

// Points between two that load the same element: those of the axes from the first one on that it varies along. The
// extents are constants.
std::int64_t points_between(const Kernel& kernel, const Instr& load) {
  std::size_t first = 0;
  while (!varies(load, first)) ++first;
  std::int64_t points = 1;
  for (std::size_t axis = first; axis < kernel.axes.size(); ++axis) points *= kernel.axes[axis].extent.constant();
  return points;
}

// What the caches keep in the meantime costs little to load again (f16 [32, 7, 68, 12288] and two rows on an H100: 375
// us spread for the rows' sake, 285 as it lies), unless it is much more than the rest.
Bytes bytes_of_point(const Kernel& kernel, const Target& target) {
  Bytes bytes;
  for (const Store& store : kernel.stores) bytes.stored += element_bytes(kernel, store.access);
  const auto each = [&](const auto& take) {
    for (const Instr& instr : kernel.body)
      if (instr.kind == InstrKind::load && varies(instr, kernel.axes.size() - 1))
        take(instr, element_bytes(kernel, instr.access));
  };
  std::int64_t all = bytes.stored;
  each([&](const Instr&, std::int64_t size) { all += size; });
  each([&](const Instr& load, std::int64_t size) {
    if (varies(load, 0))
      bytes.own += size;
    else if (points_between(kernel, load) * all >= percent_of_l2(target, kKeptPercent))
      bytes.shared += size;
    else
      bytes.cached += size;
  });
  return bytes;
}

}  // namespace

bool may_spread(const Kernel& kernel, const MapSchedule& schedule) {
  Dim points(1);
  for (const Axis& axis : kernel.axes) points = points * axis.extent;
  const bool shared = std::any_of(kernel.body.begin(), kernel.body.end(), [](const Instr& instr) {
    return instr.kind == InstrKind::load && instr.depends != 0 && !varies(instr, 0);
  });
  return shared && kernel.axes.size() > 1 && !schedule.flat && !schedule.tile &&
         kernel.axes[0].extent.bounds(kernel.symbols).divisor % schedule.unroll == 0 && points.is_constant() &&
         points.constant() % (std::int64_t{schedule.threads} * schedule.vector * schedule.unroll) == 0;
}

MapSchedule spread_where_it_pays(const Kernel& kernel, const Target& target, const MapSchedule& chosen) {
  MapSchedule spread = chosen;
  spread.spread = true;
  Dim points(1);
  for (const Axis& axis : kernel.axes) points = points * axis.extent;
  if (kernel.axes.size() < 2 || !points.is_constant() || !kernel.axes[0].extent.is_constant()) return chosen;
  const Bytes bytes = bytes_of_point(kernel, target);
  const bool apart = kernel.axes.back().extent.is_constant() && kernel.axes.back().extent.constant() >= kApart;
  const bool crowded = apart && bytes.shared == 0 && bytes.cached >= kCrowded * bytes.all();
  if (!crowded) {
    if (bytes.shared * kShare < bytes.all() || bytes.shared == 0) return chosen;
    spread.cache.streaming_loads = true;
    spread.cache.keep_reads = false;
  }
  for (int unroll = crowded ? kUnrollOfCached : kMostUnroll; unroll >= (crowded ? 2 : kLeastUnroll); --unroll) {
    if (kernel.axes[0].extent.constant() % unroll != 0) continue;
    spread.unroll = unroll;
    spread.threads = spread.unroll == 16 ? 256 : 128;
    const std::int64_t per_block = std::int64_t{spread.threads} * spread.vector * spread.unroll;
    if (spread.unroll * spread.vector * bytes.own <= kLoadedBytes && may_spread(kernel, spread) &&
        points.constant() / per_block >= std::int64_t{kWaves} * target.multiprocessors)
      return spread;
  }
  return chosen;
}

}  // namespace tenon::codegen

// Flat tiles (codegen/analysis/flat_tile.h) as the heuristics' choice for Map kernels: where a load lies across the
// domain, and no tile of two axes has long rows on both sides.
#include <algorithm>
#include <vector>

#include "codegen/analysis/flat_tile.h"
#include "codegen/analysis/transpose.h"
#include "codegen/analysis/vectorize.h"
#include "codegen/schedule/choices.h"

namespace tenon::codegen {
namespace {

constexpr int kThreads = 128;
// Of one or two loads each: more blocks have more under way (bf16 [3, 9543, 8, 16, 8, 2] turned around and added on an
// H100: 151 us by 32 KB, 67 by 8; mish of f16 [128, 65, 2048, 3] turned on an H200 107 by 256 threads with 20 KB, 67 by
// 128 with 8; patches of 3 x 3 of bf16 85 and 58).
constexpr std::int64_t kMostBytes = 8 << 10;
constexpr int kWaves = 2;                                      // blocks for each multiprocessor
constexpr std::int64_t kLongestRun = 2048, kShortestRun = 32;  // bytes that follow each other, on both sides
constexpr std::int64_t kLeastVector =
    8;                              // bytes of a store: below it a tile of two axes is faster, and so are loads as
constexpr double kLeastUsed = 0.5;  // they lie that share their sectors (shuffled pixels of odd images, on an H100:
                                    // 0.99 of a copy, 0.44 through a flat tile; all six axes turned around: 0.04)

std::int64_t narrowest_element(const Kernel& kernel, const std::vector<FlatLoad>& loads) {
  std::int64_t narrowest = 8;
  for (const FlatLoad& load : loads)
    narrowest = std::min(narrowest, element_bytes(kernel, kernel.instr(load.id).access));
  for (const Store& store : kernel.stores) narrowest = std::min(narrowest, element_bytes(kernel, store.access));
  return narrowest;
}

// Whether the tile of two axes has all that lies across, rows of 64 bytes, and few points outside the domain.
bool serves(const MapTile& tile, const Kernel& kernel, const std::vector<FlatLoad>& loads, std::int64_t size) {
  constexpr std::int64_t kLeastBytes = 64, kLeastPercent = 45;
  const Transposed transposed = transposed_along(kernel, tile.axis);
  const bool all = std::all_of(loads.begin(), loads.end(), [&](const FlatLoad& load) {
    return std::find(transposed.loads.begin(), transposed.loads.end(), load.id) != transposed.loads.end();
  });
  const auto points = [&](const Axis& axis) { return axis.extent.constant(); };
  const auto dealt = [&](const Axis& axis, int part) { return (points(axis) + part - 1) / part * part; };
  const Axis &row = kernel.axes[static_cast<std::size_t>(tile.axis)], &column = kernel.axes.back();
  const bool long_rows = std::min<std::int64_t>(points(row), tile.rows) * size >= kLeastBytes &&
                         std::min<std::int64_t>(points(column), tile.columns) * size >= kLeastBytes;
  return all && long_rows &&
         100 * points(row) * points(column) >= kLeastPercent * dealt(row, tile.rows) * dealt(column, tile.columns);
}

// Whether a few streams become one, element by element, each of them in long runs: a thread may as well load them as
// they are (H200: pixels shuffled by twos, bf16 [4, 512, 256, 256], 170 us through a flat tile, 137 so; by fours, of
// bytes, 94 and 64).
bool weaves_elements(const Kernel& kernel, const FlatTile& tile) {
  constexpr std::int64_t kStreams = 4, kPoints = 256;
  return std::any_of(tile.loads.begin(), tile.loads.end(), [&](const FlatLoad& load) {
    std::int64_t streams = 1;
    for (int axis = load.order[0] + 1; axis < static_cast<int>(kernel.axes.size()); ++axis)
      streams *= kernel.axes[static_cast<std::size_t>(axis)].extent.constant();
    const std::int64_t run = kernel.axes[static_cast<std::size_t>(load.order[0])].extent.constant();
    return streams <= kStreams && streams * run >= kPoints;
  });
}

// Of the sectors that a load brings for so many neighbouring points of the domain, the share that these use.
double share_used(const Kernel& kernel, const Access& access, std::int64_t points = 256) {
  constexpr std::int64_t kSector = 32;
  const std::int64_t size = element_bytes(kernel, access);
  std::vector<std::int64_t> sectors;
  for (std::int64_t point = 0; point < points; ++point) {
    std::int64_t rest = point, offset = 0;
    for (std::size_t axis = kernel.axes.size(); axis-- > 0;) {
      const std::int64_t extent = kernel.axes[axis].extent.constant();
      offset += access.offset.coefficient(static_cast<int>(axis))->constant() * (rest % extent);
      rest /= extent;
    }
    sectors.push_back(offset * size / kSector);
  }
  std::sort(sectors.begin(), sectors.end());
  sectors.erase(std::unique(sectors.begin(), sectors.end()), sectors.end());
  return static_cast<double>(points * size) / static_cast<double>(kSector * std::ssize(sectors));
}

// Whether all loads come in short runs of the innermost axis, which a tile would load element by element, and the
// points of a few blocks use up what they bring: the L1 has it for them (H200: patches of 3 x 3 of bf16 [51, 32, 225,
// 225] 373 us through a tile, 150 so; of f16 [4, 96, 384, 384], whose rows come in vectors, 86 and 169).
bool leaves_runs_to_l1(const Kernel& kernel, const FlatTile& tile) {
  constexpr std::int64_t kPointsOfBlocks = 8192;
  constexpr double kLeastOfL1 = 0.7;
  std::int64_t points = 1;
  for (const Axis& axis : kernel.axes) points *= std::min(axis.extent.constant(), kPointsOfBlocks);
  return std::all_of(tile.loads.begin(), tile.loads.end(), [&](const FlatLoad& load) {
    return load.order[0] == static_cast<int>(kernel.axes.size()) - 1 && load.vector == 1 &&
           share_used(kernel, kernel.instr(load.id).access, std::min(points, kPointsOfBlocks)) >= kLeastOfL1;
  });
}

std::int64_t boxes(const Kernel& kernel, const FlatTile& tile) {
  std::int64_t boxes = 1;
  for (std::size_t axis = 0; axis < kernel.axes.size(); ++axis)
    boxes *= (kernel.axes[axis].extent.constant() + tile.extents[axis] - 1) / tile.extents[axis];
  return boxes;
}

}  // namespace

bool turn_short_axes(MapSchedule& schedule, const Kernel& kernel, int vector) {
  constexpr std::int64_t kMostPoints = 64;
  const std::vector<FlatLoad> loads = loads_across(kernel);
  const int rank = static_cast<int>(kernel.axes.size());
  const bool turned = !loads.empty() && std::all_of(loads.begin(), loads.end(), [&](const FlatLoad& load) {
    int among = 0;  // so many innermost axes lie in another order
    for (int i = 0; i < static_cast<int>(load.order.size()); ++i)
      if (load.order[static_cast<std::size_t>(i)] != rank - 1 - i) among = i + 1;
    std::int64_t points = 1;
    for (int axis = rank - among; axis < rank; ++axis)
      points *= kernel.axes[static_cast<std::size_t>(axis)].extent.constant();
    return among > 0 && points <= kMostPoints;
  });
  const bool flat = std::all_of(kernel.stores.begin(), kernel.stores.end(),
                                [&](const Store& store) { return flat_width(store.access, vector, kernel) == vector; });
  if (!turned || !flat || vector == 1) return false;
  schedule.tile.reset();
  schedule.vector = vector;
  schedule.flat = true;
  return true;
}

bool choose_flat_tile(MapSchedule& schedule, const Kernel& kernel, const Target& target, int vector) {
  const std::vector<FlatLoad> loads = loads_across(kernel);
  if (loads.empty()) return false;
  const std::int64_t size = narrowest_element(kernel, loads);
  const std::int64_t stored = narrowest_stored(kernel);
  // A tile of two axes that stores single elements does not serve where a flat one stores vectors (f16 [3, 69, 314008]
  // to [3, 314008, 69] on an H100: 168 us, flat 118).
  const bool whole_stores = schedule.tile && (schedule.tile->shift || schedule.vector * stored >= kLeastVector);
  if (whole_stores && serves(*schedule.tile, kernel, loads, size)) return false;
  const bool shared = schedule.tile || std::all_of(loads.begin(), loads.end(), [&](const FlatLoad& load) {
                        return share_used(kernel, kernel.instr(load.id).access) >= kLeastUsed;
                      });
  MapSchedule chosen;
  std::int64_t most = 0;  // bytes of its box
  const auto take = [&](std::int64_t rows, std::int64_t columns) {
    MapSchedule flat = schedule;
    flat.flat = true;
    flat.threads = kThreads;
    flat.tile =
        MapTile{.axis = loads[0].order[0], .rows = static_cast<int>(rows), .columns = static_cast<int>(columns)};
    flat.vector = flat_tile_vector(kernel, *flat.tile, vector);
    const auto tile = flat_tile_of(kernel, flat);
    if (flat.vector * stored < kLeastVector && shared) return false;
    if (!tile || weaves_elements(kernel, *tile) || boxes(kernel, *tile) < std::int64_t{kWaves} * target.multiprocessors)
      return false;
    const std::int64_t bytes = shared_bytes(kernel, *tile);
    if (bytes > kMostBytes * std::min<std::int64_t>(2, std::ssize(loads)) || bytes <= most) return false;
    most = bytes;
    chosen = flat;
    return true;
  };
  std::int64_t run = kLongestRun / size;
  while (run * size >= kShortestRun && !take(run, run)) run /= 2;
  if (most == 0 || (!schedule.tile && leaves_runs_to_l1(kernel, *flat_tile_of(kernel, chosen)))) return false;
  if (!take(2 * run, run)) take(run, 2 * run);
  schedule = chosen;
  return true;
}

}  // namespace tenon::codegen

// Flat tiles (codegen/analysis/flat_tile.h) as the heuristics' choice for Map kernels: where a load lies across the
// domain, and no tile of two axes has long rows on both sides.
#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "codegen/analysis/flat_tile.h"
#include "codegen/analysis/lines.h"
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
// Of a store: below it a tile of two axes is faster, and so are loads as they lie of which 256 points use so much of
// the sectors that they bring (shuffled pixels of odd images, on an H100: 0.99 of a copy, 0.44 through a flat tile; all
// six axes turned around: 0.04).
constexpr std::int64_t kLeastVector = 8;  // bytes
constexpr std::int64_t kPointsOfWarps = 256;
constexpr double kLeastUsed = 0.4;

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

// Whether the points of a block use most of the sectors that they bring, and those of a few blocks all: the L1 has
// them.
bool stay_in_l1(const Kernel& kernel, const std::vector<FlatLoad>& loads) {
  constexpr std::int64_t kPointsOfBlock = 2048, kPointsOfBlocks = 8192;
  constexpr double kLeastOfBlock = 0.5, kLeastOfBlocks = 0.7;
  std::int64_t points = 1;
  for (const Axis& axis : kernel.axes)
    points = std::min(kPointsOfBlocks, points * std::min(axis.extent.constant(), kPointsOfBlocks));
  return std::all_of(loads.begin(), loads.end(), [&](const FlatLoad& load) {
    const Access& access = kernel.instr(load.id).access;
    return share_of_sectors(kernel, access, std::min(points, kPointsOfBlock)).value_or(0) >= kLeastOfBlock &&
           share_of_sectors(kernel, access, points).value_or(0) >= kLeastOfBlocks;
  });
}

// Whether the places in a tile of the neighbours that a thread loads take quotients to find, one for each: where they
// lie across the ends of rows whose length is no power of two, or are no neighbours.
bool divides_for_places(const FlatTile& tile, const FlatLoad& load) {
  const auto extent = [&](int axis) { return static_cast<unsigned>(tile.extents[static_cast<std::size_t>(axis)]); };
  if (load.vector == 1) return true;
  unsigned run = 1;
  if (load.piece > 1) return false;
  for (const int axis : load.order) {
    run *= extent(axis);
    if (run % static_cast<unsigned>(load.vector) == 0) return false;
    if (!std::has_single_bit(extent(axis))) return true;
  }
  return false;
}

// Turns that the threads of a warp take to store a word each, because several want one bank.
int turns_of_stores(const Kernel& kernel, const FlatTile& tile, const FlatLoad& load) {
  constexpr int kLanes = 32, kBanks = 32;
  constexpr std::int64_t kWord = 4;
  const std::int64_t size = element_bytes(kernel, kernel.instr(load.id).access);
  std::array<std::vector<std::int64_t>, kBanks> words;
  std::size_t turns = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    std::int64_t rest = std::int64_t{lane} * load.vector, place = 0;
    for (const int axis : load.order) {
      const std::int64_t extent = tile.extents[static_cast<std::size_t>(axis)];
      place += rest % extent * load.strides[static_cast<std::size_t>(axis)];
      rest /= extent;
    }
    const std::int64_t word = place * size / kWord;
    std::vector<std::int64_t>& bank = words[static_cast<std::size_t>(word % kBanks)];
    if (std::find(bank.begin(), bank.end(), word) == bank.end()) bank.push_back(word);
    turns = std::max(turns, bank.size());
  }
  return static_cast<int>(static_cast<std::int64_t>(turns) / std::max<std::int64_t>(1, load.piece * size / kWord));
}

// Whether a few streams become one, element by element, each of them in long runs: a thread may as well load them as
// they are (H200: pixels shuffled by twos, bf16 [4, 512, 256, 256], 170 us through a flat tile, 137 so; by fours, of
// bytes, 94 and 64).
bool weaves_elements(const Kernel& kernel, const FlatLoad& load) {
  constexpr std::int64_t kStreams = 4, kPoints = 256;
  std::int64_t streams = 1;
  for (int axis = load.order[0] + 1; axis < static_cast<int>(kernel.axes.size()); ++axis)
    streams *= kernel.axes[static_cast<std::size_t>(axis)].extent.constant();
  const std::int64_t run = kernel.axes[static_cast<std::size_t>(load.order[0])].extent.constant();
  return streams <= kStreams && streams * run >= kPoints;
}

// Whether loads as they lie take less than those that pass through a tile: the L1 has what they ask for, and to fill
// the tile is many instructions (H200: patches of 3 x 3 of bf16 [51, 32, 225, 225] 373 us through a tile, 150 so, but
// of f16 [4, 96, 384, 384], of which a block uses 44 %, 86 and 169; pixels of f32 [64, 256, 31, 31] shuffled by fours
// 86 and 35, but of bf16 by twos, whose places are shifts, 72 and 339).
bool leaves_to_l1(const Kernel& kernel, const FlatTile& tile) {
  constexpr int kManyTurns = 5;
  return stay_in_l1(kernel, tile.loads) && std::all_of(tile.loads.begin(), tile.loads.end(), [&](const FlatLoad& load) {
           return divides_for_places(tile, load) || turns_of_stores(kernel, tile, load) >= kManyTurns;
         });
}

// No tile, and vectors that lie like the results, where these do.
bool store_flat_vectors(MapSchedule& schedule, const Kernel& kernel, int vector) {
  const bool flat = std::all_of(kernel.stores.begin(), kernel.stores.end(),
                                [&](const Store& store) { return flat_width(store.access, vector, kernel) == vector; });
  if (!flat || vector == 1) return false;
  schedule.tile.reset();
  schedule.vector = vector;
  schedule.flat = power_of_two_divisor(kernel.axes.back().extent, vector, kernel.symbols) != vector;
  return true;
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
  return turned && store_flat_vectors(schedule, kernel, vector);
}

bool choose_flat_tile(MapSchedule& schedule, const Kernel& kernel, const Target& target, int vector) {
  const std::vector<FlatLoad> loads = loads_across(kernel);
  if (loads.empty()) return false;
  if (std::any_of(loads.begin(), loads.end(), [&](const FlatLoad& load) { return weaves_elements(kernel, load); }))
    return stay_in_l1(kernel, loads) && store_flat_vectors(schedule, kernel, vector);
  const std::int64_t size = narrowest_element(kernel, loads);
  const std::int64_t stored = narrowest_stored(kernel);
  // A tile of two axes that stores single elements does not serve where a flat one stores vectors (f16 [3, 69, 314008]
  // to [3, 314008, 69] on an H100: 168 us, flat 118).
  const bool whole_stores = schedule.tile && (schedule.tile->shift || schedule.vector * stored >= kLeastVector);
  if (whole_stores && serves(*schedule.tile, kernel, loads, size)) return false;
  const bool shared =
      schedule.tile || std::all_of(loads.begin(), loads.end(), [&](const FlatLoad& load) {
        return share_of_sectors(kernel, kernel.instr(load.id).access, kPointsOfWarps).value_or(0) >= kLeastUsed;
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
    if (!tile || boxes(kernel, *tile) < std::int64_t{kWaves} * target.multiprocessors) return false;
    const std::int64_t bytes = shared_bytes(kernel, *tile);
    if (bytes > kMostBytes * std::min<std::int64_t>(2, std::ssize(loads)) || bytes <= most) return false;
    most = bytes;
    chosen = flat;
    return true;
  };
  std::int64_t run = kLongestRun / size;
  while (run * size >= kShortestRun && !take(run, run)) run /= 2;
  if (most == 0) return false;
  if (leaves_to_l1(kernel, *flat_tile_of(kernel, chosen)) && store_flat_vectors(schedule, kernel, vector)) return true;
  if (!take(2 * run, run)) take(run, 2 * run);
  schedule = chosen;
  return true;
}

}  // namespace tenon::codegen

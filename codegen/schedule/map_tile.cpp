// Tiles of two axes in shared memory as the heuristics' choice for Map kernels, for loads that lie across the stores.
#include <algorithm>
#include <limits>

#include "codegen/analysis/draws.h"
#include "codegen/analysis/transpose.h"
#include "codegen/analysis/vectorize.h"
#include "codegen/schedule/choices.h"
#include "codegen/schedule/map_choices.h"

namespace tenon::codegen {
namespace {

constexpr double kFuller = 1.25;  // tiles, for which they have half as many columns

// Every store writes along the innermost axis, or is among `transposed`.
bool stores_are_contiguous(const Kernel& kernel, const Transposed& transposed) {
  const int inner = static_cast<int>(kernel.axes.size()) - 1;
  const auto along_inner = std::count_if(kernel.stores.begin(), kernel.stores.end(), [&](const Store& store) {
    const auto step = store.access.offset.coefficient(inner);
    return step && (step->is(1) || step->is(0));
  });
  return static_cast<std::size_t>(along_inner) + transposed.stores.size() == kernel.stores.size();
}

// Blocks of tiles of `size` x `size`, when the extents are known.
std::int64_t least_tiles(const Kernel& kernel, int axis, int size) {
  Dim tiles(1);
  for (int a = 0; a < static_cast<int>(kernel.axes.size()); ++a) {
    const Dim& extent = kernel.axes[static_cast<std::size_t>(a)].extent;
    const bool tiled = a == axis || a + 1 == static_cast<int>(kernel.axes.size());
    tiles = tiles * (tiled ? (extent + Dim(size - 1)).floor_div(size) : extent);
  }
  return tiles.is_constant() ? tiles.constant() : std::numeric_limits<std::int64_t>::max();
}

// Of the columns of tiles that overlap by a vector, the share that an axis of so many points fills.
double share_filled(std::int64_t points, int columns, int vector) {
  const std::int64_t step = columns - vector, tiles = (points + vector - 1 + step - 1) / step;
  return static_cast<double>(points) / static_cast<double>(tiles * step);
}

}  // namespace

// A tile wide enough for 128 bytes of each load on one side, as far as the extents fill it and shared memory holds it.
void choose_tile(MapSchedule& schedule, const Kernel& kernel, const Target& target) {
  const int axis = transposed_axis(kernel);
  if (axis < 0) return;
  const Transposed transposed = transposed_along(kernel, axis);
  if (!stores_are_contiguous(kernel, transposed)) return;
  const auto extent = [&](int a) { return kernel.axes[static_cast<std::size_t>(a)].extent.bounds(kernel.symbols).max; };
  const std::int64_t rows = extent(axis), columns = extent(static_cast<int>(kernel.axes.size()) - 1);
  if (rows < ir::kTransposedExtent || columns < ir::kTransposedExtent) return;
  std::vector<Access> accesses;
  for (InstrId load : transposed.loads) accesses.push_back(kernel.instr(load).access);
  for (int store : transposed.stores) accesses.push_back(kernel.stores[static_cast<std::size_t>(store)].access);
  std::int64_t narrowest = 8;
  for (const Access& access : accesses) narrowest = std::min(narrowest, element_bytes(kernel, access));
  const int widest = narrowest == 1 ? 128 : narrowest == 8 ? 32 : 64;
  const bool few = least_tiles(kernel, axis, widest) < 2 * target.multiprocessors;
  const auto fitting = [&](std::int64_t size) {
    return size <= 32 || few ? 32 : size <= 64 ? std::min(64, widest) : widest;
  };
  MapTile tile{axis, fitting(rows), fitting(columns)};
  while (transpose_bytes(kernel, tile) > kStaticSharedBytes) (tile.rows > tile.columns ? tile.rows : tile.columns) /= 2;
  for (const Access& access : accesses)
    tile.vector = std::max(tile.vector, transposed_vector(kernel, access, axis, 16));
  schedule.tile = tile;
  schedule.vector = std::min(schedule.vector, tile.columns);
  // Measured on sm_90: pairs of 2-byte elements are slower than single ones, and tiles that are also written need more
  // blocks at once than large ones leave room for (bench/results/map-log.md). Where others are read beside what is
  // turned, as they are stored, pairs are fewer accesses (swiglu of f16 [.., 122] turned and another on an H200: 59.5
  // us, 47.5 by pairs).
  const std::size_t turned = transposed.loads.size() + kernel.stores.size();
  if (schedule.vector * narrowest <= 4 && narrowest > 1 && streams(kernel).size() <= turned) schedule.vector = 1;
  // Single elements of short columns are stored in longer rows (f16 [21501, 384, 28] turned around on an H100: 548 us,
  // 477 so; [524288, 48] 64 and 57).
  if (schedule.vector == 1 && narrowest == 2 && !few && rows <= tile.columns && columns >= 2 * tile.columns) {
    tile.rows = static_cast<int>(std::max<std::int64_t>(tile.rows, 64));
    tile.columns *= 2;
    if (transpose_bytes(kernel, tile) <= kStaticSharedBytes) schedule.tile = tile;
  }
  // Half as many columns of single words where those fill tiles better (f32 [.., 75, 75] turned on an H200: 88 us by
  // 64, 66 by 32).
  if (schedule.vector == 1 && narrowest == 4 && schedule.tile->columns == 64 &&
      share_filled(columns, 32, 0) > kFuller * share_filled(columns, 64, 0))
    schedule.tile->columns = 32;
  // Narrow elements need so many registers, or instructions, that blocks of 512 wait for each other (H100, 256 beside
  // 512: i8 [14960, 4096] 60 and 102 us, f16 [3, 69, 314008] 133 and 168; f32 2 % slower).
  constexpr std::int64_t kWord = 4;
  const int points = schedule.tile->rows * schedule.tile->columns;
  const int most = points >= 64 * 64 && transposed.stores.empty() && narrowest >= kWord ? 512 : 256;
  schedule.threads = std::min(most, points / schedule.vector);
}

// Rows that begin at any element on both sides: single elements, or pairs, cost more instructions and accesses than
// aligned vectors that are shifted. Measured on sm_90 with 2 and 4 bytes, 256 bytes of a tile's row and 512 threads.
void shift_narrow_tile(MapSchedule& schedule, const Kernel& kernel, const Target& target) {
  constexpr std::int64_t kNarrow = 4, kRowBytes = 256;  // bytes of an access at most, and of a tile's row
  constexpr std::int64_t kSingle = 2;                   // of elements of one byte, on one side
  if (!schedule.tile) return;
  const Transposed transposed = transposed_along(kernel, schedule.tile->axis);
  std::int64_t size = 0, stored = 16, loaded = 16;
  for (const Store& store : kernel.stores) {
    size = std::max(size, element_bytes(kernel, store.access));
    stored = std::min(stored, schedule.vector * element_bytes(kernel, store.access));
  }
  for (InstrId load : transposed.loads) {
    const Access& access = kernel.instr(load).access;
    if (element_bytes(kernel, access) != size) return;
    loaded = std::min(loaded, size * transposed_vector(kernel, access, schedule.tile->axis, 16));
  }
  const bool narrow = std::max(stored, loaded) <= kNarrow || (size <= 2 && std::min(stored, loaded) <= kSingle);
  // Four random numbers are drawn at once, for which single elements are too few (dropout of f32 [23983, 4096] turned
  // on an H100: 475 us, 324 shifted).
  const bool drawn = draws_random_numbers(kernel) && stored < 4 * size;
  if ((!narrow && !drawn) || size > 4) return;
  MapSchedule shifted = schedule;
  shifted.tile->shift = true;
  shifted.vector = static_cast<int>(16 / size);
  shifted.tile->rows = 64;
  shifted.tile->columns = static_cast<int>(kRowBytes / size);
  shifted.threads = size == 1 ? 256 : 512;  // of i8 [204675, 768], 83 registers: 146 us, and 247 with 512 (H100)
  // Shorter rows where long ones end far beyond the axis (bf16 [128, 161, 57, 57] turned on an H200: 151 us by tiles of
  // 128 columns, of which two are 30 % empty, 107 by 64).
  const std::int64_t last = kernel.axes.back().extent.bounds(kernel.symbols).max;
  if (share_filled(last, shifted.tile->columns / 2, shifted.vector) >
      kFuller * share_filled(last, shifted.tile->columns, shifted.vector)) {
    shifted.tile->columns /= 2;
    shifted.threads = 256;
  }
  const auto extent = [&](int a) { return kernel.axes[static_cast<std::size_t>(a)].extent.bounds(kernel.symbols).max; };
  // Three quarters of the rows will do (f16 [168685, 31, 48] turned around on an H200: 462 us, 343 shifted).
  const bool fills = 4 * extent(schedule.tile->axis) >= 3 * shifted.tile->rows &&
                     extent(static_cast<int>(kernel.axes.size()) - 1) >= shifted.tile->columns &&
                     least_tiles(kernel, schedule.tile->axis, shifted.tile->columns) >= 2 * target.multiprocessors;
  if (fills && may_shift(kernel, shifted) && gains_by_shift(kernel, shifted) &&
      transpose_bytes(kernel, *shifted.tile) <= kStaticSharedBytes)
    schedule = shifted;
}

}  // namespace tenon::codegen

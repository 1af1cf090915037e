// Heuristics for Map kernels: 16 bytes of the widest dtype per thread, less where many operands are live or moved, as
// far as the innermost axis allows; a tile in shared memory for loads that lie across the stores.
#include <algorithm>
#include <limits>

#include "codegen/analysis/draws.h"
#include "codegen/analysis/interior.h"
#include "codegen/analysis/overlap.h"
#include "codegen/analysis/read_once.h"
#include "codegen/analysis/transpose.h"
#include "codegen/analysis/vectorize.h"
#include "codegen/schedule/choices.h"

namespace tenon::codegen {
namespace {

constexpr std::int64_t kVectorBytes = 256;  // of all operands' vectors together: 64 registers
constexpr std::int64_t kVectorCost =
    400;  // issue slots of one thread's unrolled body: it keeps registers and compile time
// The same where nothing else is unrolled: wider vectors have more of a chain under way (H100: sqrt and GELU of bf16
// 206 us in vectors of 4, 179 of 8; dropout among seven functions of f32 240 of 2, 156 of 4).
constexpr std::int64_t kPlainVectorCost = 800;

// What is read or written at every point: operands that do not vary along the innermost axis cost nothing there.
std::vector<Access> streams(const Kernel& kernel) {
  std::vector<Access> accesses;
  const int inner = static_cast<int>(kernel.axes.size()) - 1;
  for (const Instr& instr : kernel.body)
    if (instr.kind == InstrKind::load && (instr.depends >> inner & 1) != 0) accesses.push_back(instr.access);
  for (const Store& store : kernel.stores) accesses.push_back(store.access);
  return accesses;
}

// Issue slots of one element: what is the same for a whole vector costs less the longer that is. Eight-bit reals are
// converted in software, and the cosine of what has its sine taken costs little (codegen/emit/cuda/text/definitions.h).
std::int64_t cost_of(const Kernel& kernel) {
  constexpr std::int64_t kConversion = 10, kCosineBesideSine = 4;
  const auto beside_sine = [&](const Instr& instr) {
    return instr.op == ir::Op::cos && std::any_of(kernel.body.begin(), kernel.body.end(), [&](const Instr& other) {
             return other.kind == InstrKind::map && other.op == ir::Op::sin && other.args == instr.args;
           });
  };
  const int inner = static_cast<int>(kernel.axes.size()) - 1;
  std::int64_t cost = 0;
  for (const Instr& instr : kernel.body) {
    if ((instr.depends >> inner & 1) == 0) continue;
    if (instr.kind == InstrKind::map) cost += beside_sine(instr) ? kCosineBesideSine : ir::info(instr.op).cost;
    if ((instr.kind == InstrKind::load || instr.kind == InstrKind::round) && is_f8(instr.dtype)) cost += kConversion;
  }
  for (const Store& store : kernel.stores)
    if (is_f8(kernel.operands[static_cast<std::size_t>(store.access.operand)].dtype)) cost += kConversion;
  return cost;
}

// The widest vector that the innermost extent and at least one access can use.
int usable_vector(const Kernel& kernel, const std::vector<Access>& accesses, int vector, bool ragged_allowed) {
  const int inner = static_cast<int>(kernel.axes.size()) - 1;
  const Dim& extent = kernel.axes.back().extent;
  if (!ragged_allowed) vector = power_of_two_divisor(extent, vector, kernel.symbols);
  if (extent.bounds(kernel.symbols).max < vector) return 1;
  const bool useful = std::any_of(accesses.begin(), accesses.end(), [&](const Access& access) {
    return vector_width(access, inner, vector, kernel) > 1;
  });
  return useful ? vector : 1;
}

// Accesses narrower than this leave bandwidth unused; wide ones across the ends of rows are then better, although
// operands that are broadcast along rows are read element by element.
constexpr std::int64_t kNarrowBytes = 8;

// Whether it has fewer elements than the domain has points: its lines are in the caches, and it is read element by
// element wherever vectors end.
bool is_broadcast(const Kernel& kernel, const Access& access) {
  for (std::size_t axis = 0; axis < kernel.axes.size(); ++axis)
    if (!access.offset.depends_on(static_cast<int>(axis)) && kernel.axes[axis].extent != Dim(1)) return true;
  return false;
}

// At least half of the bytes lie in the order of the domain, so that vectors need not end where rows do.
bool lies_flat(const Kernel& kernel, const std::vector<Access>& accesses, int vector) {
  std::int64_t flat = 0, all = 0;
  Dim points(1);
  for (const Axis& axis : kernel.axes) points = points * axis.extent;
  for (const Access& access : accesses) {
    if (is_broadcast(kernel, access)) continue;
    all += element_bytes(kernel, access);
    if (flat_width(access, vector, kernel) == vector) flat += element_bytes(kernel, access);
  }
  return kernel.axes.size() > 1 && points.bounds(kernel.symbols).max >= vector && 2 * flat >= all;
}

// Operands that are moved as they lie, each element once. From three on, 8 bytes each took less time than 16 where
// there is several times what the caches hold: measured on sm_90 (bench/results/map-log.md). Four random numbers are
// drawn at once.
constexpr std::int64_t kManyStreams = 3, kManyStreamsBytes = 8;
constexpr int kManyStreamsPercent = 256;  // of the L2: 128 MB of an H100

std::int64_t dense_streams(const Kernel& kernel, const std::vector<Access>& accesses, int vector) {
  return std::count_if(accesses.begin(), accesses.end(),
                       [&](const Access& access) { return flat_width(access, vector, kernel) == vector; });
}

// Loads of one stream that pass the caches by spare writing back what others left there, once; where more is moved they
// are slower than that is worth, and where less is, it fits beside. Measured on sm_90, from 20 to 80 MB
// (bench/results/map-log.md).
constexpr int kLeastStreamedPercent = 40, kMostStreamedPercent = 160;  // of the L2

// Issue slots of an element up to which a thread has time for several vectors, and the waves of blocks that then become
// one: a second wave that is not full costs as much as one that is.
constexpr std::int64_t kCheap = 4, kMostWaves = 3;
constexpr int kUnrolled = 4;
constexpr int kPair = 2;

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
  // blocks at once than large ones leave room for (bench/results/map-log.md).
  if (schedule.vector * narrowest <= 4 && narrowest > 1) schedule.vector = 1;
  // Single elements of short columns are stored in longer rows (f16 [21501, 384, 28] turned around on an H100: 548 us,
  // 477 so; [524288, 48] 64 and 57).
  if (schedule.vector == 1 && narrowest == 2 && !few && rows <= tile.columns && columns >= 2 * tile.columns) {
    tile.rows = static_cast<int>(std::max<std::int64_t>(tile.rows, 64));
    tile.columns *= 2;
    if (transpose_bytes(kernel, tile) <= kStaticSharedBytes) schedule.tile = tile;
  }
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
  const auto extent = [&](int a) { return kernel.axes[static_cast<std::size_t>(a)].extent.bounds(kernel.symbols).max; };
  // Three quarters of the rows will do (f16 [168685, 31, 48] turned around on an H200: 462 us, 343 shifted).
  const bool fills = 4 * extent(schedule.tile->axis) >= 3 * shifted.tile->rows &&
                     extent(static_cast<int>(kernel.axes.size()) - 1) >= shifted.tile->columns &&
                     least_tiles(kernel, schedule.tile->axis, shifted.tile->columns) >= 2 * target.multiprocessors;
  if (fills && may_shift(kernel, shifted) && gains_by_shift(kernel, shifted) &&
      transpose_bytes(kernel, *shifted.tile) <= kStaticSharedBytes)
    schedule = shifted;
}

// Blocks of the kernel when the sizes are known, else as many as may be.
std::int64_t blocks(const MapSchedule& schedule, const SymbolBounds& points) {
  return points.max / (std::int64_t{schedule.threads} * schedule.vector);
}

SymbolBounds points_of(const Kernel& kernel) {
  Dim points(1);
  for (const Axis& axis : kernel.axes) points = points * axis.extent;
  return points.bounds(kernel.symbols);
}

// Whether so many points of `bytes` each are more than the caches hold.
bool exceeds_caches(const Target& target, const SymbolBounds& points, std::int64_t bytes) {
  return points.min > percent_of_l2(target, kCachedPercent) / std::max<std::int64_t>(1, bytes);
}

// Issue slots of an element, or of a byte of it, up to which kernels wait for memory and not for what they compute.
constexpr std::int64_t kShort = 32, kShortOfByte = 4;

// Whether rows are gathered of a table that the caches hold most of while nothing else passes through them.
bool gathers_what_caches_hold(const Kernel& kernel, const Target& target) {
  return std::any_of(kernel.body.begin(), kernel.body.end(), [&](const Instr& instr) {
    if (instr.kind != InstrKind::load || instr.access.offset.values().empty()) return false;
    const Operand& table = kernel.operands[static_cast<std::size_t>(instr.access.operand)];
    const std::int64_t bytes = element_bytes(kernel, instr.access);
    const std::int64_t elements = element_count(table.shape).bounds(kernel.symbols).max;
    return elements <= percent_of_l2(target, kMostStreamedPercent) / bytes;
  });
}

// Which accesses pass the caches by, and with it how large a block is: all measured on sm_90.
void choose_caching(MapSchedule& schedule, const Kernel& kernel, const Target& target,
                    const std::vector<Access>& accesses, const SymbolBounds& points, std::int64_t bytes) {
  const bool beyond_caches = exceeds_caches(target, points, bytes);
  const bool few_streams = !schedule.tile && dense_streams(kernel, accesses, schedule.vector) < kManyStreams;
  schedule.cache.streaming = schedule.vector > 1 && beyond_caches && few_streams;
  schedule.cache.streaming_loads =
      schedule.vector > 1 && few_streams && points.min * bytes >= percent_of_l2(target, kLeastStreamedPercent) &&
      (points.max <= percent_of_l2(target, kMostStreamedPercent) / std::max<std::int64_t>(1, bytes) ||
       (gathers_what_caches_hold(kernel, target) && !loads_read_once(kernel).empty()));
  // Overlapping loads take so many registers that large blocks wait for each other (5x5 means of bf16 [2, 80, 512,
  // 1000] on an H100: 337 us by 512 threads, 252 by 256; sums of 3x3x3 of f32 [2048, 256, 7, 7, 7] on an H200 580 and
  // 411).
  if (schedule.cache.streaming && !schedule.flat && !schedule.overlaps) schedule.threads = 512;
  // Nor of a tile that is loaded behind guards (pads and joined rows that are turned, f32 on an H200: 260 us and 205,
  // 128 and 113).
  const bool guarded_tile =
      schedule.tile && std::any_of(kernel.body.begin(), kernel.body.end(), [](const Instr& instr) {
        return instr.kind == InstrKind::load && !instr.access.guards.empty();
      });
  schedule.cache.keep_reads = schedule.vector > 1 && beyond_caches && !schedule.cache.streaming_loads &&
                              !(schedule.tile && schedule.tile->shift) && !guarded_tile &&
                              cost_of(kernel) <= std::max(kShort, kShortOfByte * bytes) && may_keep_reads(kernel);
}

// Work of less than a block for each multiprocessor waits for the longest thread: short vectors share it out among more
// threads, where a vector takes longer to compute than to move and accesses stay whole words.
void share_out(MapSchedule& schedule, const Kernel& kernel, const Target& target, const SymbolBounds& points,
               std::int64_t widest) {
  constexpr std::int64_t kWordBytes = 4, kSlots = 32;
  const int least = draws_random_numbers(kernel) ? 4 : 2;
  const auto few = [&] { return !schedule.tile && blocks(schedule, points) < target.multiprocessors; };
  while (few() && schedule.threads > 128) schedule.threads /= 2;
  while (few() && schedule.vector >= 2 * least && schedule.vector * widest > kWordBytes &&
         schedule.vector * cost_of(kernel) > kSlots)
    schedule.vector /= 2;
}

// Registers that stretches of overlapping loads may take, in bytes.
constexpr std::int64_t kMostStretchBytes = 512;
// Points of a row from which on the vectors that cross its end, point by point, cost little. Where a point is many
// loads that takes so many vectors that most warps have none (H200: nine points of bf16 [16, 96, 299, 299] 335 us in
// flat vectors of 8 that load what they share, 237 by single points).
constexpr std::int64_t kLongRow = 256, kVectorsOfLongRow = 96;
constexpr std::size_t kManyLoads = 9;

// Warps that have points outside the interior go both ways. Where many do, guards cost less (H200: five points of f32
// [512, 8, 64, 64] 53 us with an interior, 36 without; nine of bf16 [16, 80, 299, 299] 239 and 401).
bool has_an_interior(const Kernel& kernel, const MapSchedule& schedule) {
  constexpr std::int64_t kWarp = 32;
  constexpr double kLeastInside = 0.75;  // of the warps
  const Interior interior = interior_of(kernel);
  if (interior.empty()) return false;
  std::vector<std::int64_t> spans(kernel.axes.size(), 1);
  std::int64_t points = kWarp * schedule.vector;
  for (std::size_t axis = kernel.axes.size(); axis-- > 0 && points > 1;) {
    const std::int64_t extent = std::max<std::int64_t>(1, kernel.axes[axis].extent.bounds(kernel.symbols).max);
    spans[axis] = std::min(points, extent);
    points = (points + extent - 1) / extent;
  }
  if (kernel.axes.size() > 1) spans[kernel.axes.size() - 2] *= schedule.strip;
  return share_inside(interior, kernel, spans) >= kLeastInside;
}

// Whether vectors of so many points lie in rows, or may cross their ends because all results lie like the domain.
std::optional<bool> flat_with(const Kernel& kernel, int vector) {
  const Dim& row = kernel.axes.back().extent;
  const SymbolBounds length = row.bounds(kernel.symbols);
  if (length.max < vector) return std::nullopt;
  if (kernel.axes.size() == 1 || power_of_two_divisor(row, vector, kernel.symbols) == vector) return false;
  const bool flat = std::all_of(kernel.stores.begin(), kernel.stores.end(),
                                [&](const Store& store) { return flat_width(store.access, vector, kernel) == vector; });
  const std::int64_t least =
      streams(kernel).size() > kManyLoads ? std::max(kLongRow, kVectorsOfLongRow * vector) : kLongRow;
  return flat && (row.is_constant() ? length.min : length.max) >= least ? std::optional(true) : std::nullopt;
}

// Where neighbours along the axis before the innermost share most of what they read, a thread has several of them: of
// rows that no vector divides single points, which need no vectors to be loaded together.
constexpr int kRowsOfPoints = 8, kRowsOfVectors = 4;
constexpr double kMostLoadsLeft = 0.75, kMostLoadsLeftOfPoints = 0.5;

int rows_with(const Kernel& kernel, int rows, double most) {
  const int axis = static_cast<int>(kernel.axes.size()) - 2;
  if (axis < 0 || rows * cost_of(kernel) > kVectorCost) return 1;
  const SymbolBounds extent = kernel.axes[static_cast<std::size_t>(axis)].extent.bounds(kernel.symbols);
  return extent.max >= 4 * rows && loads_left(kernel, axis, rows) <= most ? rows : 1;
}

// Threads that load what their points share once, where there is something: 16 bytes of results, or of what they read
// where points lie apart in that.
bool choose_overlaps(MapSchedule& schedule, const Kernel& kernel) {
  std::int64_t widest = 1;
  for (const Access& access : streams(kernel)) widest = std::max(widest, element_bytes(kernel, access));
  const int axis = static_cast<int>(kernel.axes.size()) - 1;
  for (int vector = static_cast<int>(16 / widest); vector >= 1; vector /= 2) {
    const auto flat = flat_with(kernel, vector);
    if (!flat || (vector > 1 && vector * cost_of(kernel) > kVectorCost)) continue;
    if (const int rows = *flat ? rows_with(kernel, kRowsOfPoints, kMostLoadsLeftOfPoints) : 1; rows > 1) {
      schedule.vector = 1;
      schedule.flat = false;
      schedule.strip = rows;
      return true;
    }
    const std::vector<Overlap> overlaps = overlaps_of(kernel, {axis, vector, *flat});
    std::int64_t own = 0, bytes = 0;
    for (const Overlap& overlap : overlaps) {
      const std::int64_t size = element_bytes(kernel, overlap.stretch);
      own = std::max(own, vector * overlap.step * size);
      bytes += overlap.vectors() * overlap.aligned * size;
    }
    if (overlaps.empty() || (vector > 1 && (own > 16 || bytes > kMostStretchBytes))) continue;
    schedule.vector = vector;
    schedule.flat = *flat;
    schedule.overlaps = true;
    if (!*flat && vector > 1) schedule.strip = rows_with(kernel, std::min(kRowsOfVectors, 16 / vector), kMostLoadsLeft);
    return true;
  }
  return false;
}

// Results that vectors cannot end with rows are stored flat, whatever is loaded: a thread with one narrow element has
// too little under way, and blocks of such threads are launched too slowly (1.2 ns each on an H100).
bool store_flat(MapSchedule& schedule, const Kernel& kernel) {
  constexpr std::int64_t kStoredBytes = 8;
  constexpr int kPoints = 4;  // of 4 bytes too
  // Each point of a flat vector finds its loads anew, and of so many bytes one point has enough under way (3x3 means of
  // f32 [116104, 63, 8, 3] on an H100: 307 us, 270 by single points; 5x5x5 maxima of bf16 [128, 75, 75, 75] 61 and 51,
  // but 3x3 means of f16 [24, 192, 128, 128] 84 and 95).
  constexpr std::int64_t kManyBytes = 36;
  std::int64_t widest = 1, bytes = 0;
  for (const Store& store : kernel.stores) widest = std::max(widest, element_bytes(kernel, store.access));
  for (const Access& access : streams(kernel)) bytes += element_bytes(kernel, access);
  int vector = static_cast<int>(std::min(16 / widest, std::max<std::int64_t>(kPoints, kStoredBytes / widest)));
  while (vector > 1 && (vector * bytes > kVectorBytes || vector * cost_of(kernel) > kVectorCost)) vector /= 2;
  Dim points(1);
  for (const Axis& axis : kernel.axes) points = points * axis.extent;
  const bool flat = std::all_of(kernel.stores.begin(), kernel.stores.end(),
                                [&](const Store& store) { return flat_width(store.access, vector, kernel) == vector; });
  if (streams(kernel).size() >= kManyLoads && (schedule.vector > 1 || bytes >= kManyBytes)) return false;
  if (!flat || vector <= schedule.vector || kernel.axes.size() == 1 || points.bounds(kernel.symbols).max < vector)
    return false;
  schedule.vector = vector;
  return schedule.flat = true;
}

// Loads that lie across the stores along a short axis: a thread has all points of it, so that it uses up the lines that
// it reads.
bool strip_short_axis(MapSchedule& schedule, const Kernel& kernel) {
  const int axis = transposed_axis(kernel), outer = static_cast<int>(kernel.axes.size()) - 2;
  if (axis < 0 || axis != outer || schedule.vector == 1) return false;
  const SymbolBounds extent = kernel.axes[static_cast<std::size_t>(axis)].extent.bounds(kernel.symbols);
  if (extent.max >= ir::kTransposedExtent) return false;
  int strip = 2;
  while (strip < extent.max) strip *= 2;
  if (strip * schedule.vector * cost_of(kernel) > kVectorCost) return false;
  schedule.strip = strip;
  return true;
}

// Operands that rows along the axis before the innermost share, of which a row has too many to stay in the caches until
// the next one wants them: a thread has several of those rows, and loads what they share once (H100: RMS norms'
// weights, f32 [48, 1599472]: 302 us, 227 so; rotary embedding of f32 [27, 32768, 64] 259, 221).
bool strip_shared_rows(MapSchedule& schedule, const Kernel& kernel, const Target& target) {
  constexpr int kRows = 8, kLeastPercent = 12;  // of the L2, that is shared
  const int axis = static_cast<int>(kernel.axes.size()) - 2;
  if (axis < 0 || schedule.vector == 1 ||
      kernel.axes[static_cast<std::size_t>(axis)].extent.bounds(kernel.symbols).min < kRows ||
      kRows * schedule.vector * cost_of(kernel) > kVectorCost)
    return false;
  std::int64_t shared = 0;
  for (const Instr& instr : kernel.body) {
    if (instr.kind != InstrKind::load || (instr.depends >> axis & 1) != 0 || !instr.access.guards.empty()) continue;
    if ((instr.depends >> (axis + 1) & 1) != 0)
      shared += element_bytes(kernel, instr.access) * kernel.axes.back().extent.bounds(kernel.symbols).min;
  }
  if (shared < percent_of_l2(target, kLeastPercent)) return false;
  schedule.strip = kRows;
  return true;
}

// Whether a thread should have all of a few rows rather than pass them through shared memory.
bool strips_few_rows(MapSchedule schedule, const Kernel& kernel, const Target& target, std::int64_t widest) {
  constexpr int kFew = 4;
  return !schedule.tile && target.may.overlaps && schedule.vector * widest >= kNarrowBytes &&
         strip_short_axis(schedule, kernel) && schedule.strip <= kFew;
}

// Fewer blocks than multiprocessors wait for the thread that has a strip (bf16 [723, 8] to [8, 736] on an H100: 7.3 us
// by 92 threads, 4.2 by as many as there are elements).
bool strip_where_blocks_are_many(MapSchedule& schedule, const Kernel& kernel, const Target& target) {
  MapSchedule stripped = schedule;
  if (!strip_short_axis(stripped, kernel)) return false;
  if (blocks(stripped, points_of(kernel)) / stripped.strip < target.multiprocessors) return false;
  schedule = stripped;
  return true;
}

// Each operand once, however many loads read it.
std::vector<Access> streams_of_operands(const std::vector<Access>& accesses) {
  std::vector<Access> streams;
  for (const Access& access : accesses)
    if (std::none_of(streams.begin(), streams.end(), [&](const Access& s) { return s.operand == access.operand; }))
      streams.push_back(access);
  return streams;
}

std::int64_t bytes_of(const std::vector<Access>& accesses, const Kernel& kernel) {
  std::int64_t bytes = 0;
  for (const Access& access : accesses) bytes += element_bytes(kernel, access);
  return bytes;
}

// A few blocks more than run at once, each of which has little to compute.
bool in_few_waves(const MapSchedule& schedule, const Kernel& kernel, const Target& target, const SymbolBounds& points) {
  const std::int64_t at_once =
      std::int64_t{target.multiprocessors} * target.threads_per_multiprocessor * schedule.vector;
  return schedule.vector > 1 && cost_of(kernel) <= kCheap && points.min > at_once && points.max <= kMostWaves * at_once;
}

// Whether a thread should have two vectors under way where the caches hold little: of what is read once each, in rows
// of several vectors, as far as registers and issue slots go (H200: gathered rows 39 us and 35, a one-hot matrix 29 and
// 24, exp of bf16 times f32 as a condition 108 and 78; a hundred chains 2 % in the mean).
bool pays_in_pairs(const MapSchedule& schedule, const Kernel& kernel, const std::vector<Access>& accesses) {
  constexpr std::int64_t kLeastVectors = 4, kMostBytes = 128;
  if (streams_of_operands(accesses).size() < accesses.size()) return false;
  const std::int64_t row = kernel.axes.back().extent.bounds(kernel.symbols).max;
  return row >= kLeastVectors * schedule.vector && kPair * schedule.vector * bytes_of(accesses, kernel) <= kMostBytes &&
         kPair * schedule.vector * cost_of(kernel) <= kVectorCost;
}

}  // namespace

MapSchedule choose_map_schedule(const Kernel& kernel, const Target& target) {
  MapSchedule schedule;
  if (kernel.axes.empty()) return schedule;
  std::vector<Access> accesses = streams(kernel);
  std::int64_t widest = 1, bytes = bytes_of(accesses, kernel);
  if (auto staged = gather_from_shared_memory(kernel, target, cost_of(kernel))) {
    staged->cache.streaming = staged->vector > 1 && exceeds_caches(target, points_of(kernel), bytes);
    return *staged;
  }
  for (const Access& access : accesses) widest = std::max(widest, element_bytes(kernel, access));
  int vector = static_cast<int>(16 / widest);
  if (accesses.size() >= 8) vector = std::max(1, vector / 2);
  const int drawn = draws_random_numbers(kernel) ? 4 : 1;  // at once
  while (vector > drawn && (vector * bytes > kVectorBytes || vector * cost_of(kernel) > kPlainVectorCost)) vector /= 2;
  schedule.vector = usable_vector(kernel, accesses, vector, kernel.axes.size() == 1);
  choose_tile(schedule, kernel, target);
  shift_narrow_tile(schedule, kernel, target);
  if (!strips_few_rows(schedule, kernel, target, widest)) choose_flat_tile(schedule, kernel, target, vector);
  if (!schedule.tile && schedule.vector * widest < kNarrowBytes && lies_flat(kernel, accesses, vector)) {
    schedule.vector = vector;
    schedule.flat = true;
  }
  const bool strip =
      !schedule.tile && !schedule.flat && target.may.overlaps && strip_where_blocks_are_many(schedule, kernel, target);
  const bool overlaps = !schedule.tile && !strip && target.may.overlaps && choose_overlaps(schedule, kernel);
  if (overlaps) {
    accesses = streams_of_operands(accesses);
    bytes = bytes_of(accesses, kernel);
    schedule.interior = has_an_interior(kernel, schedule);
  }
  const bool narrow_stores =
      !schedule.tile && !overlaps && !strip && !schedule.flat && schedule.vector * widest < kNarrowBytes;
  const bool elements = narrow_stores && store_flat(schedule, kernel);
  const SymbolBounds count = points_of(kernel);
  const bool beyond_caches = exceeds_caches(target, count, bytes);
  const bool plain = !schedule.tile && !schedule.flat && !overlaps && !strip;
  const int narrow = std::max(static_cast<int>(kManyStreamsBytes / widest), draws_random_numbers(kernel) ? 4 : 2);
  if (plain && count.min >= percent_of_l2(target, kManyStreamsPercent) / std::max<std::int64_t>(1, bytes) &&
      dense_streams(kernel, accesses, schedule.vector) >= kManyStreams)
    schedule.vector = std::min(schedule.vector, narrow);
  if (!overlaps && !strip) share_out(schedule, kernel, target, count, widest);
  if (!elements) choose_caching(schedule, kernel, target, accesses, count, bytes);
  if (overlaps) schedule.cache.keep_reads = schedule.cache.streaming_loads = false;
  if (plain && beyond_caches) {
    const MapSchedule spread = spread_where_it_pays(kernel, target, schedule);
    if (spread.spread) return spread;
    if (target.may.overlaps && strip_shared_rows(schedule, kernel, target)) return schedule;
    if (pays_in_pairs(schedule, kernel, accesses)) schedule.unroll = kPair;
    return schedule;
  }
  if (plain && in_few_waves(schedule, kernel, target, count)) schedule.unroll = kUnrolled;
  return schedule;
}

}  // namespace tenon::codegen

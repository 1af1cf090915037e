// Heuristics for Map kernels: 16 bytes of the widest dtype per thread, less where many operands are live or moved, as
// far as the innermost axis allows. Tiles and overlapping loads are files of their own.
#include <algorithm>

#include "codegen/analysis/draws.h"
#include "codegen/analysis/flat_tile.h"
#include "codegen/analysis/interior.h"
#include "codegen/analysis/read_once.h"
#include "codegen/analysis/transpose.h"
#include "codegen/analysis/vectorize.h"
#include "codegen/schedule/choices.h"
#include "codegen/schedule/map_choices.h"

namespace tenon::codegen {
namespace {

constexpr std::int64_t kVectorBytes = 256;  // of all operands' vectors together: 64 registers
// The same where nothing else is unrolled: wider vectors have more of a chain under way (H100: sqrt and GELU of bf16
// 206 us in vectors of 4, 179 of 8; dropout among seven functions of f32 240 of 2, 156 of 4).
constexpr std::int64_t kPlainVectorCost = 800;

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
  // Loads that overlap, or are many, take so many registers that large blocks wait for each other (5x5 means of bf16
  // [2, 80, 512, 1000] on an H100: 337 us by 512 threads, 252 by 256; sums of 3x3x3 of f32 [2048, 256, 7, 7, 7] on an
  // H200 580 and 411).
  const bool many_loads = schedule.overlaps || (schedule.strip > 1 && schedule.vector <= 2);
  if (schedule.cache.streaming && !schedule.flat && !many_loads) schedule.threads = 512;
  // Nor of a tile that is loaded behind guards (pads and joined rows that are turned, f32 on an H200: 260 us and 205,
  // 128 and 113).
  const bool guarded_tile =
      schedule.tile && std::any_of(kernel.body.begin(), kernel.body.end(), [](const Instr& instr) {
        return instr.kind == InstrKind::load && !instr.access.guards.empty();
      });
  schedule.cache.keep_reads = schedule.vector > 1 && beyond_caches && !schedule.cache.streaming_loads &&
                              !(schedule.tile && schedule.tile->shift) && !guarded_tile &&
                              slots_of_point(kernel) <= std::max(kShort, kShortOfByte * bytes) &&
                              may_keep_reads(kernel);
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
         schedule.vector * slots_of_point(kernel) > kSlots)
    schedule.vector /= 2;
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
  // Of operands that are loaded once each a thread has 16 bytes of 2-byte results (H200: joined rows of bf16 [8, 192,
  // 110, 198] 56 us by 8 bytes, 49; differences of neighbours 66 and 69).
  const std::vector<Access> accesses = streams(kernel);
  const bool once = widest == 2 && streams_of_operands(accesses).size() == accesses.size();
  const std::int64_t stored = once ? 2 * kStoredBytes : kStoredBytes;
  int vector = static_cast<int>(std::min(16 / widest, std::max<std::int64_t>(kPoints, stored / widest)));
  while (vector > 1 && (vector * bytes > kVectorBytes || vector * slots_of_point(kernel) > kVectorCost)) vector /= 2;
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
  if (strip * schedule.vector * slots_of_point(kernel) > kVectorCost) return false;
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
      kRows * schedule.vector * slots_of_point(kernel) > kVectorCost)
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

// A few blocks more than run at once, each of which has little to compute.
bool in_few_waves(const MapSchedule& schedule, const Kernel& kernel, const Target& target, const SymbolBounds& points) {
  const std::int64_t at_once =
      std::int64_t{target.multiprocessors} * target.threads_per_multiprocessor * schedule.vector;
  return schedule.vector > 1 && slots_of_point(kernel) <= kCheap && points.min > at_once &&
         points.max <= kMostWaves * at_once;
}

// Whether a thread should have two vectors under way where the caches hold little: of what is read once each, in rows
// of several vectors, as far as registers and issue slots go (H200: gathered rows 39 us and 35, a one-hot matrix 29 and
// 24, exp of bf16 times f32 as a condition 108 and 78; a hundred chains 2 % in the mean).
// What crosses the ends of rows anyway needs no long ones (one-hot bf16 [1096976, 257] 233 and 200), and one load
// beside nothing else may compute as long as a wide vector may (softmax of bf16 [33554432, 1] 0.84 of the time; maps of
// several operands up to 1.07).
bool pays_in_pairs(const MapSchedule& schedule, const Kernel& kernel, const std::vector<Access>& accesses) {
  constexpr std::int64_t kLeastVectors = 4, kMostBytes = 128;
  if (streams_of_operands(accesses).size() < accesses.size()) return false;
  const std::int64_t row = kernel.axes.back().extent.bounds(kernel.symbols).max;
  const auto loads = std::count_if(kernel.body.begin(), kernel.body.end(),
                                   [](const Instr& instr) { return instr.kind == InstrKind::load; });
  return (schedule.flat || row >= kLeastVectors * schedule.vector) &&
         kPair * schedule.vector * bytes_of(accesses, kernel) <= kMostBytes &&
         kPair * schedule.vector * slots_of_point(kernel) <= (loads == 1 ? kPlainVectorCost : kVectorCost);
}

// Whether several loads have guards that hold in most warps: these go a way without them (H200: sums of two and five
// points down columns behind padding, f16 [5, 384, 151, 150] 74 us and 62, bf16 [144, 3072, 96] 72 and 62).
bool cuts_interior(const MapSchedule& schedule, const Kernel& kernel) {
  const auto guarded = std::count_if(kernel.body.begin(), kernel.body.end(), [](const Instr& instr) {
    return instr.kind == InstrKind::load && !instr.access.guards.empty();
  });
  return guarded > 1 && !interior_of_warps(kernel, schedule).empty();
}

}  // namespace

MapSchedule choose_map_schedule(const Kernel& kernel, const Target& target) {
  MapSchedule schedule;
  if (kernel.axes.empty()) return schedule;
  std::vector<Access> accesses = streams(kernel);
  std::int64_t widest = 1, bytes = bytes_of(accesses, kernel);
  if (auto staged = gather_from_shared_memory(kernel, target, slots_of_point(kernel))) {
    staged->cache.streaming = staged->vector > 1 && exceeds_caches(target, points_of(kernel), bytes);
    return *staged;
  }
  for (const Access& access : accesses) widest = std::max(widest, element_bytes(kernel, access));
  int vector = static_cast<int>(16 / widest);
  if (accesses.size() >= 8) vector = std::max(1, vector / 2);
  const int drawn = draws_random_numbers(kernel) ? 4 : 1;  // at once
  while (vector > drawn && (vector * bytes > kVectorBytes || vector * slots_of_point(kernel) > kPlainVectorCost))
    vector /= 2;
  schedule.vector = usable_vector(kernel, accesses, vector, kernel.axes.size() == 1);
  choose_tile(schedule, kernel, target);
  shift_narrow_tile(schedule, kernel, target);
  const bool across =
      turn_short_axes(schedule, kernel, vector) ||
      (!strips_few_rows(schedule, kernel, target, widest) && choose_flat_tile(schedule, kernel, target, vector));
  if (!schedule.tile && schedule.vector * widest < kNarrowBytes && lies_flat(kernel, accesses, vector)) {
    schedule.vector = vector;
    schedule.flat = true;
  }
  const bool strip = !schedule.tile && !schedule.flat && !across && target.may.overlaps &&
                     strip_where_blocks_are_many(schedule, kernel, target);
  const bool overlaps = !schedule.tile && !across && !strip && target.may.overlaps && choose_overlaps(schedule, kernel);
  if (overlaps) {
    accesses = streams_of_operands(accesses);
    bytes = bytes_of(accesses, kernel);
    schedule.interior = !interior_of_warps(kernel, schedule).empty();
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
  if (!schedule.tile && !overlaps) narrow_apart(schedule, kernel, target);
  if (!overlaps && !strip) share_out(schedule, kernel, target, count, widest);
  if (!elements) choose_caching(schedule, kernel, target, accesses, count, bytes);
  if (overlaps) schedule.cache.keep_reads = schedule.cache.streaming_loads = false;
  if (beyond_caches && !schedule.tile && !overlaps && !strip && target.may.interior &&
      cuts_interior(schedule, kernel)) {
    schedule.interior = true;
    return schedule;
  }
  const bool flat =  // with nothing else that lies like its results, or across them
      schedule.flat && !schedule.tile && !overlaps && dense_streams(kernel, accesses, schedule.vector) <= 1 &&
      loads_across(kernel).empty();
  if (flat && beyond_caches && pays_in_pairs(schedule, kernel, accesses)) schedule.unroll = kPair;
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

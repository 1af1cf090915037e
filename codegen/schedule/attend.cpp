// Heuristics for Attend kernels on CUDA: 64 or 128 queries a block, and as many keys as registers and shared memory
// allow.
#include <algorithm>
#include <optional>
#include <utility>

#include "codegen/analysis/key_bounds.h"
#include "codegen/analysis/scaled_scores.h"
#include "codegen/analysis/tile_tests.h"
#include "codegen/analysis/tiling.h"
#include "codegen/schedule/choices.h"
#include "codegen/schedule/limits.h"

namespace tenon::codegen {
namespace {

// Blocks of 128 queries, where that many fill the device.
bool is_large(const Kernel& kernel, const AttendParts& parts, const Target& target) {
  const auto least = [&](int axis) {
    return kernel.axes[static_cast<std::size_t>(axis)].extent.bounds(kernel.symbols).min;
  };
  std::int64_t blocks = least(parts.i) / 128;
  for (int axis : parts.batch) blocks *= std::min<std::int64_t>(least(axis), 1 << 20);
  return blocks >= target.multiprocessors;
}

// Into how many parts a cluster of blocks divides the keys of each of so many tiles of queries, so that all run at
// once.
int parts_of_keys(const AttendSchedule& schedule, std::int64_t tiles, std::int64_t keys, const Target& target) {
  constexpr int kLeastTiles = 4;  // of keys in a part
  for (int parts = kMostBlocksOfCluster; parts > 1; --parts) {
    const double places =
        kShareOfClusters[static_cast<std::size_t>(parts)] * schedule.resident * target.multiprocessors;
    if (static_cast<double>(parts * tiles) <= places && keys >= std::int64_t{parts} * kLeastTiles * schedule.tile_kv)
      return parts;
  }
  return 1;
}

// Divides the keys of so many tiles among blocks that meet in memory, where the clusters of `schedule` leave so many
// multiprocessors without one that reading takes longer by more than the meeting.
void split_keys(AttendSchedule& schedule, const AttendTiles& tiles, std::int64_t tiles_q, std::int64_t keys,
                const Target& target) {
  constexpr double kBytesOfNs = 55, kShareOfBandwidth = 0.85;  // that a multiprocessor of an H200 reads; of all
  constexpr double kMeetingNs = 3000;                          // longer than that of a cluster
  constexpr std::int64_t kLeastTiles = 2;                      // of keys in a part
  const std::int64_t places = std::int64_t{schedule.resident} * target.multiprocessors;
  if (!target.may.split_k || tiles_q < 1 || is_f8(tiles.element.dtype)) return;
  const std::int64_t most =
      std::min({std::int64_t{kMostSplit}, places / tiles_q, keys / (kLeastTiles * schedule.tile_kv)});
  if (most <= schedule.parts) return;
  const double bytes = 2.0 * static_cast<double>(keys * (tiles.depth + wgmma_width(tiles)));  // of a tile of queries
  const auto ns = [&](std::int64_t parts) {
    return std::max(bytes / static_cast<double>(parts) / (kBytesOfNs / schedule.resident),
                    bytes * static_cast<double>(tiles_q) / (kShareOfBandwidth * target.bandwidth_gb_s));
  };
  if (!(ns(schedule.parts) - ns(most) > kMeetingNs)) return;
  schedule.parts = 1;
  schedule.split_kv = static_cast<int>(most);
}

// Heads of all sequences: the least and the most.
std::pair<std::int64_t, std::int64_t> heads_of(const Kernel& kernel, const AttendParts& parts) {
  constexpr std::int64_t kMany = 1 << 20;
  std::int64_t least = 1, most = 1;
  for (int axis : parts.batch) {
    const SymbolBounds range = kernel.axes[static_cast<std::size_t>(axis)].extent.bounds(kernel.symbols);
    least = std::min(kMany, least * std::clamp<std::int64_t>(range.min, 1, kMany));
    most = std::min(kMany, most * std::clamp<std::int64_t>(range.max, 1, kMany));
  }
  return {least, most};
}

// One warpgroup for few queries, which wait for keys and values: as many of them under way as fit. Narrow heads wait
// for the warpgroup instead, so that a multiprocessor has two of them.
std::optional<AttendSchedule> choose_few(AttendSchedule schedule, const Kernel& kernel, const AttendParts& parts,
                                         const AttendTiles& tiles, const Target& target) {
  constexpr int kNarrow = 96;
  constexpr std::int64_t kLengthOfCache = 8192;  // where it is a symbol
  schedule.tile_q = 64;
  const std::int64_t heads = heads_of(kernel, parts).first;
  const SymbolBounds lengths = kernel.axes[static_cast<std::size_t>(parts.j)].extent.bounds(kernel.symbols);
  const std::int64_t length = std::clamp(kLengthOfCache, lengths.min, lengths.max);
  const bool narrow = std::max(tiles.depth, tiles.width) <= kNarrow && !schedule.block_mask;
  for (schedule.resident = narrow ? 2 : 1; schedule.resident >= 1; --schedule.resident)
    for (const int keys : {128, 96, 64, 32}) {
      if (schedule.resident == 2 && keys < 64) continue;
      schedule.tile_kv = keys;
      schedule.split_kv = 1;
      schedule.parts = parts_of_keys(schedule, heads, length, target);
      split_keys(schedule, tiles, heads_of(kernel, parts).second, length, target);
      for (schedule.stages = 4; schedule.stages >= 2; --schedule.stages)
        if (verify(schedule, kernel, target).empty()) return schedule;
    }
  return std::nullopt;
}

// The same of larger tiles of queries, where they are fewer than multiprocessors.
void divide_keys(AttendSchedule& schedule, const Kernel& kernel, const AttendParts& parts, const Target& target) {
  const auto extent = [&](int axis) {
    return kernel.axes[static_cast<std::size_t>(axis)].extent.bounds(kernel.symbols);
  };
  if (extent(parts.i).max > 1 << 20) return;
  const std::int64_t tiles = (extent(parts.i).max + schedule.tile_q - 1) / schedule.tile_q;
  AttendSchedule divided = schedule;
  divided.parts = parts_of_keys(schedule, tiles * heads_of(kernel, parts).second, extent(parts.j).min, target);
  if (divided.parts == 1) return;
  for (divided.stages = 4; divided.stages >= 2; --divided.stages)
    if (verify(divided, kernel, target).empty()) {
      schedule = divided;
      return;
    }
}

// Of tiles of so many queries, for each head, in products of one query with 128 keys. Three warpgroups use tensor cores
// better than two where sums are narrow, and a long tile wastes more at the end of a short sequence, and of the keys
// that it sees; pairs of tiles take as long as the longest. Measured on an H200.
double cost(int tile_q, const Kernel& kernel, const AttendParts& parts) {
  constexpr double kShareOfTwo = 0.93;  // of three warpgroups' rate
  constexpr double kOfTile = 400;       // until the first score, and behind the last
  const auto typical = [&](int axis) {
    const SymbolBounds range = kernel.axes[static_cast<std::size_t>(axis)].extent.bounds(kernel.symbols);
    return std::clamp<std::int64_t>(1024, range.min, range.max);
  };
  const auto blocks = [](std::int64_t count, std::int64_t size) { return (count + size - 1) / size; };
  const std::int64_t tiles = blocks(typical(parts.i), tile_q), keys = typical(parts.j);
  const std::vector<KeyBound> bounds = key_masks(kernel).bounds;
  const bool pairs =
      std::any_of(bounds.begin(), bounds.end(), [](const KeyBound& b) { return b.upper && b.slope > 0; });
  const auto of_tile = [&](std::int64_t tile) {  // where the last query sees all keys
    const std::int64_t last = pairs ? keys - typical(parts.i) + (tile + 1) * tile_q : keys;
    const auto seen = static_cast<double>(blocks(std::clamp<std::int64_t>(last, 0, keys), 128));
    return seen * tile_q / (tile_q == 192 ? 1 : kShareOfTwo) + kOfTile;
  };
  if (!pairs || tiles < 2) return static_cast<double>(tiles) * of_tile(0);
  return static_cast<double>(blocks(tiles, 2)) * (of_tile(tiles - 1) + of_tile(0));
}

// Multiplications, twice each. Below a microsecond or two of them warpgroups gain less than their longer text takes to
// compile.
constexpr double kLeastWork = 1e9;
double work(const Kernel& kernel, const AttendParts& parts) {
  double product = 2;
  const auto multiply = [&](int axis) {
    const SymbolBounds range = kernel.axes[static_cast<std::size_t>(axis)].extent.bounds(kernel.symbols);
    product *= static_cast<double>(std::clamp<std::int64_t>(1024, range.min, range.max));
  };
  for (int axis : parts.batch) multiply(axis);
  for (int axis : {parts.i, parts.j}) multiply(axis);
  const double of_scores = product;
  multiply(parts.d);
  const double scores = product;
  product = of_scores;
  multiply(parts.e);
  return scores + product;
}

bool draws(const Kernel& kernel) {
  return std::any_of(kernel.body.begin(), kernel.body.end(),
                     [](const Instr& instr) { return instr.kind == InstrKind::random; });
}

constexpr int kAloneKeys = 80;       // of a tile of warpgroups that take no turns
constexpr int kLeastBoxedKeys = 64;  // of a tile beside which boxes of what scores read have room

// Three warpgroups where the sums are few: they have fewer registers each, too few for a score that takes many.
std::optional<AttendSchedule> choose_wgmma(const Kernel& kernel, const AttendParts& parts, const AttendTiles& tiles,
                                           const Target& target) {
  AttendSchedule schedule;
  schedule.loop = MainLoop::wgmma;
  schedule.block_mask = target.may.block_mask && !tile_tests(kernel, key_masks(kernel)).empty();
  const auto most = [&](int axis) {
    return kernel.axes[static_cast<std::size_t>(axis)].extent.bounds(kernel.symbols).max;
  };
  if (most(parts.i) <= 64) return choose_few(schedule, kernel, parts, tiles, target);
  if (work(kernel, parts) < kLeastWork) return std::nullopt;
  // Where other work than products takes the time, warpgroups that take turns wait for each other, and shorter tiles
  // are skipped more often. Measured on an H100: documents 336 to 309 us, dropout 2.12 to 1.95 ms.
  const bool alone = schedule.block_mask || draws(kernel);
  const bool f8 = is_f8(tiles.element.dtype);
  const bool may_be_three = tiles.width <= 64 && score_cost(kernel, parts) <= kCostlyScore && !alone;
  schedule.tile_q = may_be_three && cost(192, kernel, parts) <= cost(128, kernel, parts) ? 192 : 128;
  schedule.turns = !alone;
  if (schedule.tile_q == 192) {
    schedule.tile_kv = f8 ? 128 : 64;
    if (!verify(schedule, kernel, target).empty()) schedule.tile_q = 128;
  }
  const bool may_box = target.may.score_boxes && tiles.score_bytes > 0 && !schedule.block_mask;
  for (const bool boxes : {true, false}) {
    if (boxes && !may_box) continue;
    schedule.score_boxes = boxes;
    for (const int keys : {128, 112, 96, 80, 64, 48, 32}) {
      if ((alone && keys > kAloneKeys) || (boxes && keys < kLeastBoxedKeys)) continue;
      schedule.tile_kv = keys;
      if (!verify(schedule, kernel, target).empty()) continue;
      divide_keys(schedule, kernel, parts, target);
      return schedule;
    }
  }
  return std::nullopt;
}

}  // namespace

AttendSchedule choose_attend_schedule(const Kernel& kernel, const Target& target) {
  const AttendParts parts = attend_parts(kernel);
  const AttendTiles tiles = attend_tiles(kernel, parts, target);
  if (const auto wgmma = choose_wgmma(kernel, parts, warpgroup_tiles(kernel, parts, target), target)) return *wgmma;
  AttendSchedule schedule;
  if (!tiles.element.tensor_cores) {
    schedule.loop = MainLoop::simt;
    schedule.tile_q = kAttendRows;
    schedule.tile_kv = tiles.element.dtype == DType::f64 ? 32 : 64;
  } else {
    const bool narrow = tiles.depth > 128 || tiles.width > 128 || score_cost(kernel, parts) > kCostlyScore;
    schedule.loop = MainLoop::mma_sync;
    schedule.tile_kv = narrow ? 32 : 64;
    schedule.tile_q = is_large(kernel, parts, target) ? 128 : 64;
    while (schedule.tile_q > 16 && shared_bytes(schedule, tiles) > target.shared_memory_per_block) schedule.tile_q /= 2;
  }
  const auto vector = [&](const OperandPart& part) {
    return tile_access(kernel, part, tiles.element, Lines::as_read, target).vector;
  };
  schedule.vector = std::max({vector(parts.q), vector(parts.k), vector(parts.v)});
  return schedule;
}

std::vector<AttendSchedule> attend_alternatives(const Kernel& kernel, const AttendSchedule& chosen) {
  std::vector<AttendSchedule> result;
  if (chosen.loop != MainLoop::wgmma) return result;
  if (chosen.block_mask) {
    result.push_back(chosen);
    result.back().block_mask = false;
  }
  if (chosen.score_boxes) {
    result.push_back(chosen);
    result.back().score_boxes = false;
  }
  for (const int queries : {64, 128, 192})
    for (const int keys : {64, 80, 96, 112, 128, 144, 160, 176})
      for (const bool turns : {true, false})
        for (const int stages : {2, 3, 4}) {
          AttendSchedule schedule = chosen;
          schedule.tile_q = queries;
          schedule.tile_kv = keys;
          schedule.turns = turns;
          schedule.stages = stages;
          result.push_back(schedule);
        }
  const std::vector<int> lengths = chosen.tile_q == 64 ? std::vector{32, 64, 96, 128} : std::vector{chosen.tile_kv};
  for (const int keys : lengths)
    for (const int parts : {1, 2, 3, 4, 6, 8})
      for (const int stages : {2, 3, 4})
        for (const int resident : {1, 2}) {
          AttendSchedule schedule = chosen;
          schedule.tile_kv = keys;
          schedule.parts = parts;
          schedule.stages = stages;
          schedule.resident = resident;
          result.push_back(schedule);
        }
  // A part has a tile of keys at least, of as many keys as there may be.
  const std::int64_t most =
      kernel.axes[static_cast<std::size_t>(attend_parts(kernel).j)].extent.bounds(kernel.symbols).max;
  if (chosen.tile_q == 64)
    for (const int keys : {64, 128})
      for (int split_kv = 2; split_kv <= std::min<std::int64_t>(kMostSplit, most / keys);
           split_kv = split_kv < 4 ? split_kv + 1 : split_kv * 4 / 3) {
        AttendSchedule schedule = chosen;
        schedule.tile_kv = keys;
        schedule.parts = 1;
        schedule.split_kv = split_kv;
        schedule.stages = 3;
        result.push_back(schedule);
      }
  return result;
}

}  // namespace tenon::codegen

// Schedules around the heuristics' choice for Map kernels, for a tuner: other widths, blocks and tiles, one change
// each.
#include <algorithm>

#include "codegen/analysis/flat_tile.h"
#include "codegen/analysis/gathered_rows.h"
#include "codegen/analysis/overlap.h"
#include "codegen/analysis/read_once.h"
#include "codegen/analysis/transpose.h"
#include "codegen/analysis/vectorize.h"
#include "codegen/schedule/choices.h"

namespace tenon::codegen {
namespace {

std::int64_t widest_stored(const Kernel& kernel) {
  std::int64_t widest = 1;
  for (const Store& store : kernel.stores) widest = std::max(widest, element_bytes(kernel, store.access));
  return widest;
}

// The same kernel without a tile: vectors as wide as the stores allow.
MapSchedule without_tile(MapSchedule schedule) {
  schedule.tile.reset();
  schedule.threads = 256;
  return schedule;
}

// Flat tiles of other extents, or where there is none, of some.
std::vector<MapSchedule> flat_tiles(const Kernel& kernel, const MapSchedule& chosen) {
  std::vector<MapSchedule> tiles;
  const std::vector<FlatLoad> loads = loads_across(kernel);
  if (loads.empty()) return tiles;
  const bool flat = chosen.tile && chosen.flat;
  const int of_rows = flat ? chosen.tile->rows : 64, of_columns = flat ? chosen.tile->columns : 64;
  for (const auto& [rows, columns] : {std::pair{1, 1}, {1, 2}, {2, 1}, {2, 2}, {4, 4}})
    for (const int threads : {128, 256, 512}) {
      MapSchedule tiled = chosen;
      tiled.flat = true;
      tiled.strip = tiled.unroll = 1;
      tiled.spread = tiled.interior = tiled.overlaps = false;
      tiled.tile = MapTile{.axis = loads[0].order[0], .rows = of_rows * rows / 2, .columns = of_columns * columns / 2};
      tiled.vector = flat_tile_vector(kernel, *tiled.tile, static_cast<int>(16 / widest_stored(kernel)));
      tiled.threads = threads;
      tiles.push_back(tiled);
    }
  return tiles;
}

// Other blocks of rows in shared memory, and none; or some where there are none.
std::vector<MapSchedule> gathering_alternatives(const Kernel& kernel, const MapSchedule& chosen) {
  std::vector<MapSchedule> alternatives;
  if (gathered_rows(kernel).empty()) return alternatives;
  MapSchedule plain = chosen;
  plain.staged = plain.flat = plain.overlaps = plain.interior = plain.spread = false;
  plain.strip = plain.unroll = 1;
  plain.threads = 256;
  if (chosen.staged) alternatives.push_back(plain);
  for (const int threads : {128, 256, 512, 1024})
    for (const int strip : {1, 2, 4, 8}) {
      MapSchedule staged = chosen.staged ? chosen : plain;
      staged.staged = true;
      staged.threads = threads;
      staged.strip = strip;
      alternatives.push_back(staged);
    }
  return alternatives;
}

}  // namespace

std::vector<MapSchedule> map_alternatives(const Kernel& kernel, const MapSchedule& chosen) {
  std::vector<MapSchedule> alternatives;
  if (kernel.axes.empty()) return alternatives;
  const auto add = [&](const MapSchedule& schedule) { alternatives.push_back(schedule); };
  if (chosen.spread) {
    MapSchedule plain = chosen;
    plain.spread = plain.cache.streaming_loads = false;
    plain.unroll = 1;
    plain.threads = 256;
    add(plain);
  }
  const auto with = [&](auto field, auto value) {
    MapSchedule schedule = chosen;
    schedule.*field = value;
    add(schedule);
  };
  for (const MapSchedule& other : gathering_alternatives(kernel, chosen)) add(other);
  with(&MapSchedule::vector, chosen.vector / 2);
  with(&MapSchedule::vector, chosen.vector * 2);
  for (int threads : {128, 256, 512})
    for (const bool streaming : {chosen.cache.streaming, !chosen.cache.streaming}) {
      MapSchedule other = chosen;
      other.threads = threads;
      other.cache.streaming = streaming;
      add(other);
    }
  with(&MapSchedule::interior, !chosen.interior);
  with(&MapSchedule::overlaps, !chosen.overlaps);
  const int outer = static_cast<int>(kernel.axes.size()) - 2;
  if (outer >= 0 && loads_left(kernel, outer, 2) < 1)
    for (int strip : {1, 2, 4, 8}) with(&MapSchedule::strip, strip);
  for (int unroll : {2, 4}) with(&MapSchedule::unroll, unroll);
  if (chosen.vector > 1 && may_keep_reads(kernel)) {
    MapSchedule kept = chosen;
    kept.cache.keep_reads = !chosen.cache.keep_reads;
    add(kept);
  }
  if (chosen.vector > 1 && !loads_read_once(kernel, chosen.spread).empty())
    for (const bool streaming : {false, true})
      for (const int unroll : {chosen.unroll, 4}) {
        MapSchedule loads = chosen;
        loads.unroll = unroll;
        loads.cache.streaming = streaming;
        loads.cache.streaming_loads = !chosen.cache.streaming_loads;
        add(loads);
      }
  for (int unroll : {2, 4, 8, 16})
    for (int threads : {128, 256}) {
      MapSchedule spread = chosen;
      spread.unroll = unroll;
      spread.threads = threads;
      spread.spread = true;
      add(spread);
    }
  if (chosen.flat) {
    MapSchedule along_rows = chosen;
    along_rows.flat = false;
    along_rows.vector = power_of_two_divisor(kernel.axes.back().extent, chosen.vector, kernel.symbols);
    add(along_rows);
  }
  for (const MapSchedule& tiled : flat_tiles(kernel, chosen)) add(tiled);
  if (chosen.tile) {
    for (const auto& [rows, columns] : {std::pair{32, 32}, {32, 64}, {64, 32}, {64, 64}, {128, 64}, {64, 128}}) {
      MapSchedule tiled = chosen;
      tiled.tile->rows = rows;
      tiled.tile->columns = columns;
      tiled.threads = std::min(256, rows * columns / tiled.vector);
      add(tiled);
    }
    add(without_tile(chosen));
    for (const auto& [rows, columns] : {std::pair{64, 64}, {64, 128}, {128, 64}})
      for (const int threads : {256, 512}) {
        MapSchedule shifted = chosen;
        shifted.tile->shift = true;
        shifted.vector = static_cast<int>(16 / widest_stored(kernel));
        shifted.tile->rows = rows;
        shifted.tile->columns = columns;
        shifted.threads = threads;
        if (gains_by_shift(kernel, shifted)) add(shifted);
      }
  }
  return alternatives;
}

}  // namespace tenon::codegen

// Schedules around the heuristics' choice for Map kernels, for a tuner: other widths, blocks and tiles, one change
// each.
#include <algorithm>

#include "codegen/read_once.h"
#include "codegen/schedule_choices.h"
#include "codegen/transpose.h"
#include "codegen/vectorize.h"

namespace tenon::codegen {
namespace {

constexpr int kWidest = 16;  // elements

// The rows of a tile and the vectors in them go round with the threads, and shared memory holds its tiles.
bool tile_is_legal(const Kernel& kernel, const MapSchedule& s) {
  const int per_row = s.tile_columns / s.vector;
  return s.unroll == 1 && per_row >= 1 && s.threads % per_row == 0 && s.tile_rows * per_row % s.threads == 0 &&
         transpose_bytes(kernel, transposed_along(kernel, s.tile_axis), s.tile_rows, s.tile_columns) <=
             kStaticSharedBytes;
}

bool is_legal(const Kernel& kernel, const MapSchedule& s) {
  const bool across_rows = kernel.axes.size() == 1 || s.flat;
  const bool width =
      s.vector == 1 ||
      (s.vector > 1 && s.vector <= kWidest &&
       (across_rows || power_of_two_divisor(kernel.axes.back().extent, s.vector, kernel.symbols) == s.vector));
  return width && (s.tile_axis < 0 || tile_is_legal(kernel, s)) && (!s.spread || may_spread(kernel, s));
}

std::int64_t widest_stored(const Kernel& kernel) {
  std::int64_t widest = 1;
  for (const Store& store : kernel.stores) widest = std::max(widest, element_bytes(kernel, store.access));
  return widest;
}

// The same kernel without a tile: vectors as wide as the stores allow.
MapSchedule without_tile(MapSchedule schedule) {
  schedule.tile_axis = -1;
  schedule.tile_rows = schedule.tile_columns = 0;
  schedule.tile_vector = 1;
  schedule.threads = 256;
  return schedule;
}

}  // namespace

std::vector<MapSchedule> map_alternatives(const Kernel& kernel, const MapSchedule& chosen) {
  std::vector<MapSchedule> alternatives;
  if (kernel.axes.empty()) return alternatives;
  const auto add = [&](const MapSchedule& schedule) {
    if (is_legal(kernel, schedule)) alternatives.push_back(schedule);
  };
  if (chosen.spread) {
    MapSchedule plain = chosen;
    plain.spread = plain.streaming_loads = false;
    plain.unroll = 1;
    plain.threads = 256;
    add(plain);
  }
  const auto with = [&](auto field, auto value) {
    MapSchedule schedule = chosen;
    schedule.*field = value;
    add(schedule);
  };
  with(&MapSchedule::vector, chosen.vector / 2);
  with(&MapSchedule::vector, chosen.vector * 2);
  for (int threads : {128, 256, 512})
    for (const bool streaming : {chosen.streaming, !chosen.streaming}) {
      MapSchedule other = chosen;
      other.threads = threads;
      other.streaming = streaming;
      add(other);
    }
  for (int unroll : {2, 4}) with(&MapSchedule::unroll, unroll);
  if (chosen.vector > 1 && may_keep_reads(kernel)) with(&MapSchedule::keep_reads, !chosen.keep_reads);
  if (chosen.vector > 1 && !loads_read_once(kernel, chosen.spread).empty())
    for (const bool streaming : {false, true})
      for (const int unroll : {chosen.unroll, 4}) {
        MapSchedule loads = chosen;
        loads.unroll = unroll;
        loads.streaming = streaming;
        loads.streaming_loads = !chosen.streaming_loads;
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
  if (chosen.tile_axis >= 0) {
    for (const auto& [rows, columns] : {std::pair{32, 32}, {32, 64}, {64, 32}, {64, 64}, {128, 64}, {64, 128}}) {
      MapSchedule tiled = chosen;
      tiled.tile_rows = rows;
      tiled.tile_columns = columns;
      tiled.threads = std::min(256, rows * columns / tiled.vector);
      add(tiled);
    }
    add(without_tile(chosen));
    for (const auto& [rows, columns] : {std::pair{64, 64}, {64, 128}, {128, 64}})
      for (const int threads : {256, 512}) {
        MapSchedule shifted = chosen;
        shifted.tile_shift = true;
        shifted.vector = static_cast<int>(16 / widest_stored(kernel));
        shifted.tile_rows = rows;
        shifted.tile_columns = columns;
        shifted.threads = threads;
        if (tile_is_legal(kernel, shifted) && may_shift(kernel, shifted)) alternatives.push_back(shifted);
      }
  }
  return alternatives;
}

}  // namespace tenon::codegen

// Overlapping loads (codegen/analysis/overlap.h) as the heuristics' choice for Map kernels: stencils and windows.
#include <algorithm>
#include <optional>

#include "codegen/analysis/overlap.h"
#include "codegen/analysis/vectorize.h"
#include "codegen/schedule/map_choices.h"

namespace tenon::codegen {
namespace {

// Registers that stretches of overlapping loads may take, in bytes.
constexpr std::int64_t kMostStretchBytes = 512;
// Points of a row from which on the vectors that cross its end, point by point, cost little. Where a point is several
// loads that takes so many vectors that most warps have none (H200: five points of bf16 [16, 96, 299, 299] 335 us in
// flat vectors of 8 that load what they share, 272 in flat ones of 4 that do not).
constexpr std::int64_t kLongRow = 256, kVectorsOfLongRow = 96;
constexpr std::size_t kSeveralStreams = 5;

// Whether vectors of so many points lie in rows, or may cross their ends because all results lie like the domain.
std::optional<bool> flat_with(const Kernel& kernel, int vector) {
  const Dim& row = kernel.axes.back().extent;
  const SymbolBounds length = row.bounds(kernel.symbols);
  if (length.max < vector) return std::nullopt;
  if (kernel.axes.size() == 1 || power_of_two_divisor(row, vector, kernel.symbols) == vector) return false;
  const bool flat = std::all_of(kernel.stores.begin(), kernel.stores.end(),
                                [&](const Store& store) { return flat_width(store.access, vector, kernel) == vector; });
  const std::int64_t least =
      streams(kernel).size() >= kSeveralStreams ? std::max(kLongRow, kVectorsOfLongRow * vector) : kLongRow;
  return flat && (row.is_constant() ? length.min : length.max) >= least ? std::optional(true) : std::nullopt;
}

// Where neighbours along the axis before the innermost share most of what they read, a thread has several of them: of
// rows that no vector divides single points, which need no vectors to be loaded together.
constexpr int kRowsOfPoints = 8, kRowsOfVectors = 4;
constexpr double kMostLoadsLeft = 0.75, kMostLoadsLeftOfPoints = 0.5, kMostLoadsLeftOfMany = 0.9;
// Of 2-byte elements each load is as much work for fewer bytes (seven points of bf16 [9, 640, 28, 28, 28] on an H200:
// 280 us, 226 by strips of four).
constexpr double kMostLoadsLeftOfNarrow = 0.8;

int rows_with(const Kernel& kernel, int rows, double most, int vector = 1) {
  const int axis = static_cast<int>(kernel.axes.size()) - 2;
  if (axis < 0 || rows * vector * slots_of_point(kernel) > kVectorCost) return 1;
  const SymbolBounds extent = kernel.axes[static_cast<std::size_t>(axis)].extent.bounds(kernel.symbols);
  return extent.max >= 4 * rows && loads_left(kernel, axis, rows) <= most ? rows : 1;
}

// Of rows that vectors of two divide at most, a thread has points of several where each is many loads: as many as it
// can have (H200: sums of 2x2x2 of bf16 rows of 15 204 us in flat vectors, 177 of two rows; seven points of rows of 10
// 347, 275 of two rows in pairs).
bool take_rows_of_many_loads(MapSchedule& schedule, const Kernel& kernel) {
  const int vector = static_cast<int>(power_of_two_divisor(kernel.axes.back().extent, 4, kernel.symbols));
  if (vector > 2 || streams(kernel).size() + static_cast<std::size_t>(vector) < kManyLoads + 1) return false;
  for (int rows = kRowsOfPoints; rows > 1; rows /= 2)
    if (rows_with(kernel, rows, kMostLoadsLeftOfMany, vector) > 1) {
      schedule.vector = vector;
      schedule.flat = false;
      schedule.strip = rows;
      return true;
    }
  return false;
}

}  // namespace

// Threads that load what their points share once, where there is something: 16 bytes of results, or of what they read
// where points lie apart in that.
bool choose_overlaps(MapSchedule& schedule, const Kernel& kernel) {
  std::int64_t widest = 1;
  for (const Access& access : streams(kernel)) widest = std::max(widest, element_bytes(kernel, access));
  const int axis = static_cast<int>(kernel.axes.size()) - 1;
  for (int vector = static_cast<int>(16 / widest); vector >= 1; vector /= 2) {
    const auto flat = flat_with(kernel, vector);
    if (!flat || (vector > 1 && vector * slots_of_point(kernel) > kVectorCost)) continue;
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
    // Two narrow points may lie further apart (sums of every five of bf16 rows of 512 on an H200: 242 us by single
    // points, 147 by two); so may single bytes (greatest of three i8 each 135 us in vectors of 4, 67 of 8).
    const std::int64_t most_own = (vector == 2 && widest <= 2) || widest == 1 ? 32 : 16;
    if (overlaps.empty() || (vector > 1 && (own > most_own || bytes > kMostStretchBytes))) continue;
    schedule.vector = vector;
    schedule.flat = *flat;
    schedule.overlaps = true;
    if (!*flat && vector > 1)
      schedule.strip = rows_with(kernel, std::min(kRowsOfVectors, 16 / vector),
                                 widest == 2 ? kMostLoadsLeftOfNarrow : kMostLoadsLeft);
    return true;
  }
  return take_rows_of_many_loads(schedule, kernel);
}

}  // namespace tenon::codegen

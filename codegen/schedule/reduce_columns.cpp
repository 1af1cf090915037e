// Heuristics for Reduce kernels whose rows lie across memory: neighbouring threads have neighbouring rows, the columns,
// and the others of a block share each.
#include <algorithm>
#include <cmath>
#include <optional>

#include "codegen/analysis/peel.h"
#include "codegen/analysis/rounds.h"
#include "codegen/analysis/row_shape.h"
#include "codegen/analysis/vectorize.h"
#include "codegen/schedule/choices.h"

namespace tenon::codegen {
namespace {

constexpr int kMostUnrolled = 4;            // where later sweeps compute more than sums
constexpr int kMostAccumulators = 32;       // per thread
constexpr std::int64_t kLongColumn = 2048;  // of which more threads have more under way
constexpr int kMostStreamedPercent = 384;   // of the L2: 192 MB of an H100, where it was measured

// Columns of rows that no vector divides, in vectors of those of one alignment, in as many parts as run at once: loads
// of single elements are too many requests for what they bring.
std::optional<ReduceSchedule> peel_columns(const Kernel& kernel, const Target& target, const RowShape& shape) {
  constexpr double kBlocks = 1.5;  // of a multiprocessor: with more, the rows that are read at once lie further apart
  ReduceSchedule schedule;
  schedule.team.mapping = RowMapping::column;
  schedule.peeled = true;
  schedule.vector = static_cast<int>(16 / widest_of(kernel));
  schedule.keep = Reread{.unroll = 8};
  schedule.cache.streaming_loads = streams_past(kernel, target, one_sweep(kernel, {}), kMostStreamedPercent);
  if (!kernel.axes[shape.kept - 1].extent.is_constant()) return std::nullopt;
  if (schedule.vector < 2 || column_reference(kernel, schedule.vector) == nullptr) return std::nullopt;
  const std::int64_t vectors = shape.rows / schedule.vector;
  while (schedule.team.columns > 8 && schedule.team.columns >= 2 * vectors) schedule.team.columns /= 2;
  const std::int64_t slabs =
      (vectors + schedule.team.columns - 1) / schedule.team.columns + 1;  // one of them is the edges
  const std::int64_t members = schedule.team.threads / schedule.team.columns;
  const std::int64_t parts =  // of each alignment
      std::max(1LL, std::llround(kBlocks * target.multiprocessors / static_cast<double>(slabs * schedule.vector)));
  if (shape.length < parts * schedule.vector * members * unroll_of(schedule)) return std::nullopt;
  schedule.cut = in_parts(static_cast<int>(parts * schedule.vector), finishing_team(kernel));
  return schedule;
}

// 16 bytes of the widest column operand along the kept axis, and the rest of the block along the reduced ones.
ReduceSchedule choose_columns(const Kernel& kernel, const Target& target, const RowShape& shape) {
  ReduceSchedule schedule;
  schedule.team.mapping = RowMapping::column;
  const int inner = static_cast<int>(shape.kept) - 1;
  const Dim& extent = kernel.axes[shape.kept - 1].extent;
  std::int64_t reductions = 0;
  for (const Instr& instr : kernel.body) reductions += instr.kind == InstrKind::reduce;
  while (schedule.vector < 16 && schedule.vector * 2 * reductions <= kMostAccumulators) schedule.vector *= 2;
  int usable = 1;
  for (const Instr* load : row_loads(kernel))
    usable = std::max(usable, vector_width(load->access, inner,
                                           power_of_two_divisor(extent, schedule.vector, kernel.symbols), kernel));
  schedule.vector = usable;
  schedule.cache.streaming_loads =
      usable > 1 && streams_past(kernel, target, one_sweep(kernel, {}), kMostStreamedPercent);
  const std::int64_t along = extent.bounds(kernel.symbols).max;
  while (schedule.team.columns > 4 && schedule.team.columns / 2 * schedule.vector >= along) schedule.team.columns /= 2;
  const bool reread = rereads(kernel);  // no block can leave a part of a row to another
  const std::int64_t line = 128 / widest_of(kernel);
  while (reread && schedule.team.columns > 4 && schedule.team.columns * schedule.vector > line &&
         shape.rows < std::int64_t{target.multiprocessors} * schedule.team.columns * schedule.vector)
    schedule.team.columns /= 2;
  schedule.team.threads = reread && shape.length >= kLongColumn ? 512
                          : shape.length >= 16                  ? 256
                                                                : std::max(64, 4 * schedule.team.columns);
  const std::int64_t team = schedule.team.threads / schedule.team.columns;
  int unroll = choose_unroll(kernel, schedule.vector, shape.length / team);
  if (rounds_of(kernel).sweeps.size() > 1) unroll = std::min(unroll, kMostUnrolled);
  schedule.keep = Reread{.unroll = unroll};
  if (one_sweep(kernel, {}))
    schedule.cut = in_parts(
        choose_splits(target, shape, schedule.team.columns * schedule.vector, 2 * team * unroll, schedule.team.threads),
        finishing_team(kernel));
  return schedule;
}

// Columns that are read again stay in registers of blocks of 512 threads, two on a multiprocessor: 128 bytes of each
// row at a time, or fewer, in accesses of 4 bytes, so that many threads have a column, and each few of its elements.
// Shorter columns are still in the caches when they are read again.
std::optional<ReduceSchedule> hold_columns(const Kernel& kernel, const Target& target, const RowShape& shape) {
  constexpr std::int64_t kLeast = 128, kWord = 4;
  if (!shape.known || shape.length < kLeast || !rereads(kernel)) return std::nullopt;
  ReduceSchedule schedule;
  schedule.team.mapping = RowMapping::column;
  schedule.team.threads = 512;
  schedule.occupancy.least = 2;
  const int inner = static_cast<int>(shape.kept) - 1;
  const Dim& extent = kernel.axes[shape.kept - 1].extent;
  const auto word = static_cast<int>(std::max<std::int64_t>(1, kWord / widest_of(kernel)));
  for (const Instr* load : row_loads(kernel))
    schedule.vector = std::max(
        schedule.vector, vector_width(load->access, inner, power_of_two_divisor(extent, word, kernel.symbols), kernel));
  const int words = schedule.vector == 1 && word == 1 ? 32 : 24;  // of each thread: with more it spills
  const std::int64_t along = extent.bounds(kernel.symbols).max;
  for (schedule.team.columns = 32; schedule.team.columns >= 8; schedule.team.columns /= 2) {
    const bool few = shape.rows < std::int64_t{target.multiprocessors} * schedule.team.columns * schedule.vector;
    if (schedule.team.columns > 8 && (few || schedule.team.columns / 2 * schedule.vector >= along)) continue;
    const std::int64_t steps = (shape.length + team_size(schedule) - 1) / team_size(schedule);
    schedule.keep = InRegisters{static_cast<int>(steps * schedule.vector)};
    if (steps * std::max(kWord, schedule.vector * held_bytes(kernel)) <= kWord * words) return schedule;
  }
  return std::nullopt;
}

}  // namespace

bool column_wise(const Kernel& kernel, std::size_t kept) {
  if (kept == 0) return false;
  int along_kept = 0, along_reduced = 0;
  for (const Instr* load : row_streams(kernel)) {
    along_kept += step_along(load->access.offset, static_cast<int>(kept) - 1, 1, kernel) == 1;
    along_reduced += step_along(load->access.offset, static_cast<int>(kernel.axes.size()) - 1, 1, kernel) == 1;
  }
  return along_kept > along_reduced;
}

ReduceSchedule single_columns(const Kernel& kernel, const Target& target) {
  return choose_columns(kernel, target, shape_of(kernel));
}

ReduceSchedule choose_column_schedule(const Kernel& kernel, const Target& target) {
  const RowShape shape = shape_of(kernel);
  if (target.may.hold_rows)
    if (const auto held = hold_columns(kernel, target, shape)) return *held;
  const ReduceSchedule schedule = choose_columns(kernel, target, shape);
  return schedule.vector == 1 ? peel_columns(kernel, target, shape).value_or(schedule) : schedule;
}

}  // namespace tenon::codegen

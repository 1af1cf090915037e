// Heuristics for Reduce kernels: who shares a row, by its length and by the direction in which the operands are
// contiguous; and whether the row stays in registers between rounds.
#include <algorithm>
#include <cmath>
#include <optional>

#include "codegen/emit/cuda/columns_peeled.h"
#include "codegen/narrow.h"
#include "codegen/read_once.h"
#include "codegen/rounds.h"
#include "codegen/row_shape.h"
#include "codegen/schedule_choices.h"
#include "codegen/vectorize.h"

namespace tenon::codegen {
namespace {

constexpr int kMaxHeldElements = 64;       // each also lives as f32 while it is used
constexpr std::int64_t kThreadRow = 4;     // up to it a thread has a row for itself, as it has one of two vectors
constexpr std::int64_t kBlockRow = 3072;   // beyond it a row is shared by a block
constexpr std::int64_t kLargeRow = 16384;  // beyond it by a large one
constexpr int kBytesInFlight = 128;        // per thread: 64 KB and more on an SM, twice what its share of latency needs
constexpr int kMostUnrolled = 16;
constexpr int kMostUnrolledColumns = 4;  // where later sweeps compute more than sums
constexpr std::int64_t kShortestPeeled = 256;
constexpr std::int64_t kLargestRow = 32768;  // beyond it by one of all threads, where it is read again
constexpr int kMostThreadsRereading = 1024;
constexpr int kThreadsStreaming = 256;  // of a block whose rows pass the caches by, or twice as many
constexpr int kThreadsPeeled = 256;     // of a block that walks a peeled row once
constexpr int kMostThreads = 512;       // of a block, which leaves each 64 registers and more
constexpr int kMostAccumulators = 32;   // per thread
constexpr std::int64_t kCachesBytes = 32 << 20;
constexpr std::int64_t kMostStreamed = 320 << 20;
constexpr std::int64_t kMostStreamedColumns = 192 << 20;
constexpr int kThreadsOfNorms = 1280;   // of an SM, in peeled rows of 2-byte elements beside weights
constexpr int kResidentThreads = 1024;  // of an SM, as far as a split counts on them

// 16 bytes of the widest row operand, as far as the innermost extent and one of the loads allow; peeled off rows of
// another length where every operand lies along them.
void choose_vector(ReduceSchedule& schedule, const Kernel& kernel, const RowShape& shape) {
  const int inner = static_cast<int>(kernel.axes.size()) - 1;
  const int most = static_cast<int>(16 / widest_of(kernel));
  const int vector = power_of_two_divisor(kernel.axes.back().extent, most, kernel.symbols);
  for (const Instr* load : row_loads(kernel))
    if (vector_width(load->access, inner, vector, kernel) > 1) schedule.vector = vector;
  if (schedule.vector == most || shape.length < kShortestPeeled || peel_reference(kernel) == nullptr) return;
  schedule.vector = most;
  schedule.peeled = true;
}

// Vectors of a thread in the longest row. A peeled one has elements beside them.
std::int64_t turns_of(const ReduceSchedule& schedule, const RowShape& shape) {
  const std::int64_t team = team_of(schedule);
  const std::int64_t vectors = (shape.length + (schedule.peeled ? 0 : schedule.vector - 1)) / schedule.vector;
  return (vectors + team - 1) / team;
}

// Enough steps of the loop over a row, each of `vector` elements a thread, for the bytes in flight, none that a row
// does not have.
int choose_unroll(const Kernel& kernel, int vector, std::int64_t steps) {
  const std::int64_t wanted = kBytesInFlight / (vector * stream_bytes(kernel));
  int unroll = 1;
  while (unroll < kMostUnrolled && 2 * unroll <= std::min(wanted, steps)) unroll *= 2;
  return unroll;
}

// Short rows: as few lanes of a warp as leave each little to hold, and blocks of as many rows as take longer to move
// than to launch (1.2 ns a block on an H100), where that leaves blocks enough for every multiprocessor.
void choose_lanes(ReduceSchedule& schedule, const Kernel& kernel, const Target& target, const RowShape& shape) {
  constexpr std::int64_t kElements = 16, kVectors = 8, kBytesOfBlock = 6 << 10, kBlocks = 4;
  const std::int64_t vectors = std::max<std::int64_t>(1, shape.length / schedule.vector);
  const std::int64_t each = std::clamp<std::int64_t>(kElements / schedule.vector, 1, kVectors);  // vectors of a lane
  const auto enough = [&](int threads, int lanes) {
    return shape.rows / (threads / lanes) >= kBlocks * target.multiprocessors;
  };
  const int least = schedule.peeled ? 2 * schedule.vector : 2;  // a thread for each element at the ends
  const auto fewer = [&] { return std::max(least, schedule.lanes / 2); };
  if (schedule.mapping == RowMapping::warp)
    while (fewer() < schedule.lanes &&
           (fewer() >= vectors || (fewer() * each >= vectors && enough(schedule.threads, fewer()))))
      schedule.lanes /= 2;
  const int lanes = team_of(schedule);
  const std::int64_t row_bytes = shape.length * stream_bytes(kernel) * (stores_elements(kernel) ? 2 : 1);
  while (schedule.threads < kMostThreads && schedule.threads / lanes * row_bytes < kBytesOfBlock &&
         enough(2 * schedule.threads, lanes))
    schedule.threads *= 2;
}

void choose_team(ReduceSchedule& schedule, const Kernel& kernel, const Target& target, const RowShape& shape) {
  const std::int64_t vectors = std::max<std::int64_t>(1, shape.length / schedule.vector);
  schedule.threads = 128;
  if (shape.length > kBlockRow) {
    schedule.mapping = RowMapping::block;
    schedule.threads = shape.length > kLargeRow ? 512 : shape.length > 2 * kBlockRow ? 256 : 128;
    return;
  }
  schedule.mapping = vectors <= 2 || shape.length <= kThreadRow ? RowMapping::thread : RowMapping::warp;
  choose_lanes(schedule, kernel, target, shape);
}

// Splits rows where the blocks would not fill the device, into parts of some unrolled steps.
int choose_splits(const Kernel& kernel, const Target& target, const RowShape& shape, int rows_of_block,
                  std::int64_t elements_of_part, int threads) {
  if (rounds_of(kernel).sweeps.size() != 1 || shape.rows <= 0) return 1;
  const std::int64_t blocks = (shape.rows + rows_of_block - 1) / rows_of_block;
  const std::int64_t resident = std::int64_t{target.multiprocessors} * std::max(1, kResidentThreads / threads);
  return static_cast<int>(std::max<std::int64_t>(1, std::min(resident / blocks, shape.length / elements_of_part)));
}

SymbolBounds bytes_of_streams(const Kernel& kernel) {
  Dim elements(stream_bytes(kernel));
  for (const Axis& axis : kernel.axes) elements = elements * axis.extent;
  return elements.bounds(kernel.symbols);
}

bool exceeds_caches(const Kernel& kernel) { return bytes_of_streams(kernel).min >= kCachesBytes; }

// Of its threads' candidates a large block finds the best in more instructions than the elements took.
bool finds_index(const Kernel& kernel) {
  return std::any_of(kernel.body.begin(), kernel.body.end(), [](const Instr& instr) {
    return instr.kind == InstrKind::reduce && ir::info(instr.op).yields == ir::Yields::Index;
  });
}

bool one_sweep(const Kernel& kernel, bool online) { return rounds_of(kernel, online).sweeps.size() == 1; }

// One read of more than the caches hold, where no elements are stored: what is loaded need not push out what others
// left there, and have it written to memory meanwhile. That is some 5 us saved, once; such loads are 3 % slower.
bool streams_past(const Kernel& kernel, bool one_read, std::int64_t most = kMostStreamed) {
  if (stores_elements(kernel) || !one_read) return false;
  const SymbolBounds bytes = bytes_of_streams(kernel);
  return bytes.min >= kCachesBytes && bytes.max <= most;
}

// Columns of rows that no vector divides, in vectors of those of one alignment, in as many parts as run at once: loads
// of single elements are too many requests for what they bring.
std::optional<ReduceSchedule> peel_columns(const Kernel& kernel, const Target& target, const RowShape& shape) {
  constexpr double kBlocks = 1.5;  // of a multiprocessor: with more, the rows that are read at once lie further apart
  ReduceSchedule schedule;
  schedule.mapping = RowMapping::column;
  schedule.peeled = true;
  schedule.vector = static_cast<int>(16 / widest_of(kernel));
  schedule.unroll = 8;
  schedule.streaming_loads = streams_past(kernel, one_sweep(kernel, false), kMostStreamedColumns);
  if (!kernel.axes[shape.kept - 1].extent.is_constant()) return std::nullopt;
  if (schedule.vector < 2 || cuda::column_reference(kernel, schedule.vector) == nullptr) return std::nullopt;
  const std::int64_t vectors = shape.rows / schedule.vector;
  while (schedule.columns > 8 && schedule.columns >= 2 * vectors) schedule.columns /= 2;
  const std::int64_t slabs = (vectors + schedule.columns - 1) / schedule.columns + 1;  // one of them is the edges
  const std::int64_t members = schedule.threads / schedule.columns;
  const std::int64_t parts =  // of each alignment
      std::max(1LL, std::llround(kBlocks * target.multiprocessors / static_cast<double>(slabs * schedule.vector)));
  if (shape.length < parts * schedule.vector * members * schedule.unroll) return std::nullopt;
  schedule.splits = static_cast<int>(parts * schedule.vector);
  return schedule;
}

// 16 bytes of the widest column operand along the kept axis, and the rest of the block along the reduced ones.
ReduceSchedule choose_columns(const Kernel& kernel, const Target& target, const RowShape& shape) {
  ReduceSchedule schedule;
  schedule.mapping = RowMapping::column;
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
  schedule.streaming_loads = usable > 1 && streams_past(kernel, one_sweep(kernel, false), kMostStreamedColumns);
  const std::int64_t along = extent.bounds(kernel.symbols).max;
  while (schedule.columns > 4 && schedule.columns / 2 * schedule.vector >= along) schedule.columns /= 2;
  schedule.threads = shape.length >= 16 ? 256 : std::max(64, 4 * schedule.columns);
  const std::int64_t team = schedule.threads / schedule.columns;
  schedule.unroll = choose_unroll(kernel, schedule.vector, shape.length / team);
  if (rounds_of(kernel).sweeps.size() > 1) schedule.unroll = std::min(schedule.unroll, kMostUnrolledColumns);
  schedule.splits = choose_splits(kernel, target, shape, schedule.columns * schedule.vector, 2 * team * schedule.unroll,
                                  schedule.threads);
  return schedule;
}

// Threads of a block that hold so many elements each, in whole warps.
int threads_holding(int elements, const RowShape& shape) {
  return static_cast<int>((shape.length / elements + 31) / 32 * 32);
}

// Columns that are read again stay in registers of blocks of 512 threads, two on a multiprocessor: 128 bytes of each
// row at a time, or fewer, in accesses of 4 bytes, so that many threads have a column, and each few of its elements.
// Shorter columns are still in the caches when they are read again.
std::optional<ReduceSchedule> hold_columns(const Kernel& kernel, const Target& target, const RowShape& shape) {
  constexpr std::int64_t kLeast = 128, kWord = 4;
  if (!shape.known || shape.length < kLeast || !rereads(kernel)) return std::nullopt;
  ReduceSchedule schedule;
  schedule.mapping = RowMapping::column;
  schedule.persistent = true;
  schedule.threads = kMostThreads;
  schedule.resident = 2;
  const int inner = static_cast<int>(shape.kept) - 1;
  const Dim& extent = kernel.axes[shape.kept - 1].extent;
  const auto word = static_cast<int>(std::max<std::int64_t>(1, kWord / widest_of(kernel)));
  for (const Instr* load : row_loads(kernel))
    schedule.vector = std::max(
        schedule.vector, vector_width(load->access, inner, power_of_two_divisor(extent, word, kernel.symbols), kernel));
  const int words = schedule.vector == 1 && word == 1 ? 32 : 24;  // of each thread: with more it spills
  const std::int64_t along = extent.bounds(kernel.symbols).max;
  for (schedule.columns = 32; schedule.columns >= 8; schedule.columns /= 2) {
    const bool few = shape.rows < std::int64_t{target.multiprocessors} * schedule.columns * schedule.vector;
    if (schedule.columns > 8 && (few || schedule.columns / 2 * schedule.vector >= along)) continue;
    const std::int64_t steps = (shape.length + team_of(schedule) - 1) / team_of(schedule);
    schedule.row_elements = static_cast<int>(steps * schedule.vector);
    if (steps * std::max(kWord, schedule.vector * held_bytes(kernel)) <= kWord * words) return schedule;
  }
  return std::nullopt;
}

// Rows beside operands that all rows share, which take registers of their own: a thread holds fewer elements of the
// row, of a block even where a warp might have it. Measured on sm_90 with norms of 768 to 8192 columns.
void choose_norm_team(ReduceSchedule& schedule, const Kernel& kernel, const RowShape& shape) {
  constexpr std::int64_t kLeast = 1024, kMost = 4096, kShort = 2048;
  if (widest_of(kernel) != 2 || schedule.peeled || shape.length < kLeast || shape.length > kMost) return;
  schedule.mapping = RowMapping::block;
  schedule.threads = threads_holding(shape.length <= kShort ? 8 : 16, shape);
}

// The same of peeled rows, whose weights come in words that are shifted to the row's alignment: of 2-byte elements so
// many that there are few shifts at the ends of a row, in the registers of 40 warps on a multiprocessor.
void choose_peeled_norm_team(ReduceSchedule& schedule, const Kernel& kernel, const RowShape& shape) {
  constexpr std::int64_t kLeast = 1000, kMost = 4100, kShort = 2048;
  const std::int64_t widest = widest_of(kernel);
  if ((widest != 2 && widest != 4) || row_streams(kernel).size() != 1 || shape.length > kMost * 4 / widest) return;
  const int threads = threads_holding(widest == 2 ? 32 : shape.length > kShort ? 16 : 8, shape);
  if (shape.length >= kLeast && threads > 32) {
    schedule.mapping = RowMapping::block;
    schedule.threads = threads;
  }
  if (widest == 2) schedule.resident = kThreadsOfNorms / schedule.threads;
}

// Holds a row that is read again, with more threads where that is what it takes to hold few elements in each: they
// leave room for more blocks on an SM.
void choose_persistence(ReduceSchedule& schedule, const Kernel& kernel, const RowShape& shape) {
  if (!shape.known || !rereads(kernel)) return;
  if (row_loads(kernel).size() > row_streams(kernel).size())
    (schedule.peeled ? choose_peeled_norm_team : choose_norm_team)(schedule, kernel, shape);
  if (schedule.mapping == RowMapping::warp && shape.length > kMaxHeldElements / 2 * schedule.lanes) {
    schedule.mapping = RowMapping::block;
    schedule.threads = 128;
  }
  for (const int most : {kMaxHeldElements / 2, kMaxHeldElements}) {
    ReduceSchedule larger = schedule;
    for (hold_row(larger, kernel, shape, most);
         !larger.persistent && larger.mapping == RowMapping::block && larger.threads < kMostThreads;
         hold_row(larger, kernel, shape, most))
      larger.threads *= 2;
    if (!larger.persistent) continue;
    schedule = larger;
    return;
  }
}

// Large rows in registers. Some 64 KB of rows under way on a multiprocessor are enough; more of them push each other
// out of the L2 before they are done. So as many threads have a row that few rows fit, or each block asks for shared
// memory that holds others off, except where that would take the L1 from operands that all rows share. Measured on
// sm_90, 1 % each; not measured where a row of f32 is more than one stream. A few rows are never too many, and kernels
// that ask for no shared memory may share a launch.
void choose_large_row_team(ReduceSchedule& schedule, const Kernel& kernel, const Target& target,
                           const RowShape& shape) {
  constexpr std::int64_t kLeast = 8192, kMost = 16384, kBytesUnderWay = 64 << 10, kManyRows = 4;
  const std::int64_t widest = widest_of(kernel);
  const std::size_t streams = row_streams(kernel).size();
  if (schedule.mapping != RowMapping::block || schedule.peeled || shape.length < kLeast || shape.length > kMost) return;
  if (widest != 2 && (widest != 4 || streams != 1)) return;
  if (widest == 4 && row_loads(kernel).size() == streams) {
    if (shape.least_rows >= kManyRows * target.multiprocessors)
      schedule.at_most = static_cast<int>(kBytesUnderWay / (shape.length * widest));
    return;
  }
  ReduceSchedule wider = schedule;
  wider.threads = widest == 2 ? kMostThreads : 2 * kMostThreads;
  wider.persistent = false;
  hold_row(wider, kernel, shape, kMaxHeldElements / 2);
  if (wider.persistent) schedule = wider;
}

// Whether a large block's registers have the row, rather than its shared memory: where what is computed of an element
// leaves them room, and time for another row to load.
bool registers_are_enough(const ReduceSchedule& schedule, const Kernel& kernel) {
  const bool long_computed = find_online(kernel).has_value() && widest_of(kernel) == 2 && !has_narrow_weights(kernel);
  return schedule.row_elements <= kMaxHeldElements / 2 && widest_of(kernel) <= 4 && !schedule.peeled && !long_computed;
}

// The row of one large block rather than of two is still in the L2 when it is read again. Where it is not, peeled rows
// want small blocks: there is more at each row's ends to wait for.
void choose_online_threads(ReduceSchedule& schedule, const RowShape& shape, bool again, bool wide) {
  if (again && !schedule.peeled && !wide && shape.length > kLargestRow) schedule.threads = kMostThreadsRereading;
  if (!again && schedule.peeled) schedule.threads = std::min(schedule.threads, kThreadsPeeled);
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

ReduceSchedule rereading(const Kernel& kernel, const Target& target) {
  ReduceSchedule schedule;
  const RowShape shape = shape_of(kernel);
  choose_vector(schedule, kernel, shape);
  choose_team(schedule, kernel, target, shape);
  schedule.online = target.may.online && find_online(kernel).has_value();
  const bool wide = widest_of(kernel) > 4;  // f64, which takes twice the registers
  if (schedule.online) choose_online_threads(schedule, shape, rounds_of(kernel, true).sweeps.size() > 1, wide);
  // More is computed of each element, or of vectors that may end early, than registers are left for.
  const bool half = schedule.online || (schedule.peeled && rounds_of(kernel).sweeps.size() > 1);
  const int width = schedule.vector * (half ? 2 : 1) * (schedule.online && wide ? 2 : 1);
  schedule.unroll = choose_unroll(kernel, width, turns_of(schedule, shape));
  const std::int64_t step = std::int64_t{team_of(schedule)} * schedule.vector;
  if (schedule.mapping == RowMapping::block)
    schedule.splits = choose_splits(kernel, target, shape, 1, 2 * step * schedule.unroll, schedule.threads);
  schedule.streaming_loads = schedule.vector > 1 && streams_past(kernel, one_sweep(kernel, schedule.online));
  if (schedule.streaming_loads && schedule.mapping == RowMapping::block && schedule.splits == 1) {
    const bool many = shape.length > (2 * kThreadsStreaming - 1) * schedule.vector && !finds_index(kernel);
    schedule.threads = many ? 2 * kThreadsStreaming : kThreadsStreaming;
    // The bounds of peeled rows are not known, so that the compiler unrolls nothing: all turns in one, where it can be.
    schedule.unroll = schedule.peeled ? choose_unroll(kernel, width, 2 * turns_of(schedule, shape) - 1)
                                      : std::min(schedule.unroll, many ? 1 : 2);
  }
  return schedule;
}

namespace {

ReduceSchedule choose_by_shape(const Kernel& kernel, const Target& target) {
  if (has_outer(kernel)) return choose_outer_schedule(kernel, target);
  ReduceSchedule schedule;
  const RowShape shape = shape_of(kernel);
  if (column_wise(kernel, shape.kept)) {
    if (target.may.hold_rows)
      if (const auto held = hold_columns(kernel, target, shape)) return *held;
    schedule = choose_columns(kernel, target, shape);
    return schedule.vector == 1 ? peel_columns(kernel, target, shape).value_or(schedule) : schedule;
  }
  choose_vector(schedule, kernel, shape);
  choose_team(schedule, kernel, target, shape);
  if (target.may.hold_rows) choose_persistence(schedule, kernel, shape);
  if (!schedule.persistent) schedule = rereading(kernel, target);
  if (schedule.persistent) choose_large_row_team(schedule, kernel, target, shape);
  if (schedule.persistent && (schedule.threads < kMostThreads || registers_are_enough(schedule, kernel)))
    return schedule;
  return read_once(kernel, target, schedule).value_or(schedule);
}

}  // namespace

ReduceSchedule choose_reduce_schedule(const Kernel& kernel, const Target& target) {
  ReduceSchedule schedule = choose_by_shape(kernel, target);
  schedule.keep_reads = may_keep_reads(kernel, schedule) && exceeds_caches(kernel);
  if (schedule.persistent && schedule.vector > 1 && schedule.shared_elements == 0 && schedule.walkers == 0)
    schedule.streaming_loads = streams_past(kernel, true);
  return schedule;
}

}  // namespace tenon::codegen

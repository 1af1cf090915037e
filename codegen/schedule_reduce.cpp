// Heuristics for Reduce kernels: who shares a row, by its length and by the direction in which the operands are
// contiguous; and whether the row stays in registers between rounds.
#include <algorithm>

#include "codegen/emit/cuda/held.h"
#include "codegen/emit/cuda/shared_rows.h"
#include "codegen/rounds.h"
#include "codegen/schedule_choices.h"
#include "codegen/vectorize.h"

namespace tenon::codegen {
namespace {

constexpr int kMaxHeldBytes = 160;         // of a row, per thread: ten 16-byte vectors
constexpr int kMaxHeldElements = 64;       // each also lives as f32 while it is used
constexpr std::int64_t kBlockRow = 3072;   // beyond it a row is shared by a block
constexpr std::int64_t kLargeRow = 16384;  // beyond it by a large one
constexpr int kBytesInFlight = 128;        // per thread: 64 KB and more on an SM, twice what its share of latency needs
constexpr int kMostUnrolled = 16;
constexpr int kMostUnrolledColumns = 4;  // where later sweeps compute more than sums
constexpr std::int64_t kShortestPeeled = 256;
constexpr std::int64_t kLargestRow = 32768;  // beyond it by one of all threads, where it is read again
constexpr int kMostThreadsRereading = 1024;
constexpr int kMostThreads = 512;       // of a block, which leaves each 64 registers and more
constexpr int kMostAccumulators = 32;   // per thread
constexpr int kMostBlocks = 8;          // of a cluster, on every device that has clusters
constexpr int kOwnRegisters = 36;       // of a thread that has vectors in registers too
constexpr int kResidentThreads = 1024;  // of an SM, as far as a split counts on them

struct RowShape {
  std::size_t kept = 0;     // axes
  std::int64_t rows = 0;    // the greatest number when symbolic
  std::int64_t length = 0;  // of a row; the greatest when symbolic
  bool known = false;       // constant
};

RowShape shape_of(const Kernel& kernel) {
  RowShape shape;
  Dim length(1), rows(1);
  for (const Axis& axis : kernel.axes) {
    shape.kept += !axis.reduced;
    (axis.reduced ? length : rows) = (axis.reduced ? length : rows) * axis.extent;
  }
  shape.rows = rows.bounds(kernel.symbols).max;
  const SymbolBounds bounds = length.bounds(kernel.symbols);
  shape.known = bounds.min == bounds.max;
  shape.length = bounds.max;
  return shape;
}

bool element_level(const Kernel& kernel, const Instr& instr) {
  for (std::size_t axis = 0; axis < kernel.axes.size(); ++axis)
    if (kernel.axes[axis].reduced && (instr.depends >> axis & 1) != 0) return true;
  return false;
}

std::vector<const Instr*> row_loads(const Kernel& kernel) {
  std::vector<const Instr*> loads;
  for (const Instr& instr : kernel.body)
    if (instr.kind == InstrKind::load && element_level(kernel, instr)) loads.push_back(&instr);
  return loads;
}

bool varies_on(const Kernel& kernel, std::uint64_t depends, bool reduced) {
  for (std::size_t axis = 0; axis < kernel.axes.size(); ++axis)
    if (kernel.axes[axis].reduced == reduced && (depends >> axis & 1) != 0) return true;
  return false;
}

// The loads that each element of each row has of its own: what a kernel's time goes to. All row loads where there are
// none (a single row).
std::vector<const Instr*> streams(const Kernel& kernel) {
  std::vector<const Instr*> all = row_loads(kernel), own;
  for (const Instr* load : all)
    if (varies_on(kernel, load->depends, false)) own.push_back(load);
  return own.empty() ? all : own;
}

std::int64_t widest_of(const Kernel& kernel) {
  std::int64_t widest = 1;
  for (const Instr* load : row_loads(kernel))
    widest = std::max(widest, size_of(kernel.operands[static_cast<std::size_t>(load->access.operand)].dtype));
  return widest;
}

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

// Of all streams, one element.
std::int64_t element_bytes(const Kernel& kernel) {
  std::int64_t bytes = 0;
  for (const Instr* load : streams(kernel))
    bytes += size_of(kernel.operands[static_cast<std::size_t>(load->access.operand)].dtype);
  return std::max<std::int64_t>(1, bytes);
}

// Enough steps of the loop over a row, each of `vector` elements a thread, for the bytes in flight, none that a row
// does not have.
int choose_unroll(const Kernel& kernel, int vector, std::int64_t steps) {
  const std::int64_t wanted = kBytesInFlight / (vector * element_bytes(kernel));
  int unroll = 1;
  while (unroll < kMostUnrolled && 2 * unroll <= std::min(wanted, steps)) unroll *= 2;
  return unroll;
}

// More than one sweep over the row: a reduction of reductions, or elements stored after one.
bool rereads(const Kernel& kernel) {
  std::vector<bool> after(kernel.body.size(), false);
  const auto is_after = [&](InstrId id) { return after[static_cast<std::size_t>(id)]; };
  for (std::size_t i = 0; i < kernel.body.size(); ++i) {
    const Instr& instr = kernel.body[i];
    const bool uses = std::any_of(instr.args.begin(), instr.args.end(), is_after);
    if (uses && (element_level(kernel, instr) || instr.kind == InstrKind::reduce)) return true;
    after[i] = uses || instr.kind == InstrKind::reduce;
  }
  return false;
}

void choose_team(ReduceSchedule& schedule, const RowShape& shape) {
  const std::int64_t vectors = std::max<std::int64_t>(1, shape.length / schedule.vector);
  schedule.threads = 128;
  if (shape.length > kBlockRow) {
    schedule.mapping = RowMapping::block;
    schedule.threads = shape.length > kLargeRow ? 512 : shape.length > 2 * kBlockRow ? 256 : 128;
    return;
  }
  schedule.mapping = vectors <= 2 ? RowMapping::thread : RowMapping::warp;
  const int least = schedule.peeled ? 2 * schedule.vector : 4;  // a thread for each element at the ends
  while (schedule.lanes > least && schedule.lanes / 2 >= vectors) schedule.lanes /= 2;
}

// Splits rows where the blocks would not fill the device, into parts of some unrolled steps.
int choose_splits(const Kernel& kernel, const Target& target, const RowShape& shape, int rows_of_block,
                  std::int64_t elements_of_part, int threads) {
  if (rounds_of(kernel).sweeps.size() != 1 || shape.rows <= 0) return 1;
  const std::int64_t blocks = (shape.rows + rows_of_block - 1) / rows_of_block;
  const std::int64_t resident = std::int64_t{target.multiprocessors} * std::max(1, kResidentThreads / threads);
  return static_cast<int>(std::max<std::int64_t>(1, std::min(resident / blocks, shape.length / elements_of_part)));
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

int team_of(const ReduceSchedule& schedule) {
  switch (schedule.mapping) {
    case RowMapping::thread: return 1;
    case RowMapping::warp: return schedule.lanes;
    case RowMapping::block: return schedule.threads * schedule.cluster;
    case RowMapping::column: return schedule.threads / schedule.columns;
  }
  return 1;
}

// Holds the row when it fits in `most` elements of each thread.
void hold_row(ReduceSchedule& schedule, const Kernel& kernel, const RowShape& shape, int most) {
  const int team = team_of(schedule);
  const std::int64_t vectors = shape.length / schedule.vector;  // a peeled row has elements beside them
  const std::int64_t elements = (vectors + team - 1) / team * schedule.vector;
  const std::int64_t bytes = elements * held_bytes(kernel);
  if (elements == 0 || elements > most || bytes > kMaxHeldBytes) return;
  schedule.persistent = true;
  schedule.row_elements = static_cast<int>(elements);
}

// Holds a row that is read again, with more threads where that is what it takes to hold few elements in each: they
// leave room for more blocks on an SM.
void choose_persistence(ReduceSchedule& schedule, const Kernel& kernel, const RowShape& shape) {
  if (!shape.known || !rereads(kernel)) return;
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

}  // namespace

bool column_wise(const Kernel& kernel, std::size_t kept) {
  if (kept == 0) return false;
  int along_kept = 0, along_reduced = 0;
  for (const Instr* load : streams(kernel)) {
    along_kept += step_along(load->access.offset, static_cast<int>(kept) - 1, 1, kernel) == 1;
    along_reduced += step_along(load->access.offset, static_cast<int>(kernel.axes.size()) - 1, 1, kernel) == 1;
  }
  return along_kept > along_reduced;
}

std::optional<ReduceSchedule> clustered(const Kernel& kernel, const Target& target, const ReduceSchedule& chosen) {
  const RowShape shape = shape_of(kernel);
  if (target.sm < 90 || chosen.mapping != RowMapping::block || chosen.persistent || !shape.known) return std::nullopt;
  if (rounds_of(kernel, chosen.online).sweeps.size() < 2) return std::nullopt;  // the row is read once anyway
  ReduceSchedule schedule = chosen;
  schedule.threads = kMostThreads;
  schedule.online = false;
  schedule.unroll = 1;
  for (const int elements : {kMaxHeldElements / 2, kMaxHeldElements})  // fewer leave room for a second block on an SM
    for (schedule.cluster = 2; schedule.cluster <= kMostBlocks; schedule.cluster *= 2) {
      hold_row(schedule, kernel, shape, elements);
      if (schedule.persistent) {
        const std::int64_t held = std::int64_t{schedule.cluster} * schedule.row_elements;
        schedule.threads = static_cast<int>((shape.length + 32 * held - 1) / (32 * held) * 32);
        return schedule;
      }
    }
  return std::nullopt;
}

std::optional<ReduceSchedule> in_shared_memory(const Kernel& kernel, const Target& target, const ReduceSchedule& chosen,
                                               int cluster, int threads, int blocks) {
  const RowShape shape = shape_of(kernel);
  if (chosen.mapping != RowMapping::block || !shape.known || target.sm < (cluster > 1 ? 90 : 80)) return std::nullopt;
  std::int64_t element_bytes = 0;
  for (const InstrId load : cuda::shared_loads(kernel, chosen)) element_bytes += cuda::held_size(kernel, load);
  if (element_bytes == 0 || rounds_of(kernel).sweeps.size() < 2) return std::nullopt;
  ReduceSchedule schedule = chosen;
  schedule.cluster = cluster;
  schedule.threads = threads;
  schedule.online = false;
  schedule.unroll = 1;
  schedule.persistent = true;
  const std::int64_t team = std::int64_t{threads} * cluster;
  const auto vectors = static_cast<int>((shape.length / schedule.vector + team - 1) / team);
  schedule.row_elements = vectors * schedule.vector;
  schedule.shared_elements = schedule.row_elements;
  while (schedule.shared_elements > 0 &&
         cuda::resident_blocks(schedule.shared_elements * element_bytes * threads, threads, target) < blocks)
    schedule.shared_elements -= schedule.vector;
  const std::int64_t registers = target.registers_per_block / (threads * blocks) - kOwnRegisters;
  const std::int64_t held = (schedule.row_elements - schedule.shared_elements) * held_bytes(kernel) / 4;
  if (schedule.shared_elements == 0 || registers < 0 || held > registers) return std::nullopt;
  return schedule;
}

std::int64_t held_bytes(const Kernel& kernel) {
  const Rounds rounds = rounds_of(kernel);
  std::int64_t loaded = 0, held = 0;  // at first, and from then on
  for (const InstrId id : rounds.sweeps.empty() ? std::vector<InstrId>{} : rounds.sweeps[0].instrs)
    if (cuda::is_plain_load(kernel, id)) loaded += cuda::held_size(kernel, id);
  for (const cuda::Held& each : cuda::held_values(kernel, rounds)) held += cuda::held_size(kernel, each.value);
  return std::max(loaded, held);
}

ReduceSchedule choose_reduce_schedule(const Kernel& kernel, const Target& target) {
  if (has_outer(kernel)) return choose_outer_schedule(kernel, target);
  ReduceSchedule schedule;
  const RowShape shape = shape_of(kernel);
  if (column_wise(kernel, shape.kept)) return choose_columns(kernel, target, shape);
  choose_vector(schedule, kernel, shape);
  choose_team(schedule, shape);
  choose_persistence(schedule, kernel, shape);
  if (schedule.persistent) return schedule;
  schedule.online = find_online(kernel).has_value();
  const bool wide = widest_of(kernel) > 4;  // f64, which takes twice the registers
  // The row of one large block rather than of two is still in the L2 when it is read again.
  if (schedule.online && !schedule.peeled && !wide && shape.length > kLargestRow &&
      rounds_of(kernel, true).sweeps.size() > 1)
    schedule.threads = kMostThreadsRereading;
  const std::int64_t step = std::int64_t{team_of(schedule)} * schedule.vector;
  // More is computed of each element, or of vectors that may end early, than registers are left for.
  const bool half = schedule.online || (schedule.peeled && rounds_of(kernel).sweeps.size() > 1);
  schedule.unroll = choose_unroll(kernel, schedule.vector * (half ? 2 : 1) * (schedule.online && wide ? 2 : 1),
                                  (shape.length + step - 1) / step);
  if (schedule.mapping == RowMapping::block)
    schedule.splits = choose_splits(kernel, target, shape, 1, 2 * step * schedule.unroll, schedule.threads);
  return schedule;
}

}  // namespace tenon::codegen

// Rows that are read once although several sweeps go over them: in the registers of their team, of a cluster of blocks,
// or in shared memory.
#include <algorithm>

#include "codegen/analysis/held.h"
#include "codegen/analysis/narrow.h"
#include "codegen/analysis/rounds.h"
#include "codegen/analysis/row_shape.h"
#include "codegen/analysis/shared_rows.h"
#include "codegen/schedule/choices.h"
#include "codegen/schedule/limits.h"
#include "codegen/schedule/reduce_held.h"

namespace tenon::codegen {
namespace {

constexpr int kMostBlocks = 8;         // of a cluster, on every device that has clusters
constexpr int kMostBesideShared = 64;  // bytes of a thread: with more, norms spill
constexpr int kMostBesideGrid = 48;    // the meetings take registers
constexpr int kMostOfWords = 100;      // of elements of 4 bytes, which become nothing larger
constexpr int kMostOfWide = 768;       // threads of a multiprocessor that hold rows of f64 by the grid
constexpr int kResident = 3;           // blocks that meet in memory: while some wait others load
constexpr int kOwnRegisters = 36;      // of a thread that has vectors in registers too

// Of one element of a row that would lie in shared memory; 0 when it cannot.
std::int64_t shared_bytes(const Kernel& kernel, const ReduceSchedule& schedule) {
  std::int64_t bytes = 0;
  for (const InstrId load : shared_loads(kernel, schedule)) bytes += held_size(kernel, load);
  return bytes;
}

// Bytes of a thread's share of the row that are in registers beside those in shared memory.
std::int64_t beside_shared(const Kernel& kernel, const ReduceSchedule& schedule) {
  return (held_elements(schedule) - shared_elements(schedule)) * held_bytes(kernel);
}

bool whole_row_shared(const ReduceSchedule& schedule) { return shared_elements(schedule) == held_elements(schedule); }

}  // namespace

void hold_row(ReduceSchedule& schedule, const Kernel& kernel, const RowShape& shape, int most) {
  const int team = team_size(schedule);
  const std::int64_t vectors = shape.length / schedule.vector;  // a peeled row has elements beside them
  const std::int64_t elements = (vectors + team - 1) / team * schedule.vector;
  const std::int64_t bytes = elements * held_bytes(kernel);
  if (elements == 0 || elements > most || bytes > kMaxHeldBytes) return;
  schedule.keep = InRegisters{static_cast<int>(elements)};
}

std::optional<ReduceSchedule> clustered(const Kernel& kernel, const Target& target, const ReduceSchedule& chosen) {
  const RowShape shape = shape_of(kernel);
  if (!target.may.clusters || !target.may.hold_rows || chosen.team.mapping != RowMapping::block || holds_rows(chosen) ||
      !shape.known)
    return std::nullopt;
  if (rounds_of(kernel, shared_of(chosen)).sweeps.size() < 2) return std::nullopt;  // the row is read once anyway
  ReduceSchedule schedule = chosen;
  schedule.team.threads = kMostThreadsOfRow;
  schedule.keep = Reread{};
  for (const int elements : {kMaxHeldElements / 2, kMaxHeldElements})  // fewer leave room for a second block on an SM
    for (schedule.team.cluster = 2; schedule.team.cluster <= kMostBlocks; schedule.team.cluster *= 2) {
      hold_row(schedule, kernel, shape, elements);
      if (holds_rows(schedule)) {
        const std::int64_t held = std::int64_t{schedule.team.cluster} * held_elements(schedule);
        schedule.team.threads = static_cast<int>((shape.length + 32 * held - 1) / (32 * held) * 32);
        return schedule;
      }
    }
  return std::nullopt;
}

std::optional<ReduceSchedule> in_shared_memory(const Kernel& kernel, const Target& target, const ReduceSchedule& chosen,
                                               int cluster, int threads, int blocks, int grid) {
  const RowShape shape = shape_of(kernel);
  if (chosen.team.mapping != RowMapping::block || !shape.known || target.sm < 80 || !target.may.hold_rows)
    return std::nullopt;
  if (cluster > 1 && !target.may.clusters) return std::nullopt;
  if (rounds_of(kernel).sweeps.size() < 2) return std::nullopt;
  ReduceSchedule schedule = chosen;
  schedule.team.cluster = cluster;
  schedule.team.grid = grid;
  schedule.team.threads = threads;
  schedule.occupancy.least = blocks;
  const std::int64_t bytes = shared_bytes(kernel, schedule);
  if (bytes == 0) return std::nullopt;
  const std::int64_t team = team_size(schedule);
  const auto vectors = static_cast<int>((shape.length / schedule.vector + team - 1) / team);
  const int elements = vectors * schedule.vector;
  const std::int64_t room = shared_row_room(kernel, schedule, target, blocks) / (threads * bytes);
  schedule.keep =
      InShared{elements, static_cast<int>(std::min<std::int64_t>(elements, room / schedule.vector * schedule.vector))};
  const std::int64_t registers = target.registers_per_multiprocessor / (threads * blocks) - kOwnRegisters;
  if (shared_elements(schedule) <= 0 || beside_shared(kernel, schedule) > 4 * registers) return std::nullopt;
  return schedule;
}

namespace {

// `schedule` by larger clusters, where its rows are too few for all multiprocessors and leave each block much to bring
// (H200, f32: softmax of 32 rows of 28672 10.8 us by one block each, 9.1 by four; RMS norm of 5 of them 9.5 by two, 6.7
// by eight).
ReduceSchedule by_more_blocks(const Kernel& kernel, const Target& target, const ReduceSchedule& chosen,
                              ReduceSchedule schedule) {
  constexpr std::int64_t kLeastOfBlock = 16 << 10;  // bytes
  constexpr std::int64_t kElements = 16;            // of a thread, which are loaded at once
  const RowShape shape = shape_of(kernel);
  const std::int64_t bytes = shape.length * stream_bytes(kernel);
  if (schedule.team.grid > 1) return schedule;
  while (schedule.team.cluster < kMostSharing && 2 * shape.rows * schedule.team.cluster <= target.multiprocessors &&
         bytes >= 2 * schedule.team.cluster * kLeastOfBlock) {
    const std::int64_t share = shape.length / (2 * schedule.team.cluster * kElements);
    const int threads = static_cast<int>(std::clamp<std::int64_t>((share + 31) / 32 * 32, 128, 1024));
    const auto larger = in_shared_memory(kernel, target, chosen, 2 * schedule.team.cluster,
                                         std::min(threads, schedule.team.threads), 1);
    if (!larger) break;
    schedule = *larger;
  }
  return schedule;
}

// Whether its rows are read once anyway.
bool has_one_sweep(const Kernel& kernel, const ReduceSchedule& chosen) {
  return one_sweep(kernel, {.online = find_online(kernel).has_value(), .moments = has_moments(chosen)});
}

// Whether all rows are so few bytes that a launch's latency is much of their time.
bool few_bytes(const Kernel& kernel, const Target& target) {
  constexpr int kPercent = 35;  // of the L2
  const RowShape shape = shape_of(kernel);
  return shape.rows < percent_of_l2(target, kPercent) / std::max<std::int64_t>(1, shape.length * stream_bytes(kernel));
}

// Whether a multiprocessor has room for one block only, since shared memory would hold an operand that all rows share
// beside each of them: blocks that read a row again, from the L2, have more under way (softmax of f32 rows of 22528 and
// a row on an H200: 57 us held, 49 read twice).
bool leaves_one_block(const Kernel& kernel, const Target& target, const ReduceSchedule& chosen) {
  const std::size_t kept = shape_of(kernel).kept;
  if (kept == 0 || row_streams(kernel).size() != 1 || few_bytes(kernel, target) || has_one_sweep(kernel, chosen) ||
      in_shared_memory(kernel, target, chosen, 1, kMostThreadsOfRow, 2))
    return false;
  const auto one = in_shared_memory(kernel, target, chosen, 1, 2 * kMostThreadsOfRow, 1);
  if (!one) return false;
  const std::vector<InstrId> loads = shared_loads(kernel, *one);
  return std::any_of(loads.begin(), loads.end(), [&](InstrId load) {
    return (kernel.instr(load).depends & ((std::uint64_t{1} << kept) - 1)) == 0;
  });
}

// Whether one reduction is all that its elements wait for.
bool meets_once(const Kernel& kernel) {
  return stores_elements(kernel) && std::count_if(kernel.body.begin(), kernel.body.end(), [](const Instr& instr) {
                                      return instr.kind == InstrKind::reduce;
                                    }) == 1;
}

std::optional<ReduceSchedule> fewest_blocks(const Kernel& kernel, const Target& target, const ReduceSchedule& chosen) {
  if (has_one_sweep(kernel, chosen)) return std::nullopt;
  const auto fitting = [&](int cluster, int blocks) {  // of as many threads as registers are enough for
    auto schedule = in_shared_memory(kernel, target, chosen, cluster, 2 * kMostThreadsOfRow / blocks, blocks);
    const int most = widest_of(kernel) == 4 ? kMostOfWords : kMostBesideShared;
    if (schedule && beside_shared(kernel, *schedule) > most) schedule.reset();
    return schedule;
  };
  if (holds_rows(chosen)) return fitting(1, 2);
  const bool small_stream = stream_bytes(kernel) <= 2;
  // Of a row that is more than a block's shared memory, and 2 bytes an element, a large block computes longer than
  // another row loads, unless its exponentials are short: small blocks that share a row then wait for each other less.
  // Measured on sm_90.
  const bool long_computed = small_stream && !has_narrow_weights(kernel);
  const auto either = [&](int cluster) {
    auto schedule = fitting(cluster, 2);
    if (schedule) return schedule;
    schedule = fitting(cluster, 1);
    if (schedule && long_computed && !whole_row_shared(*schedule)) schedule.reset();
    return schedule;
  };
  const auto in_cluster = [&]() -> std::optional<ReduceSchedule> {
    // While one block of a multiprocessor waits for its cluster another loads (f32 rows of 393 KB on an H100: 347 us by
    // clusters of four, 615 by clusters of two large blocks).
    for (int cluster = 2; cluster <= kMostBlocks; cluster *= 2)
      if (const auto schedule = fitting(cluster, small_stream ? 4 : 2)) return schedule;
    for (int cluster = 2; cluster <= kMostSharing; cluster *= 2)
      if (const auto schedule = either(cluster)) return schedule;
    return std::nullopt;
  };
  const bool few = few_bytes(kernel, target);
  const bool one_stream = row_streams(kernel).size() == 1;
  if (const auto schedule = either(1)) {
    const bool lone = schedule->occupancy.least == 1;
    // What shares a row that is more than a block's shared memory has more under way (H200: softmax of bf16 rows of
    // 131072 63 us by one block of 1024, 54 by the grid; of f32 rows of 65536 58 and 52; their layer norm 61 and 54).
    if (!lone || few || !one_stream || whole_row_shared(*schedule)) return schedule;
  }
  // Clusters meet sooner, teams of the grid have more under way (H100, layer norms of f32: 8 rows of 131072 10.4 us in
  // clusters, 14.7 by the grid; 80 rows of 400000 133 and 101).
  if (few)
    if (const auto schedule = in_cluster()) return schedule;
  // What meets once for each row waits little in clusters of small blocks (H200, bf16 over the greatest: rows of 131072
  // 51.4 us by the grid, 46.1; of 262144 51.9 and 46.8; RMS norm of 128256 36.5 and 32.0), but not beside weights of
  // f32 (RMS norm of rows of 131072: 149 and 173).
  constexpr int kSmallBlock = 128, kSmallBlocks = 4;
  const bool beside_words = widest_of(kernel) > 2 && row_loads(kernel).size() > row_streams(kernel).size();
  if (one_stream && !beside_words && meets_once(kernel))
    if (const auto schedule = in_shared_memory(kernel, target, chosen, kMostBlocks, kSmallBlock, kSmallBlocks))
      return schedule;
  if (const auto schedule = by_grid(kernel, target, chosen, kResident)) return schedule;
  if (!few)
    if (const auto schedule = in_cluster()) return schedule;
  return fitting(1, 1);
}

}  // namespace

std::optional<ReduceSchedule> by_grid(const Kernel& kernel, const Target& target, const ReduceSchedule& chosen,
                                      int resident) {
  const bool wide = widest_of(kernel) > 4;  // what f64 computes takes more registers, and leaves none to hold
  const int threads = (wide ? kMostOfWide : 2 * kMostThreadsOfRow) / resident / 32 * 32;
  const RowShape shape = shape_of(kernel);
  const bool empty = shape.rows == 0 || shape.length == 0;
  if (!target.may.grid_rows || empty || has_one_sweep(kernel, chosen)) return std::nullopt;
  ReduceSchedule schedule = chosen;
  schedule.team = {.mapping = RowMapping::block, .threads = threads, .grid = 2};  // of how many is found below
  const std::int64_t bytes = shared_bytes(kernel, schedule);
  if (bytes == 0) return std::nullopt;
  const std::int64_t beside = wide ? 0 : kMostBesideGrid;
  const std::int64_t vectors = shared_row_room(kernel, schedule, target, resident) / (bytes * threads * chosen.vector) +
                               beside / (held_bytes(kernel) * chosen.vector);  // of a thread
  const std::int64_t of_block = vectors * chosen.vector * threads;
  const std::int64_t all = std::int64_t{resident} * target.multiprocessors;
  if (of_block == 0 || shape.length > all * of_block) return std::nullopt;
  const std::int64_t teams = all / ((shape.length + of_block - 1) / of_block);
  const std::int64_t turns = (shape.rows - 1) / teams + 1;  // of a symbolic number, the greatest
  const std::int64_t grid = all / ((shape.rows - 1) / turns + 1);
  auto by_teams = in_shared_memory(kernel, target, chosen, 1, threads, resident, static_cast<int>(grid));
  if (by_teams)  // they meet once for both
    std::get<InShared>(by_teams->keep).moments = target.may.moments && find_moments(kernel).has_value();
  return by_teams;
}

std::optional<ReduceSchedule> read_once(const Kernel& kernel, const Target& target, const ReduceSchedule& chosen) {
  constexpr std::int64_t kMostInClusters = 128;  // bytes of a thread, which leave it registers to compute with
  if (leaves_one_block(kernel, target, chosen)) return std::nullopt;
  const auto in_registers = clustered(kernel, target, chosen);
  // Single elements are copied to shared memory one by one (f32 [2048, 96, 75] over the first and the last axis on an
  // H100: 73 us in the registers of clusters, 151 in their shared memory).
  if (in_registers && in_registers->vector == 1) return in_registers;
  const auto schedule = fewest_blocks(kernel, target, chosen);
  if (schedule) return by_more_blocks(kernel, target, chosen, *schedule);
  const bool few = in_registers && held_elements(*in_registers) * held_bytes(kernel) <= kMostInClusters;
  return few ? in_registers : std::nullopt;
}

}  // namespace tenon::codegen

// Heuristics for Reduce kernels with outer reductions beside those of the rows: blocks that fill the device walk over
// the rows. Each has a row in its registers and the outer reductions beside it, or so has each warp, of short rows.
#include <algorithm>
#include <cmath>
#include <optional>

#include "codegen/analysis/outer_parts.h"
#include "codegen/analysis/read_once.h"
#include "codegen/analysis/rows_ring.h"
#include "codegen/analysis/vectorize.h"
#include "codegen/schedule/choices.h"
#include "codegen/schedule/limits.h"
#include "ir/graph/check.h"

namespace tenon::codegen {
namespace {

// Of a thread, beside what it holds: what the compiler took of gradients of norms before it spilled. Two values that
// are computed of an element live on into the next sweep.
constexpr int kOwnRegisters = 7, kLeastOwnRegisters = 23;
constexpr int kValuesPerElement = 2;
// The same of a lane of a warp with rows of its own, and for what a row loads and reduces once.
constexpr int kOwnOfLane = 20, kOfRowValue = 2;
constexpr double kValuesOfLane = 1.25;
constexpr int kRegisterStep = 8;     // a thread has multiples
constexpr int kLeastRegisters = 64;  // of a thread, of those that a multiprocessor holds

// Of a row that some lanes of a warp share, a lane has few elements: more registers leave fewer threads. Of one that
// all lanes share it has as many as leave a multiprocessor warps enough. Beside an element's work, a lane's for each
// row is that of some elements more.
constexpr int kMostOfLane = 12, kMostOfFullWarp = 24;
constexpr int kElementsBeside = 5;
// Of memory; instructions that write a share of one: more of lanes that have few elements (gradients of layer norm of
// bf16 rows of 7 on an H200: 96.8 us by four lanes each, 78.6 by two; of 13 52.4 by eight, 43.4 by four; of RMS norm of
// f32 rows of 7 54.0 and 45.0; but of 35 157 by eight with five each, 261 by four).
constexpr std::int64_t kSectorBytes = 32, kMostStores = 3, kMostStoresOfFew = 4, kFewOfLane = 5;
constexpr int kThreadsOfWarps = 128;  // multiples of which a multiprocessor has
constexpr int kLeastOfWarps = 384;

std::int64_t row_length(const Kernel& kernel) {
  Dim length(1);
  for (const Axis& axis : kernel.axes)
    if (axis.reduced) length = length * axis.extent;
  TENON_CHECK(length.is_constant(), "outer reductions are kept for each element of a row: its length must be known");
  return length.constant();
}

std::int64_t most_rows(const Kernel& kernel) {
  Dim rows(1);
  for (const Axis& axis : kernel.axes)
    if (!axis.reduced) rows = rows * axis.extent;
  return rows.bounds(kernel.symbols).max;
}

// Registers of a thread for each element of its row: what is held, the next row's if it waits there, and the outer
// reductions.
double registers_per_element(const Kernel& kernel, bool next) {
  const std::size_t inner = kernel.axes.size() - 1;
  double bytes = static_cast<double>(held_bytes(kernel));
  for (const Instr& instr : kernel.body) {
    const bool varies = (instr.depends >> inner & 1) != 0;
    const bool of_row = (instr.depends & ~(std::uint64_t{1} << inner)) != 0;
    if (instr.kind == InstrKind::load && varies && of_row && next)
      bytes += static_cast<double>(element_bytes(kernel, instr.access));
    if (instr.kind == InstrKind::reduce && !kernel.axes[static_cast<std::size_t>(instr.axes[0])].reduced)
      bytes += static_cast<double>(size_of(compute_type(instr.dtype)));
  }
  return bytes / 4;
}

PersistentBlocks& persistent(ReduceSchedule& schedule) { return std::get<PersistentBlocks>(schedule.cut); }

// Blocks of `threads` with rows in the registers of their teams, as many as there are threads resident on the device.
ReduceSchedule held_by(ReduceSchedule schedule, const Kernel& kernel, const Target& target, int threads, int resident) {
  schedule.team.threads = threads;
  const std::int64_t vectors = row_length(kernel) / schedule.vector, team = team_size(schedule);
  const std::int64_t rows = threads / team;  // of a block
  const int blocks = target.multiprocessors * std::clamp(resident / threads, 1, target.blocks_per_multiprocessor);
  schedule.keep = InRegisters{static_cast<int>((vectors + team - 1) / team) * schedule.vector};
  persistent(schedule).blocks =
      static_cast<int>(std::clamp<std::int64_t>((most_rows(kernel) + rows - 1) / rows, 1, blocks));
  return schedule;
}

// What there is once for each row: its reductions, and loads that do not vary along it.
std::int64_t row_values(const Kernel& kernel) {
  const std::size_t inner = kernel.axes.size() - 1;
  return std::count_if(kernel.body.begin(), kernel.body.end(), [&](const Instr& instr) {
    return (instr.kind == InstrKind::reduce && kernel.axes[static_cast<std::size_t>(instr.axes[0])].reduced) ||
           (instr.kind == InstrKind::load && instr.depends != 0 && (instr.depends >> inner & 1) == 0);
  });
}

double registers_of(const Kernel& kernel, const ReduceSchedule& schedule) {
  const PersistentBlocks& blocks = *persistent_blocks(schedule);
  const bool waits_in_registers = blocks.stages == 1 && !blocks.bulk;
  const int elements = held_elements(schedule);
  const double held = elements * registers_per_element(kernel, waits_in_registers);
  if (schedule.team.mapping == RowMapping::warp)
    return std::ceil((held + kOwnOfLane + kOfRowValue * row_values(kernel) + kValuesOfLane * elements) /
                     kRegisterStep) *
           kRegisterStep;
  return held + std::max(kLeastOwnRegisters, kOwnRegisters + kValuesPerElement * elements);
}

// Whether `resident` threads have the registers that they take, and their blocks the shared memory.
bool fits(const ReduceSchedule& schedule, const Kernel& kernel, const Target& target, int resident) {
  return registers_of(kernel, schedule) <= static_cast<double>(target.registers_per_multiprocessor) / resident &&
         (!has_ring(schedule) || fits_ring(kernel, schedule, target)) &&
         warp_parts_bytes(kernel, schedule) <= target.shared_memory_per_block;
}

// Fewer blocks, each with as many rows as the others; or as many as there are.
int even_blocks(const Kernel& kernel, int blocks) {
  const std::int64_t rows = most_rows(kernel);
  for (int even = blocks; even > blocks - blocks / 16; --even)
    if (rows % even == 0) return even;
  return blocks;
}

int threads_for(std::int64_t vectors, int most) {
  return static_cast<int>(std::clamp<std::int64_t>((vectors + 31) / 32 * 32, 32, most));
}

std::int64_t gathered_of(const Kernel& kernel, const ReduceSchedule& held) {
  return held_elements(held) * static_cast<std::int64_t>(outer_reductions(kernel).size());
}

// Rows under way in shared memory, of `blocks` on a multiprocessor, where they are enough bytes: with few threads,
// which then wait for each other less, as far as what they gather for the outer reductions leaves them registers.
std::optional<ReduceSchedule> with_ring(const ReduceSchedule& schedule, const Kernel& kernel, const Target& target,
                                        int blocks, const std::vector<int>& thread_counts, std::int64_t most_gathered,
                                        std::int64_t bytes_under_way = 48 << 10) {
  for (const int most : thread_counts) {
    const int threads = threads_for(row_length(kernel) / schedule.vector, most);
    const ReduceSchedule held = held_by(schedule, kernel, target, threads, blocks * threads);
    if (gathered_of(kernel, held) <= most_gathered && fits(held, kernel, target, blocks * threads) &&
        blocks * ring_bytes(kernel, held) >= bytes_under_way)
      return held;
  }
  return std::nullopt;
}

// One block on a multiprocessor leaves half as many parts of the outer reductions as two do, and keeps up with memory
// where rows come whole and it gathers one reduction; with two it does not (bench/results/reduce-log.md).
std::optional<ReduceSchedule> with_ring(ReduceSchedule schedule, const Kernel& kernel, const Target& target) {
  persistent(schedule).stages = 2;
  persistent(schedule).bulk = true;
  schedule.cache.streaming = true;
  if (outer_reductions(kernel).size() == 1)
    if (const auto whole = with_ring(schedule, kernel, target, 1, {512}, 16)) return whole;
  persistent(schedule).bulk = false;
  // Four small blocks wait for each other less than two, as long as their threads have the registers (H200, gradients
  // of norms of bf16 rows: RMS norm's of 1536 115 us by two blocks of 256, 65 by four of 128; layer norm's of 1920 80
  // and 67, of 2560 73 and 66). Of shorter rows they have too little under way (of 1000 66 by 256 threads, 82).
  constexpr int kSmallBlocks = 4;
  if (const auto small = with_ring(schedule, kernel, target, kSmallBlocks, {128}, 40, 56 << 10)) return small;
  return with_ring(schedule, kernel, target, kMostWithRing, {128, 256, 512}, 32);
}

// Bytes of an element of the widest load along a row; `of_rows`: of those that differ from row to row.
std::int64_t widest_load(const Kernel& kernel, bool of_rows) {
  const std::size_t inner = kernel.axes.size() - 1;
  std::int64_t widest = 1;
  for (const Instr& instr : kernel.body)
    if (instr.kind == InstrKind::load && (instr.depends >> inner & 1) != 0 &&
        (!of_rows || instr.depends != std::uint64_t{1} << inner))
      widest = std::max<std::int64_t>(widest, element_bytes(kernel, instr.access));
  return widest;
}

// The vectors that a row has, and the lanes that share them: those that take the fewest instructions together. Operands
// that all rows share come once, so that their width is no matter.
std::optional<ReduceSchedule> in_lanes(ReduceSchedule schedule, const Kernel& kernel) {
  const std::int64_t width = widest_load(kernel, true), length = row_length(kernel);
  const int widest = power_of_two_divisor(kernel.axes.back().extent, static_cast<int>(16 / width), kernel.symbols);
  std::int64_t least = 0;
  for (const int vector : {widest, std::max(1, widest / 2)})
    for (int lanes = 32; lanes > 0; lanes /= 2) {
      const std::int64_t vectors = length / vector, elements = (vectors + lanes - 1) / lanes * vector;
      // An instruction writes a piece of every row: the share of a row, or of a sector that has several rows.
      const std::int64_t stores = elements <= kFewOfLane ? kMostStoresOfFew : kMostStores;
      const bool splinters = lanes * vector * std::max(width * length, kSectorBytes) * stores < kSectorBytes * length;
      if (elements > (lanes == 32 ? kMostOfFullWarp : kMostOfLane) || (splinters && lanes < vectors)) continue;
      const std::int64_t work = lanes * (elements + kElementsBeside);
      if (least > 0 && work >= least) continue;
      least = work;
      schedule.team.lanes = lanes;
      schedule.vector = vector;
    }
  return least > 0 ? std::optional(schedule) : std::nullopt;
}

// Warps with rows of their own: no barrier for each row, and no lane without elements. A multiprocessor has one block,
// of as many threads as it has registers for, which leaves one part of the outer reductions; of fewer where rows are
// few.
std::optional<ReduceSchedule> with_warps(ReduceSchedule schedule, const Kernel& kernel, const Target& target) {
  schedule.team.mapping = RowMapping::warp;
  persistent(schedule).stages = 1;
  const auto shared = in_lanes(schedule, kernel);
  if (!shared) return std::nullopt;
  const std::int64_t rows = (most_rows(kernel) + target.multiprocessors - 1) / target.multiprocessors;
  for (int resident = target.registers_per_multiprocessor / kLeastRegisters; resident >= kLeastOfWarps;
       resident -= kThreadsOfWarps) {
    const int threads = threads_for(rows * shared->team.lanes, resident);
    const ReduceSchedule held = held_by(*shared, kernel, target, threads, threads);
    if (fits(held, kernel, target, resident)) return held;
  }
  return std::nullopt;
}

// A block has a row at a time.
ReduceSchedule with_blocks(ReduceSchedule schedule, const Kernel& kernel, const Target& target) {
  if (const auto ring = with_ring(schedule, kernel, target)) return *ring;
  const std::int64_t vectors = row_length(kernel) / schedule.vector;
  // Threads meet for every row: few that hold many elements wait less than many that hold few. Two rows under way in
  // shared memory take no registers from them (gradient of a norm of bf16 rows of 8128 on an H200: 38.3 us with the
  // next row in registers, 35.2 so; rows of 1024: 29.7 and 27.4), but 1024 threads wait for them as long.
  // Of those that gather two reductions, as layer norm's do, fewer have more under way (bf16 rows of 1000: 239 us by
  // 256 threads, 215 by 128; of 2560: 45 and 41).
  const int most_resident = target.registers_per_multiprocessor / kLeastRegisters;
  const bool gathers_two = outer_reductions(kernel).size() > 1 && threads_for(vectors, 256) > 128;
  // The next row in registers pays for no single elements of 2 bytes, of which each is a load (gradients of norms of
  // bf16 rows of 2047 on an H200: 111 us, 72 without; of 4359 93 and 64; but of 1000 48 and 55).
  constexpr std::int64_t kLeastSingles = 1024, kMostSingles = 4608;
  constexpr int kMostOfSingles = 8;  // of a thread with the fewest registers; nine of rows of 2049 spill
  const bool singles =
      schedule.vector == 1 && widest_load(kernel, true) == 2 && vectors > kLeastSingles && vectors <= kMostSingles;
  for (const int stages : {2, 1, 0})
    for (const int most : {128, 256, 512, 1024})
      for (const int resident : {most_resident, most_resident / 2}) {
        if (singles && stages == 1) continue;
        if (most == 128 && (stages < 2 || !gathers_two || resident == most_resident)) continue;
        persistent(schedule).stages = stages;
        const ReduceSchedule held = held_by(schedule, kernel, target, threads_for(vectors, most), resident);
        if (singles && resident == most_resident && held_elements(held) > kMostOfSingles) continue;
        if (held.team.threads <= resident && (stages < 2 || held.team.threads <= 512) &&
            fits(held, kernel, target, resident))
          return held;
      }
  return held_by(schedule, kernel, target, threads_for(vectors, 1024), most_resident);
}

ReduceSchedule in_vectors(const Kernel& kernel) {
  ReduceSchedule schedule;
  schedule.team.mapping = RowMapping::block;
  schedule.cut = PersistentBlocks{};
  schedule.vector = power_of_two_divisor(kernel.axes.back().extent, static_cast<int>(16 / widest_load(kernel, false)),
                                         kernel.symbols);
  return schedule;
}

// Other lanes for a row, threads of a block, blocks of a multiprocessor, and rows under way.
std::vector<ReduceSchedule> alternatives_of_warps(const Kernel& kernel, const Target& target,
                                                  const ReduceSchedule& chosen) {
  std::vector<ReduceSchedule> result;
  const int most_resident = target.registers_per_multiprocessor / kLeastRegisters;
  for (const int lanes : {chosen.team.lanes / 2, chosen.team.lanes, 2 * chosen.team.lanes})
    for (const int threads : {256, 512, 768, 1024})
      for (const int blocks : {1, 2, 4})
        for (const int stages : {1, 2, 3}) {
          const bool other_lanes = lanes != chosen.team.lanes;
          if (lanes < 1 || lanes > 32 || threads * blocks > most_resident || (other_lanes && stages > 1)) continue;
          ReduceSchedule other = chosen;
          other.team.lanes = lanes;
          other = held_by(other, kernel, target, threads, threads * blocks);
          persistent(other).stages = stages;
          if (!fits(other, kernel, target, threads * blocks)) continue;
          result.push_back(other);
          other.cache.streaming = !other.cache.streaming;
          if (!other_lanes) result.push_back(other);
        }
  result.push_back(with_blocks(in_vectors(kernel), kernel, target));
  return result;
}

}  // namespace

ReduceSchedule choose_outer_schedule(const Kernel& kernel, const Target& target) {
  const ReduceSchedule schedule = in_vectors(kernel);
  if (const auto warps = with_warps(schedule, kernel, target)) return *warps;
  return with_blocks(schedule, kernel, target);
}

std::vector<ReduceSchedule> outer_alternatives(const Kernel& kernel, const Target& target,
                                               const ReduceSchedule& chosen) {
  if (chosen.team.mapping == RowMapping::warp) return alternatives_of_warps(kernel, target, chosen);
  std::vector<ReduceSchedule> result;
  const int most_resident = target.registers_per_multiprocessor / kLeastRegisters;
  const int widest = threads_for(row_length(kernel) / chosen.vector, 1024);  // beyond it some have nothing
  for (const int threads : {chosen.team.threads / 2, chosen.team.threads, 2 * chosen.team.threads})
    for (const int blocks : {1, 2, 4})
      for (const int stages : {0, 1, 2, 3, 4}) {
        const int resident = blocks * threads;
        if (threads < 32 || threads > widest || threads % 32 != 0 || resident > most_resident) continue;
        ReduceSchedule other = held_by(chosen, kernel, target, threads, resident);
        persistent(other).stages = stages;
        for (const bool bulk : {false, true}) {
          persistent(other).bulk = bulk;
          const bool beside =
              persistent_blocks(chosen)->bulk && stages > 2;  // of the ways to fill a ring, one is enough there
          if ((bulk ? stages < 2 || blocks > 1 : beside) || !fits(other, kernel, target, resident)) continue;
          other.cache.keep_reads = chosen.cache.keep_reads && may_keep_reads(kernel, other);
          for (const bool streaming : {false, true}) {
            other.cache.streaming = streaming;
            result.push_back(other);
          }
          ReduceSchedule even = other;
          persistent(even).blocks = even_blocks(kernel, persistent(other).blocks);
          result.push_back(even);
        }
      }
  if (may_keep_reads(kernel, chosen)) {
    result.push_back(chosen);
    result.back().cache.keep_reads = !chosen.cache.keep_reads;
  }
  return result;
}

}  // namespace tenon::codegen

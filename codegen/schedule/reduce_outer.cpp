// Heuristics for Reduce kernels with outer reductions beside those of the rows: blocks that fill the device walk over
// the rows, each with a row in its registers and the outer reductions beside it.
#include <algorithm>
#include <optional>

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
constexpr int kLeastRegisters = 64;  // of a thread, of those that a multiprocessor holds

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

// `threads` with the row in their registers, and as many blocks as there are threads resident on the device.
ReduceSchedule held_by(ReduceSchedule schedule, const Kernel& kernel, const Target& target, int threads, int resident) {
  const std::int64_t vectors = row_length(kernel) / schedule.vector;
  const int blocks = target.multiprocessors * std::clamp(resident / threads, 1, target.blocks_per_multiprocessor);
  schedule.team.threads = threads;
  schedule.keep = InRegisters{static_cast<int>((vectors + threads - 1) / threads) * schedule.vector};
  persistent(schedule).blocks = static_cast<int>(std::clamp<std::int64_t>(most_rows(kernel), 1, blocks));
  return schedule;
}

// Whether `resident` threads have the registers that they take, and their blocks the shared memory.
bool fits(const ReduceSchedule& schedule, const Kernel& kernel, const Target& target, int resident) {
  const PersistentBlocks& blocks = *persistent_blocks(schedule);
  const bool waits_in_registers = blocks.stages == 1 && !blocks.bulk;
  const int own = std::max(kLeastOwnRegisters, kOwnRegisters + kValuesPerElement * held_elements(schedule));
  const double registers = held_elements(schedule) * registers_per_element(kernel, waits_in_registers) + own;
  return registers <= static_cast<double>(target.registers_per_multiprocessor) / resident &&
         (!has_ring(schedule) || fits_ring(kernel, schedule, target));
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

std::int64_t outer_reductions(const Kernel& kernel) {
  return std::count_if(kernel.body.begin(), kernel.body.end(), [&](const Instr& instr) {
    return instr.kind == InstrKind::reduce && !kernel.axes[static_cast<std::size_t>(instr.axes[0])].reduced;
  });
}

// Rows under way in shared memory, of `blocks` on a multiprocessor, where they are enough bytes: with few threads,
// which then wait for each other less, as far as what they gather for the outer reductions leaves them registers.
std::optional<ReduceSchedule> with_ring(const ReduceSchedule& schedule, const Kernel& kernel, const Target& target,
                                        int blocks, const std::vector<int>& thread_counts, std::int64_t most_gathered) {
  constexpr std::int64_t kBytesUnderWay = 48 << 10;
  for (const int most : thread_counts) {
    const int threads = threads_for(row_length(kernel) / schedule.vector, most);
    const ReduceSchedule held = held_by(schedule, kernel, target, threads, blocks * threads);
    if (held_elements(held) * outer_reductions(kernel) <= most_gathered &&
        fits(held, kernel, target, blocks * threads) && blocks * ring_bytes(kernel, held) >= kBytesUnderWay)
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
  if (outer_reductions(kernel) == 1)
    if (const auto whole = with_ring(schedule, kernel, target, 1, {512}, 16)) return whole;
  persistent(schedule).bulk = false;
  return with_ring(schedule, kernel, target, kMostWithRing, {128, 256, 512}, 32);
}

}  // namespace

ReduceSchedule choose_outer_schedule(const Kernel& kernel, const Target& target) {
  ReduceSchedule schedule;
  schedule.team.mapping = RowMapping::block;
  schedule.cut = PersistentBlocks{};
  std::int64_t widest = 1;
  for (const Instr& instr : kernel.body)
    if (instr.kind == InstrKind::load && (instr.depends >> (kernel.axes.size() - 1) & 1) != 0)
      widest = std::max<std::int64_t>(widest, element_bytes(kernel, instr.access));
  schedule.vector = power_of_two_divisor(kernel.axes.back().extent, static_cast<int>(16 / widest), kernel.symbols);
  if (const auto ring = with_ring(schedule, kernel, target)) return *ring;
  const std::int64_t vectors = row_length(kernel) / schedule.vector;
  // Threads meet for every row: few that hold many elements wait less than many that hold few.
  const int most_resident = target.registers_per_multiprocessor / kLeastRegisters;
  for (const int stages : {1, 0})
    for (const int most : {256, 512, 1024})
      for (const int resident : {most_resident, most_resident / 2}) {
        persistent(schedule).stages = stages;
        const ReduceSchedule held = held_by(schedule, kernel, target, threads_for(vectors, most), resident);
        if (held.team.threads <= resident && fits(held, kernel, target, resident)) return held;
      }
  return held_by(schedule, kernel, target, threads_for(vectors, 1024), most_resident);
}

std::vector<ReduceSchedule> outer_alternatives(const Kernel& kernel, const Target& target,
                                               const ReduceSchedule& chosen) {
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

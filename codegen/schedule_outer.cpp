// Heuristics for Reduce kernels with outer reductions beside those of the rows: blocks that fill the device walk over
// the rows, each with a row in its registers and the outer reductions beside it.
#include <algorithm>

#include "codegen/schedule_choices.h"
#include "codegen/vectorize.h"
#include "ir/check.h"

namespace tenon::codegen {
namespace {

constexpr int kMostThreads = 512;       // of a block, which leaves each 64 registers where two are on an SM
constexpr int kResidentThreads = 1024;  // of an SM

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

// `threads` with the row in their registers, and as many blocks as a device has room for.
ReduceSchedule held_by(ReduceSchedule schedule, const Kernel& kernel, int threads, int blocks) {
  const std::int64_t vectors = row_length(kernel) / schedule.vector;
  schedule.threads = threads;
  schedule.row_elements = static_cast<int>((vectors + threads - 1) / threads) * schedule.vector;
  schedule.walkers = static_cast<int>(std::clamp<std::int64_t>(most_rows(kernel), 1, blocks));
  return schedule;
}

int threads_for(std::int64_t vectors, int most) {
  return static_cast<int>(std::clamp<std::int64_t>((vectors + 31) / 32 * 32, 32, most));
}

}  // namespace

ReduceSchedule choose_outer_schedule(const Kernel& kernel, const Target& target) {
  ReduceSchedule schedule;
  schedule.mapping = RowMapping::block;
  schedule.persistent = true;
  schedule.ahead = true;
  std::int64_t widest = 1;
  for (const Instr& instr : kernel.body)
    if (instr.kind == InstrKind::load && (instr.depends >> (kernel.axes.size() - 1) & 1) != 0)
      widest = std::max<std::int64_t>(widest,
                                      size_of(kernel.operands[static_cast<std::size_t>(instr.access.operand)].dtype));
  schedule.vector = power_of_two_divisor(kernel.axes.back().extent, static_cast<int>(16 / widest), kernel.symbols);
  const int threads = threads_for(row_length(kernel) / schedule.vector, kMostThreads);
  return held_by(schedule, kernel, threads, target.multiprocessors * std::max(1, kResidentThreads / threads));
}

std::vector<ReduceSchedule> outer_alternatives(const Kernel& kernel, const ReduceSchedule& chosen) {
  std::vector<ReduceSchedule> result;
  for (const int threads : {chosen.threads / 2, chosen.threads, 2 * chosen.threads})
    for (const bool ahead : {true, false}) {
      if (threads < 32 || threads > 1024 || threads % 32 != 0) continue;
      for (const int times : {1, 2}) {
        ReduceSchedule other = held_by(chosen, kernel, threads, chosen.walkers * chosen.threads / threads * times);
        other.ahead = ahead;
        result.push_back(other);
      }
    }
  return result;
}

}  // namespace tenon::codegen

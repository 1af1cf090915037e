// Vectors of Map kernels whose loads lie apart in memory, by the cache lines that their warps touch.
#include <algorithm>

#include "codegen/analysis/draws.h"
#include "codegen/analysis/lines.h"
#include "codegen/schedule/map_choices.h"

namespace tenon::codegen {
namespace {

// A line that the L1 has takes about half a clock of each load of a warp that touches it, measured on an H200: windows,
// pixels that are shuffled, and rows turned around, 0.5 to 1.2.
constexpr double kClocksOfLine = 0.5;
constexpr int kLanes = 32;
constexpr std::int64_t kLine = 128;

// Clocks that a multiprocessor's share of the bandwidth takes for a point's bytes.
double clocks_of_memory(const Kernel& kernel, const Target& target) {
  const double bytes_per_clock = target.bandwidth_gb_s / target.gigahertz / target.multiprocessors;
  return static_cast<double>(bytes_of(streams_of_operands(streams(kernel)), kernel)) / bytes_per_clock;
}

double clocks_of_lines(const Lines& lines, int vector) {
  return kClocksOfLine * static_cast<double>(lines.touched) / (kLanes * vector);
}

// Whether lines that several loads touch do not stay in the L1 from one to the next, all warps having theirs.
bool exceeds_l1(const Lines& lines, const Target& target) {
  constexpr std::int64_t kSeveral = 4;
  const std::int64_t warps = target.threads_per_multiprocessor / kLanes;
  return lines.touched >= kSeveral * lines.distinct &&
         warps * lines.distinct * kLine > target.shared_memory_per_multiprocessor;
}

}  // namespace

// Wide vectors of what lies apart leave each thread of a warp other lines (H200: windows of 3 x 3 that are 3 apart, of
// bf16 [8, 264920, 8, 8], 306 us in vectors of 4, 85 of 1; channels of u8 [32, 1080, 1920, 3] 132 of 16, 107 of 8).
// Across the ends of rows narrower ones store too little for what they spare.
void narrow_apart(MapSchedule& schedule, const Kernel& kernel, const Target& target) {
  constexpr double kGain = 0.7;
  const int least = draws_random_numbers(kernel) ? 4 : 1;  // at once
  const double memory = clocks_of_memory(kernel, target);
  while (schedule.vector > least) {
    const int half = schedule.vector / 2;
    const auto wide = lines_of_warp(kernel, schedule.vector, schedule.flat);
    const auto narrow = lines_of_warp(kernel, half, schedule.flat);
    if (!wide || !narrow) return;
    const double clocks = clocks_of_lines(*wide, schedule.vector);
    const bool gains = !schedule.flat && clocks > memory && clocks_of_lines(*narrow, half) <= kGain * clocks;
    if (!gains && !exceeds_l1(*wide, target)) return;
    schedule.vector = half;
  }
}

}  // namespace tenon::codegen

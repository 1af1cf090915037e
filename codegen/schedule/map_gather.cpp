// Heuristics for Map kernels that gather along their innermost axis: rows in shared memory, where a block has room for
// them and most of what they bring is wanted.
#include <algorithm>

#include "codegen/analysis/gathered_rows.h"
#include "codegen/analysis/vectorize.h"
#include "codegen/schedule/choices.h"

namespace tenon::codegen {
namespace {

constexpr std::int64_t kSectorBytes = 32;     // that come from memory for one element
constexpr std::int64_t kRunBytes = 33 << 10;  // of a block: several on a multiprocessor, of which some load
constexpr std::int64_t kWideBlock = 512;      // threads of one whose rows leave room for few others
constexpr int kMostStrip = 8, kMostTurns = 16;
// Of single elements (bf16 [64, 192] at 1272083 places on an H200: 155 us of eight rows, 104 of two; f32 [32768, 3] at
// 1095 63 and 48).
constexpr int kMostStripOfSingles = 2;
constexpr std::int64_t kMostCost = 800;  // issue slots of a thread's unrolled body
constexpr std::int64_t kBlocks = 4;      // for each multiprocessor
constexpr std::int64_t kUses = 4;        // times what a block brings

// Whether elements one by one would bring as many bytes as whole rows.
bool uses_rows_up(const Kernel& kernel, const std::vector<GatheredRows>& all) {
  const std::int64_t points = kernel.axes.back().extent.bounds(kernel.symbols).min;
  return std::all_of(all.begin(), all.end(), [&](const GatheredRows& rows) {
    const std::int64_t size = size_of(kernel.operands[static_cast<std::size_t>(rows.operand)].dtype);
    return points * kSectorBytes >= rows.length * size;
  });
}

// Blocks of the kernel, as many as there may be.
std::int64_t blocks_of(const Kernel& kernel, const MapSchedule& schedule) {
  const GatheringBlock block = gathering_block(kernel, schedule);
  const std::size_t rank = kernel.axes.size();
  const auto extent = [&](std::size_t axis) { return kernel.axes[axis].extent.bounds(kernel.symbols).max; };
  double blocks = 1;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    const int size = axis + 1 == rank ? block.points : axis + 2 == rank ? block.rows : 1;
    blocks *= static_cast<double>((extent(axis) + size - 1) / size);
  }
  return static_cast<std::int64_t>(std::min(blocks, 1e15));
}

}  // namespace

std::optional<MapSchedule> gather_from_shared_memory(const Kernel& kernel, const Target& target, std::int64_t cost) {
  const std::vector<GatheredRows> all = gathered_rows(kernel);
  if (all.empty() || target.sm < 80 || !target.may.overlaps || !uses_rows_up(kernel, all)) return std::nullopt;
  MapSchedule schedule;
  schedule.staged = true;
  std::int64_t widest = 1;
  for (const Store& store : kernel.stores) widest = std::max(widest, element_bytes(kernel, store.access));
  int vector = static_cast<int>(16 / widest);
  while (vector > 1 && vector * cost > kMostCost) vector /= 2;
  schedule.vector = power_of_two_divisor(kernel.axes.back().extent, vector, kernel.symbols);
  const auto bytes = [&](const MapSchedule& s) { return gathered_bytes(kernel, s); };
  while (schedule.threads > 64 && bytes(schedule) > kRunBytes && gathering_block(kernel, schedule).teams > 1)
    schedule.threads /= 2;
  if (bytes(schedule) > kRunBytes) schedule.threads = bytes(schedule) > 2 * kRunBytes ? 2 * kWideBlock : kWideBlock;
  if (bytes(schedule) > target.shared_memory_per_block) return std::nullopt;
  const std::int64_t enough = kBlocks * target.multiprocessors;
  const auto fits = [&](const MapSchedule& s) { return bytes(s) <= kRunBytes && blocks_of(kernel, s) >= enough; };
  const int most_strip = schedule.vector == 1 ? kMostStripOfSingles : kMostStrip;
  for (MapSchedule more = schedule; more.strip < most_strip && 2 * more.strip * more.vector * cost <= kMostCost;) {
    more.strip *= 2;
    if (!fits(more)) break;
    schedule = more;
  }
  // A block has all of its rows' points, where enough blocks are left: each part of a row brings the row again.
  const std::int64_t points = kernel.axes.back().extent.bounds(kernel.symbols).max;
  while (schedule.unroll < kMostTurns && gathering_block(kernel, schedule).points < points) {
    MapSchedule more = schedule;
    more.unroll *= 2;
    const bool brings_more = gathering_block(kernel, schedule).points < all.front().length;
    if (blocks_of(kernel, more) < enough && !brings_more) break;
    schedule = more;
  }
  // A block that brings more of one long row than it uses is larger (f32 [8, 7947] at 4070261 places on an H200: 161 us
  // by 256 threads, 122 by 1024).
  const std::int64_t brought =
      all.front().length * size_of(kernel.operands[static_cast<std::size_t>(all.front().operand)].dtype);
  const auto used = [&](const MapSchedule& s) {
    return std::min<std::int64_t>(gathering_block(kernel, s).points, points) * widest;
  };
  while (schedule.strip == 1 && 2 * schedule.threads <= 2 * kWideBlock && used(schedule) < kUses * brought) {
    MapSchedule more = schedule;
    more.threads *= 2;
    if (bytes(more) > kRunBytes || blocks_of(kernel, more) < enough) break;
    schedule = more;
  }
  return schedule;
}

}  // namespace tenon::codegen

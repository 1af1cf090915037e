// The heuristics' choice of the CPU target's numbers: vector widths, grains, cache blocks.
#include <algorithm>
#include <limits>
#include <numeric>

#include "codegen/analysis/interior.h"
#include "codegen/analysis/product_bounds.h"
#include "codegen/analysis/tile_tests.h"
#include "codegen/analysis/transpose.h"
#include "codegen/analysis/vectorize.h"
#include "codegen/kernel/uses.h"
#include "codegen/schedule/choices.h"
#include "codegen/schedule/cpu_choices.h"

namespace tenon::codegen {
namespace cpu {

std::int64_t computed_bytes(DType dtype) { return dtype == DType::bool_ ? 1 : size_of(compute_type(dtype)); }

int lanes_for(const Kernel& kernel, const Target& target) {
  std::int64_t widest = 1;
  for (const Instr& instr : kernel.body) widest = std::max(widest, computed_bytes(instr.dtype));
  return static_cast<int>(target.vector_bytes / std::min<std::int64_t>(widest, 4));
}

int cost_of(const Instr& instr) {
  return instr.kind == InstrKind::map ? ir::info(instr.op).cost : instr.kind == InstrKind::random ? kRandomCost : 1;
}

int body_cost(const Kernel& kernel) {
  int cost = 0;
  for (const Instr& instr : kernel.body) cost += cost_of(instr);
  return cost;
}

bool may_exceed(const Kernel& kernel, std::int64_t limit, bool some) {
  for (const Operand& operand : kernel.operands) {
    const SymbolBounds count = element_count(operand.shape).bounds(kernel.symbols);
    limit -= std::min((some ? count.max : count.min), std::int64_t{1} << 40) * size_of(operand.dtype);
  }
  return limit < 0;
}

// Where two rows share a line, the store of each part waits for memory (two cores of an EPYC with AVX-512: rows
// of 222 bytes 60 ms around the caches and 4.6 through them, of 1020 bytes 10.6 and 4.1, of 4 KB as long, of 8 KB 2.6
// and 2.8; rows of whole lines 2.8 and 4.0).
bool rows_may_stream(const Kernel& kernel, const Target& target) {
  const int inner = static_cast<int>(kernel.axes.size()) - 1;
  return std::none_of(kernel.stores.begin(), kernel.stores.end(), [&](const Store& store) {
    const std::int64_t most = kernel.axes.empty() ? 0 : kernel.axes.back().extent.bounds(kernel.symbols).max;
    return step_along(store.access.offset, inner, 1, kernel) == 1 && rows_share_lines(kernel, store.access, inner) &&
           most < target.streamed_row_bytes / element_bytes(kernel, store.access);
  });
}

}  // namespace cpu

namespace {

using namespace cpu;  // NOLINT: what this file and cpu_reduce.cpp share

// Bytes that one point reads and writes.
std::int64_t bytes_of_point(const Kernel& kernel) {
  std::int64_t bytes = 0;
  for (const Instr& instr : kernel.body)
    if (instr.kind == InstrKind::load) bytes += element_bytes(kernel, instr.access);
  for (const Store& store : kernel.stores) bytes += element_bytes(kernel, store.access);
  return bytes;
}

// As many rows of what is read as leave each line that is read of them, and will be next, its place in a core's own
// cache: rows that lie a large power of two apart share few places.
int rows_at_once(const Kernel& kernel, const Access& access, const Target& target) {
  constexpr std::int64_t kWays = 16, kLeast = 32,
                         kMost = 256;  // lines in a place; fewer than kLeast write no two lines
  const std::int64_t way = target.l2_bytes / kWays;
  const auto pitch = access.offset.coefficient(static_cast<int>(kernel.axes.size()) - 1);
  const std::int64_t divisor = pitch ? pitch->bounds(kernel.symbols).divisor * element_bytes(kernel, access) : 1;
  return static_cast<int>(std::clamp(kWays * (way / std::gcd(divisor, way)), kLeast, kMost));
}

// Tiles for loads that lie along another axis than the stores.
void choose_tile(MapSchedule& schedule, const Kernel& kernel, const Target& target) {
  constexpr std::int64_t kRowBytes = 2048;
  constexpr int kNarrowest = 8;
  const int axis = transposed_axis(kernel);
  if (axis < 0) return;
  const Transposed transposed = transposed_along(kernel, axis);
  const auto guarded = [&](InstrId load) { return !kernel.instr(load).access.guards.empty(); };
  if (transposed.loads.empty() || std::any_of(transposed.loads.begin(), transposed.loads.end(), guarded)) return;
  const auto longest = [&](const Axis& along) { return along.extent.bounds(kernel.symbols).max; };
  if (std::min(longest(kernel.axes[static_cast<std::size_t>(axis)]), longest(kernel.axes.back())) < kNarrowest) return;
  std::int64_t narrowest = 8, widest = 1;
  int columns = std::numeric_limits<int>::max();
  for (const Instr& instr : kernel.body) widest = std::max(widest, computed_bytes(instr.dtype));
  for (const InstrId load : transposed.loads) {
    narrowest = std::min(narrowest, element_bytes(kernel, kernel.instr(load).access));
    columns = std::min(columns, rows_at_once(kernel, kernel.instr(load).access, target));
  }
  schedule.vector = static_cast<int>(std::min<std::int64_t>(16, target.vector_bytes / widest));  // a register each
  schedule.tile = MapTile{axis, static_cast<int>(kRowBytes / narrowest), columns};
}

// Where a core computes a vector in less time than memory takes for it, one after the other is best: each vector's load
// is then far ahead of what is computed. Elsewhere expressions that wait for their own results should take turns.
constexpr int kMostCostInTurns = 128;  // beyond, four vectors' values do not fit the registers

// Whether rows are cut where their guards change: most points lie inside, and inside a row several turns do. What lies
// before and behind takes a masked vector each.
bool cuts_interior(const Kernel& kernel, const MapSchedule& schedule) {
  constexpr std::int64_t kVectors = 4;
  constexpr double kLeastInside = 0.5;
  if (schedule.tile || kernel.axes.empty()) return false;
  const Interior interior = interior_of(kernel);
  if (interior.empty() || share_inside(interior, kernel) < kLeastInside) return false;
  const int inner = static_cast<int>(kernel.axes.size()) - 1;
  const AxisRange* range = range_along(interior, inner);
  const std::int64_t outside = range == nullptr ? 0 : *points_outside(*range, kernel);
  return kernel.axes.back().extent.bounds(kernel.symbols).max - outside >= kVectors * schedule.vector;
}

// With symbolic sizes the kernel decides when it runs; what is not streamed is then masked, which costs nothing only on
// AVX-512.
MapSchedule choose_map(const Kernel& kernel, const Target& target) {
  MapSchedule schedule;
  schedule.vector = lanes_for(kernel, target);
  const int cost = body_cost(kernel);
  schedule.interleave = cost > kCostOfByte * bytes_of_point(kernel);
  const int taking_turns = target.vector_bytes == 64 && cost <= kMostCostInTurns ? 4 : 2;  // as registers allow
  schedule.unroll = schedule.interleave ? taking_turns : cost <= 8 ? 4 : cost <= 24 ? 2 : 1;
  schedule.grain = cost <= 64 ? 32768 : 8192;
  choose_tile(schedule, kernel, target);
  schedule.cache.streaming = may_exceed(kernel, target.l3_bytes, target.vector_bytes == 64) &&
                             (schedule.tile || rows_may_stream(kernel, target));
  schedule.interior = cuts_interior(kernel, schedule);
  return schedule;
}

ContractSchedule choose_contract(const Kernel& kernel, const Target& target) {
  ContractSchedule schedule;
  schedule.loop = MainLoop::cpu;
  schedule.micro_m = target.vector_bytes == 64 ? 8 : 6;
  schedule.tile_m = target.vector_bytes == 64 ? 192 : 96;
  schedule.tile_n = 256;
  schedule.tile_k = 256;
  schedule.bounded = target.may.product_bounds && !product_bounds(kernel, contract_parts(kernel)).empty();
  return schedule;
}

AttendSchedule choose_attend(const Kernel& kernel, const Target& target) {
  AttendSchedule schedule;
  schedule.loop = MainLoop::cpu;
  schedule.tile_q = 2 * (target.vector_bytes / 4);
  schedule.tile_kv = 64;
  schedule.block_mask = target.may.block_mask && !tile_tests(kernel, key_masks(kernel)).empty();
  return schedule;
}

}  // namespace

Schedule choose_cpu_schedule(const Kernel& kernel, const Target& target) {
  switch (kernel.kernel_class) {
    case ir::KernelClass::map: return choose_map(kernel, target);
    case ir::KernelClass::reduce: return cpu::choose_reduce(kernel, target);
    case ir::KernelClass::contract: return choose_contract(kernel, target);
    case ir::KernelClass::attend: return choose_attend(kernel, target);
  }
  return MapSchedule{};
}

}  // namespace tenon::codegen

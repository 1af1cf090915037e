// Heuristics for Map kernels: 16 bytes of the widest dtype per thread, less where many operands are live, as far as the
// innermost axis allows (guides: fusion.md §3).
#include <algorithm>

#include "codegen/schedule_choices.h"
#include "codegen/vectorize.h"

namespace tenon::codegen {
namespace {

constexpr std::int64_t kCudaCacheBytes = 32 << 20;  // stores beyond it do not wait in L2 for a reader
constexpr std::int64_t kVectorBytes = 256;          // of all operands' vectors together: 64 registers
constexpr std::int64_t kVectorCost =
    400;  // issue slots of one thread's unrolled body: it keeps registers and compile time

// What is read or written at every point: operands that do not vary along the innermost axis cost nothing there.
std::vector<Access> streams(const Kernel& kernel) {
  std::vector<Access> accesses;
  const int inner = static_cast<int>(kernel.axes.size()) - 1;
  for (const Instr& instr : kernel.body)
    if (instr.kind == InstrKind::load && (instr.depends >> inner & 1) != 0) accesses.push_back(instr.access);
  for (const Store& store : kernel.stores) accesses.push_back(store.access);
  return accesses;
}

std::int64_t element_bytes(const Kernel& kernel, const Access& access) {
  return size_of(kernel.operands[static_cast<std::size_t>(access.operand)].dtype);
}

// Issue slots of one element. Eight-bit reals are converted in software.
std::int64_t cost_of(const Kernel& kernel) {
  constexpr std::int64_t kConversion = 10;
  std::int64_t cost = 0;
  for (const Instr& instr : kernel.body) {
    if (instr.kind == InstrKind::map) cost += ir::info(instr.op).cost;
    if ((instr.kind == InstrKind::load || instr.kind == InstrKind::round) && is_f8(instr.dtype)) cost += kConversion;
  }
  for (const Store& store : kernel.stores)
    if (is_f8(kernel.operands[static_cast<std::size_t>(store.access.operand)].dtype)) cost += kConversion;
  return cost;
}

// The widest vector that the innermost extent and at least one access can use.
int usable_vector(const Kernel& kernel, const std::vector<Access>& accesses, int vector, bool ragged_allowed) {
  const int inner = static_cast<int>(kernel.axes.size()) - 1;
  const Dim& extent = kernel.axes.back().extent;
  if (!ragged_allowed) vector = power_of_two_divisor(extent, vector, kernel.symbols);
  if (extent.bounds(kernel.symbols).max < vector) return 1;
  const bool useful = std::any_of(accesses.begin(), accesses.end(), [&](const Access& access) {
    return vector_width(access, inner, vector, kernel) > 1;
  });
  return useful ? vector : 1;
}

}  // namespace

MapSchedule choose_map_schedule(const Kernel& kernel, const Target&) {
  MapSchedule schedule;
  if (kernel.axes.empty()) return schedule;
  const std::vector<Access> accesses = streams(kernel);
  std::int64_t widest = 1, bytes = 0;
  for (const Access& access : accesses) {
    widest = std::max(widest, element_bytes(kernel, access));
    bytes += element_bytes(kernel, access);
  }
  int vector = static_cast<int>(16 / widest);
  if (accesses.size() >= 8) vector = std::max(1, vector / 2);
  while (vector > 1 && (vector * bytes > kVectorBytes || vector * cost_of(kernel) > kVectorCost)) vector /= 2;
  schedule.vector = usable_vector(kernel, accesses, vector, kernel.axes.size() == 1);
  Dim points(1);
  for (const Axis& axis : kernel.axes) points = points * axis.extent;
  const SymbolBounds count = points.bounds(kernel.symbols);
  schedule.streaming = schedule.vector > 1 && count.min > kCudaCacheBytes / std::max<std::int64_t>(1, bytes);
  return schedule;
}

}  // namespace tenon::codegen

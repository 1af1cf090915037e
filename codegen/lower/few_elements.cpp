// See few_elements.h.
#include "codegen/lower/few_elements.h"

#include <algorithm>

namespace tenon::codegen {
namespace {

constexpr std::int64_t kMostElements = 4;  // of a row
constexpr std::size_t kMostOfRows = 64;    // instructions for all of them
constexpr std::int64_t kMostBytes = 16;    // of a row: rows of several vectors are no vectors of several rows
// Beside dear elements a thread has one row either way, and of three f32 a vector that begins anywhere (H200: mish of
// pairs of f32 297 us as rows, 319; the mean of three 307 and 323).
constexpr std::int64_t kMostCost = 80, kBytesOfOddRow = 12;

// Loads of rows that lie one behind the other; what is the same for all rows does not count.
bool lie_side_by_side(const Kernel& kernel, int axis) {
  bool any = false;
  for (const Instr& instr : kernel.body) {
    if (instr.kind != InstrKind::load || (instr.depends >> axis & 1) == 0) continue;
    const Index& offset = instr.access.offset;
    if (!offset.depends_on(axis - 1)) continue;
    const Dim& extent = kernel.axes[static_cast<std::size_t>(axis)].extent;
    const auto step = offset.coefficient(axis), row = offset.coefficient(axis - 1);
    const std::int64_t bytes = size_of(kernel.operands[static_cast<std::size_t>(instr.access.operand)].dtype);
    const std::int64_t of_row = extent.constant() * bytes;
    if (!step || !step->is(1) || !row || *row != extent || of_row > kMostBytes || of_row == kBytesOfOddRow)
      return false;
    any = true;
  }
  return any;
}

// Issue slots of a row.
std::int64_t cost_of(const Kernel& kernel, int axis, std::int64_t count) {
  std::int64_t cost = 0;
  for (const Instr& instr : kernel.body)
    if (instr.kind == InstrKind::map) cost += ir::info(instr.op).cost * ((instr.depends >> axis & 1) != 0 ? count : 1);
  return cost;
}

bool has_few_elements(const Kernel& kernel) {
  const auto axis = static_cast<int>(kernel.axes.size()) - 1;
  if (kernel.kernel_class != ir::KernelClass::reduce || axis < 1 || has_outer(kernel) || !can_unroll(kernel, axis))
    return false;
  const std::int64_t count = kernel.axes.back().extent.constant();
  const auto is_reduced = [](const Axis& each) { return each.reduced; };
  const auto draws = [](const Instr& instr) { return instr.kind == InstrKind::random; };
  return count >= 2 && count <= kMostElements &&
         std::count_if(kernel.axes.begin(), kernel.axes.end(), is_reduced) == 1 &&
         kernel.body.size() * static_cast<std::size_t>(count) <= kMostOfRows &&
         cost_of(kernel, axis, count) <= kMostCost && std::none_of(kernel.body.begin(), kernel.body.end(), draws) &&
         std::none_of(kernel.stores.begin(), kernel.stores.end(),
                      [&](const Store& store) { return store.access.offset.depends_on(axis); }) &&
         lie_side_by_side(kernel, axis);
}

}  // namespace

bool combine_few_elements(Kernel& kernel) {
  if (!has_few_elements(kernel)) return false;
  unroll_axis(kernel, static_cast<int>(kernel.axes.size()) - 1);
  kernel.kernel_class = ir::KernelClass::map;
  return true;
}

}  // namespace tenon::codegen

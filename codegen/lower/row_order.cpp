// See row_order.h. Rows lie along memory, and are long enough to be read well one by one, in any order.
#include "codegen/lower/row_order.h"

#include <algorithm>

#include "codegen/analysis/row_shape.h"
#include "codegen/analysis/vectorize.h"

namespace tenon::codegen {
namespace {

constexpr int kKeptPercent = 32;          // of the L2, for a walk over rows: the next finds it there
constexpr std::int64_t kLeastRow = 1024;  // bytes
constexpr std::int64_t kShare = 4;        // a fourth of what a row reads must be shared

bool varies(const Instr& instr, std::size_t axis) { return (instr.depends >> axis & 1) != 0; }

std::int64_t extent(const Kernel& kernel, std::size_t axis) { return kernel.axes[axis].extent.constant(); }

// Whether all extents are known, and what varies along rows follows them in memory or is the same for all.
bool rows_lie_along_memory(const Kernel& kernel) {
  const int inner = static_cast<int>(kernel.axes.size()) - 1;
  const std::vector<const Instr*> loads = row_loads(kernel);
  return std::all_of(kernel.axes.begin(), kernel.axes.end(), [](const Axis& a) { return a.extent.is_constant(); }) &&
         std::all_of(loads.begin(), loads.end(), [&](const Instr* load) {
           const auto step = step_along(load->access.offset, inner, 1, kernel);
           return step && (*step == 0 || *step == 1);
         });
}

// Of a walk over all rows inside a point of `axis`, which the next point repeats: what it reads, and what of that is
// the same for both and varies from row to row.
struct Walk {
  std::int64_t all = 0, shared = 0;
};

Walk walk_inside(const Kernel& kernel, std::size_t axis, std::size_t kept) {
  Walk walk;
  for (const Instr* load : row_streams(kernel)) {
    std::int64_t bytes = element_bytes(kernel, load->access), between = 1;
    for (std::size_t other = axis + 1; other < kernel.axes.size(); ++other)
      if (varies(*load, other)) bytes *= extent(kernel, other), between *= other < kept ? extent(kernel, other) : 1;
    walk.all += bytes;
    if (!varies(*load, axis) && between > 1) walk.shared += bytes;
  }
  return walk;
}

// `from` as the kept axis behind all others.
void move_innermost(Kernel& kernel, std::size_t from, std::size_t kept) {
  std::vector<int> order;
  for (std::size_t axis = 0; axis < kernel.axes.size(); ++axis) {
    if (axis != from) order.push_back(static_cast<int>(axis));
    if (axis + 1 == kept) order.push_back(static_cast<int>(from));
  }
  reorder_axes(kernel, order);
}

}  // namespace

void order_rows(Kernel& kernel, const Target& target) {
  if (kernel.kernel_class != ir::KernelClass::reduce || has_outer(kernel) || !rows_lie_along_memory(kernel)) return;
  const RowShape shape = shape_of(kernel);
  if (shape.kept < 2 || shape.length * stream_bytes(kernel) < kLeastRow) return;
  for (std::size_t axis = 0; axis + 1 < shape.kept; ++axis) {
    const Walk walk = walk_inside(kernel, axis, shape.kept);
    if (extent(kernel, axis) < 2 || walk.shared * kShare < walk.all || walk.all < percent_of_l2(target, kKeptPercent))
      continue;
    return move_innermost(kernel, axis, shape.kept);
  }
}

}  // namespace tenon::codegen

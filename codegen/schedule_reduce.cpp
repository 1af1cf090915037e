// Heuristics for Reduce kernels: who shares a row, by its length and by the direction in which the operands are
// contiguous; and whether the row stays in registers between rounds (guides: fusion.md §3).
#include <algorithm>

#include "codegen/schedule_choices.h"
#include "codegen/vectorize.h"

namespace tenon::codegen {
namespace {

constexpr int kMaxHeldBytes = 160;         // of a row, per thread: ten 16-byte vectors
constexpr int kMaxHeldElements = 64;       // each also lives as f32 while it is used
constexpr std::int64_t kBlockRow = 3072;   // beyond it a row is shared by a block
constexpr std::int64_t kLargeRow = 16384;  // beyond it by a large one

struct RowShape {
  std::size_t kept = 0;     // axes
  std::int64_t length = 0;  // of a row; the greatest when symbolic
  bool known = false;       // constant
};

RowShape shape_of(const Kernel& kernel) {
  RowShape shape;
  Dim length(1);
  for (const Axis& axis : kernel.axes) {
    shape.kept += !axis.reduced;
    if (axis.reduced) length = length * axis.extent;
  }
  const SymbolBounds bounds = length.bounds(kernel.symbols);
  shape.known = bounds.min == bounds.max;
  shape.length = bounds.max;
  return shape;
}

bool element_level(const Kernel& kernel, const Instr& instr) {
  for (std::size_t axis = 0; axis < kernel.axes.size(); ++axis)
    if (kernel.axes[axis].reduced && (instr.depends >> axis & 1) != 0) return true;
  return false;
}

std::vector<const Instr*> row_loads(const Kernel& kernel) {
  std::vector<const Instr*> loads;
  for (const Instr& instr : kernel.body)
    if (instr.kind == InstrKind::load && element_level(kernel, instr)) loads.push_back(&instr);
  return loads;
}

// Whether more loads run along the innermost kept axis than along the innermost reduced one.
bool column_wise(const Kernel& kernel, std::size_t kept) {
  if (kept == 0) return false;
  int along_kept = 0, along_reduced = 0;
  for (const Instr* load : row_loads(kernel)) {
    along_kept += step_along(load->access.offset, static_cast<int>(kept) - 1, 1, kernel) == 1;
    along_reduced += step_along(load->access.offset, static_cast<int>(kernel.axes.size()) - 1, 1, kernel) == 1;
  }
  return along_kept > along_reduced;
}

// 16 bytes of the widest row operand, as far as the innermost extent and one of the loads allow.
int choose_vector(const Kernel& kernel, int bytes) {
  const int inner = static_cast<int>(kernel.axes.size()) - 1;
  std::int64_t widest = 1;
  for (const Instr* load : row_loads(kernel))
    widest = std::max(widest, size_of(kernel.operands[static_cast<std::size_t>(load->access.operand)].dtype));
  const int limit = static_cast<int>(bytes / widest);
  const int vector = power_of_two_divisor(kernel.axes.back().extent, limit, kernel.symbols);
  for (const Instr* load : row_loads(kernel))
    if (vector_width(load->access, inner, vector, kernel) > 1) return vector;
  return 1;
}

// More than one sweep over the row: a reduction of reductions, or elements stored after one.
bool rereads(const Kernel& kernel) {
  std::vector<bool> after(kernel.body.size(), false);
  const auto is_after = [&](InstrId id) { return after[static_cast<std::size_t>(id)]; };
  for (std::size_t i = 0; i < kernel.body.size(); ++i) {
    const Instr& instr = kernel.body[i];
    const bool uses = std::any_of(instr.args.begin(), instr.args.end(), is_after);
    if (uses && (element_level(kernel, instr) || instr.kind == InstrKind::reduce)) return true;
    after[i] = uses || instr.kind == InstrKind::reduce;
  }
  return false;
}

void choose_team(ReduceSchedule& schedule, const RowShape& shape) {
  const std::int64_t vectors = std::max<std::int64_t>(1, shape.length / schedule.vector);
  schedule.threads = 128;
  if (shape.length > kBlockRow) {
    schedule.mapping = RowMapping::block;
    schedule.threads = shape.length > kLargeRow ? 512 : shape.length > 2 * kBlockRow ? 256 : 128;
    return;
  }
  schedule.mapping = vectors <= 2 ? RowMapping::thread : RowMapping::warp;
  while (schedule.lanes > 4 && schedule.lanes / 2 >= vectors) schedule.lanes /= 2;
}

int team_of(const ReduceSchedule& schedule) {
  switch (schedule.mapping) {
    case RowMapping::thread: return 1;
    case RowMapping::warp: return schedule.lanes;
    case RowMapping::block: return schedule.threads;
    case RowMapping::column: return schedule.threads / 32;
  }
  return 1;
}

// Holds the row when it is read again and fits.
void choose_persistence(ReduceSchedule& schedule, const Kernel& kernel, const RowShape& shape) {
  if (!shape.known || !rereads(kernel)) return;
  const int step = team_of(schedule) * schedule.vector;
  const std::int64_t elements = (shape.length + step - 1) / step * schedule.vector;
  std::int64_t bytes = 0;
  for (const Instr* load : row_loads(kernel))
    bytes += elements * size_of(kernel.operands[static_cast<std::size_t>(load->access.operand)].dtype);
  if (elements == 0 || elements > kMaxHeldElements || bytes > kMaxHeldBytes) return;
  schedule.persistent = true;
  schedule.row_elements = static_cast<int>(elements);
}

}  // namespace

ReduceSchedule choose_reduce_schedule(const Kernel& kernel, const Target&) {
  ReduceSchedule schedule;
  const RowShape shape = shape_of(kernel);
  if (column_wise(kernel, shape.kept)) {
    schedule.mapping = RowMapping::column;
    schedule.threads = shape.length >= 16 ? 256 : 128;
    return schedule;
  }
  schedule.vector = choose_vector(kernel, 16);
  choose_team(schedule, shape);
  choose_persistence(schedule, kernel, shape);
  return schedule;
}

}  // namespace tenon::codegen

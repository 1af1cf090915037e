// See outer_parts.h.
#include "codegen/analysis/outer_parts.h"

#include <algorithm>

#include "ir/ops/op.h"

namespace tenon::codegen {
namespace {

constexpr int kArgBytes = 16;  // a value with its index

}  // namespace

std::vector<InstrId> outer_reductions(const Kernel& kernel) {
  std::vector<InstrId> all;
  for (std::size_t id = 0; id < kernel.body.size(); ++id) {
    const Instr& instr = kernel.body[id];
    if (instr.kind == InstrKind::reduce && !kernel.axes[static_cast<std::size_t>(instr.axes[0])].reduced)
      all.push_back(static_cast<InstrId>(id));
  }
  return all;
}

int accumulator_bytes(const Kernel& kernel, InstrId reduce) {
  const Instr& instr = kernel.instr(reduce);
  return ir::info(instr.op).yields == ir::Yields::Index ? kArgBytes
                                                        : static_cast<int>(size_of(compute_type(instr.dtype)));
}

std::int64_t warp_parts_bytes(const Kernel& kernel, const ReduceSchedule& schedule) {
  if (schedule.team.mapping != RowMapping::warp) return 0;
  int widest = 0;
  for (InstrId id : outer_reductions(kernel)) widest = std::max(widest, accumulator_bytes(kernel, id));
  return std::int64_t{schedule.team.threads / 32} * schedule.team.lanes * schedule.vector * widest;
}

}  // namespace tenon::codegen

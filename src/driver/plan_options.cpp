// See plan_options.h.
#include "src/driver/plan_options.h"

#include "src/driver/switches.h"

namespace tenon::src {

ir::PlanOptions plan_options(codegen::TargetKind target, const Options& options, const ir::CostModel& cost) {
  ir::PlanOptions result;
  result.fuse = options.fuse;
  result.mixed_order = target == codegen::TargetKind::cuda;
  result.pad_rows = result.turn_f8 = result.turn_few = result.split_depth = result.split_f32 = result.pair_products =
      result.split_pieces = target == codegen::TargetKind::cuda;
  if (target == codegen::TargetKind::cpu) result.max_packed = 1;  // a CPU has no launch to save
  result.max_live_bytes = options.max_live_bytes;
  result.typical = options.typical;
  result.cost = cost;
  switch_off(options.disable, result);
  if (options.disable.count("split_f32") != 0) result.split_f32 = false;  // kernels' switch, and the planner's
  return result;
}

}  // namespace tenon::src

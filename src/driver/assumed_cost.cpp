// What is assumed of a GPU that was not measured: CostModel's numbers, which are an H100's, in proportion to the facts
// that each of them rests on.
#include <fmt/format.h>

#include "codegen/schedule/limits.h"
#include "src/driver/cost_model.h"

namespace tenon::src {
namespace {

double clocks(const codegen::Target& target) { return target.multiprocessors * target.gigahertz; }

}  // namespace

ir::CostModel assumed_cost_model(const codegen::Target& target) {
  if (target.kind == codegen::TargetKind::cpu) {
    ir::CostModel cost = ir::cpu_cost_model(target.threads);
    cost.product_bounds = target.may.product_bounds;
    return cost;
  }
  static const codegen::Target h100 = codegen::cuda_target("sm_90a");
  const double bandwidth = target.bandwidth_gb_s / h100.bandwidth_gb_s;
  const double lanes =
      clocks(target) * target.lanes_per_multiprocessor / (clocks(h100) * h100.lanes_per_multiprocessor);
  const double tensor = clocks(target) * target.tensor_flops_per_clock / (clocks(h100) * h100.tensor_flops_per_clock);
  ir::CostModel cost;
  cost.device = fmt::format("{} (assumed)", target.device);
  cost.bandwidth_gb_s *= bandwidth;
  cost.l2_bandwidth_gb_s *= clocks(target) / clocks(h100);  // so many bytes a clock for each multiprocessor
  cost.l2_bytes *= static_cast<double>(target.l2_bytes) / static_cast<double>(h100.l2_bytes);
  cost.gigaslots_s *= lanes;
  cost.lane_tflops *= lanes;
  cost.f32_tflops *= codegen::may_split_f32(target) ? tensor : 0;
  cost.tensor_tflops *= tensor;
  cost.tensor_cores = codegen::tensor_cores(target);
  cost.depth_parts = !target.may.wgmma     ? 1
                     : target.may.split_k  ? codegen::kMostSplit
                     : target.may.clusters ? codegen::kDepthParts
                                           : 1;
  cost.paired_products = target.may.wgmma;
  cost.fed_elements_ns *= target.may.wgmma ? target.gigahertz / h100.gigahertz : 0;
  cost.tile_tests = target.may.wgmma && target.may.block_mask;
  cost.product_bounds = target.may.product_bounds;
  cost.online = target.may.online;
  cost.moments = target.may.moments;
  if (!target.may.overlaps) cost.neighbour_load_slots = cost.guarded_load_slots;
  cost.attend_extent = codegen::kAttendExtent;
  cost.attend_columns = codegen::kAttendColumns;
  cost.attend_rows = codegen::kAttendRows;
  cost.threads = static_cast<double>(target.multiprocessors) * target.threads_per_multiprocessor;
  cost.block_gb_s *= target.gigahertz / h100.gigahertz;  // a multiprocessor's, whatever memory can do beside
  cost.row_blocks = target.may.clusters ? codegen::kMostSharing : 1;
  cost.row_block_bytes *= static_cast<double>(target.shared_memory_per_block) / h100.shared_memory_per_block;
  cost.grid_row_bytes *= target.may.grid_rows && target.may.hold_rows
                             ? static_cast<double>(target.multiprocessors) * target.shared_memory_per_multiprocessor /
                                   (h100.multiprocessors * h100.shared_memory_per_multiprocessor)
                             : 0;
  cost.outer_elements *= static_cast<double>(target.registers_per_multiprocessor) / h100.registers_per_multiprocessor;
  cost.outer_blocks = codegen::kMostWithRing * target.multiprocessors;
  return cost;
}

}  // namespace tenon::src

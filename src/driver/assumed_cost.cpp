// What is assumed of a GPU that was not measured: the datasheet of one device of each architecture, scaled by what an
// H100 reaches of its own (90 % of the bandwidth in a copy, 60 % of the products on plain lanes, 70 % of those of
// tensor cores).
#include <fmt/format.h>

#include "src/driver/cost_model.h"

namespace tenon::src {
namespace {

struct Assumed {
  int sm;
  const char* device;
  int multiprocessors;
  double gigahertz;
  int lanes;              // of a multiprocessor, that multiply in f32
  int threads;            // of a multiprocessor, resident at once
  double bandwidth_gb_s;  // of the datasheet
  double l2_megabytes;
  double tensor_tflops;  // of the datasheet, f16 summed in f32, dense
  double row_kilobytes;  // of a row, that a block keeps in shared memory
};

// The H100 is CostModel itself. From sm_100 on the products are those of mma.sync, which Tenon emits.
constexpr Assumed kAssumed[] = {
    {75, "T4", 40, 1.59, 64, 1024, 320, 4, 65, 56},
    {80, "A100 80GB", 108, 1.41, 64, 2048, 2039, 40, 312, 140},
    {86, "A40", 84, 1.74, 128, 1536, 696, 6, 150, 86},
    {87, "AGX Orin", 16, 1.3, 128, 1536, 204, 4, 43, 140},
    {89, "RTX 4090", 128, 2.52, 128, 1536, 1008, 72, 165, 86},
    {100, "B200", 148, 1.85, 128, 2048, 8000, 126, 1000, 200},
    {103, "B300", 148, 1.85, 128, 2048, 8000, 126, 1000, 200},
    {110, "Jetson Thor", 20, 1.57, 128, 1536, 273, 32, 130, 200},
    {120, "RTX 5090", 170, 2.41, 128, 1536, 1792, 96, 210, 86},
    {121, "GB10", 48, 2.4, 128, 1536, 273, 24, 62, 86},
};

ir::CostModel model_of(const Assumed& assumed, bool clusters) {
  constexpr double kCopyShare = 0.9, kLaneShare = 0.6, kTensorShare = 0.7;
  constexpr double kSharedByAll = 0.75;  // of the L2, for what is read again
  constexpr double kSaturating = 0.4;    // of the multiprocessors saturate the memory
  ir::CostModel cost;
  cost.device = fmt::format("{} (assumed of sm_{})", assumed.device, assumed.sm);
  cost.bandwidth_gb_s = kCopyShare * assumed.bandwidth_gb_s;
  cost.l2_bandwidth_gb_s = 2.5 * cost.bandwidth_gb_s;
  cost.l2_bytes = kSharedByAll * 1e6 * assumed.l2_megabytes;
  cost.gigaslots_s = assumed.multiprocessors * assumed.lanes * assumed.gigahertz;
  cost.lane_tflops = kLaneShare * 2e-3 * cost.gigaslots_s;
  cost.tensor_tflops = kTensorShare * assumed.tensor_tflops;
  cost.threads = static_cast<double>(assumed.multiprocessors) * assumed.threads;
  cost.block_gb_s = cost.bandwidth_gb_s / (kSaturating * assumed.multiprocessors);
  cost.row_blocks = clusters ? cost.row_blocks : 1;
  cost.row_block_bytes = 1e3 * assumed.row_kilobytes;
  cost.outer_blocks = 2.0 * assumed.multiprocessors;
  return cost;
}

}  // namespace

ir::CostModel assumed_cost_model(const codegen::Target& target) {
  if (target.kind == codegen::TargetKind::cpu) return ir::cpu_cost_model(target.threads);
  for (const Assumed& assumed : kAssumed)
    if (assumed.sm == target.sm) return model_of(assumed, target.may.clusters);
  ir::CostModel cost;
  if (target.sm != 90) cost.device = fmt::format("H100 (assumed of {})", target.arch);
  return cost;
}

}  // namespace tenon::src

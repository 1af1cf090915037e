// Predicted time of one kernel: t = L + max(M, C) + overlap * min(M, C), M = bytes / bandwidth, C = compute. What
// depends on the device comes from CostModel; what depends on how kernels are written is here.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ir/fusion/cluster.h"
#include "ir/fusion/feeds.h"
#include "ir/fusion/long_rows.h"
#include "ir/fusion/pieces.h"
#include "ir/fusion/roofline.h"

namespace tenon::ir::fusion {
namespace {

constexpr double kTile = 128;  // rows or columns of a result that share one load of an operand

constexpr double kLoadSlots = 1;           // a vectorised load, for each element
constexpr double kWholeGuardShare = 0.25;  // of a condition's price where it holds for whole vectors
constexpr double kFragmentLoadSlots = 4;   // in the layout that tensor cores give a result
constexpr double kFragmentRows = 2;        // of one thread, which share what does not vary along rows

// Of the scores, those in tiles of keys that a mask partly hides. Elsewhere the mask is not computed: one warp asks it
// of a tile, from the least and the greatest of what it compares (codegen/analysis/tile_tests.h), which is in this
// share.
constexpr double kEdgeShare = 0.25;

// How often a contraction's operand is loaded again: once for each tile along the axes that it does not vary along.
double reloads(const Context& context, const Domain& domain, std::uint32_t depends) {
  double tiles = 1;
  for (int axis = std::max(0, domain.kept - 2); axis < domain.kept; ++axis)
    if ((depends >> axis & 1U) == 0)
      tiles *= std::max(1.0, context.extent(domain.extents[static_cast<std::size_t>(axis)]) / kTile);
  return tiles;
}

}  // namespace

double points_along(const Context& context, const Domain& domain, std::uint32_t axes) {
  double product = 1;
  for (int axis = 0; axis < domain.rank(); ++axis)
    if ((axes >> axis & 1U) != 0) product *= context.extent(domain.extents[static_cast<std::size_t>(axis)]);
  return product;
}

namespace {

// Instructions of one element's load: what does not run along the kernel's own innermost axis is no vector, and a
// condition is computed with each.
double slots_of_load(const CostModel& cost, const Cluster& cluster, const Layout& layout) {
  if (cluster.holds_contraction()) {
    const std::uint32_t row = axis_bits(cluster.domain, cluster.domain.kept - 2, cluster.domain.kept - 1);
    return (depends_of(layout) & row) != 0 ? kFragmentLoadSlots : kFragmentLoadSlots / kFragmentRows;
  }
  if (layout.empty()) return kLoadSlots;
  const int inner = layout.back().axis;
  if (inner == kGuarded) return cost.guarded_load_slots;
  const double load = inner == kMoved ? cost.moved_load_slots : kLoadSlots;
  return is_guarded(layout) ? load + kWholeGuardShare * cost.guarded_load_slots : load;
}

// What varies along queries and keys both is asked of each score.
bool asked_of_tiles(const Cluster& cluster, const Read& read, const Layout& layout) {
  if (cluster.kernel_class != KernelClass::attend || !read.of_mask) return false;
  const Domain& domain = cluster.domain;
  const std::uint32_t row = axis_bits(domain, domain.kept - 2, domain.kept - 1);
  const std::uint32_t key = axis_bits(domain, domain.kept, domain.kept + 1);
  return (depends_of(layout) & row) == 0 || (depends_of(layout) & key) == 0;
}

// Whether threads of a map have vectors, so that they load what neighbouring elements share once.
bool takes_vectors(const Context& context, const Cluster& cluster) {
  constexpr std::int64_t kVector = 4;
  if (cluster.kernel_class != KernelClass::map || cluster.domain.extents.empty()) return false;
  return static_cast<std::int64_t>(context.extent(cluster.domain.extents.back())) % kVector == 0;
}

// Instructions that bring operands into registers. Behind the first guarded load of a value others are its neighbours:
// 3 x 3 means of bf16 [64, 1024, 28, 28] behind padding take 50 instructions a point, of f32 29, and two steps of a
// stencil of five points 41, its edges included.
double load_slots(const Context& context, const Cluster& cluster) {
  constexpr std::ptrdiff_t kMostNeighbours = 32;
  const CostModel& cost = context.options.cost;
  const auto asks = [](const Layout& layout) { return !layout.empty() && layout.back().axis == kGuarded; };
  double slots = 0;
  for (const Read& read : cluster.reads) {
    const bool near = takes_vectors(context, cluster) &&
                      std::count_if(read.layouts.begin(), read.layouts.end(), asks) <= kMostNeighbours;
    bool first = true;
    for (const Layout& layout : read.layouts) {
      if (is_operand(cluster, layout)) continue;
      const bool is_neighbour = near && asks(layout) && !first;
      first = first && !asks(layout);
      slots += evaluations(context, cluster, layout) *
               (is_neighbour ? cost.neighbour_load_slots : slots_of_load(cost, cluster, layout)) *
               (asked_of_tiles(cluster, read, layout) ? kEdgeShare : 1);
    }
  }
  return slots;
}

// Reductions over the kept axes leave one number for each block and element of a row, which a second function combines.
double outer_us(const Context& context, const Cluster& cluster) {
  if (cluster.kernel_class != KernelClass::reduce) return 0;
  const CostModel& cost = context.options.cost;
  const Domain& domain = cluster.domain;
  double sums = 0;
  for (const Result& result : cluster.results)
    if (is_outer(domain, result.layout)) sums += context.count[static_cast<std::size_t>(result.value)];
  if (sums == 0) return 0;
  const double rows = std::min(std::max(1.0, context.points(domain, 0, domain.kept)), cost.outer_blocks);
  return cost.launch_us + bytes_us(2 * 4 * rows * sums, cost.l2_bandwidth_gb_s);
}

}  // namespace

double bytes_of(const Context& context, const Cluster& cluster, const Read& read) {
  const double whole = context.bytes[static_cast<std::size_t>(read.value)];
  const double element = static_cast<double>(size_of(context.graph.type(read.value).dtype));
  double touched = 0;
  for (const Layout& layout : read.layouts)
    touched += element * points_along(context, cluster.domain, depends_of(layout));
  return std::min(whole, touched);
}

bool is_operand(const Cluster& cluster, const Layout& layout) {
  if (!cluster.holds_contraction()) return false;
  const Domain& domain = cluster.domain;
  const std::uint32_t depends = depends_of(layout);
  const std::uint32_t kept = axis_bits(domain, 0, domain.kept);
  if (cluster.kernel_class == KernelClass::contract) return (depends & ~kept) != 0;
  const std::uint32_t keys = axis_bits(domain, domain.kept, domain.kept + 1);
  const std::uint32_t column = axis_bits(domain, domain.kept - 1, domain.kept);
  return (depends & ~(kept | keys)) != 0 || ((depends & keys) != 0 && (depends & column) != 0);
}

double evaluations(const Context& context, const Cluster& cluster, const Layout& layout) {
  const Domain& domain = cluster.domain;
  const std::uint32_t depends = depends_of(layout);
  const std::uint32_t kept = axis_bits(domain, 0, domain.kept);
  const std::uint32_t all = axis_bits(domain, 0, domain.rank());
  if (depends == 0) return std::min(points_along(context, domain, all), context.options.cost.threads);
  switch (cluster.kernel_class) {
    case KernelClass::map: return points_along(context, domain, all);
    case KernelClass::reduce: return points_along(context, domain, (depends & ~kept) != 0 ? all : kept);
    case KernelClass::contract:
    case KernelClass::attend: break;
  }
  const bool attend = cluster.kernel_class == KernelClass::attend;
  const std::uint32_t keys = attend ? axis_bits(domain, domain.kept, domain.kept + 1) : 0;
  const std::uint32_t column = attend ? axis_bits(domain, domain.kept - 1, domain.kept) : 0;
  if (is_operand(cluster, layout))
    return points_along(context, domain, depends) * reloads(context, domain, depends | column);
  if ((depends & keys) != 0) return points_along(context, domain, (kept & ~column) | keys);
  return points_along(context, domain, kept);
}

double slots_inside(const Context& context, const Cluster& producer, const Cluster& consumer) {
  const bool attend = consumer.kernel_class == KernelClass::attend;
  const double slots = producer.slots - (attend ? (1 - kEdgeShare) * producer.mask_slots : 0);
  return slots / std::max(1.0, context.points(producer.domain));
}

Estimate estimate_of(const Context& context, const Cluster& cluster, double bytes) {
  const CostModel& cost = context.options.cost;
  Estimate estimate;
  estimate.bytes = bytes;
  estimate.flops = cluster.flops;
  estimate.tensor_flops = cluster.tensor_flops;
  estimate.lane_flops = cluster.lane_flops;
  estimate.slots = cluster.slots + load_slots(context, cluster);
  estimate.memory_us =
      needs_rows_again(cluster) ? rows_us(context, cluster, bytes) : bytes_us(bytes, cost.bandwidth_gb_s);
  if (context.options.split_pieces) estimate.memory_us *= slowdown_of_pieces(context, cluster);
  estimate.compute_us = std::max(arithmetic_us(cost, estimate), feed_us(context, cluster));
  estimate.us = cost.launch_us + std::max(estimate.memory_us, estimate.compute_us) +
                cost.overlap * std::min(estimate.memory_us, estimate.compute_us) + outer_us(context, cluster);
  return estimate;
}

double time_of(const Context& context, const Cluster& cluster, double bytes) {
  return estimate_of(context, cluster, bytes).us;
}

}  // namespace tenon::ir::fusion

namespace tenon::ir {

void add_work(Estimate& sum, const Estimate& other) {
  sum.bytes += other.bytes;
  sum.slots += other.slots;
  sum.flops += other.flops;
  sum.tensor_flops += other.tensor_flops;
  sum.lane_flops += other.lane_flops;
}

double arithmetic_us(const CostModel& cost, const Estimate& estimate) {
  const double contraction_us =
      estimate.tensor_flops / (cost.tensor_tflops * 1e6) + estimate.lane_flops / (cost.lane_tflops * 1e6);
  return std::max(estimate.slots / (cost.gigaslots_s * 1e3), contraction_us);
}

Roofline roofline(const CostModel& cost, const Estimate& estimate) {
  return {bytes_us(estimate.bytes, cost.bandwidth_gb_s), arithmetic_us(cost, estimate)};
}

CostModel cpu_cost_model(int cores) {
  constexpr double kLanes = 8, kGigahertz = 3, kOperationsAClock = 2, kCoreGbS = 12, kSocketGbS = 200;
  const double count = std::max(1, cores);
  CostModel cost;
  cost.device = fmt::format("a CPU with {} core{}", cores, cores == 1 ? "" : "s");
  cost.launch_us = 5;
  cost.bandwidth_gb_s = std::min(count * kCoreGbS, kSocketGbS);
  cost.l2_bandwidth_gb_s = 2.5 * cost.bandwidth_gb_s;
  cost.l2_bytes = 16e6;
  cost.sector_bytes = 0;
  cost.gigaslots_s = count * kLanes * kGigahertz * kOperationsAClock;
  cost.neighbour_load_slots = cost.guarded_load_slots;
  cost.tensor_tflops = cost.lane_tflops = 2 * cost.gigaslots_s * 1e-3;
  cost.f32_tflops = 0;
  cost.tensor_cores.tf32 = false;  // f32 is never rounded
  cost.tile_tests = false;
  cost.fed_elements_ns = 0;
  cost.online = cost.moments = false;  // where elements are stored, or several threads share a row
  cost.attend_extent = 0;
  cost.threads = count * kLanes;
  cost.block_gb_s = kCoreGbS;
  cost.row_blocks = 1;
  cost.row_block_bytes = 512e3;
  cost.grid_row_bytes = 0;
  return cost;
}

}  // namespace tenon::ir

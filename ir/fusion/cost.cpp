// Predicted time of one kernel: t = L + max(M, C) + 0.05 min(M, C), M = bytes / bandwidth, C = compute.
#include <algorithm>

#include "ir/fusion/cluster.h"

namespace tenon::ir::fusion {
namespace {

constexpr double kThreads = 132 * 2048;    // resident at once: what a value that is the same everywhere costs
constexpr double kBlockBytesPerUs = 56e3;  // one SM: 32 bytes a clock at 1.755 GHz
constexpr double kClusterBlocks = 8;       // that can hold one row together
constexpr double kTile = 128;              // rows or columns of a result that share one load of an operand

constexpr double kLoadSlots = 1;          // a vectorised load, for each element
constexpr double kFragmentLoadSlots = 4;  // in the layout that tensor cores give a result

double megabytes_us(double bytes, double gigabytes_s) { return bytes / (gigabytes_s * 1e3); }

// How often a contraction's operand is loaded again: once for each tile along the axes that it does not vary along.
double reloads(const Context& context, const Domain& domain, std::uint32_t depends) {
  double tiles = 1;
  for (int axis = std::max(0, domain.kept - 2); axis < domain.kept; ++axis)
    if ((depends >> axis & 1U) == 0)
      tiles *= std::max(1.0, context.extent(domain.extents[static_cast<std::size_t>(axis)]) / kTile);
  return tiles;
}

double points_along(const Context& context, const Domain& domain, std::uint32_t axes) {
  double product = 1;
  for (int axis = 0; axis < domain.rank(); ++axis)
    if ((axes >> axis & 1U) != 0) product *= context.extent(domain.extents[static_cast<std::size_t>(axis)]);
  return product;
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
  if (depends == 0) return std::min(points_along(context, domain, all), kThreads);
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

double time_of(const Context& context, const Cluster& cluster, double bytes) {
  const CostModel& cost = context.options.cost;
  double bandwidth = cost.bandwidth_gb_s;
  if (cluster.persistent) {
    const double rows = std::max(1.0, context.points(cluster.domain, 0, cluster.domain.kept));
    bandwidth = std::min(bandwidth, rows * kClusterBlocks * kBlockBytesPerUs * 1e-3);
  }
  const double memory = megabytes_us(bytes, bandwidth);
  double slots = cluster.slots;
  for (const Read& read : cluster.reads)
    for (const Layout& layout : read.layouts)
      if (!is_operand(cluster, layout))
        slots +=
            evaluations(context, cluster, layout) * (cluster.holds_contraction() ? kFragmentLoadSlots : kLoadSlots);
  const double compute = std::max(slots / (cost.gigaslots_s * 1e3), cluster.flops / (cost.tensor_tflops * 1e6));
  return cost.launch_us + std::max(memory, compute) + 0.05 * std::min(memory, compute);
}

}  // namespace tenon::ir::fusion

// See across_rows.h.
#include "ir/fusion/across_rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/fusion/long_rows.h"
#include "ir/fusion/roofline.h"

namespace tenon::ir::fusion {
namespace {

constexpr double kSideBySide = 1024;  // elements of a row of which a block has several

// Elements that lie one behind the other in memory before the next one of the same row.
double across(const Context& context, const Domain& domain, const Layout& layout) {
  const std::uint32_t kept = axis_bits(domain, 0, domain.kept);
  const std::uint32_t depends = depends_of(layout);
  if ((depends & kept) == 0 || (depends & ~kept) == 0) return 1;
  double run = 1;
  for (auto digit = layout.rbegin(); digit != layout.rend() && (digit->depends & ~kept) == 0; ++digit)
    run *= context.extent(digit->extent);
  return run;
}

// Whether rows that follow one another are neighbours in the result too, so that a block has several of them.
bool follows_rows(const Context& context, const Domain& domain, const Layout& layout) {
  int axis = domain.kept - 1;
  while (axis > 0 && context.points(domain, axis, axis + 1) <= 1) --axis;
  return !layout.empty() && (layout.back().depends & axis_bits(domain, axis, axis + 1)) != 0;
}

// Bytes that the results which lie across the rows have, and those of the sectors that their stores touch.
struct Stores {
  double bytes = 0, sectors = 0;
};

Stores stores_across(const Context& context, const Cluster& cluster, const std::vector<Result>& results) {
  Stores stores;
  const Domain& domain = cluster.domain;
  if (cluster.kernel_class != KernelClass::reduce || lies_in_columns(context, cluster)) return stores;
  const bool short_rows = context.points(domain, domain.kept, domain.rank()) <= kSideBySide;
  for (const Result& result : results) {
    if (short_rows && follows_rows(context, domain, result.layout)) continue;
    const auto element = static_cast<double>(size_of(context.graph.type(result.value).dtype));
    const double run = across(context, domain, result.layout);
    if (run <= 1) continue;
    const double count = context.count[static_cast<std::size_t>(result.value)];
    stores.bytes += count * element;
    stores.sectors += count * std::clamp(run * element, element, std::max(element, context.options.cost.sector_bytes));
  }
  return stores;
}

}  // namespace

double across_us(const Context& context, const Cluster& cluster) {
  const Stores stores = stores_across(context, cluster, cluster.results);
  return bytes_us(stores.sectors - stores.bytes, context.options.cost.bandwidth_gb_s);
}

bool is_better_turned(const Context& context, const Cluster& cluster, const std::vector<Result>& results) {
  const CostModel& cost = context.options.cost;
  const Stores stores = stores_across(context, cluster, results);
  return cost.launch_us + bytes_us(2 * stores.bytes, cost.bandwidth_gb_s) <
         bytes_us(stores.sectors - stores.bytes, cost.bandwidth_gb_s);
}

Verdict check_across(const Context& context, const Cluster& a, const Cluster& b, const Cluster& merged) {
  if (!context.turned_apart || !is_better_turned(context, merged, merged.results) ||
      is_better_turned(context, a, a.results) || is_better_turned(context, b, b.results))
    return {};
  return no(
      Rule::turned_apart,
      fmt::format("{:.1f} MB would be stored across rows, each element a sector of {:.0f} bytes",
                  stores_across(context, merged, merged.results).bytes * 1e-6, context.options.cost.sector_bytes));
}

}  // namespace tenon::ir::fusion

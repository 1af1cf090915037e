// See long_rows.h.
#include "ir/fusion/long_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ir/fusion/partition.h"
#include "ir/fusion/roofline.h"

namespace tenon::ir::fusion {
namespace {

// Of what a block can draw, where one sweep waits for the one before: 35 to 41 GB/s on an H100, of rows of 4 M and of
// rows of 64 pieces.
constexpr double kRereadShare = 0.7;

// Rows that lie side by side are columns: a block takes a cache line of them. Registers hold columns up to these
// lengths, in pieces of 32 bytes (codegen/schedule/reduce_columns.cpp).
constexpr double kLine = 128, kPiece = 32;
constexpr double kVector = 16;                            // bytes
constexpr double kHeldColumn = 2048, kHeldNarrow = 1024;  // elements, of 4 bytes, and of less

std::vector<const Read*> row_reads(const Cluster& cluster) {
  const std::uint32_t reduced = axis_bits(cluster.domain, cluster.domain.kept, cluster.domain.rank());
  std::vector<const Read*> reads;
  for (const Read& read : cluster.reads)
    if (std::any_of(read.layouts.begin(), read.layouts.end(),
                    [&](const Layout& layout) { return (depends_of(layout) & reduced) != 0; }))
      reads.push_back(&read);
  return reads;
}

// Whether blocks of a grid can hold what each row has of its own: as vectors, of pieces that they divide or off rows in
// one piece (codegen/analysis/shared_rows.h).
bool lies_in_vectors(const Context& context, const Cluster& cluster) {
  const Domain& domain = cluster.domain;
  const std::uint32_t all = axis_bits(domain, 0, domain.rank());
  if (cluster.random) return false;  // to draw again takes longer than to read again
  for (const Read& read : cluster.reads)
    for (const Layout& layout : read.layouts) {
      if ((depends_of(layout) & all) != all) continue;
      int axis = domain.rank() - 1;
      double piece = 1;
      for (auto digit = layout.rbegin(); digit != layout.rend() && axis >= domain.kept; ++digit) {
        while (axis >= domain.kept && domain.extents[static_cast<std::size_t>(axis)].is(1)) --axis;
        if (*digit != domain.whole(axis)) break;
        piece *= context.extent(digit->extent);
        --axis;
      }
      const double size = static_cast<double>(size_of(context.graph.type(read.value).dtype));
      if (!is_plain(layout) || (axis >= domain.kept && std::fmod(piece * size, kVector) != 0)) return false;
    }
  return true;
}

// Of CostModel::grid_row_bytes, what the blocks of a grid hold of rows that have this many bytes an element in all, and
// in the widest of their operands: whole vectors of each, fewer where several take the room, or elements are wide.
double share_of_grid(double bytes, double widest) {
  constexpr double kFew = 12;  // bytes
  return bytes > kFew ? 0.58 : bytes > 4 || widest > 4 ? 0.8 : 1;
}

// How a kernel reads the rows that it needs again.
struct Reading {
  double rows = 1, again = 0;  // bytes of all rows
  bool held = true;
  double reach = 0;   // GB/s of all blocks
  double shared = 0;  // bytes that all rows share, and that every turn of a grid's teams reads
  double waits = 0;   // for each other, of blocks of a grid that hold the rows; in units of CostModel::meeting_us
};

Reading reading_of(const Context& context, const Cluster& cluster) {
  const CostModel& cost = context.options.cost;
  Reading reading;
  reading.rows = std::max(1.0, context.points(cluster.domain, 0, cluster.domain.kept));
  double element = 1, elements = 0;  // bytes of the widest, and of all
  for (const Read* read : row_reads(cluster)) {
    reading.again += bytes_of(context, cluster, *read);
    const auto size = static_cast<double>(size_of(context.graph.type(read->value).dtype));
    element = std::max(element, size);
    elements += size;
  }
  if (lies_in_columns(context, cluster)) {
    const double length = context.points(cluster.domain, cluster.domain.kept, cluster.domain.rank());
    reading.held = length <= (element < 4 ? kHeldNarrow : kHeldColumn);
    const double blocks = std::max(1.0, reading.rows * element / (reading.held ? kPiece : kLine));
    reading.reach = blocks * (reading.held ? 1 : kRereadShare) * cost.block_gb_s;
    return reading;
  }
  const double blocks =  // that have a row together
      std::exp2(std::ceil(std::log2(std::max(1.0, reading.again / reading.rows / cost.row_block_bytes))));
  reading.held = blocks <= cost.row_blocks;
  reading.reach = reading.rows * (reading.held ? blocks : kRereadShare) * cost.block_gb_s;
  const double at_once =
      std::floor(cost.grid_row_bytes * share_of_grid(elements, element) * reading.rows / reading.again);
  if (reading.held || at_once < 1 || !lies_in_vectors(context, cluster)) return reading;
  reading.held = true;
  // One team of blocks loads, waits and stores in turns; several do so beside each other, but at the beginning and the
  // end.
  const double turns = std::ceil(reading.rows / at_once);
  reading.waits = at_once < 2 ? 4 * turns : 3 + turns;
  const std::uint32_t kept = axis_bits(cluster.domain, 0, cluster.domain.kept);
  for (const Read* read : row_reads(cluster))
    if (std::all_of(read->layouts.begin(), read->layouts.end(),
                    [&](const Layout& layout) { return (depends_of(layout) & kept) == 0; }))
      reading.shared += bytes_of(context, cluster, *read);
  if (reading.shared <= cost.l2_bytes) reading.shared = 0;  // the L2 has it
  reading.shared *= turns - 1;
  reading.reach = cost.bandwidth_gb_s;
  return reading;
}

int sweeps_again(const Cluster& cluster) { return std::max(1, sweeps_of(cluster) - 1); }

}  // namespace

bool lies_in_columns(const Context& context, const Cluster& cluster) {
  const Domain& domain = cluster.domain;
  const std::uint32_t kept = axis_bits(domain, 0, domain.kept);
  double across = 0, along = 0;  // bytes
  for (const Read& read : cluster.reads)
    for (const Layout& layout : read.layouts) {
      if ((depends_of(layout) & kept) == 0 || (depends_of(layout) & ~kept) == 0) continue;
      const double bytes = static_cast<double>(size_of(context.graph.type(read.value).dtype)) *
                           points_along(context, domain, depends_of(layout));
      if (layout.back().axis == domain.kept - 1) across += bytes;
      if (layout.back().axis >= domain.kept) along += bytes;
    }
  return cluster.kernel_class == KernelClass::reduce && across > along;
}

double rows_us(const Context& context, const Cluster& cluster, double bytes) {
  const CostModel& cost = context.options.cost;
  const Reading reading = reading_of(context, cluster);
  const double us = bytes_us(bytes, std::min(cost.bandwidth_gb_s, reading.reach));
  if (reading.held) return us + reading.waits * cost.meeting_us + bytes_us(reading.shared, cost.bandwidth_gb_s);
  const double from = reading.again <= cost.l2_bytes ? cost.l2_bandwidth_gb_s : cost.bandwidth_gb_s;
  return us + bytes_us(reading.again * sweeps_again(cluster), std::min(from, reading.reach));
}

bool are_better_apart(const Context& context, const Cluster& cluster) {
  if (cluster.kernel_class != KernelClass::reduce || cluster.persistent || sweeps_of(cluster) < 2) return false;
  const Reading reading = reading_of(context, cluster);
  if (reading.held && reading.waits == 0) return false;
  const CostModel& cost = context.options.cost;
  const double bytes = bytes_of(context, cluster);
  const double apart = bytes_us(bytes + reading.again * sweeps_again(cluster), cost.bandwidth_gb_s) +
                       cost.launch_us * sweeps_again(cluster);
  return apart < rows_us(context, cluster, bytes);
}

Verdict check_rows(const Context& context, const Cluster& a, const Cluster& b, const Cluster& merged) {
  if (!context.rows_apart || !are_better_apart(context, merged) || are_better_apart(context, a) ||
      are_better_apart(context, b))
    return {};
  const Reading reading = reading_of(context, merged);
  return no(Rule::rows_apart,
            fmt::format("{:.0f} rows of {:.0f} KB are more than blocks hold, and one block would read each {} times",
                        reading.rows, reading.again / reading.rows * 1e-3, sweeps_of(merged)));
}

}  // namespace tenon::ir::fusion

// See gathered_rows.h.
#include "codegen/analysis/gathered_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "codegen/analysis/vectorize.h"
#include "codegen/kernel/uses.h"

namespace tenon::codegen {
namespace {

constexpr std::int64_t kVectorBytes = 16;
constexpr std::int64_t kMostBytes = 1 << 20;  // of a row: more than any shared memory
constexpr int kLeastLanes = 8;

int inner_axis(const Kernel& kernel) { return static_cast<int>(kernel.axes.size()) - 1; }

bool moves(const Kernel& kernel, const Index& index, int axis) {
  const std::vector<int> values = index.values();
  return index.depends_on(axis) ||
         std::any_of(values.begin(), values.end(), [&](int id) { return varies(kernel, id, axis); });
}

// The part of an offset that varies along the innermost axis.
Index position_of(const Kernel& kernel, const Index& offset) {
  std::vector<IndexTerm> terms;
  for (const IndexTerm& term : offset.terms())
    if (moves(kernel, Index::sum(0, {term}), inner_axis(kernel))) terms.push_back(term);
  return Index::sum(0, std::move(terms));
}

// The rows of one load.
std::optional<GatheredRows> rows_of(const Kernel& kernel, InstrId id) {
  const Instr& instr = kernel.instr(id);
  if (instr.kind != InstrKind::load || !instr.access.guards.empty()) return std::nullopt;
  const Index position = position_of(kernel, instr.access.offset), begin = instr.access.offset - position;
  if (position.values().empty() || !begin.values().empty()) return std::nullopt;
  const SymbolBounds range = bounds(position, kernel.context());
  const std::int64_t length = range.max + 1;
  if (range.min != 0 || length * element_bytes(kernel, instr.access) > kMostBytes) return std::nullopt;
  const auto step = begin.coefficient(inner_axis(kernel) - 1);
  if (!step || !step->is(length)) return std::nullopt;
  return GatheredRows{instr.access.operand, begin, length, {id}};
}

}  // namespace

std::vector<GatheredRows> gathered_rows(const Kernel& kernel) {
  std::vector<GatheredRows> all;
  if (kernel.kernel_class != ir::KernelClass::map || kernel.axes.size() < 2) return all;
  for (InstrId id = 0; id < static_cast<InstrId>(kernel.body.size()); ++id) {
    const auto rows = rows_of(kernel, id);
    if (!rows) continue;
    const auto same = std::find_if(all.begin(), all.end(), [&](const GatheredRows& other) {
      return other.operand == rows->operand && other.length == rows->length && other.begin == rows->begin;
    });
    if (same != all.end())
      same->loads.push_back(id);
    else
      all.push_back(*rows);
  }
  return all;
}

GatheringBlock gathering_block(const Kernel& kernel, const MapSchedule& schedule) {
  const std::int64_t extent = kernel.axes.back().extent.bounds(kernel.symbols).max;
  const std::int64_t vectors = (extent + schedule.vector - 1) / schedule.vector;
  GatheringBlock block;
  block.lanes = schedule.threads;
  while (block.lanes > kLeastLanes && block.lanes / 2 >= vectors) block.lanes /= 2;
  block.teams = schedule.threads / block.lanes;
  block.rows = block.teams * schedule.strip;
  block.points = block.lanes * schedule.vector * schedule.unroll;
  return block;
}

std::int64_t gathered_bytes(const Kernel& kernel, const GatheredRows& rows, int of_block) {
  const std::int64_t bytes =
      rows.length * of_block * size_of(kernel.operands[static_cast<std::size_t>(rows.operand)].dtype);
  return (bytes + 2 * kVectorBytes - 1) / kVectorBytes * kVectorBytes;
}

std::int64_t gathered_bytes(const Kernel& kernel, const MapSchedule& schedule) {
  std::int64_t bytes = 0;
  for (const GatheredRows& rows : gathered_rows(kernel))
    bytes += gathered_bytes(kernel, rows, gathering_block(kernel, schedule).rows);
  return bytes;
}

Kernel with_gathered_rows(const Kernel& kernel, const std::vector<GatheredRows>& all) {
  Kernel staged = kernel;
  for (std::size_t i = 0; i < all.size(); ++i) {
    Operand row = kernel.operands[static_cast<std::size_t>(all[i].operand)];
    row.name = fmt::format("row{}", i);
    for (const InstrId id : all[i].loads) {
      Access& access = staged.body[static_cast<std::size_t>(id)].access;
      access = {static_cast<int>(staged.operands.size()), position_of(kernel, access.offset), {}};
    }
    staged.operands.push_back(std::move(row));
  }
  return staged;
}

std::vector<InstrId> shared_positions(const Kernel& kernel, const std::vector<GatheredRows>& all) {
  std::vector<InstrId> positions;
  for (const GatheredRows& rows : all)
    for (const InstrId load : rows.loads)
      for (const InstrId id : position_of(kernel, kernel.instr(load).access.offset).values())
        if (!varies(kernel, id, inner_axis(kernel) - 1) && varies(kernel, id, inner_axis(kernel)) &&
            !contains(positions, id))
          positions.push_back(id);
  return positions;
}

}  // namespace tenon::codegen

// See team.h.
#include "codegen/emit/cuda/reduce/team.h"

#include <fmt/format.h>

#include "codegen/analysis/row_shape.h"
#include "codegen/emit/cuda/points.h"
#include "codegen/emit/cuda/text/definitions.h"
#include "codegen/emit/cuda/text/expression.h"
#include "codegen/emit/cuda/text/spell.h"

namespace tenon::codegen::cuda {
namespace {

constexpr int kPartialBytes = 16;  // at most, of an accumulator

std::string partials(const Rows& rows, std::size_t slot, const std::string& type) {
  return scratch_parts(rows, rows.count, parts_of(rows.schedule), slot, type);
}

constexpr int kFinishingThreads = 256;  // of a block

Team finishing_team(const Rows& rows) {
  ReduceSchedule schedule;
  schedule.team.mapping = finish_of(rows.schedule);
  schedule.team.threads = kFinishingThreads;
  return team_of(schedule);
}

}  // namespace

Team team_of(const ReduceSchedule& s) {
  switch (s.team.mapping) {
    case RowMapping::thread: return {s.team.threads, 1, 1, "threadIdx.x", "0", ""};
    case RowMapping::warp:
      return {s.team.threads / s.team.lanes,
              s.team.lanes,
              1,
              fmt::format("threadIdx.x / {}", s.team.lanes),
              fmt::format("threadIdx.x % {}", s.team.lanes),
              fmt::format("reduce_lanes<{}>", s.team.lanes)};
    case RowMapping::block:
      if (s.team.cluster == 1)
        return {1, s.team.threads, 1, "0", "threadIdx.x", fmt::format("reduce_block<{}>", s.team.threads)};
      return {1,
              s.team.threads * s.team.cluster,
              1,
              "0",
              fmt::format("blockIdx.x % {} * {} + threadIdx.x", s.team.cluster, s.team.threads),
              fmt::format("reduce_cluster<{}, {}>", s.team.cluster, s.team.threads)};
    case RowMapping::column:
      return {s.team.columns * s.vector,
              s.team.threads / s.team.columns,
              s.vector,
              fmt::format("threadIdx.x % {}", s.team.columns),
              fmt::format("threadIdx.x / {}", s.team.columns),
              s.team.threads == s.team.columns ? ""
                                               : fmt::format("reduce_columns<{}, {}>", s.team.columns, s.team.threads)};
  }
  return {};
}

Rows::Rows(const Kernel& the_kernel)
    : kernel(the_kernel),
      schedule(std::get<ReduceSchedule>(kernel.schedule)),
      rounds(rounds_of(kernel, is_online(schedule))),
      names(names_of(kernel)) {
  while (kept < kernel.axes.size() && !kernel.axes[kept].reduced) ++kept;
  count = extent_of(kernel, 0, kept);
  length = extent_of(kernel, kept, kernel.axes.size());
}

std::string Rows::element() const { return kernel.axes.size() - kept == 1 ? kernel.axes[kept].name : "e"; }

bool whole_blocks(const Rows& rows, const Team& team) {
  return team.rows == 1 || (rows.count.is_constant() && rows.count.constant() % team.rows == 0);
}

void emit_row(Writer& out, const Rows& rows, const Team& team, int splits, int cluster) {
  const Kernel& kernel = rows.kernel;
  const std::string type = unsigned_index_type(kernel);
  const std::string count = dim_text(rows.count, rows.names);
  std::string row = kernel.wide_index ? "(u64)blockIdx.x" : "blockIdx.x";
  if (splits > 1) {
    out.line(fmt::format("const {} part = blockIdx.x % {};", index_type(kernel), splits));
    row += fmt::format(" / {}", splits);
  }
  if (cluster > 1) row += fmt::format(" / {}", cluster);
  if (team.rows > 1)
    row = team.each == 1 ? fmt::format("{} * {} + {}", row, team.rows, team.row)
                         : fmt::format("({} * {} + {}) * {}", row, team.rows / team.each, team.row, team.each);
  if (whole_blocks(rows, team)) {
    if (rows.kept > 0) out.line(fmt::format("const {} row = {};", type, row));
  } else if (team.size == 1) {
    out.line(fmt::format("const {} row = {};", type, row));
    out.line(fmt::format("if (row >= {}) return;", count));
  } else {
    out.line(fmt::format("const {} own_row = {};", type, row));
    out.line(fmt::format("const bool inside = own_row < {};", count));
    out.line(fmt::format("const {} row = inside ? own_row : {} - {};", type, count, team.each));
  }
  decode_axes(out, kernel, 0, rows.kept, "row");
  if (team.size > 1) out.line(fmt::format("const {} member = {};", index_type(kernel), team.member));
}

void emit_part(Writer& out, const Rows& rows, std::int64_t step, const std::string& first, const std::string& last) {
  const std::string type = index_type(rows.kernel);
  const Dim part = blocks_of(rows.length, parts_of(rows.schedule) * step) * Dim(step);
  const std::string size = parenthesized(dim_text(part, rows.names));
  out.line(fmt::format("const {} begin = {}part * {};", type, first.empty() ? "" : first + " + ", size));
  out.line(fmt::format("const {0} end = min(begin + {1}, ({0}){2});", type, size, parenthesized(last)));
}

std::string element_condition(const Rows& rows, const Team& team) {
  return team.size == 1 || whole_blocks(rows, team) ? "" : "inside";
}

std::string row_condition(const Rows& rows, const Team& team) {
  if (team.size == 1) return "";
  return whole_blocks(rows, team) ? "member == 0" : "member == 0 && inside";
}

std::string collected(const Rows& rows, const Team& team, InstrId id) {
  if (team.collect.empty()) return fmt::format("a{}", id);
  return fmt::format("{}(a{}, {})", team.collect, id, combination(rows.kernel, id).function);
}

void define(Writer& out, const Rows& rows, const std::vector<InstrId>& instrs) {
  define(out, rows.kernel, instrs, rows.names);
}

void emit_result(Writer& out, const Rows& rows, InstrId id, const std::string& accumulated) {
  const Instr& instr = rows.kernel.instr(id);
  const bool is_arg = combination(rows.kernel, id).is_arg;
  out.line(fmt::format("const {} v{} = {}{};", value_type(instr.dtype), id, accumulated, is_arg ? ".index" : ""),
           comment(instr));
}

void emit_row_stores(Writer& out, const Rows& rows, const Team& team) {
  const Kernel& kernel = rows.kernel;
  if (rows.rounds.row_stores.empty()) return;
  const std::string condition = row_condition(rows, team);
  const bool several = rows.rounds.row_stores.size() > 1;
  const std::string of_all = several ? condition : "", of_each = several ? "" : condition;
  out.open_if(of_all);
  for (int index : rows.rounds.row_stores)
    out.line(conditional_store(kernel, store_at(kernel, index), rows.names, of_each));
  out.close_if(of_all);
}

Dim scratch_bytes(const Dim& count, int parts, std::size_t reductions) {
  return count * Dim(static_cast<std::int64_t>(kPartialBytes * reductions) * parts);
}

std::string scratch_parts(const Rows& rows, const Dim& count, int parts, std::size_t slot, const std::string& type) {
  if (slot == 0) return fmt::format("({}*)scratch", type);
  return fmt::format("({}*)(scratch + {})", type, dim_text(scratch_bytes(count, parts, slot), rows.names));
}

std::string partial_statement(const Rows& rows, std::size_t slot, const std::string& row, const std::string& value) {
  const std::string type = combination(rows.kernel, rows.rounds.sweeps[0].reduces[slot]).type;
  const std::string at =
      rows.kept == 0 ? "part" : fmt::format("part * {} + {}", parenthesized(dim_text(rows.count, rows.names)), row);
  return fmt::format("({})[{}] = {};", partials(rows, slot, type), at, value);
}

Finisher finisher(const Rows& rows, const Target& target) {
  Finisher result;
  const Team team = finishing_team(rows);
  const Sweep& sweep = rows.rounds.sweeps[0];
  result.block = kFinishingThreads;
  result.grid = blocks_of(rows.count, team.rows);
  result.scratch_bytes = scratch_bytes(rows.count, parts_of(rows.schedule), sweep.reduces.size());
  Writer& out = result.body;
  join_stream(out, target);
  emit_row(out, rows, team, 1);
  define(out, rows, sweep.before);
  const std::string count = dim_text(rows.count, rows.names);
  for (std::size_t slot = 0; slot < sweep.reduces.size(); ++slot) {
    const InstrId id = sweep.reduces[slot];
    const Combination how = combination(rows.kernel, id);
    out.line(fmt::format("{} a{} = combine_parts<{}, {}>({}{}, {}, {}, {}, {});", how.type, id, parts_of(rows.schedule),
                         team.size, partials(rows, slot, how.type), rows.kept == 0 ? "" : " + row", count,
                         team.size == 1 ? "0" : "member", how.typed_identity(), how.function));
    emit_result(out, rows, id, collected(rows, team, id));
  }
  define(out, rows, rows.rounds.after);
  emit_row_stores(out, rows, team);
  return result;
}

}  // namespace tenon::codegen::cuda

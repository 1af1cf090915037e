// See team.h.
#include "codegen/emit/cuda/reduce/team.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/analysis/row_shape.h"
#include "codegen/analysis/vectorize.h"
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

// Of what a team of blocks meets by: a line of the L2, and two places for each block's part (row_meeting).
std::int64_t state_bytes(const ReduceSchedule& schedule) {
  constexpr std::int64_t kLine = 128, kPart = 2 * kPartialBytes;  // a word lies beside the meeting's number
  return kLine + 2 * kPart * schedule.team.grid;
}

Team finishing_team(const Rows& rows) {
  ReduceSchedule schedule;
  schedule.team.mapping = finish_of(rows.schedule);
  schedule.team.threads = kFinishingThreads;
  return team_of(schedule);
}

Team team_by_mapping(const ReduceSchedule& s) {
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
      if (s.team.grid > 1)
        return {1,
                s.team.threads * s.team.grid,
                1,
                "0",
                fmt::format("blockIdx.x % {} * {} + threadIdx.x", s.team.grid, s.team.threads),
                "meeting.reduce"};
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

}  // namespace

Team team_of(const ReduceSchedule& schedule) {
  Team team = team_by_mapping(schedule);
  team.stays = team.size > 1 || schedule.staged || persistent_blocks(schedule) != nullptr;
  return team;
}

Rows::Rows(const Kernel& the_kernel)
    : kernel(the_kernel),
      schedule(std::get<ReduceSchedule>(kernel.schedule)),
      rounds(rounds_of(kernel, shared_of(schedule))),
      names(names_of(kernel)) {
  while (kept < kernel.axes.size() && !kernel.axes[kept].reduced) ++kept;
  count = extent_of(kernel, 0, kept);
  length = extent_of(kernel, kept, kernel.axes.size());
}

std::string Rows::element() const { return kernel.axes.size() - kept == 1 ? kernel.axes[kept].name : "e"; }

bool whole_blocks(const Rows& rows, const Team& team) {
  if (persistent_blocks(rows.schedule) != nullptr) {
    const int together = std::max(1, 32 / team.size);
    return power_of_two_divisor(rows.count, together, rows.kernel.symbols) == together;
  }
  return team.rows == 1 || (rows.count.is_constant() && rows.count.constant() % team.rows == 0);
}

namespace {

std::int64_t most_teams(const Rows& rows, const Target& target) {
  const ReduceSchedule& schedule = rows.schedule;
  return std::max(1, schedule.occupancy.least * target.multiprocessors / schedule.team.grid);
}

}  // namespace

void declare_member(Writer& out, const Rows& rows, const Team& team) {
  out.line(fmt::format("const {} member = {};", index_type(rows.kernel), team.member));
  if (rows.schedule.team.mapping == RowMapping::column && holds_rows(rows.schedule) && team.size > 1)
    out.line(fmt::format("__builtin_assume(member >= 0 && member < {});", team.size));
}

Dim teams_of_grid(const Rows& rows, const Target& target) {
  return rows.count.is_constant() ? Dim(std::min(rows.count.constant(), most_teams(rows, target))) : rows.count;
}

std::int64_t meeting_bytes(const Rows& rows, const Target& target) {
  const std::int64_t most = most_teams(rows, target);
  return (rows.count.is_constant() ? std::min(rows.count.constant(), most) : most) * state_bytes(rows.schedule);
}

void open_rows_of_grid(Writer& out, const Rows& rows, const Team& team, const Target& target) {
  const int grid = rows.schedule.team.grid;
  // There may be more rows than teams that have memory to meet by, and a device may run more blocks than were asked
  // for.
  const std::string teams = rows.count.is_constant()
                                ? fmt::format("gridDim.x / {}", grid)
                                : fmt::format("min(gridDim.x / {}, {}u)", grid, most_teams(rows, target));
  out.line(fmt::format("const u32 team = blockIdx.x / {}, teams = {}, half = (teams + 1) / 2;", grid, teams));
  if (!rows.count.is_constant()) out.line("if (team >= teams) return;");
  const auto state = [&](const char* number) {
    return fmt::format("(meeting_state*)(zeroed + {} * {})", number, state_bytes(rows.schedule));
  };
  out.line(fmt::format("row_meeting<{}, {}> meeting{{{}, team + half < teams ? {} : nullptr}};", grid,
                       rows.schedule.team.threads, state("team"), state("(team + half)")));
  out.line("meeting.begin(team >= half);");
  out.open(fmt::format("for ({0} row = team; row < {1}; row += teams) {{", unsigned_index_type(rows.kernel),
                       dim_text(rows.count, rows.names)));
  decode_axes(out, rows.kernel, 0, rows.kept, "row");
  declare_member(out, rows, team);
}

void close_rows_of_grid(Writer& out) {
  out.close();
  out.line("meeting.leave();");
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
  } else if (!team.stays) {
    out.line(fmt::format("const {} row = {};", type, row));
    out.line(fmt::format("if (row >= {}) return;", count));
  } else {
    out.line(fmt::format("const {} own_row = {};", type, row));
    out.line(fmt::format("const bool inside = own_row < {};", count));
    out.line(fmt::format("const {} row = inside ? own_row : {} - {};", type, count, team.each));
  }
  decode_axes(out, kernel, 0, rows.kept, "row");
  if (team.size > 1) declare_member(out, rows, team);
}

// H200: sums of f32, 512 MB 135 us by stretches and 132 in turn, [524288, 64] down its columns 44.7 and 41.6, of bf16
// by 264 blocks 97.6 and 91.2. Moments go over each tile twice, and took up to a tenth longer.
bool parts_take_turns(const Rows& rows) { return parts_of(rows.schedule) > 1 && !rows.rounds.sweeps[0].moments; }

void emit_part(Writer& out, const Rows& rows, std::int64_t step, const std::string& first, const std::string& last) {
  const std::string type = index_type(rows.kernel);
  if (parts_take_turns(rows)) {
    out.line(fmt::format("const {} begin = {}part * {};", type, first.empty() ? "" : first + " + ", step));
    out.line(fmt::format("const {} end = {};", type, last));
    return;
  }
  const Dim part = blocks_of(rows.length, parts_of(rows.schedule) * step) * Dim(step);
  const std::string size = parenthesized(dim_text(part, rows.names));
  out.line(fmt::format("const {} begin = {}part * {};", type, first.empty() ? "" : first + " + ", size));
  out.line(fmt::format("const {0} end = min(begin + {1}, ({0}){2});", type, size, parenthesized(last)));
}

std::string element_condition(const Rows& rows, const Team& team) {
  return !team.stays || whole_blocks(rows, team) ? "" : "inside";
}

std::string row_condition(const Rows& rows, const Team& team) {
  if (team.size == 1) return element_condition(rows, team);
  return whole_blocks(rows, team) ? "member == 0" : "member == 0 && inside";
}

std::string collected(const Rows& rows, const Team& team, InstrId id) {
  if (team.collect.empty()) return fmt::format("a{}", id);
  return fmt::format("{}(a{}, {})", team.collect, id, combination(rows.kernel, id).function);
}

std::string collected_double(const Team& team, const std::string& value) {
  if (team.collect.empty()) return value;
  return fmt::format("{}({}, {})", team.collect, value, kAddDoubles);
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

void emit_moments(Writer& out, const Rows& rows, const Moments& moments, const std::string& name) {
  const auto line = [&](InstrId id, const std::string& value) {
    out.line(fmt::format("const float v{} = {};", id, value), comment(rows.kernel.instr(id)));
  };
  line(moments.sum, fmt::format("(float){}{}", name, moments.sum));
  line(moments.squares, fmt::format("squares_around_mean({0}{1}, {0}{2}, {3})", name, moments.squares, moments.sum,
                                    dim_text(rows.length, rows.names)));
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

std::size_t slot_of_online(const Sweep& sweep) { return sweep.reduces.size(); }

std::string origin_of_shift(const Online& online, const std::string& maximum) {
  return online.guarded ? maximum : fmt::format("shift_of({})", maximum);
}

std::string online_sum(const Online& online, const std::string& sum, const std::string& maximum) {
  if (online.guarded) return sum;
  return fmt::format("around_maximum({}, {})", sum, maximum.empty() ? fmt::format("v{}", online.maximum) : maximum);
}

std::size_t slot_of_sum(const Sweep& sweep) {
  return static_cast<std::size_t>(std::find(sweep.reduces.begin(), sweep.reduces.end(), sweep.moments->sum) -
                                  sweep.reduces.begin());
}

std::size_t slot_of_squares(const Sweep& sweep) { return sweep.reduces.size() + (sweep.online ? 1 : 0); }

std::size_t slots_of(const Sweep& sweep) {
  return sweep.reduces.size() + (sweep.online ? 1 : 0) + (sweep.moments ? 1 : 0);
}

std::string partial_statement(const Rows& rows, std::size_t slot, const std::string& row, const std::string& type,
                              const std::string& value) {
  const std::string at =
      rows.kept == 0 ? "part" : fmt::format("part * {} + {}", parenthesized(dim_text(rows.count, rows.names)), row);
  return fmt::format("({})[{}] = {};", partials(rows, slot, type), at, value);
}

namespace {

// The writing of a second function.
struct Finishing {
  Writer& out;
  const Rows& rows;
  const Team& team;

  std::string first() const { return team.size == 1 ? "0" : "member"; }
  std::string count() const { return dim_text(rows.count, rows.names); }
  std::string parts(std::size_t slot, const std::string& type) const {
    return fmt::format("{}{}", partials(rows, slot, type), rows.kept == 0 ? "" : " + row");
  }

  void combine(const std::string& type, const std::string& name, std::size_t slot, const std::string& identity,
               const std::string& function) const {
    out.line(fmt::format("{} {} = combine_parts<{}, {}>({}, {}, {}, {}, {});", type, name, parts_of(rows.schedule),
                         team.size, parts(slot, type), count(), first(), identity, function));
  }

  // Each part's sum has the shift of the part's own maximum.
  void online(const Sweep& sweep) const {
    const Online& online = *sweep.online;
    const std::string type = value_type(rows.kernel.instr(online.sum).dtype);
    const std::string maximum = value_type(rows.kernel.instr(online.maximum).dtype);
    const auto slot = static_cast<std::size_t>(std::find(sweep.reduces.begin(), sweep.reduces.end(), online.maximum) -
                                               sweep.reduces.begin());
    define(out, rows, online.shift_instrs);
    out.line(fmt::format("const {} shift{} = v{};", type, online.sum, online.shift));
    out.line(fmt::format("{} a{} = 0;", type, online.sum));
    out.open(fmt::format("for (int part = {}; part < {}; part += {}) {{", first(), parts_of(rows.schedule), team.size));
    out.line(fmt::format("const {} v{} = ({})[part * (i64){}];", maximum, online.maximum, parts(slot, maximum),
                         parenthesized(count())));
    define(out, rows, online.shift_instrs);
    out.line(fmt::format("a{0} += rescaled(({1})[part * (i64){2}], v{3}, shift{0});", online.sum,
                         parts(slot_of_online(sweep), type), parenthesized(count()), online.shift));
    out.close();
    emit_result(out, rows, online.sum, online_sum(online, collected(rows, team, online.sum)));
  }

  void moments(const Sweep& sweep) const {
    const Moments& moments = *sweep.moments;
    const auto sum = [&](InstrId id, std::size_t slot) {
      combine("double", fmt::format("t{}", id), slot, "0.0", kAddDoubles);
      out.line(fmt::format("const double p{} = {};", id, collected_double(team, fmt::format("t{}", id))));
    };
    sum(moments.sum, slot_of_sum(sweep));
    sum(moments.squares, slot_of_squares(sweep));
    emit_moments(out, rows, moments, "p");
  }
};

}  // namespace

Finisher finisher(const Rows& rows, const Target& target) {
  Finisher result;
  const Team team = finishing_team(rows);
  const Sweep& sweep = rows.rounds.sweeps[0];
  result.block = kFinishingThreads;
  result.grid = blocks_of(rows.count, team.rows);
  result.scratch_bytes = scratch_bytes(rows.count, parts_of(rows.schedule), slots_of(sweep));
  Writer& out = result.body;
  const Finishing finishing{out, rows, team};
  join_stream(out, target);
  emit_row(out, rows, team, 1);
  define(out, rows, sweep.before);
  for (std::size_t slot = 0; slot < sweep.reduces.size(); ++slot) {
    const InstrId id = sweep.reduces[slot];
    if (sweep.moments && sweep.moments->sum == id) continue;
    const Combination how = combination(rows.kernel, id);
    finishing.combine(how.type, fmt::format("a{}", id), slot, how.typed_identity(), how.function);
    emit_result(out, rows, id, collected(rows, team, id));
  }
  if (sweep.online) finishing.online(sweep);
  if (sweep.moments) finishing.moments(sweep);
  define(out, rows, rows.rounds.after);
  emit_row_stores(out, rows, team);
  return result;
}

}  // namespace tenon::codegen::cuda

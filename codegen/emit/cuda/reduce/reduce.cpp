// Reduce kernels: a team of threads walks each row once a round. The schedule says who the team is; everything else
// (which sweeps there are, what each evaluates) follows from the body. With outer reductions (outer.h) a block walks
// over many rows. Rows that lie side by side: columns.cpp.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/analysis/read_once.h"
#include "codegen/analysis/rows_ring.h"
#include "codegen/analysis/shared_rows.h"
#include "codegen/analysis/vectorize.h"
#include "codegen/emit/cuda/reduce/columns.h"
#include "codegen/emit/cuda/reduce/emitter.h"
#include "codegen/emit/cuda/reduce/long_sums.h"
#include "codegen/emit/cuda/reduce/outer.h"
#include "codegen/emit/cuda/text/expression.h"
#include "codegen/emit/cuda/text/spell.h"
#include "ir/graph/check.h"

namespace tenon::codegen::cuda {

ReduceEmitter::ReduceEmitter(const Kernel& kernel, const Kernel& whole, const Target& target)
    : kernel_(kernel),
      whole_(whole),
      target_(target),
      rows_(kernel),
      schedule_(rows_.schedule),
      team_(team_of(schedule_)) {
  lanes_ = {.axis = static_cast<int>(kernel.axes.size()) - 1, .vector = schedule_.vector, .peeled = peeled_};
  cache_ = {.streaming_stores = schedule_.cache.streaming, .streamed = streamed_loads(kernel, schedule_)};
  if (schedule_.cache.keep_reads) cache_.kept = loads_read_once(kernel);
  if (schedule_.staged) {
    const auto is_near = [&](InstrId id) { return is_staged(whole, whole.instr(id).access); };
    runs_ = staged_runs(whole);
    cache_.streaming_stores = false;
    std::erase_if(cache_.streamed, is_near);
    std::erase_if(cache_.kept, is_near);
  }
  if (!holds_rows(schedule_)) return;
  held_ = shared_elements(schedule_) > 0 ? held_loads(kernel, rows_.rounds) : held_values(kernel, rows_.rounds);
  rows_.rounds = with_held(kernel, rows_.rounds, held_);
  if (shared_elements(schedule_) > 0) shared_ = shared_loads(kernel, schedule_);
}

Source ReduceEmitter::emit() {
  join_stream(out_, target_);
  if (persistent_ != nullptr) return emit_persistent();
  const bool split = parts_of(schedule_) > 1;
  const int grid = schedule_.team.grid;
  if (grid > 1)
    open_rows_of_grid(out_, rows_, team_, target_);
  else
    emit_row(out_, rows_, team_, parts_of(schedule_), schedule_.team.cluster);
  walk_.emit_bounds();
  if (!shared_.empty()) copy_row();
  if (schedule_.staged) bring_rows();
  if (holds_rows(schedule_) && walk_.chunks() > 0) emit_held();
  if (peeled_ != nullptr) emit_edge_loads();
  for (std::size_t sweep = 0; sweep < rows_.rounds.sweeps.size(); ++sweep) emit_sweep(sweep);
  LaunchRule launch;
  launch.grid_x = grid > 1 ? teams_of_grid(rows_, target_) * Dim(grid)
                           : blocks_of(rows_.count, team_.rows) * Dim(parts_of(schedule_) * schedule_.team.cluster);
  launch.cluster = schedule_.team.cluster;
  launch.together = grid;
  launch.resident = grid > 1;
  launch.block = schedule_.team.threads;
  if (split) return finish(kernel_, out_, launch, target_, finisher(rows_, target_), schedule_.occupancy.least);
  define(out_, rows_, rows_.rounds.after);
  emit_row_stores(out_, rows_, team_);
  if (grid > 1) close_rows_of_grid(out_);
  if (schedule_.staged) {
    take_rows();
    launch.shared_bytes = static_cast<int>(staged_bytes(whole_, schedule_));
  }
  if (schedule_.team.cluster > 1) out_.line("meet_cluster();");  // the others may still read this block's results
  if (!shared_.empty()) launch.shared_bytes = static_cast<int>(shared_row_bytes(kernel_, schedule_));
  if (schedule_.occupancy.most > 0)
    launch.shared_bytes =
        std::max(launch.shared_bytes, static_cast<int>(bytes_for_at_most(target_, schedule_.occupancy.most)));
  return finish(whole_, out_, launch, target_, schedule_.occupancy.least,
                {.zeroed_bytes = grid > 1 ? Dim(meeting_bytes(rows_, target_)) : Dim(0)});
}

Points ReduceEmitter::points_of(const Sweep& sweep, const std::vector<InstrId>& held) const {
  return {.lanes = lanes_,
          .instrs = sweep.instrs,
          .stores = sweep.stores,
          .condition = persistent_ == nullptr ? element_condition(rows_, team_) : "",
          .cache = cache_,
          .registers = {.held = held, .index = "[c]"},
          .accumulators = {.reduces = sweep.reduces, .outer = sweep.outer, .position = rows_.element()}};
}

Points ReduceEmitter::at_edge(Points points) {
  points.lanes = {.axis = points.lanes.axis};
  points.accumulators.in_order = false;
  points.registers.name = "e";
  points.registers.index.clear();
  return points;
}

void ReduceEmitter::emit_sweep(std::size_t number) {
  const Sweep& sweep = rows_.rounds.sweeps[number];
  define(out_, rows_, sweep.before);
  for (InstrId id : sweep.reduces) {
    const Combination how = combination(kernel_, id);
    out_.line(fmt::format("{} a{} = {};", how.type, id, how.identity));
  }
  if (sweep.moments) declare_moments(*sweep.moments);
  if (sweep.online) {
    const std::string type = value_type(kernel_.instr(sweep.online->sum).dtype);
    out_.line(fmt::format("{} a{} = 0;", type, sweep.online->sum));
    out_.line(fmt::format("{} shift{} = 0;", type, sweep.online->sum));
  }
  declare_blocks(sweep);
  if (!sweep.reduces.empty() || !sweep.outer.empty() || !sweep.stores.empty()) emit_elements(number);
  add_blocks(blocked_reduces(sweep));
  if (persistent_ != nullptr && schedule_.team.mapping == RowMapping::block) {
    emit_collected_together(number);
  } else {
    for (std::size_t slot = 0; slot < sweep.reduces.size(); ++slot)
      if (!sweep.moments || sweep.moments->sum != sweep.reduces[slot]) emit_collected(sweep.reduces[slot], slot);
  }
  if (sweep.online) emit_online_result(sweep);
  if (sweep.moments) emit_moments_result(sweep);
}

void ReduceEmitter::emit_elements(std::size_t number) {
  const Sweep& sweep = rows_.rounds.sweeps[number];
  const bool again = (sweep.online || sweep.moments) && walk_.chunks() > 0;  // a loop of its own behind the first
  Points points = points_of(sweep, walk_.tiled() ? plain_loads(sweep.instrs) : held_in(number));
  for (const Held& held : held_)
    if (held.sweep == number && kernel_.instr(held.value).kind != InstrKind::load)
      points.registers.saved.push_back(held.value);
  const bool blocks = !blocked_sums(sweep).empty();
  const std::string taken = persistent_ == nullptr ? "" : element_condition(rows_, team_);  // outer reductions too
  out_.open_if(taken);
  if (blocks) walk_.open_blocks();
  if (walk_.tiled()) {
    walk_.open_tile();
    if (sweep.moments) out_.line(fmt::format("int n{} = 0;", sweep.moments->squares));
    emit_loads(points.registers.held);
  }
  const bool own_moments = sweep.moments && !shared_.empty();
  if (own_moments) {
    out_.open("{");
    out_.line(fmt::format("int n{} = 0;", sweep.moments->squares));
  }
  if (!shared_.empty()) emit_shared_points(points, own_moments ? &*sweep.moments : nullptr);
  if (shared_.empty() || walk_.chunks() > 0) {
    Points first = points;
    const bool keeps = sweep.online ? lanes_.vector > 1 : again && !own_moments;
    const std::vector<InstrId> kept =
        keeps ? kept_in_tile(kernel_, sweep, sweep.online ? kDearInVectors : kDearInLoop) : std::vector<InstrId>{};
    if (!kept.empty() && !again) first.registers.index.clear();
    for (const InstrId id : kept) {
      first.registers.saved.push_back(id);
      out_.line(fmt::format("pack<{}, {}> x{}{};", held_type(kernel_, id), lanes_.vector, id,
                            again ? fmt::format("[{}]", walk_.chunks()) : ""));
    }
    const int opened = walk_.open_elements();
    emit_points(out_, kernel_, first);
    if (sweep.moments) count_points(*sweep.moments);
    if (again) walk_.close(opened);
    if (sweep.online) emit_online_points(*sweep.online, first, kept, again);
    if (!again) walk_.close(opened);
    if (sweep.moments && !own_moments)
      emit_tile_moments(*sweep.moments, points, sweep.online ? std::vector<InstrId>{} : kept);
  }
  if (own_moments) {
    emit_tile_moments(*sweep.moments, points, {});
    out_.close();
  }
  if (walk_.tiled()) out_.close();
  if (blocks) {
    end_block(sweep);
    walk_.close_blocks();
  }
  out_.close_if(taken);
  if (peeled_ == nullptr) return;
  walk_.open_edge();
  Points edge = at_edge(points);
  if (!holds_rows(schedule_)) edge.registers.held = edges_;
  emit_points(out_, kernel_, edge);
  if (sweep.online) emit_online_points(*sweep.online, edge, {}, false);
  if (sweep.moments) emit_edge_moments(*sweep.moments);
  out_.close();
}

std::vector<InstrId> ReduceEmitter::blocked_reduces(const Sweep& sweep) const {
  std::vector<InstrId> reduces = sweep.reduces;
  if (sweep.moments) reduces.erase(std::find(reduces.begin(), reduces.end(), sweep.moments->sum));
  return persistent_ != nullptr ? std::vector<InstrId>{} : long_sums(rows_, reduces, team_.size);
}

std::vector<InstrId> ReduceEmitter::blocked_sums(const Sweep& sweep) const {
  std::vector<InstrId> sums = blocked_reduces(sweep);
  if (sweep.online && persistent_ == nullptr)
    for (InstrId id : long_sums(rows_, {sweep.online->sum}, team_.size)) sums.push_back(id);
  return sums;
}

void ReduceEmitter::declare_blocks(const Sweep& sweep) {
  for (InstrId id : blocked_sums(sweep)) {
    out_.line(fmt::format("{} t{} = 0;", type_of_blocks(rows_, team_.size), id));
    if (sweep.online && sweep.online->sum == id) out_.line(fmt::format("float at{} = 0;", id));
  }
}

void ReduceEmitter::end_block(const Sweep& sweep) {
  for (InstrId id : blocked_sums(sweep)) {
    if (sweep.online && sweep.online->sum == id) {
      out_.line(fmt::format("t{0} = rescaled(t{0}, at{0}, shift{0});", id));
      out_.line(fmt::format("at{0} = shift{0};", id));
    }
    out_.line(fmt::format("t{0} += a{0};", id));
    out_.line(fmt::format("a{} = 0;", id));
  }
}

void ReduceEmitter::add_blocks(const std::vector<InstrId>& sums) {
  if (persistent_ != nullptr) return;
  for (InstrId id : sums) out_.line(fmt::format("a{0} = (float)(t{0} + a{0});", id));
}

void ReduceEmitter::emit_collected(InstrId id, std::size_t slot) {
  const std::string all = collected(rows_, team_, id);
  if (parts_of(schedule_) == 1) return emit_result(out_, rows_, id, all);
  out_.line(fmt::format("const {} p{} = {};", combination(kernel_, id).type, id, all));
  save_part(slot, combination(kernel_, id).type, fmt::format("p{}", id));
}

void ReduceEmitter::save_part(std::size_t slot, const std::string& type, const std::string& value) {
  const std::string condition = row_condition(rows_, team_);
  out_.open_if(condition);
  out_.line(partial_statement(rows_, slot, "row", type, value));
  out_.close_if(condition);
}

Source emit_reduce(const Kernel& kernel, const Target& target) {
  for (const Instr& instr : kernel.body)
    TENON_CHECK(
        instr.kind != InstrKind::reduce ||
            instr.axes.size() == (kernel.axes[static_cast<std::size_t>(instr.axes[0])].reduced ? Rows(kernel).reduced()
                                                                                               : Rows(kernel).kept),
        "a reduction of a Reduce kernel combines all reduced axes, or all kept ones");
  const auto& schedule = std::get<ReduceSchedule>(kernel.schedule);
  if (schedule.staged) return ReduceEmitter(with_staged_rows(kernel), kernel, target).emit();
  if (schedule.team.mapping != RowMapping::column) return ReduceEmitter(kernel, kernel, target).emit();
  return schedule.peeled ? emit_peeled_columns(kernel, target) : emit_columns(kernel, target);
}

}  // namespace tenon::codegen::cuda

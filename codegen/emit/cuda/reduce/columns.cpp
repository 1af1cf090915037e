// Reduce kernels whose rows lie side by side in memory: a thread has `vector` neighbouring rows and walks down them, so
// that each step reads a vector along the kept axis. The block's threads share the reduced axes. Row values are
// computed again at each use, from the results of earlier rounds in vectors x<id>.
#include "codegen/emit/cuda/reduce/columns.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/analysis/held.h"
#include "codegen/analysis/read_once.h"
#include "codegen/emit/cuda/points.h"
#include "codegen/emit/cuda/reduce/walk.h"
#include "codegen/emit/cuda/text/definitions.h"
#include "codegen/emit/cuda/text/expression.h"
#include "codegen/emit/cuda/text/spell.h"

namespace tenon::codegen::cuda {
namespace {

class ColumnEmitter {
 public:
  ColumnEmitter(const Kernel& kernel, const Target& target) : kernel_(kernel), target_(target), rows_(kernel) {
    if (walk_.tiled()) held_ = loads_ahead(kernel, schedule_);
    if (!holds_rows(schedule_)) return;
    for (std::size_t id = 0; id < kernel.body.size(); ++id) {
      const auto load = static_cast<InstrId>(id);
      const auto& sweeps = rows_.rounds.sweeps;
      const auto uses = [&](const Sweep& sweep) { return contains(points_of(sweep).instrs, load); };
      if (is_plain_load(kernel, load) && std::count_if(sweeps.begin(), sweeps.end(), uses) > 1) held_.push_back(load);
    }
  }

  Source emit() {
    join_stream(out_, target_);
    emit_row(out_, rows_, team_, parts_of(schedule_));
    walk_.emit_bounds();
    if (!walk_.tiled()) emit_held();
    for (const Sweep& sweep : rows_.rounds.sweeps) emit_sweep(sweep);
    LaunchRule launch;
    launch.grid_x = blocks_of(rows_.count, team_.rows) * Dim(parts_of(schedule_));
    launch.block = schedule_.team.threads;
    if (parts_of(schedule_) > 1)
      return finish(kernel_, out_, launch, target_, finisher(rows_, target_), schedule_.occupancy.least);
    emit_row_stores();
    return finish(kernel_, out_, launch, target_, schedule_.occupancy.least);
  }

 private:
  // Everything that the sweep's stores and reductions need, down to reductions of earlier rounds, which are held.
  Points points_of(const Sweep& sweep) const {
    Points points{.lanes = lanes_,
                  .stores = sweep.stores,
                  .condition = element_condition(rows_, team_),
                  .cache = cache_,
                  .accumulators = {.reduces = sweep.reduces, .position = rows_.element(), .across_rows = true}};
    compute_from_results(kernel_, sweep_roots(kernel_, sweep), reductions_of(kernel_), points);
    return points;
  }

  void emit_sweep(const Sweep& sweep) {
    ColumnSums sums(out_, rows_, sweep, schedule_.vector, schedule_.team.columns);
    const Points points = points_of(sweep);
    sums.declare();
    if (sweep.moments) {
      walk_.open_first();
      sums.emit_pivot(points);
      out_.close();
    }
    if (sums.has_blocks()) walk_.open_blocks();
    if (!sweep.reduces.empty() || !sweep.stores.empty()) emit_elements(sums, sweep, points);
    sums.end_block();
    if (sums.has_blocks()) walk_.close_blocks();
    sums.add_blocks();
    if (parts_of(schedule_) > 1) {
      sums.emit_parts(row_condition(rows_, team_), "row");
    } else {
      for (InstrId id : sweep.reduces)
        if (!sweep.moments || id != sweep.moments->sum) emit_result(sums, id, sums.collected(id));
      if (sweep.online) emit_online(sums, *sweep.online);
      if (sweep.moments) emit_moments(sums, *sweep.moments);
    }
  }

  void emit_held() {
    if (held_.empty()) return;
    for (InstrId id : held_)
      out_.line(fmt::format("pack<{}, {}> h{}[{}];", held_type(kernel_, id), schedule_.vector, id, walk_.chunks()));
    const int opened = walk_.open_elements();
    for (InstrId id : held_) emit_load_into(out_, kernel_, id, lanes_, rows_.names, cache_, fmt::format("h{}[c]", id));
    walk_.close(opened);
  }

  // Of the rows of a tile, where they lie if that is loaded, and then all that is held of them.
  void emit_ahead(const std::vector<InstrId>& loads) {
    std::vector<InstrId> places;
    for (const InstrId id : loads)
      for (const InstrId place : operands_of(kernel_.instr(id)))
        if (!contains(places, place)) places.push_back(place);
    for (const InstrId id : places) out_.line(fmt::format("{} p{}[{}];", held_type(kernel_, id), id, walk_.chunks()));
    for (const InstrId id : loads)
      out_.line(fmt::format("pack<{}, {}> h{}[{}];", held_type(kernel_, id), schedule_.vector, id, walk_.chunks()));
    if (!places.empty()) {
      const int opened = walk_.open_ahead();
      define(out_, kernel_, needed(kernel_, places), rows_.names);
      for (const InstrId id : places) out_.line(fmt::format("p{0}[c] = v{0};", id));
      walk_.close(opened);
    }
    const int opened = walk_.open_ahead();
    for (const InstrId id : places) out_.line(fmt::format("const {0} v{1} = p{1}[c];", held_type(kernel_, id), id));
    CacheHints cache = cache_;
    if (!places.empty()) cache.prompt = loads;
    for (const InstrId id : loads)
      emit_load_into(out_, kernel_, id, lanes_, rows_.names, cache, fmt::format("h{}[c]", id));
    walk_.close(opened);
  }

  // Has `points` take those of `loads` that it needs from h<id>[c].
  void take_ahead(const std::vector<InstrId>& loads, Points& points) {
    for (InstrId id : loads) {
      if (!contains(points.instrs, id)) continue;
      out_.line(fmt::format("const pack<{0}, {1}> x{2} = h{2}[c];", held_type(kernel_, id), schedule_.vector, id));
      points.registers.held.push_back(id);
    }
  }

  void emit_elements(ColumnSums& sums, const Sweep& sweep, const Points& points) {
    std::vector<InstrId> loads;
    for (const InstrId id : held_)
      if (contains(points.instrs, id)) loads.push_back(id);
    if (walk_.tiled()) {
      walk_.open_tile();
      emit_ahead(loads);
    }
    const std::vector<InstrId> kept =
        sweep.online && walk_.tiled() ? kept_in_tile(kernel_, sweep, kDearInLoop) : std::vector<InstrId>{};
    for (const InstrId id : kept)
      out_.line(fmt::format("pack<{}, {}> k{}[{}];", held_type(kernel_, id), schedule_.vector, id, walk_.chunks()));
    const int opened = walk_.open_elements();
    Points first = points;
    take_ahead(loads, first);
    for (const InstrId id : kept) {
      out_.line(fmt::format("pack<{}, {}> x{};", held_type(kernel_, id), schedule_.vector, id));
      first.registers.saved.push_back(id);
    }
    sums.emit_points(first);
    for (const InstrId id : kept) out_.line(fmt::format("k{0}[c] = x{0};", id));
    walk_.close(opened);
    if (sweep.online) {
      sums.rescale();
      const int again = walk_.open_elements();
      Points behind = sums.online_points(points);
      if (!kept.empty()) behind.instrs = instrs_behind(kernel_, behind.instrs, sweep.online->sum, kept);
      for (const InstrId id : kept) {
        out_.line(fmt::format("const pack<{}, {}> x{} = k{}[c];", held_type(kernel_, id), schedule_.vector, id, id));
        behind.registers.held.push_back(id);
      }
      take_ahead(loads, behind);
      emit_points(out_, kernel_, behind);
      walk_.close(again);
    }
    if (walk_.tiled()) out_.close();
  }

  // The columns' results as a vector x<id>.
  void emit_result(const ColumnSums& sums, InstrId id, const std::string& all) {
    const Instr& instr = kernel_.instr(id);
    out_.line(fmt::format("pack<{}, {}> x{};", value_type(instr.dtype), schedule_.vector, id));
    sums.for_each_column(fmt::format("x{}[j] = {}[j]{};", id, all, combination(kernel_, id).is_arg ? ".index" : ""));
  }

  void emit_online(ColumnSums& sums, const Online& online) {
    const std::string all = sums.collected_online();
    out_.line(
        fmt::format("pack<{}, {}> x{};", value_type(kernel_.instr(online.sum).dtype), schedule_.vector, online.sum));
    sums.for_each_column(fmt::format("x{}[j] = {};", online.sum,
                                     online_sum(online, all + "[j]", fmt::format("x{}[j]", online.maximum))));
  }

  void emit_moments(ColumnSums& sums, const Moments& moments) {
    sums.collect_moments();
    out_.line(fmt::format("pack<float, {}> x{}, x{};", schedule_.vector, moments.sum, moments.squares));
    sums.for_each_column(fmt::format("x{0}[j] = (float)p{0}[j], x{1}[j] = squares_around_mean(p{1}[j], p{0}[j], {2});",
                                     moments.sum, moments.squares, dim_text(rows_.length, rows_.names)));
  }

  void emit_row_stores() {
    if (rows_.rounds.row_stores.empty()) return;
    Sweep of_rows;
    of_rows.stores = rows_.rounds.row_stores;
    Points points = points_of(of_rows);
    points.condition = row_condition(rows_, team_);
    points.cache.streaming_stores = false;
    emit_points(out_, kernel_, points);
  }

  const Kernel& kernel_;
  const Target& target_;
  const Rows rows_;
  const ReduceSchedule& schedule_ = rows_.schedule;
  const Team team_ = team_of(schedule_);
  const Lanes lanes_ = {.axis = static_cast<int>(rows_.kept) - 1, .vector = schedule_.vector};
  const CacheHints cache_ = {.streaming_stores = schedule_.cache.streaming,
                             .streamed = streamed_loads(kernel_, schedule_)};
  std::vector<InstrId> held_;  // what several sweeps load of a row that stays in registers
  Writer out_{1};
  Walk walk_{out_, rows_, team_, nullptr};
};

}  // namespace

Source emit_columns(const Kernel& kernel, const Target& target) { return ColumnEmitter(kernel, target).emit(); }

}  // namespace tenon::codegen::cuda

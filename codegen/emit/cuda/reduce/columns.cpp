// Reduce kernels whose rows lie side by side in memory: a thread has `vector` neighbouring rows and walks down them, so
// that each step reads a vector along the kept axis; the block's threads share the reduced axes. Row values are
// computed again at each use, from the results of earlier rounds in vectors x<id>.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/analysis/held.h"
#include "codegen/analysis/read_once.h"
#include "codegen/analysis/vectorize.h"
#include "codegen/emit/cuda/points.h"
#include "codegen/emit/cuda/reduce/long_sums.h"
#include "codegen/emit/cuda/reduce/team.h"
#include "codegen/emit/cuda/text/expression.h"
#include "codegen/emit/cuda/text/spell.h"
#include "codegen/emit/cuda/vectors.h"

namespace tenon::codegen::cuda {
namespace {

class ColumnEmitter {
 public:
  ColumnEmitter(const Kernel& kernel, const Target& target)
      : kernel_(kernel), target_(target), rows_(kernel), schedule_(rows_.schedule), team_(team_of(schedule_)) {
    if (!holds_rows(schedule_)) return;
    steps_ = held_elements(schedule_) / schedule_.vector;
    for (std::size_t id = 0; id < kernel.body.size(); ++id) {
      const auto load = static_cast<InstrId>(id);
      const auto uses = [&](const Sweep& sweep) {
        const std::vector<InstrId> instrs = points_of(sweep.stores, sweep.reduces, false).instrs;
        return std::find(instrs.begin(), instrs.end(), load) != instrs.end();
      };
      const auto& sweeps = rows_.rounds.sweeps;
      if (is_plain_load(kernel, load) && std::count_if(sweeps.begin(), sweeps.end(), uses) > 1) held_.push_back(load);
    }
  }

  Source emit() {
    emit_row(out_, rows_, team_, parts_of(schedule_));
    if (parts_of(schedule_) > 1) emit_part(out_, rows_, team_.size, "", dim_text(rows_.length, rows_.names));
    emit_held();
    for (const Sweep& sweep : rows_.rounds.sweeps) emit_sweep(sweep);
    LaunchRule launch;
    launch.grid_x = blocks_of(rows_.count, team_.rows) * Dim(parts_of(schedule_));
    launch.block = schedule_.team.threads;
    if (parts_of(schedule_) > 1)
      return finish(kernel_, out_, launch, target_, finisher(rows_), schedule_.occupancy.least);
    if (!rows_.rounds.row_stores.empty()) emit_points(out_, kernel_, points_of(rows_.rounds.row_stores, {}, true));
    return finish(kernel_, out_, launch, target_, schedule_.occupancy.least);
  }

 private:
  // Everything that the stores and reductions need, down to reductions of earlier rounds, which are held.
  Points points_of(const std::vector<int>& stores, const std::vector<InstrId>& reduces, bool of_row) const {
    Points points;
    std::vector<InstrId> roots;
    for (InstrId id : reduces) roots.push_back(kernel_.instr(id).args[0]);
    for (int store : stores)
      for (InstrId root : roots_of(kernel_.stores[static_cast<std::size_t>(store)])) roots.push_back(root);
    std::vector<bool> is_reduce(kernel_.body.size());
    for (std::size_t i = 0; i < kernel_.body.size(); ++i) is_reduce[i] = kernel_.body[i].kind == InstrKind::reduce;
    points.instrs = needed(kernel_, roots, is_reduce);
    const auto hold = [&](InstrId id) {
      if (is_reduce[static_cast<std::size_t>(id)] &&
          std::find(points.held.begin(), points.held.end(), id) == points.held.end())
        points.held.push_back(id);
    };
    for (InstrId id : roots) hold(id);
    for (InstrId id : points.instrs)
      for (InstrId operand : operands_of(kernel_.instr(id))) hold(operand);
    points.instrs.insert(points.instrs.end(), points.held.begin(), points.held.end());
    std::sort(points.instrs.begin(), points.instrs.end());
    points.stores = stores;
    points.reduces = reduces;
    points.condition = of_row ? row_condition(rows_, team_) : element_condition(rows_, team_);
    points.position = rows_.element();
    points.columns = true;
    points.streaming = schedule_.cache.streaming && !of_row;
    points.streamed = streamed_loads(kernel_, schedule_);
    points.axis = static_cast<int>(rows_.kept) - 1;
    points.vector = schedule_.vector;
    return points;
  }

  void emit_sweep(const Sweep& sweep) {
    for (InstrId id : sweep.reduces) {
      const Combination how = combination(kernel_, kernel_.instr(id));
      out_.line(fmt::format("pack<{}, {}> a{};", how.type, schedule_.vector, id));
      for_each_column(fmt::format("a{}[j] = {};", id, how.identity));
    }
    sums_ = long_sums(rows_, sweep.reduces, team_.size);
    for (InstrId id : sums_) {
      out_.line(fmt::format("{} t{}[{}] = {{}};", type_of_blocks(rows_, team_.size), id, schedule_.vector));
    }
    if (!sums_.empty()) open_block(out_, rows_, first(), end(), std::int64_t{team_.size} * turns_of_block(1));
    if (!sweep.reduces.empty() || !sweep.stores.empty()) {
      emit_elements(points_of(sweep.stores, sweep.reduces, false));
    }
    for (InstrId id : sums_) for_each_column(fmt::format("t{0}[j] += a{0}[j], a{0}[j] = 0;", id));
    if (!sums_.empty()) out_.close();
    for (InstrId id : sums_) for_each_column(fmt::format("a{0}[j] = (float)t{0}[j];", id));
    sums_.clear();
    for (std::size_t slot = 0; slot < sweep.reduces.size(); ++slot) emit_result(sweep.reduces[slot], slot);
  }

  void for_each_column(const std::string& statement) {
    out_.unrolled(fmt::format("for (int j = 0; j < {}; ++j) {{", schedule_.vector));
    out_.line(statement);
    out_.close();
  }

  std::string end() const { return parts_of(schedule_) > 1 ? "end" : dim_text(rows_.length, rows_.names); }
  std::string first() const {
    const std::string member = team_.size == 1 ? "" : "member", begin = parts_of(schedule_) > 1 ? "begin" : "";
    const std::string place = begin + (begin.empty() || member.empty() ? "" : " + ") + member;
    return place.empty() ? "0" : place;
  }
  // The scope of each of this thread's elements, which a persistent schedule knows by number: c. Returns the braces.
  int open_elements() {
    const std::string type = index_type(kernel_), e = rows_.element();
    if (steps_ > 0) {
      out_.unrolled(fmt::format("for (int c = 0; c < {}; ++c) {{", steps_));
      out_.line(fmt::format("const {} {} = {} + c * {};", type, e, first(), team_.size));
    } else {
      if (unroll_of(schedule_) > 1) out_.line(fmt::format("#pragma unroll {}", unroll_of(schedule_)));
      out_.open(fmt::format("for ({0} {1} = {2}; {1} < {3}; {1} += {4}) {{", type, e, sums_.empty() ? first() : "block",
                            sums_.empty() ? end() : "stop", team_.size));
    }
    const bool checked = steps_ > 0 && !rows_.length.is(std::int64_t{steps_} * team_.size);
    if (checked) out_.open(fmt::format("if ({} < {}) {{", e, end()));
    if (e == "e")
      decode_axes(out_, kernel_, rows_.kept, kernel_.axes.size(), fmt::format("({})e", unsigned_index_type(kernel_)));
    return checked ? 2 : 1;
  }
  void close(int opened) {
    for (; opened > 0; --opened) out_.close();
  }

  void emit_held() {
    if (held_.empty()) return;
    for (InstrId id : held_)
      out_.line(fmt::format("pack<{}, {}> h{}[{}];", held_type(kernel_, id), schedule_.vector, id, steps_));
    const Points points = points_of({}, {}, false);
    const int opened = open_elements();
    for (InstrId id : held_) emit_load_into(out_, kernel_, id, points, rows_.names, fmt::format("h{}[c]", id));
    close(opened);
  }

  void emit_elements(Points points) {
    const int opened = open_elements();
    for (InstrId id : held_)
      if (std::find(points.instrs.begin(), points.instrs.end(), id) != points.instrs.end()) {
        out_.line(fmt::format("const pack<{0}, {1}> x{2} = h{2}[c];", held_type(kernel_, id), schedule_.vector, id));
        points.held.push_back(id);
      }
    emit_points(out_, kernel_, points);
    close(opened);
  }

  // The columns' results as a vector: x<id>, or this part's share of them in scratch.
  void emit_result(InstrId id, std::size_t slot) {
    const Instr& instr = kernel_.instr(id);
    const Combination how = combination(kernel_, instr);
    std::string all = fmt::format("a{}", id);
    if (!team_.collect.empty()) {
      out_.line(fmt::format("const pack<{}, {}> b{} = {}(a{}, {});", how.type, schedule_.vector, id, team_.collect, id,
                            how.function));
      all = fmt::format("b{}", id);
    }
    if (parts_of(schedule_) > 1) {
      const std::string condition = row_condition(rows_, team_);
      if (!condition.empty()) out_.open(fmt::format("if ({}) {{", condition));
      out_.unrolled(fmt::format("for (int j = 0; j < {}; ++j) {{", schedule_.vector));
      emit_partial(out_, rows_, slot, "row + j", all + "[j]");
      out_.close();
      if (!condition.empty()) out_.close();
      return;
    }
    out_.line(fmt::format("pack<{}, {}> x{};", value_type(instr.dtype), schedule_.vector, id));
    for_each_column(fmt::format("x{}[j] = {}[j]{};", id, all, how.is_arg ? ".index" : ""));
  }

  const Kernel& kernel_;
  const Target& target_;
  Rows rows_;
  const ReduceSchedule& schedule_;
  Team team_;
  int steps_ = 0;              // of a persistent row: each thread's
  std::vector<InstrId> held_;  // what several sweeps load of it
  std::vector<InstrId> sums_;  // of the sweep, that are cut in blocks
  Writer out_{1};
};

}  // namespace

Source emit_columns(const Kernel& kernel, const Target& target) { return ColumnEmitter(kernel, target).emit(); }

}  // namespace tenon::codegen::cuda

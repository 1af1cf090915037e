// See columns_peeled.h. Of the first and the last vector of a row, elements outside it are left out.
#include "codegen/emit/cuda/columns_peeled.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/emit/cuda/expression.h"
#include "codegen/emit/cuda/points.h"
#include "codegen/emit/cuda/spell.h"
#include "codegen/emit/cuda/team.h"
#include "codegen/vectorize.h"
#include "ir/check.h"

namespace tenon::codegen::cuda {
namespace {

class PeeledColumns {
 public:
  PeeledColumns(const Kernel& kernel, const Target& target)
      : kernel_(kernel),
        target_(target),
        rows_(kernel),
        schedule_(rows_.schedule),
        team_(team_of(schedule_)),
        reference_(column_reference(kernel, schedule_.vector)) {
    TENON_CHECK(reference_ != nullptr && schedule_.splits % schedule_.vector == 0 && may_split(rows_.rounds),
                "peeled columns are of rows of one alignment");
  }

  Source emit() {
    const Sweep& sweep = rows_.rounds.sweeps[0];
    emit_place();
    for (InstrId id : sweep.reduces) {
      const Combination how = combination(kernel_, kernel_.instr(id));
      out_.line(fmt::format("pack<{}, {}> a{};", how.type, schedule_.vector, id));
      out_.unrolled(fmt::format("for (int j = 0; j < {}; ++j) {{", schedule_.vector));
      out_.line(fmt::format("a{}[j] = {};", id, how.identity));
      out_.close();
    }
    emit_vectors(sweep);
    emit_edges(sweep);
    for (std::size_t slot = 0; slot < sweep.reduces.size(); ++slot) emit_partials(sweep.reduces[slot], slot);
    LaunchRule launch;
    launch.grid_x = blocks_of(rows_.count + Dim(schedule_.vector - 1), team_.rows) * Dim(schedule_.splits);
    launch.block = schedule_.threads;
    // The compiler rather keeps one load under way, and spills, than it takes a register beyond the 32nd.
    return finish(kernel_, out_, launch, target_, finisher(rows_), std::max(1, schedule_.resident));
  }

 private:
  std::string first() const { return "first_" + kernel_.axes[0].name; }
  std::string columns() const { return parenthesized(dim_text(rows_.count, rows_.names)); }

  // The part, its alignment, this thread's first column, and the bounds of its rows in units of `vector`.
  void emit_place() {
    const std::string type = index_type(kernel_), wide = unsigned_index_type(kernel_);
    const int vector = schedule_.vector;
    Names at_row = rows_.names;
    at_row.axes[0] = "0";
    at_row.axes[1] = "phase";
    out_.line(fmt::format("const {} part = blockIdx.x % {};", type, schedule_.splits));
    out_.line(fmt::format("const {} phase = part % {};", type, vector));
    out_.line(fmt::format("const {0} shift = ({0})(({1}){2} & {3});", type, wide,
                          parenthesized(index_text(reference_->offset, at_row)), vector - 1));
    out_.line(fmt::format("const {0} {1} = ({0})(blockIdx.x / {2} * {3} + {4}) * {5} - shift;", type, first(),
                          schedule_.splits, schedule_.columns, team_.row, vector));
    out_.line(fmt::format("const {} member = {};", type, team_.member));
    const std::string part = parenthesized(dim_text(blocks_of(rows_.length, schedule_.splits), rows_.names));
    out_.line(fmt::format("const {} begin = part / {} * {};", type, vector, part));
    out_.line(fmt::format("const {0} end = min(begin + {1}, ({0})(({2} - phase + {3}) / {4}));", type, part,
                          parenthesized(dim_text(rows_.length, rows_.names)), vector - 1, vector));
  }

  Points points_of(const Sweep& sweep) const {
    Points points;
    points.instrs = needed(kernel_, sweep_roots(kernel_, sweep), std::vector<bool>(kernel_.body.size(), false));
    points.reduces = sweep.reduces;
    points.position = kernel_.axes[1].name;
    points.columns = true;
    points.axis = 0;
    points.vector = schedule_.vector;
    points.peeled = reference_;
    points.streamed = streamed_loads(kernel_, schedule_);
    return points;
  }

  void open_rows() {
    const std::string type = index_type(kernel_);
    out_.open(fmt::format("for ({} step = begin + member; step < end; step += {}) {{", type, team_.size));
    out_.line(fmt::format("const {} {} = step * {} + phase;", type, kernel_.axes[1].name, schedule_.vector));
  }

  void emit_vectors(const Sweep& sweep) {
    out_.open(fmt::format("if ({0} >= 0 && {0} + {1} <= {2}) {{", first(), schedule_.vector, columns()));
    out_.line(fmt::format("const {} {} = {};", index_type(kernel_), kernel_.axes[0].name, first()));
    if (schedule_.unroll > 1) out_.line(fmt::format("#pragma unroll {}", schedule_.unroll));
    open_rows();
    emit_points(out_, kernel_, points_of(sweep));
    out_.close();
  }

  void emit_edges(const Sweep& sweep) {
    Points points = points_of(sweep);
    points.vector = 1;
    points.peeled = nullptr;
    points.column = "[j]";
    out_.close("} else {");
    out_.line("#pragma unroll 4");
    open_rows();
    open_columns();
    emit_points(out_, kernel_, points);
    out_.close();
    out_.close();
    out_.close();
    out_.close();
  }

  // For each of this thread's columns that exists.
  void open_columns() {
    const std::string& column = kernel_.axes[0].name;
    out_.unrolled(fmt::format("for (int j = 0; j < {}; ++j) {{", schedule_.vector));
    out_.line(fmt::format("const {} {} = {} + j;", index_type(kernel_), column, first()));
    out_.open(fmt::format("if ({0} >= 0 && {0} < {1}) {{", column, columns()));
  }

  void emit_partials(InstrId id, std::size_t slot) {
    const Combination how = combination(kernel_, kernel_.instr(id));
    std::string all = fmt::format("a{}", id);
    if (!team_.collect.empty()) {
      out_.line(fmt::format("const pack<{}, {}> b{} = {}(a{}, {});", how.type, schedule_.vector, id, team_.collect, id,
                            how.function));
      all = fmt::format("b{}", id);
    }
    if (team_.size > 1) out_.open("if (member == 0) {");
    open_columns();
    emit_partial(out_, rows_, slot, kernel_.axes[0].name, all + "[j]");
    out_.close();
    out_.close();
    if (team_.size > 1) out_.close();
  }

  const Kernel& kernel_;
  const Target& target_;
  Rows rows_;
  const ReduceSchedule& schedule_;
  Team team_;
  const Access* reference_;
  Writer out_{1};
};

}  // namespace

const Access* column_reference(const Kernel& kernel, int vector) {
  if (has_outer(kernel) || kernel.axes.size() != 2 || kernel.axes[0].reduced || !kernel.axes[1].reduced) return nullptr;
  const Rounds rounds = rounds_of(kernel);
  if (rounds.sweeps.size() != 1 || !rounds.sweeps[0].stores.empty()) return nullptr;
  const Access* reference = nullptr;
  for (InstrId id : rounds.sweeps[0].instrs) {
    const Instr& instr = kernel.instr(id);
    if (instr.kind != InstrKind::load || (instr.depends & 1) == 0) continue;
    if (reference == nullptr && (instr.depends & 2) != 0) reference = &instr.access;
    if (reference == nullptr || !instr.access.guards.empty() ||
        peeled_width(instr.access, *reference, 0, vector, kernel) != vector)
      return nullptr;
  }
  return reference != nullptr && reference->offset.values().empty() &&
                 bounds(reference->offset, kernel.context()).min >= 0
             ? reference
             : nullptr;
}

Source emit_peeled_columns(const Kernel& kernel, const Target& target) { return PeeledColumns(kernel, target).emit(); }

}  // namespace tenon::codegen::cuda

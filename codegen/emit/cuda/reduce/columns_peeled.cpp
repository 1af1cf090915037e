// See columns.h. The first blocks of the grid take the columns at both ends of the rows, which no vector covers,
// one by one: in the blocks of the vectors a few threads would hold up all others.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/analysis/peel.h"
#include "codegen/analysis/read_once.h"
#include "codegen/analysis/vectorize.h"
#include "codegen/emit/cuda/points.h"
#include "codegen/emit/cuda/reduce/columns.h"
#include "codegen/emit/cuda/reduce/long_sums.h"
#include "codegen/emit/cuda/text/expression.h"
#include "codegen/emit/cuda/text/spell.h"

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
        reference_(column_reference(kernel, schedule_.vector, shared_of(schedule_))) {}

  Source emit() {
    join_stream(out_, target_);
    emit_bounds();
    out_.open(fmt::format("if (blockIdx.x < {}) {{", parts_of(schedule_)));
    emit_edges();
    out_.close("} else {");
    emit_vectors();
    out_.close();
    const Dim vectors = rows_.count.floor_div(schedule_.vector);
    LaunchRule launch;
    launch.grid_x = (blocks_of(vectors, schedule_.team.columns) + Dim(1)) * Dim(parts_of(schedule_));
    launch.block = schedule_.team.threads;
    return finish(kernel_, out_, launch, target_, finisher(rows_, target_), schedule_.occupancy.least);
  }

 private:
  const Sweep& sweep() const { return rows_.rounds.sweeps[0]; }
  const std::string& column() const { return kernel_.axes[0].name; }
  std::string columns() const { return parenthesized(dim_text(rows_.count, rows_.names)); }

  // The part, its alignment, the columns in front of its first vector, and the bounds of its rows in units of `vector`.
  void emit_bounds() {
    const std::string type = index_type(kernel_), wide = unsigned_index_type(kernel_);
    const int vector = schedule_.vector;
    Names at_row = rows_.names;
    at_row.axes[0] = "0";
    at_row.axes[1] = "phase";
    out_.line(fmt::format("const {} part = blockIdx.x % {};", type, parts_of(schedule_)));
    out_.line(fmt::format("const {} phase = part % {};", type, vector));
    out_.line(fmt::format("const {0} head = ({0})(-({1}){2} & {3});", type, wide,
                          parenthesized(index_text(reference_->offset, at_row)), vector - 1));
    const std::string part = parenthesized(dim_text(blocks_of(rows_.length, parts_of(schedule_)), rows_.names));
    out_.line(fmt::format("const {} begin = part / {} * {};", type, vector, part));
    out_.line(fmt::format("const {0} end = min(begin + {1}, ({0})(({2} - phase + {3}) / {4}));", type, part,
                          parenthesized(dim_text(rows_.length, rows_.names)), vector - 1, vector));
  }

  Points points_of(int vector) const {
    return {.lanes = {.axis = 0, .vector = vector, .peeled = vector > 1 ? reference_ : nullptr},
            .instrs = needed(kernel_, sweep_roots(kernel_, sweep())),
            .cache = {.streamed = streamed_loads(kernel_, schedule_)},
            .accumulators = {.reduces = sweep().reduces, .position = kernel_.axes[1].name, .across_rows = true}};
  }

  void emit_edges() {
    const std::string type = index_type(kernel_);
    const int vector = schedule_.vector, places = 2 * vector;
    out_.line(fmt::format("const {} place = threadIdx.x % {};", type, places));
    out_.line(fmt::format("const {0} behind = head + ({0})({1} - head) / {2} * {2};", type, columns(), vector));
    out_.line(fmt::format("const {} {} = place < {} ? place : behind + place - {};", type, column(), vector, vector));
    out_.line(
        fmt::format("const bool inside = {0} < {1} && (place >= {2} || place < head);", column(), columns(), vector));
    out_.line(fmt::format("const {} member = threadIdx.x / {};", type, places));
    emit_sums(1, places);
  }

  void emit_vectors() {
    const std::string type = index_type(kernel_);
    const int vector = schedule_.vector;
    out_.line(fmt::format("const {0} {1} = ({0})((blockIdx.x / {2} - 1) * {3} + {4}) * {5} + head;", type, column(),
                          parts_of(schedule_), schedule_.team.columns, team_.row, vector));
    out_.line(fmt::format("const bool inside = {} + {} <= {};", column(), vector, columns()));
    out_.line(fmt::format("const {} member = {};", type, team_.member));
    emit_sums(vector, schedule_.team.columns);
  }

  // Of `vector` columns a thread, with `across` threads side by side: this part's results.
  void emit_sums(int vector, int across) {
    const std::string type = index_type(kernel_);
    ColumnSums sums(out_, rows_, sweep(), vector, across);
    const bool blocks = sums.has_blocks();
    sums.declare();
    out_.open("if (inside) {");
    Points points = points_of(vector);
    if (vector > 1) emit_column_loads(points);
    if (sweep().moments) {
      out_.open("if (begin + member < end) {");
      out_.line(fmt::format("const {} step = begin + member;", type));
      define_row();
      sums.emit_pivot(points);
      out_.close();
    }
    if (blocks) open_block(out_, rows_, "begin + member", "end", std::int64_t{sums.members()} * turns_of_block(1));
    if (unroll_of(schedule_) > 1) out_.line(fmt::format("#pragma unroll {}", unroll_of(schedule_)));
    out_.open(fmt::format("for ({} step = {}; step < {}; step += {}) {{", type, blocks ? "block" : "begin + member",
                          blocks ? "stop" : "end", sums.members()));
    define_row();
    sums.emit_points(points);
    out_.close();
    sums.end_block();
    if (blocks) out_.close();
    out_.close();
    sums.add_blocks();
    sums.emit_parts("member == 0 && inside", column());
  }

  void define_row() {
    out_.line(
        fmt::format("const {} {} = step * {} + phase;", index_type(kernel_), kernel_.axes[1].name, schedule_.vector));
  }

  // What is the same for all rows, once: vectors that lie otherwise than the reference's take many instructions.
  void emit_column_loads(Points& points) {
    for (const InstrId id : points.instrs) {
      const Instr& instr = kernel_.instr(id);
      if (instr.kind != InstrKind::load || instr.depends != 1) continue;
      out_.line(fmt::format("pack<{}, {}> x{};", held_type(kernel_, id), points.lanes.vector, id));
      emit_load_into(out_, kernel_, id, points.lanes, rows_.names, points.cache, fmt::format("x{}", id));
      points.registers.held.push_back(id);
    }
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

Source emit_peeled_columns(const Kernel& kernel, const Target& target) { return PeeledColumns(kernel, target).emit(); }

}  // namespace tenon::codegen::cuda

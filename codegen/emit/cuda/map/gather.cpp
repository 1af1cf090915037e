// Map kernels that gather along their innermost axis, from rows in shared memory (codegen/analysis/gathered_rows.h): a
// block brings its rows as one run, wherever that begins, then each thread finds its positions once and takes them from
// every row that it has.
#include <fmt/format.h>

#include "codegen/analysis/gathered_rows.h"
#include "codegen/emit/cuda/emit.h"
#include "codegen/emit/cuda/points.h"
#include "codegen/emit/cuda/reduce/columns.h"
#include "codegen/emit/cuda/text/expression.h"
#include "codegen/emit/cuda/text/spell.h"
#include "codegen/kernel/uses.h"

namespace tenon::codegen::cuda {
namespace {

class GatherEmitter {
 public:
  GatherEmitter(const Kernel& kernel, const Target& target)
      : whole_(kernel), target_(target), rows_(gathered_rows(kernel)), kernel_(with_gathered_rows(kernel, rows_)) {}

  Source emit() {
    join_stream(out_, target_);
    LaunchRule launch;
    launch.grid_x = emit_place();
    launch.block = schedule_.threads;
    launch.shared_bytes = static_cast<int>(gathered_bytes(whole_, schedule_));
    bring_rows();
    emit_points_of_thread();
    return finish(whole_, out_, launch, target_);
  }

 private:
  const std::string& row() const { return whole_.axes[whole_.axes.size() - 2].name; }
  const std::string& column() const { return whole_.axes.back().name; }
  const Dim& row_count() const { return whole_.axes[whole_.axes.size() - 2].extent; }
  const Dim& column_count() const { return whole_.axes.back().extent; }

  // The block's rows and its part of them. Neighbouring blocks have parts of the same rows.
  Dim emit_place() {
    std::vector<Digit> digits;
    for (std::size_t axis = 0; axis + 2 < whole_.axes.size(); ++axis)
      digits.push_back({whole_.axes[axis].name, whole_.axes[axis].extent});
    digits.push_back({"block_" + row(), blocks_of(row_count(), block_.rows)});
    digits.push_back({"part_" + column(), blocks_of(column_count(), block_.points)});
    decode_digits(out_, whole_, digits, "blockIdx.x");
    const Names names = names_of(whole_);
    out_.line(fmt::format("const {0} first_{1} = block_{1} * {2}, first_{3} = part_{3} * {4};", index_type(whole_),
                          row(), block_.rows, column(), block_.points));
    out_.line(whole_blocks() ? fmt::format("const int rows = {};", block_.rows)
                             : fmt::format("const int rows = (int)min({} - first_{}, ({}){});",
                                           dim_text(row_count(), names), row(), index_type(whole_), block_.rows));
    Dim blocks(1);
    for (const Digit& digit : digits) blocks = blocks * digit.extent;
    return blocks;
  }

  bool whole_blocks() const { return row_count().is_constant() && row_count().constant() % block_.rows == 0; }

  void bring_rows() {
    Names names = names_of(whole_);
    names.axes[names.axes.size() - 2] = "first_" + row();
    out_.line("extern __shared__ __align__(16) unsigned char shared[];");
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const Operand& operand = whole_.operands[static_cast<std::size_t>(rows_[i].operand)];
      const std::string type = storage_type(operand.dtype);
      out_.line(fmt::format("const {0}* rows{1} = stage_around<{2}>(({0}*)(shared + {3}), {4}, {5}, rows * {6}, {7});",
                            type, i, schedule_.threads, offset, operand.name, index_text(rows_[i].begin, names),
                            rows_[i].length, dim_text(element_count(operand.shape), names)));
      offset += gathered_bytes(whole_, rows_[i], block_.rows);
    }
    out_.line("commit_copies();");
    out_.line("wait_copies<0>();");
    out_.line("__syncthreads();");
  }

  void emit_points_of_thread() {
    const bool alone = block_.teams == 1;
    out_.line(alone ? "const int lane = (int)threadIdx.x;"
                    : fmt::format("const int lane = (int)(threadIdx.x % {0}), team = (int)(threadIdx.x / {0});",
                                  block_.lanes));
    if (schedule_.unroll > 1) out_.line("#pragma unroll 1");
    if (schedule_.unroll > 1) out_.open(fmt::format("for (int turn = 0; turn < {}; ++turn) {{", schedule_.unroll));
    const std::string vector =
        schedule_.unroll > 1 ? fmt::format("(turn * {} + lane)", block_.lanes) : std::string("lane");
    out_.line(fmt::format("const {0} {1} = first_{1} + {2}{3};", index_type(whole_), column(), vector,
                          schedule_.vector > 1 ? fmt::format(" * {}", schedule_.vector) : ""));
    if (!(column_count().is_constant() && column_count().constant() % block_.points == 0))
      out_.line(fmt::format("if ({} >= {}) {};", column(), dim_text(column_count(), names_of(whole_)),
                            schedule_.unroll > 1 ? "break" : "return"));
    emit_positions();
    emit_rows();
    if (schedule_.unroll > 1) out_.close();
  }

  // "pack<i64, 4> x5;" for each value that says where elements lie in all rows alike.
  void emit_positions() {
    if (positions_.empty()) return;
    for (const InstrId id : positions_)
      out_.line(fmt::format("pack<{}, {}> x{};", held_type(kernel_, id), schedule_.vector, id));
    Points points{.lanes = lanes_, .instrs = needed(kernel_, positions_)};
    points.registers.saved = positions_;
    out_.open("{");
    emit_points(out_, kernel_, points);
    out_.close();
  }

  void emit_rows() {
    out_.unrolled("u", schedule_.strip);
    out_.line(block_.teams == 1 ? "const int row = u;" : fmt::format("const int row = team + u * {};", block_.teams));
    if (!whole_blocks()) out_.line("if (row >= rows) break;");
    out_.line(fmt::format("const {0} {1} = first_{1} + row;", index_type(whole_), row()));
    for (std::size_t i = 0; i < rows_.size(); ++i)
      out_.line(fmt::format("const {}* row{} = rows{} + row * {};",
                            storage_type(whole_.operands[static_cast<std::size_t>(rows_[i].operand)].dtype), i, i,
                            rows_[i].length));
    Points points = map_points(kernel_, schedule_);
    std::vector<bool> found(kernel_.body.size());
    for (const InstrId id : positions_) found[static_cast<std::size_t>(id)] = true;
    compute_from_results(kernel_, roots_of(kernel_, points.stores), found, points);
    emit_points(out_, kernel_, points);
    out_.close();
  }

  const Kernel& whole_;
  const Target& target_;
  const std::vector<GatheredRows> rows_;
  const Kernel kernel_;  // whose loads are from shared memory
  const MapSchedule& schedule_ = std::get<MapSchedule>(whole_.schedule);
  const GatheringBlock block_ = gathering_block(whole_, schedule_);
  const std::vector<InstrId> positions_ = shared_positions(whole_, rows_);
  const Lanes lanes_ = {.axis = static_cast<int>(whole_.axes.size()) - 1, .vector = schedule_.vector};
  Writer out_{1};
};

}  // namespace

Source emit_gathering_map(const Kernel& kernel, const Target& target) { return GatherEmitter(kernel, target).emit(); }

}  // namespace tenon::codegen::cuda

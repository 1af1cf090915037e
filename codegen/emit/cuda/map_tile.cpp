// Map kernels whose loads lie across their stores: a block has a tile of the innermost axis and of the one along which
// those loads are contiguous. It reads their elements along the latter into shared memory, and then does the kernel's
// work along the former, the elements coming from there.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/emit/cuda/emit.h"
#include "codegen/emit/cuda/expression.h"
#include "codegen/emit/cuda/points.h"
#include "codegen/emit/cuda/spell.h"
#include "codegen/transpose.h"
#include "ir/check.h"

namespace tenon::codegen::cuda {
namespace {

struct Tiling {
  const Kernel& kernel;
  const MapSchedule& schedule;
  int row_axis, column_axis;
  std::vector<InstrId> loads;

  const std::string& row() const { return kernel.axes[static_cast<std::size_t>(row_axis)].name; }
  const std::string& column() const { return kernel.axes[static_cast<std::size_t>(column_axis)].name; }
  const Dim& rows() const { return kernel.axes[static_cast<std::size_t>(row_axis)].extent; }
  const Dim& columns() const { return kernel.axes[static_cast<std::size_t>(column_axis)].extent; }
};

Tiling tiling_of(const Kernel& kernel) {
  const auto& schedule = std::get<MapSchedule>(kernel.schedule);
  return {kernel, schedule, schedule.tile_axis, static_cast<int>(kernel.axes.size()) - 1,
          transposed_loads(kernel, schedule.tile_axis)};
}

bool divides(int size, const Dim& extent) { return extent.is_constant() && extent.constant() % size == 0; }

// "const int i0 = first_i0 + row, i1 = first_i1 + column;"
void define_point(Writer& out, const Tiling& tiling) {
  out.line(fmt::format("const {0} {1} = first_{1} + row, {2} = first_{2} + column;", index_type(tiling.kernel),
                       tiling.row(), tiling.column()));
}

// The block's tile, and its point on the axes that are not tiled. Neighbouring blocks lie along the innermost axis.
Dim emit_place(Writer& out, const Tiling& tiling) {
  const Kernel& kernel = tiling.kernel;
  const MapSchedule& schedule = tiling.schedule;
  std::vector<Digit> digits;
  for (std::size_t axis = 0; axis < kernel.axes.size(); ++axis)
    if (static_cast<int>(axis) != tiling.row_axis && static_cast<int>(axis) != tiling.column_axis)
      digits.push_back({kernel.axes[axis].name, kernel.axes[axis].extent});
  digits.push_back({"tile_" + tiling.row(), blocks_of(tiling.rows(), schedule.tile_rows)});
  digits.push_back({"tile_" + tiling.column(), blocks_of(tiling.columns(), schedule.tile_columns)});
  decode_digits(out, kernel, digits, "blockIdx.x");
  out.line(fmt::format("const {0} first_{1} = tile_{1} * {2}, first_{3} = tile_{3} * {4};", index_type(kernel),
                       tiling.row(), schedule.tile_rows, tiling.column(), schedule.tile_columns));
  Dim blocks(1);
  for (const Digit& digit : digits) blocks = blocks * digit.extent;
  return blocks;
}

// What is left of an axis from the tile's first point on: "64", or "n0 - first_i0".
std::string limit(const Tiling& tiling, const std::string& axis, const Dim& extent, int size) {
  if (divides(size, extent)) return fmt::format("{}{}", tiling.kernel.wide_index ? "(i64)" : "", size);
  return fmt::format("{} - first_{}", dim_text(extent, names_of(tiling.kernel)), axis);
}

void emit_fill(Writer& out, const Tiling& tiling, std::size_t which) {
  const Kernel& kernel = tiling.kernel;
  const MapSchedule& schedule = tiling.schedule;
  const InstrId load = tiling.loads[which];
  const int vector = transposed_vector(kernel, load, tiling.row_axis, schedule.tile_vector);
  out.open(fmt::format("fill_tile<{}, {}>(t{}, {}, {}, [&](int row, int column) {{", vector, schedule.threads, load,
                       limit(tiling, tiling.row(), tiling.rows(), schedule.tile_rows),
                       limit(tiling, tiling.column(), tiling.columns(), schedule.tile_columns)));
  define_point(out, tiling);
  out.line(fmt::format("return {};", vector_load(kernel, load, tiling.row_axis, vector, names_of(kernel))));
  out.close("});");
}

// "i0 < n0 && i1 < n1", or nothing where tiles divide the axes.
std::string inside_of(const Tiling& tiling) {
  std::string inside;
  const auto require = [&](const std::string& axis, const Dim& extent, int size) {
    if (!divides(size, extent))
      inside += fmt::format("{}{} < {}", inside.empty() ? "" : " && ", axis, dim_text(extent, names_of(tiling.kernel)));
  };
  require(tiling.row(), tiling.rows(), tiling.schedule.tile_rows);
  require(tiling.column(), tiling.columns(), tiling.schedule.tile_columns);
  return inside;
}

// Beyond the edges nothing is stored, and nothing but the tiles is read.
void emit_inside(Writer& out, const Tiling& tiling, Points& points) {
  const std::string inside = inside_of(tiling);
  if (inside.empty()) return;
  out.line(fmt::format("const bool inside = {};", inside));
  const bool only_tiles = std::all_of(points.instrs.begin(), points.instrs.end(), [&](InstrId id) {
    return tiling.kernel.instr(id).kind != InstrKind::load ||
           std::find(tiling.loads.begin(), tiling.loads.end(), id) != tiling.loads.end();
  });
  if (only_tiles) {
    points.condition = "inside";
  } else {
    out.line("if (!inside) continue;");
  }
}

void emit_work(Writer& out, const Tiling& tiling) {
  const Kernel& kernel = tiling.kernel;
  const MapSchedule& schedule = tiling.schedule;
  const int per_row = schedule.tile_columns / schedule.vector;
  const int slots = schedule.tile_rows * per_row;
  TENON_CHECK(slots % schedule.threads == 0 && schedule.threads % per_row == 0,
              "the threads of a block do not divide its tile");
  out.unrolled(fmt::format("for (int slot = 0; slot < {}; slot += {}) {{", slots, schedule.threads));
  out.line(fmt::format("const int row = slot / {0} + (int)(threadIdx.x / {0});", per_row));
  out.line(fmt::format("const int column = (int)(threadIdx.x % {}) * {};", per_row, schedule.vector));
  define_point(out, tiling);
  Points points = map_points(kernel, schedule);
  points.held = tiling.loads;
  emit_inside(out, tiling, points);
  for (InstrId load : tiling.loads) {
    const DType stored = kernel.operands[static_cast<std::size_t>(kernel.instr(load).access.operand)].dtype;
    out.line(fmt::format("const {} x{} = t{}.get<{}>(row, column);", pack_type(stored, schedule.vector), load, load,
                         schedule.vector));
  }
  emit_points(out, kernel, points);
  out.close();
}

}  // namespace

Source emit_transposing_map(const Kernel& kernel) {
  const Tiling tiling = tiling_of(kernel);
  const MapSchedule& schedule = tiling.schedule;
  TENON_CHECK(!tiling.loads.empty(), "a tile without loads");
  Writer out(1);
  for (InstrId load : tiling.loads) {
    const DType stored = kernel.operands[static_cast<std::size_t>(kernel.instr(load).access.operand)].dtype;
    out.line(fmt::format("__shared__ transpose_tile<{}, {}, {}> t{};", storage_type(stored), schedule.tile_rows,
                         schedule.tile_columns, load));
  }
  LaunchRule launch;
  launch.grid_x = emit_place(out, tiling);
  launch.block = schedule.threads;
  for (std::size_t which = 0; which < tiling.loads.size(); ++which) emit_fill(out, tiling, which);
  out.line("__syncthreads();");
  emit_work(out, tiling);
  return finish(kernel, out, launch);
}

}  // namespace tenon::codegen::cuda

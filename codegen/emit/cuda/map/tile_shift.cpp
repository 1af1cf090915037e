// Tiles of transposing Map kernels whose rows begin at any element in memory. What is loaded goes through registers,
// where two aligned vectors become the one between them; what is stored is dealt so that vectors begin where the row is
// aligned, and is read from the tile at any column. See tile.h.
#include <fmt/format.h>

#include "codegen/emit/cuda/emit.h"
#include "codegen/emit/cuda/map/tile.h"
#include "codegen/emit/cuda/points.h"
#include "codegen/emit/cuda/vectors.h"

namespace tenon::codegen::cuda {
namespace {

Names at(const Tiling& tiling, const std::string& row, const std::string& column) {
  Names names = names_of(tiling.kernel);
  names.axes[static_cast<std::size_t>(tiling.row_axis)] = row;
  names.axes[static_cast<std::size_t>(tiling.column_axis)] = column;
  return names;
}

// Whether the two aligned vectors around any of the tile are there: something lies behind both of its last corners.
std::string has_more_behind(const Tiling& tiling, const Access& access, int vector, const std::string& count) {
  const std::string last_row = fmt::format("(first_{} + {})", tiling.row(), tiling.schedule.tile->rows - 1);
  const auto corner = [&](int column) {
    const Names names = at(tiling, last_row, fmt::format("(first_{} + {})", tiling.column(), column));
    return fmt::format("{} + {} < {}", index_text(access.offset, names), vector, count);
  };
  return corner(0) + " && " + corner(tiling.schedule.tile->columns - 1);
}

// "const pack<bf16, 8> x0 = t0.get_any<8>(row, column);" for each tile.
void take(Writer& out, const Tiling& tiling, int vector, const std::string& column) {
  for (InstrId load : tiling.transposed.loads)
    out.line(fmt::format("const {0} x{1} = t{1}.get_any<{2}>(row, {3});",
                         pack_type(stored_dtype(tiling.kernel, tiling.kernel.instr(load).access), vector), load, vector,
                         column));
}

// The work on the vector at (row, column), as far as it is inside: element by element.
void emit_cut(Writer& out, const Tiling& tiling, Points points) {
  const std::string& j = tiling.column();
  out.line("#pragma unroll 1");
  out.open(fmt::format("for (int at = column; at < column + {}; ++at) {{", points.lanes.vector));
  out.line(fmt::format("const {0} {1} = first_{1} + at;", index_type(tiling.kernel), j));
  out.line(fmt::format("if ({0} < 0 || {0} >= {1}) continue;", j, dim_text(tiling.columns(), names_of(tiling.kernel))));
  points.lanes = {.axis = points.lanes.axis};
  take(out, tiling, 1, "at");
  emit_points(out, tiling.kernel, points);
  out.close();
}

// The work on the vector at (row, column); `checked`: it may be outside.
void emit_vector(Writer& out, const Tiling& tiling, bool checked) {
  const Names names = names_of(tiling.kernel);
  Points points = map_points(tiling.kernel, tiling.schedule);
  points.registers.held = tiling.transposed.loads;
  points.lanes.peeled = &tiling.kernel.stores[0].access;
  const std::string row_is_inside = fmt::format("{} < {}", tiling.row(), dim_text(tiling.rows(), names));
  if (checked)
    out.open(fmt::format("if ({0} && {1} >= 0 && {1} + {2} <= {3}) {{", row_is_inside, tiling.column(),
                         points.lanes.vector, dim_text(tiling.columns(), names)));
  take(out, tiling, points.lanes.vector, "column");
  emit_points(out, tiling.kernel, points);
  if (!checked) return;
  out.close(fmt::format("}} else if ({}) {{", row_is_inside));
  emit_cut(out, tiling, points);
  out.close();
}

// All vectors of the tile. Those of a row begin `past` elements ahead of the columns that are dealt to the threads.
void emit_vectors(Writer& out, const Tiling& tiling, bool checked) {
  const std::string type = index_type(tiling.kernel);
  const int vector = tiling.schedule.vector;
  open_vectors(out, tiling);
  out.line(fmt::format("const {0} {1} = first_{1} + row;", type, tiling.row()));
  const Names dealt = at(tiling, tiling.row(), fmt::format("(first_{} + {})", tiling.column(), vector));
  out.line(fmt::format("const int past = (int)(({}) & {});", index_text(tiling.kernel.stores[0].access.offset, dealt),
                       vector - 1));
  out.line(fmt::format("const int column = (int)(threadIdx.x % {0}) * {1} + {1} - past;", tiling.per_row(), vector));
  out.line(fmt::format("const {0} {1} = first_{1} + column;", type, tiling.column()));
  emit_vector(out, tiling, checked);
  out.close();
}

}  // namespace

void emit_shifted_fill(Writer& out, const Tiling& tiling, InstrId load) {
  const Kernel& kernel = tiling.kernel;
  const Access& access = kernel.instr(load).access;
  const Names names = names_of(kernel);
  const int vector = static_cast<int>(16 / size_of(stored_dtype(kernel, access)));
  const std::string count = dim_text(element_count(operand_at(kernel, access).shape), names);
  const std::string type = index_type(kernel), i = tiling.row(), j = tiling.column();
  const auto fill = [&](bool whole) {
    out.open(fmt::format("fill_part<{}, {}, {}>(t{}, {} - first_{}, {} - first_{}, [&](int row, int column) {{", vector,
                         tiling.schedule.threads, whole, load, dim_text(tiling.rows(), names), i,
                         dim_text(tiling.columns(), names), j));
    out.line(fmt::format("const {0} {1} = first_{1} + row, {2} = first_{2} + column;", type, i, j));
    if (!whole && tiling.shifts_stores)
      out.line(fmt::format("if ({} < 0) return {}{{}};", j, pack_type(stored_dtype(kernel, access), vector)));
    out.line(fmt::format("return from_around<{0}>(load_around<{0}, {1}>({2}, {3}, {4}), {3});", vector, whole,
                         operand_name(kernel, access.operand), index_text(access.offset, names), count));
    out.close("});");
  };
  out.open(fmt::format("if ({} && {}) {{", interior(tiling), has_more_behind(tiling, access, vector, count)));
  fill(true);
  out.close("} else {");
  fill(false);
  out.close();
}

// The last vectors of a row are left to the next tile. Tiles inside the domain are not checked.
void emit_shifted_work(Writer& out, const Tiling& tiling) {
  out.line(fmt::format("if (threadIdx.x % {} == {}) return;", tiling.per_row(), tiling.per_row() - 1));
  out.open(fmt::format("if ({}) {{", interior(tiling)));
  emit_vectors(out, tiling, false);
  out.close("} else {");
  emit_vectors(out, tiling, true);
  out.close();
}

}  // namespace tenon::codegen::cuda

// Map kernels with accesses along two axes: a block has a tile of the innermost axis and of the one along which the
// transposed accesses are contiguous. It reads those loads along the latter into shared memory, does the kernel's work
// along the former, the elements coming from there, and leaves transposed stores there to be written along the latter.
#include "codegen/emit/cuda/map/tile.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/analysis/transpose.h"
#include "codegen/emit/cuda/emit.h"
#include "codegen/emit/cuda/points.h"
#include "codegen/emit/cuda/text/definitions.h"
#include "codegen/emit/cuda/text/expression.h"
#include "codegen/emit/cuda/text/spell.h"
#include "codegen/emit/cuda/vectors.h"
#include "codegen/kernel/uses.h"

namespace tenon::codegen::cuda {
namespace {

Tiling tiling_of(const Kernel& kernel) {
  const auto& schedule = std::get<MapSchedule>(kernel.schedule);
  return {kernel,
          schedule,
          schedule.tile->axis,
          static_cast<int>(kernel.axes.size()) - 1,
          transposed_along(kernel, schedule.tile->axis),
          draws_along(kernel, *schedule.tile),
          shifts_stores(kernel, schedule)};
}

// Columns from one tile to the next: tiles that are shifted overlap by a vector, so that each row's aligned vectors lie
// within one of them. The first begins a vector ahead of the axis.
int column_step(const Tiling& tiling) {
  return tiling.schedule.tile->columns - (tiling.shifts_stores ? tiling.schedule.vector : 0);
}

Dim column_tiles(const Tiling& tiling) {
  const int ahead = tiling.shifts_stores ? tiling.schedule.vector - 1 : 0;
  return blocks_of(tiling.columns() + Dim(ahead), column_step(tiling));
}

bool divides(int size, const Dim& extent) { return size > 0 && extent.is_constant() && extent.constant() % size == 0; }

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
  digits.push_back({"tile_" + tiling.row(), blocks_of(tiling.rows(), schedule.tile->rows)});
  digits.push_back({"tile_" + tiling.column(), column_tiles(tiling)});
  decode_digits(out, kernel, digits, "blockIdx.x");
  out.line(fmt::format("const {0} first_{1} = tile_{1} * {2}, first_{3} = tile_{3} * {4}{5};", index_type(kernel),
                       tiling.row(), schedule.tile->rows, tiling.column(), column_step(tiling),
                       tiling.shifts_stores ? fmt::format(" - {}", schedule.vector) : ""));
  Dim blocks(1);
  for (const Digit& digit : digits) blocks = blocks * digit.extent;
  return blocks;
}

// What is left of an axis from the tile's first point on: "64", or "n0 - first_i0".
std::string limit(const Tiling& tiling, const std::string& axis, const Dim& extent, int size) {
  if (divides(size, extent)) return fmt::format("{}{}", tiling.kernel.wide_index ? "(i64)" : "", size);
  return fmt::format("{} - first_{}", dim_text(extent, names_of(tiling.kernel)), axis);
}

void declare_tile(Writer& out, const Tiling& tiling, const std::string& name, DType dtype) {
  out.line(fmt::format("__shared__ transpose_tile<{}, {}, {}> {};", storage_type(dtype), tiling.schedule.tile->rows,
                       tiling.schedule.tile->columns, name));
}

// "<8, 512>(t0, 64, 64": threads move `vector` elements along the rows of a tile within the axes' extents.
std::string walk(const Tiling& tiling, const std::string& tile, int vector) {
  return fmt::format("<{}, {}>({}, {}, {}", vector, tiling.schedule.threads, tile,
                     limit(tiling, tiling.row(), tiling.rows(), tiling.schedule.tile->rows),
                     limit(tiling, tiling.column(), tiling.columns(),
                           tiling.schedule.tile->shift ? 0 : tiling.schedule.tile->columns));
}

void emit_fill(Writer& out, const Tiling& tiling, InstrId load) {
  const int vector =
      transposed_vector(tiling.kernel, tiling.kernel.instr(load).access, tiling.row_axis, tiling.schedule.tile->vector);
  out.open(fmt::format("fill_tile{}, [&](int row, int column) {{", walk(tiling, fmt::format("t{}", load), vector)));
  define_point(out, tiling);
  if (tiling.shifts_stores)  // the first tile begins before the operand
    out.line(fmt::format("if ({} < 0) return {}{{}};", tiling.column(),
                         pack_type(stored_dtype(tiling.kernel, tiling.kernel.instr(load).access), vector)));
  out.line(fmt::format("return {};",
                       vector_load(tiling.kernel, load, {.axis = tiling.row_axis, .vector = vector},
                                   names_of(tiling.kernel), map_points(tiling.kernel, tiling.schedule).cache)));
  out.close("});");
}

void emit_flush(Writer& out, const Tiling& tiling, int index) {
  const Kernel& kernel = tiling.kernel;
  const Access& access = store_at(kernel, index).access;
  const int vector = transposed_vector(kernel, access, tiling.row_axis, tiling.schedule.tile->vector);
  out.open(fmt::format("flush_tile{}, [&](int row, int column, const {}& x) {{",
                       walk(tiling, fmt::format("u{}", index), vector),
                       pack_type(stored_dtype(tiling.kernel, access), vector)));
  define_point(out, tiling);
  out.line(fmt::format("{0}<{1}, {1}>({2}, x);",
                       tiling.schedule.cache.streaming && vector > 1 ? "store_streaming" : "store", vector,
                       address(kernel, access, names_of(kernel))));
  out.close("});");
}

bool is_tiled(const Tiling& tiling, InstrId id) {
  return varies(tiling.kernel, id, tiling.row_axis) || varies(tiling.kernel, id, tiling.column_axis);
}

// The keys of what is drawn, once for a block's tile.
std::vector<InstrId> emit_keys(Writer& out, const Tiling& tiling) {
  std::vector<InstrId> keyed;
  for (const InstrId draw : tiling.draws) {
    const InstrId seed = tiling.kernel.instr(draw).args[0];
    if (is_tiled(tiling, seed) || contains(keyed, seed)) continue;
    keyed.push_back(seed);
  }
  define(out, tiling.kernel, needed(tiling.kernel, keyed), names_of(tiling.kernel));
  for (const InstrId seed : keyed)
    out.line(fmt::format("const philox_keys {}({});", keys_name(seed), value_name(tiling.kernel, seed)));
  return keyed;
}

// Random bits, drawn along the blocks' words.
void emit_draw(Writer& out, const Tiling& tiling, InstrId draw, const std::vector<InstrId>& keyed) {
  const Kernel& kernel = tiling.kernel;
  const Instr& random = kernel.instr(draw);
  const InstrId seed = random.args[0];
  const Names names = names_of(kernel);
  out.open(fmt::format("fill_tile{}, [&](int row, int column) {{", walk(tiling, fmt::format("t{}", draw), 4)));
  define_point(out, tiling);
  if (!contains(keyed, seed)) define(out, kernel, needed(kernel, {seed}), names);
  out.line(fmt::format("return random_elements<4, {}>({}, {}, {});", block_type(kernel, random),
                       contains(keyed, seed) ? keys_name(seed) : value_name(kernel, seed), random.stream,
                       random_index(kernel, random.index, names)),
           comment(random));
  out.close("});");
}

// "i0 < n0 && i1 < n1", or nothing where tiles divide the axes.
std::string inside_of(const Tiling& tiling) {
  std::string inside;
  const auto require = [&](const std::string& axis, const Dim& extent, int size) {
    if (!divides(size, extent))
      inside += fmt::format("{}{} < {}", inside.empty() ? "" : " && ", axis, dim_text(extent, names_of(tiling.kernel)));
  };
  require(tiling.row(), tiling.rows(), tiling.schedule.tile->rows);
  require(tiling.column(), tiling.columns(), tiling.schedule.tile->columns);
  return inside;
}

// Beyond the edges nothing is stored, and nothing but the tiles is read.
void emit_inside(Writer& out, const Tiling& tiling, const std::string& inside, Points& points) {
  out.line(fmt::format("const bool inside = {};", inside));
  const std::vector<InstrId>& tiled = tiling.transposed.loads;
  const bool only_tiles = std::all_of(points.instrs.begin(), points.instrs.end(), [&](InstrId id) {
    return tiling.kernel.instr(id).kind != InstrKind::load || contains(tiled, id);
  });
  if (only_tiles) {
    points.condition = "inside";
  } else {
    out.line("if (!inside) continue;");
  }
}

// The kernel's work on the tile's points, those where `inside` holds.
void emit_work(Writer& out, const Tiling& tiling, const std::string& inside) {
  const Kernel& kernel = tiling.kernel;
  const MapSchedule& schedule = tiling.schedule;
  open_vectors(out, tiling);
  out.line(fmt::format("const int column = (int)(threadIdx.x % {}) * {};", tiling.per_row(), schedule.vector));
  define_point(out, tiling);
  Points points = map_points(kernel, schedule);
  const auto from_tile = [&](InstrId id, const std::string& type) {
    points.registers.held.push_back(id);
    out.line(fmt::format("const {0} x{1} = t{1}.get<{2}>(row, column);", type, id, schedule.vector));
  };
  points.shared.stores = tiling.transposed.stores;
  if (!inside.empty()) emit_inside(out, tiling, inside, points);
  for (InstrId load : tiling.transposed.loads)
    from_tile(load, pack_type(stored_dtype(kernel, kernel.instr(load).access), schedule.vector));
  for (InstrId draw : tiling.draws) from_tile(draw, pack_type(kernel.instr(draw).dtype, schedule.vector));
  emit_points(out, kernel, points);
  out.close();
}

// Bytes of the narrowest vector that a thread stores.
std::int64_t stored_bytes(const Tiling& tiling) {
  std::int64_t bytes = 16;
  for (const Store& store : tiling.kernel.stores)
    bytes = std::min(bytes, tiling.schedule.vector * size_of(stored_dtype(tiling.kernel, store.access)));
  return bytes;
}

// Narrow stores are bound by their instructions: their points are only checked in tiles at the edges.
void emit_all_work(Writer& out, const Tiling& tiling) {
  constexpr std::int64_t kNarrowBytes = 8;
  const std::string inside = inside_of(tiling);
  if (inside.empty() || stored_bytes(tiling) >= kNarrowBytes) {
    emit_work(out, tiling, inside);
    return;
  }
  out.open(fmt::format("if ({}) {{", interior(tiling)));
  emit_work(out, tiling, "");
  out.close("} else {");
  emit_work(out, tiling, inside);
  out.close();
}

}  // namespace

std::string interior(const Tiling& tiling) {
  const Names names = names_of(tiling.kernel);
  const std::string begins = tiling.shifts_stores ? fmt::format("first_{} >= 0 && ", tiling.column()) : "";
  return fmt::format("first_{0} + {1} <= {2} && {3}first_{4} + {5} <= {6}", tiling.row(), tiling.schedule.tile->rows,
                     dim_text(tiling.rows(), names), begins, tiling.column(), tiling.schedule.tile->columns,
                     dim_text(tiling.columns(), names));
}

void open_vectors(Writer& out, const Tiling& tiling) {
  const int per_row = tiling.per_row();
  out.line("#pragma unroll");
  out.open(fmt::format("for (int slot = 0; slot < {}; slot += {}) {{", tiling.schedule.tile->rows * per_row,
                       tiling.schedule.threads));
  out.line(fmt::format("const int row = slot / {0} + (int)(threadIdx.x / {0});", per_row));
}

Source emit_transposing_map(const Kernel& kernel, const Target& target) {
  const Tiling tiling = tiling_of(kernel);
  const Transposed& transposed = tiling.transposed;
  Writer out(1);
  join_stream(out, target);
  for (InstrId load : transposed.loads)
    declare_tile(out, tiling, fmt::format("t{}", load), stored_dtype(kernel, kernel.instr(load).access));
  for (InstrId draw : tiling.draws) declare_tile(out, tiling, fmt::format("t{}", draw), kernel.instr(draw).dtype);
  for (int store : transposed.stores)
    declare_tile(out, tiling, fmt::format("u{}", store), stored_dtype(kernel, store_at(kernel, store).access));
  LaunchRule launch;
  launch.grid_x = emit_place(out, tiling);
  launch.block = tiling.schedule.threads;
  for (InstrId load : transposed.loads)
    shifts_load(kernel, tiling.schedule, load) ? emit_shifted_fill(out, tiling, load) : emit_fill(out, tiling, load);
  const std::vector<InstrId> keyed = emit_keys(out, tiling);
  for (InstrId draw : tiling.draws) emit_draw(out, tiling, draw, keyed);
  if (!transposed.loads.empty() || !tiling.draws.empty()) out.line("__syncthreads();");
  if (tiling.shifts_stores) {
    emit_shifted_work(out, tiling);
  } else {
    emit_all_work(out, tiling);
  }
  if (!transposed.stores.empty()) out.line("__syncthreads();");
  for (int store : transposed.stores) emit_flush(out, tiling, store);
  return finish(kernel, out, launch, target);
}

}  // namespace tenon::codegen::cuda

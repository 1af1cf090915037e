// See flat_tile.h: a block brings a box of the domain to shared memory in the order in which loads lie, and does the
// kernel's work on it in the order of the domain.
#include "codegen/emit/cuda/map/flat_tile.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/analysis/flat_tile.h"
#include "codegen/emit/cuda/emit.h"
#include "codegen/emit/cuda/points.h"
#include "codegen/emit/cuda/text/expression.h"
#include "codegen/emit/cuda/text/spell.h"
#include "codegen/emit/cuda/vectors.h"

namespace tenon::codegen::cuda {
namespace {

struct Flat {
  const Kernel& kernel;
  const MapSchedule& schedule;
  FlatTile tile;

  const std::string& name(int axis) const { return kernel.axes[static_cast<std::size_t>(axis)].name; }
  int extent(int axis) const { return tile.extents[static_cast<std::size_t>(axis)]; }
  int inner() const { return static_cast<int>(kernel.axes.size()) - 1; }
  /// The box's axes, the innermost first.
  std::vector<int> order() const {
    std::vector<int> order;
    for (int axis = inner(); axis >= 0; --axis)
      if (extent(axis) > 1) order.push_back(axis);
    return order;
  }
};

std::string of_block(const Flat& flat, int axis) {
  return (is_cut(flat.kernel, flat.tile, axis) ? "tile_" : "") + flat.name(axis);
}

// The block's box, and its point on the axes that are not in it.
Dim emit_place(Writer& out, const Flat& flat) {
  std::vector<Digit> digits;
  Dim blocks(1);
  for (int axis = 0; axis <= flat.inner(); ++axis) {
    const Dim& extent = flat.kernel.axes[static_cast<std::size_t>(axis)].extent;
    if (flat.extent(axis) > 1 && !is_cut(flat.kernel, flat.tile, axis)) continue;
    digits.push_back({of_block(flat, axis), blocks_of(extent, flat.extent(axis))});
    blocks = blocks * digits.back().extent;
  }
  decode_digits(out, flat.kernel, digits, "blockIdx.x");
  for (int axis = 0; axis <= flat.inner(); ++axis)
    if (is_cut(flat.kernel, flat.tile, axis))
      out.line(fmt::format("const {0} first_{1} = tile_{1} * {2};", index_type(flat.kernel), flat.name(axis),
                           flat.extent(axis)));
  return blocks;
}

// Where point `number` of the box, counted in `order`, is in it: "const int at_i2 = (int)(slot % 12) * 8;" where all of
// a vector lies along the first axis.
void decode_box(Writer& out, const Flat& flat, const std::vector<int>& order, std::string number, int vector) {
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::string& name = flat.name(order[i]);
    const int extent = flat.extent(order[i]) / (i == 0 ? vector : 1);
    const std::string times = i == 0 && vector > 1 ? fmt::format(" * {}", vector) : "";
    if (i + 1 == order.size()) {
      out.line(fmt::format("const int at_{} = (int){}{};", name, parenthesized(number), times));
      return;
    }
    out.line(fmt::format("const int at_{} = (int)({} % {}u){};", name, number, extent, times));
    out.line(fmt::format("const u32 past_{} = {} / {}u;", name, number, extent));
    number = "past_" + name;
  }
}

// The same of the vector `slot`; whether it lies along the first axis.
bool lies_in_axis(const Flat& flat, const std::vector<int>& order, int vector) {
  return flat.extent(order[0]) % vector == 0;
}
void decode_vector(Writer& out, const Flat& flat, const std::vector<int>& order, int vector) {
  if (lies_in_axis(flat, order, vector))
    decode_box(out, flat, order, "slot", vector);
  else
    decode_box(out, flat, order, fmt::format("(slot * {}u)", vector), 1);
}

// "const int i2 = first_i2 + at_i2;"
void define_point(Writer& out, const Flat& flat) {
  for (const int axis : flat.order())
    out.line(fmt::format("const {0} {1} = {2}at_{1};", index_type(flat.kernel), flat.name(axis),
                         is_cut(flat.kernel, flat.tile, axis) ? fmt::format("first_{} + ", flat.name(axis)) : ""));
}

// "i0 < 100 && i2 < 33", or nothing where boxes divide the domain.
std::string inside_of(const Flat& flat) {
  std::string inside;
  for (const int axis : flat.order())
    if (is_ragged(flat.kernel, flat.tile, axis))
      inside += fmt::format("{}{} < {}", inside.empty() ? "" : " && ", flat.name(axis),
                            dim_text(flat.kernel.axes[static_cast<std::size_t>(axis)].extent, names_of(flat.kernel)));
  return inside;
}

// "at_i1 * 66 + at_i2"
std::string place_of(const Flat& flat, const FlatLoad& load) {
  std::string place;
  for (int axis = 0; axis <= flat.inner(); ++axis)
    if (const int stride = load.strides[static_cast<std::size_t>(axis)]; stride != 0)
      place += fmt::format("{}at_{}{}", place.empty() ? "" : " + ", flat.name(axis),
                           stride == 1 ? "" : fmt::format(" * {}", stride));
  return place;
}

void emit_load(Writer& out, const Flat& flat, const FlatLoad& load) {
  const Kernel& kernel = flat.kernel;
  const Access& access = kernel.instr(load.id).access;
  const Names names = names_of(kernel);
  decode_vector(out, flat, load.order, load.vector);
  define_point(out, flat);
  const std::string guard = guard_text(access.guards, names), inside = inside_of(flat);
  const std::string condition = inside + (inside.empty() || guard.empty() ? "" : " && ") + guard;
  const bool kept = contains(map_points(kernel, flat.schedule).cache.kept, load.id);
  const std::string from = address(kernel, access, names), width = fmt::format("<{0}, {0}>", load.vector);
  if (kept || condition.empty())  // without a branch
    out.line(fmt::format("return {}{}({}{}{});", kept ? "load_kept" : "load", width, from,
                         condition.empty() ? "" : ", ", condition));
  else
    out.line(fmt::format("return {} ? load{}({}) : {}{{}};", condition, width, from,
                         pack_type(stored_dtype(kernel, access), load.vector)));
}

// What was loaded goes to its places, in pieces.
void emit_put(Writer& out, const Flat& flat, const FlatLoad& load) {
  const std::string type = storage_type(stored_dtype(flat.kernel, flat.kernel.instr(load.id).access));
  const bool along = lies_in_axis(flat, load.order, load.vector);
  if (along) decode_box(out, flat, load.order, "slot", load.vector);
  const int step = load.strides[static_cast<std::size_t>(load.order[0])];
  if (along) out.line(fmt::format("{}* to = t{} + {};", type, load.id, place_of(flat, load)));
  out.line("#pragma unroll");
  out.open(fmt::format("for (int j = 0; j < {}; j += {}) {{", load.vector, load.piece));
  if (!along) {
    decode_box(out, flat, load.order, fmt::format("(slot * {}u + j)", load.vector), 1);
    out.line(fmt::format("{}* to = t{} + {};", type, load.id, place_of(flat, load)));
  }
  const std::string to = along ? fmt::format("to + j{}", step == 1 ? "" : fmt::format(" * {}", step)) : "to";
  out.line(fmt::format("put_piece<{}>({}, x, j);", load.piece, to));
  out.close();
}

void emit_fill(Writer& out, const Flat& flat, const FlatLoad& load) {
  const DType dtype = stored_dtype(flat.kernel, flat.kernel.instr(load.id).access);
  out.open(fmt::format("fill_flat<{}, {}, {}, {}>([&](u32 slot) {{", storage_type(dtype), load.vector,
                       flat.tile.points / load.vector, flat.schedule.threads));
  emit_load(out, flat, load);
  out.close(fmt::format("}}, [&](u32 slot, const {}& x) {{", pack_type(dtype, load.vector)));
  emit_put(out, flat, load);
  out.close("});");
}

// The kernel's work on the box's points.
void emit_work(Writer& out, const Flat& flat) {
  constexpr int kMostUnrolled = 8;
  const Kernel& kernel = flat.kernel;
  const int vector = flat.schedule.vector, slots = flat.tile.points / vector, threads = flat.schedule.threads;
  Points points = map_points(kernel, flat.schedule);
  points.cache.whole_stores = true;  // NVVM 13.0 stored what comes from the tile element by element
  points.lanes.flat =
      vector > 1 && (!lies_in_axis(flat, {flat.inner()}, vector) ||
                     extent_of(kernel, kernel.axes.size() - 1, kernel.axes.size()).constant() % vector != 0);
  out.line(fmt::format("#pragma unroll {}", std::min((slots + threads - 1) / threads, kMostUnrolled)));
  out.open(fmt::format("for (int first = 0; first < {}; first += {}) {{", slots, threads));
  out.line("const u32 slot = first + threadIdx.x;");
  if (slots % threads != 0) out.line(fmt::format("if (slot >= {}) break;", slots));
  decode_vector(out, flat, flat.order(), vector);
  define_point(out, flat);
  if (const std::string inside = inside_of(flat); !inside.empty())
    out.line(fmt::format("if (!({})) continue;", inside));
  for (const FlatLoad& load : flat.tile.loads) {
    points.registers.held.push_back(load.id);
    out.line(fmt::format("const {} x{} = load<{}, {}>(t{} + {});",
                         pack_type(stored_dtype(kernel, kernel.instr(load.id).access), vector), load.id, vector,
                         std::min(load.aligned, vector), load.id, place_of(flat, load)));
  }
  emit_points(out, kernel, points);
  out.close();
}

}  // namespace

Source emit_flat_tile(const Kernel& kernel, const Target& target) {
  const auto& schedule = std::get<MapSchedule>(kernel.schedule);
  const Flat flat{kernel, schedule, *flat_tile_of(kernel, schedule)};
  Writer out(1);
  join_stream(out, target);
  for (const FlatLoad& load : flat.tile.loads)
    out.line(fmt::format("__shared__ __align__(16) {} t{}[{}];",
                         storage_type(stored_dtype(kernel, kernel.instr(load.id).access)), load.id, load.elements));
  LaunchRule launch;
  launch.grid_x = emit_place(out, flat);
  launch.block = schedule.threads;
  for (const FlatLoad& load : flat.tile.loads) emit_fill(out, flat, load);
  out.line("__syncthreads();");
  emit_work(out, flat);
  return finish(kernel, out, launch, target);
}

}  // namespace tenon::codegen::cuda

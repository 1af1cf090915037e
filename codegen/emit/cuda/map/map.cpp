// Map kernels: one thread for each `vector` consecutive points of the innermost axis, or of the whole domain across the
// ends of rows, found from one linear index over the domain. Relies on axes being collapsed, so that most kernels have
// one.
#include <fmt/format.h>

#include "codegen/analysis/interior.h"
#include "codegen/analysis/overlap.h"
#include "codegen/analysis/vectorize.h"
#include "codegen/emit/cuda/emit.h"
#include "codegen/emit/cuda/map/flat_tile.h"
#include "codegen/emit/cuda/points.h"
#include "codegen/emit/cuda/stretches.h"
#include "codegen/emit/cuda/text/definitions.h"
#include "codegen/emit/cuda/vectors.h"

namespace tenon::codegen::cuda {
namespace {

constexpr std::size_t kManyOperands = 16;  // beyond, the compiler spilled rather than take registers of other blocks

// The points of a vector that is none, one by one.
void emit_singly(Writer& out, const Kernel& kernel, const Points& points, const std::string& condition) {
  Points scalar = points;
  scalar.lanes = {.axis = points.lanes.axis};
  scalar.registers.held.clear();
  out.line("#pragma unroll 1");
  out.open(fmt::format("for ({} last = point; {}; ++last) {{", unsigned_index_type(kernel), condition));
  decode_axes(out, kernel, 0, kernel.axes.size(), "last");
  emit_points(out, kernel, scalar);
  out.close();
}

// The last vector of a domain that the vector does not divide: element by element.
void emit_ragged(Writer& out, const Kernel& kernel, const Points& points, const std::string& total) {
  out.open(fmt::format("if (point + {} <= {}) {{", points.lanes.vector, total));
  emit_points(out, kernel, points);
  out.close("} else {");
  emit_singly(out, kernel, points, fmt::format("last < {}", total));
  out.close();
}

// The vectors of one thread.
struct Share {
  const Kernel& kernel;
  const MapSchedule& schedule;
  Dim count;          // points of the domain, those that a thread has of several rows as one
  std::string total;  // the same, as text
  bool exact;         // every thread of every block has all its vectors
  bool whole;         // no vector is cut by the end of the domain

  std::int64_t per_block() const { return std::int64_t{schedule.threads} * schedule.vector * schedule.unroll; }
};

// The extent of an axis in threads' shares: of the one before the innermost a thread has several points.
Dim shares_along(const Kernel& kernel, const MapSchedule& schedule, std::size_t axis) {
  const Dim& extent = kernel.axes[axis].extent;
  return schedule.strip > 1 && axis + 2 == kernel.axes.size() ? blocks_of(extent, schedule.strip) : extent;
}

Share share_of(const Kernel& kernel, const MapSchedule& schedule) {
  const std::size_t rank = kernel.axes.size();
  Dim count(1);
  for (std::size_t axis = 0; axis < rank; ++axis) count = count * shares_along(kernel, schedule, axis);
  const bool along_all = rank == 1 || schedule.flat;
  const Dim& along = along_all ? count : kernel.axes.back().extent;
  const bool whole = schedule.vector == 1 ||
                     (rank > 0 && power_of_two_divisor(along, schedule.vector, kernel.symbols) == schedule.vector);
  Share share{kernel, schedule, count, dim_text(count, names_of(kernel)), false, whole};
  share.exact = count.is_constant() && count.constant() % share.per_block() == 0;
  return share;
}

// "const u32 point = (blockIdx.x * 256 + threadIdx.x) * 4;"
void define_point(Writer& out, const Share& share) {
  const MapSchedule& schedule = share.schedule;
  std::string block = share.kernel.wide_index ? "(u64)blockIdx.x" : "blockIdx.x";
  if (schedule.unroll > 1 && !schedule.spread) block = fmt::format("({} * {} + u)", block, schedule.unroll);
  const std::string thread = fmt::format("{} * {} + threadIdx.x", block, schedule.threads);
  out.line(fmt::format("const {} point = {};", unsigned_index_type(share.kernel),
                       schedule.vector > 1 ? fmt::format("({}) * {}", thread, schedule.vector) : thread));
}

// Where all points of a thread lie in the interior: "i0 >= 1 && i0 < 511 && i1 >= 1 && i1 + 3 < 511".
std::string inside_text(const Kernel& kernel, const Lanes& lanes, const MapSchedule& schedule) {
  const Names names = names_of(kernel);
  std::string text;
  const auto require = [&](const std::string& condition) { text += (text.empty() ? "" : " && ") + condition; };
  const auto last = [](const std::string& name, int points) {
    return points > 1 ? fmt::format("{} + {}", name, points - 1) : name;
  };
  const int outer = schedule.strip > 1 ? lanes.axis - 1 : -1;
  for (const AxisRange& range : schedule.interior ? interior_with(kernel, schedule) : Interior{}) {
    const std::string name = (range.axis == outer ? "first_" : "") + names.axes[static_cast<std::size_t>(range.axis)];
    const int points = range.axis == lanes.axis ? lanes.vector : range.axis == outer ? schedule.strip : 1;
    for (const Dim& low : range.lows) require(fmt::format("{} >= {}", name, dim_text(low, names)));
    for (const Dim& high : range.highs) require(fmt::format("{} < {}", last(name, points), dim_text(high, names)));
  }
  if (outer >= 0) {
    const Axis& axis = kernel.axes[static_cast<std::size_t>(outer)];
    if (axis.extent.bounds(kernel.symbols).divisor % schedule.strip != 0)
      require(fmt::format("{} < {}", last("first_" + axis.name, schedule.strip), dim_text(axis.extent, names)));
  }
  return text.empty() ? "true" : text;
}

// Points of a run in one row, with the stretches that they share.
Points in_row(const Kernel& kernel, Points points, const MapSchedule& schedule) {
  const Lanes& lanes = points.lanes;
  points.lanes.in_row = true;
  points.instrs = needed(kernel, roots_of(kernel, points.stores));
  if (schedule.overlaps) points.overlaps = overlaps_of(kernel, {lanes.axis, lanes.vector, lanes.flat});
  return points;
}

// A vector of one row, with the stretches that its points share.
void emit_vector_of_row(Writer& out, const Kernel& kernel, const Points& points, const MapSchedule& schedule) {
  const Points row = in_row(kernel, points, schedule);
  define_stretches(out, kernel, row.overlaps);
  emit_points(out, kernel, row);
}

// The same, with another body inside.
void emit_vector_of_row(Writer& out, const Share& share, const Points& points) {
  if (!share.schedule.interior) return emit_vector_of_row(out, share.kernel, points, share.schedule);
  out.open(fmt::format("if ({}) {{", inside_text(share.kernel, points.lanes, share.schedule)));
  emit_vector_of_row(out, inside_of(share.kernel, interior_with(share.kernel, share.schedule)), points, share.schedule);
  out.close("} else {");
  emit_vector_of_row(out, share.kernel, points, share.schedule);
  out.close();
}

void open_row(Writer& out, const Share& share) {
  const std::string& name = share.kernel.axes[share.kernel.axes.size() - 2].name;
  out.line(fmt::format("const {0} {1} = first_{1} + u;", index_type(share.kernel), name));
}

// A vector of each of several rows. All loads come before any store, so that the compiler finds those that are the
// same. Rows that do not all lie inside come one by one.
void emit_vectors_of_rows(Writer& out, const Share& share, const Points& points) {
  const Kernel& kernel = share.kernel;
  const MapSchedule& schedule = share.schedule;
  const Axis& axis = kernel.axes[kernel.axes.size() - 2];
  const Kernel inside = schedule.interior ? inside_of(kernel, interior_with(kernel, schedule)) : kernel;
  Points rows = in_row(inside, points, schedule);
  if (!schedule.overlaps && points.lanes.vector == 1)
    rows.overlaps = overlaps_of(inside, {.axis = points.lanes.axis, .apart = true});
  rows.row = "u";
  out.open(fmt::format("if ({}) {{", inside_text(kernel, points.lanes, schedule)));
  rows.stretch_rows = define_stretches_of_rows(out, inside, rows.overlaps, points.lanes.axis - 1, schedule.strip,
                                               [&] { open_row(out, share); });
  out.unrolled("u", schedule.strip);
  open_row(out, share);
  emit_points(out, inside, rows);
  out.close();
  out.close("} else {");
  out.line("#pragma unroll 1");
  out.open(fmt::format("for (int u = 0; u < {} && first_{} + u < {}; ++u) {{", schedule.strip, axis.name,
                       dim_text(axis.extent, names_of(kernel))));
  open_row(out, share);
  emit_vector_of_row(out, kernel, points, schedule);
  out.close();
  out.close();
}

// Vectors that rows cut are taken apart.
void emit_vector_in_row(Writer& out, const Share& share, const Points& points) {
  if (share.whole && !points.lanes.flat) return emit_vector_of_row(out, share, points);
  const Names names = names_of(share.kernel);
  const auto axis = static_cast<std::size_t>(points.lanes.axis);
  out.open(fmt::format("if ({} + {} <= {}) {{", names.axes[axis], points.lanes.vector,
                       dim_text(share.kernel.axes[axis].extent, names)));
  emit_vector_of_row(out, share, points);
  out.close("} else {");
  emit_singly(out, share.kernel, points,
              fmt::format("last < {} && last < point + {}", share.total, points.lanes.vector));
  out.close();
}

void emit_vector_of_points(Writer& out, const Share& share, const Points& points) {
  define_point(out, share);
  if (!share.exact)
    out.line(fmt::format("if (point >= {}) {};", share.total, share.schedule.unroll > 1 ? "break" : "return"));
  if (share.schedule.strip > 1) {
    std::vector<Digit> digits;
    for (std::size_t axis = 0; axis < share.kernel.axes.size(); ++axis)
      digits.push_back({(axis + 2 == share.kernel.axes.size() ? "strip_" : "") + share.kernel.axes[axis].name,
                        shares_along(share.kernel, share.schedule, axis)});
    decode_digits(out, share.kernel, digits, "point");
    const std::string& name = share.kernel.axes[share.kernel.axes.size() - 2].name;
    out.line(
        fmt::format("const {0} first_{1} = strip_{1} * {2};", index_type(share.kernel), name, share.schedule.strip));
    return emit_vectors_of_rows(out, share, points);
  }
  decode_axes(out, share.kernel, 0, share.kernel.axes.size(), "point");
  if (share.schedule.overlaps || share.schedule.interior) {
    emit_vector_in_row(out, share, points);
  } else if (share.whole) {
    emit_points(out, share.kernel, points);
  } else {
    emit_ragged(out, share.kernel, points, share.total);
  }
}

// Where the vectors of a thread that are spread along the outermost axis stand on the others, and in units of theirs.
void decode_spread(Writer& out, const Share& share) {
  const std::vector<Axis>& axes = share.kernel.axes;
  define_point(out, share);
  std::vector<Digit> digits = {{"first_" + axes[0].name, axes[0].extent}};
  for (std::size_t axis = 1; axis < axes.size(); ++axis) digits.push_back({axes[axis].name, axes[axis].extent});
  decode_digits(out, share.kernel, digits, "point");
}

void open_spread(Writer& out, const Share& share) {
  const std::string& outermost = share.kernel.axes[0].name;
  out.unrolled("u", share.schedule.unroll);
  out.line(
      fmt::format("const {0} {1} = first_{1} * {2} + u;", index_type(share.kernel), outermost, share.schedule.unroll));
}

// What all vectors share, once: a compiler does not see that loads that stream are the same.
std::vector<InstrId> emit_shared(Writer& out, const Share& share, const Points& points) {
  std::vector<InstrId> shared;
  for (InstrId id : points.registers.held) {
    const Instr& load = share.kernel.instr(id);
    if ((load.depends & 1) != 0 || !load.access.offset.values().empty() || !load.access.guards.empty()) continue;
    shared.push_back(id);
    out.line(fmt::format("const {} shared{} = {};",
                         pack_type(stored_dtype(share.kernel, load.access), points.lanes.vector), id,
                         vector_load(share.kernel, id, points.lanes, names_of(share.kernel), points.cache)));
  }
  return shared;
}

void declare_held(Writer& out, const Share& share, const Points& points) {
  for (InstrId id : points.registers.held)
    out.line(fmt::format("{} x{}[{}];",
                         pack_type(stored_dtype(share.kernel, share.kernel.instr(id).access), points.lanes.vector), id,
                         share.schedule.unroll));
}

// Loads what is held, and computes what that needs.
void emit_held(Writer& out, const Kernel& kernel, const Points& points) {
  const Names names = names_of(kernel);
  std::vector<InstrId> roots;
  for (InstrId load : points.registers.held)
    for (InstrId operand : operands_of(kernel.instr(load))) roots.push_back(operand);
  define(out, kernel, needed(kernel, roots), names);
  for (InstrId load : points.registers.held)
    out.line(fmt::format("x{}{} = {};", load, points.registers.index,
                         vector_load(kernel, load, points.lanes, names, points.cache)));
}

// All loads, then what becomes of them.
void emit_spread(Writer& out, const Share& share, const Points& points) {
  decode_spread(out, share);
  const std::vector<InstrId> shared = emit_shared(out, share, points);
  declare_held(out, share, points);
  if (!points.registers.held.empty()) {
    open_spread(out, share);
    Points own = points;
    std::erase_if(own.registers.held, [&](InstrId id) { return contains(shared, id); });
    for (InstrId id : own.registers.held)
      if (!share.kernel.instr(id).access.offset.values().empty()) own.cache.prompt.push_back(id);
    emit_held(out, share.kernel, own);
    for (InstrId id : shared) out.line(fmt::format("x{0}{1} = shared{0};", id, points.registers.index));
    out.close();
  }
  open_spread(out, share);
  emit_points(out, share.kernel, points);
  out.close();
}

// The loads that the run makes as vectors.
std::vector<InstrId> vector_loads(const Kernel& kernel, const Points& points) {
  std::vector<InstrId> loads = points.instrs;
  std::erase_if(loads, [&](InstrId id) {
    const Instr& instr = kernel.instr(id);
    return points.lanes.vector == 1 || instr.kind != InstrKind::load || !varies(points.lanes, instr.depends) ||
           width_of(kernel, instr.access, points.lanes) == 0;
  });
  return loads;
}

// The loads of all vectors, so that they are under way together.
void emit_loads_first(Writer& out, const Share& share, const Points& points) {
  declare_held(out, share, points);
  out.unrolled("u", share.schedule.unroll);
  define_point(out, share);
  if (!share.exact) out.line(fmt::format("if (point + {} > {}) break;", points.lanes.vector, share.total));
  decode_axes(out, share.kernel, 0, share.kernel.axes.size(), "point");
  emit_held(out, share.kernel, points);
  out.close();
}

}  // namespace

Source emit_map(const Kernel& kernel, const Target& target) {
  const auto& schedule = std::get<MapSchedule>(kernel.schedule);
  if (schedule.tile) return schedule.flat ? emit_flat_tile(kernel, target) : emit_transposing_map(kernel, target);
  if (schedule.staged) return emit_gathering_map(kernel, target);
  const Share share = share_of(kernel, schedule);
  Points points = map_points(kernel, schedule);
  Writer out(1);
  join_stream(out, target);
  if (schedule.unroll == 1) {
    emit_vector_of_points(out, share, points);
  } else {
    points.registers.held = vector_loads(kernel, points);
    points.registers.index = "[u]";
    if (schedule.spread) {
      emit_spread(out, share, points);
    } else {
      if (!points.registers.held.empty()) emit_loads_first(out, share, points);
      out.unrolled("u", share.schedule.unroll);
      emit_vector_of_points(out, share, points);
      out.close();
    }
  }
  LaunchRule launch;
  launch.grid_x = blocks_of(share.count, share.per_block());
  launch.block = schedule.threads;
  return finish(kernel, out, launch, target, kernel.operands.size() > kManyOperands ? kAllRegisters : 0);
}

}  // namespace tenon::codegen::cuda

// See points.h.
#include "codegen/emit/cuda/points.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/analysis/read_once.h"
#include "codegen/analysis/vectorize.h"
#include "codegen/emit/cuda/text/definitions.h"
#include "codegen/emit/cuda/text/expression.h"
#include "codegen/emit/cuda/text/spell.h"
#include "codegen/emit/cuda/vectors.h"
#include "ir/graph/check.h"

namespace tenon::codegen::cuda {
namespace {

bool varies(const Kernel& kernel, InstrId id, const Points& points) { return varies(points, kernel.instr(id).depends); }

bool contains(const std::vector<int>& list, int what) {
  return std::find(list.begin(), list.end(), what) != list.end();
}

// What is computed of the points, rather than there already.
std::vector<InstrId> computed(const Points& points) {
  std::vector<InstrId> instrs = points.instrs;
  std::erase_if(instrs, [&](InstrId id) { return contains(points.held, id); });
  return instrs;
}

bool store_varies(const Kernel& kernel, const Store& store, const Points& points) {
  return varies(points, axes_of(kernel, store));
}

// The width at which a store leaves as a vector, or 0.
int store_width(const Kernel& kernel, int index, const Points& points) {
  if (points.vector == 1) return 0;
  if (contains(points.kept, index)) return points.vector;
  const Store& store = kernel.stores[static_cast<std::size_t>(index)];
  return store_varies(kernel, store, points) ? width_of(kernel, store.access, points) : 0;
}

// Point j of a vector that is there already.
std::string held_value(const Kernel& kernel, const Points& points, InstrId id, const std::string& j) {
  const std::string text = fmt::format("{}{}{}[{}]", contains(points.held, id) ? points.held_name : "x", id,
                                       contains(points.held, id) ? points.held_index : "", j);
  const Instr& instr = kernel.instr(id);
  if (instr.kind == InstrKind::load) return decoded(text, stored_dtype(kernel, instr.access));
  if (instr.kind == InstrKind::round) return decoded(text, instr.dtype);
  return contains(points.held, id) ? points.held_before + text + points.held_factor : text;
}

// Values of this run that later ones hold.
void emit_saved(Writer& out, const Kernel& kernel, const Points& points, const std::string& j) {
  for (InstrId id : points.saved) {
    const Instr& instr = kernel.instr(id);
    std::string value = value_name(kernel, id);
    if (instr.kind == InstrKind::round)  // as its store encodes it, so that one conversion does for both
      value = encoded(value_name(kernel, instr.args[0]), kernel.instr(instr.args[0]).dtype, instr.dtype);
    out.line(fmt::format("{}{}{}[{}] = {};", points.held_name, id, points.held_index, j, value));
  }
}

// "pack<int, 8> x4 = …": what every point of the vector has its own element of, or nothing.
std::string vector_definition(const Kernel& kernel, InstrId id, const Points& points, const Names& names) {
  const Instr& instr = kernel.instr(id);
  if (instr.kind == InstrKind::load) {
    if (contains(points.staged, id))
      return fmt::format("{0} x{1} = load<{2}, {2}>(s{1} + {3});",
                         pack_type(stored_dtype(kernel, instr.access), points.vector), id, points.vector,
                         points.staged_place);
    const int width = width_of(kernel, instr.access, points);
    if (width == 0) return {};
    return fmt::format("{} x{} = {};", pack_type(stored_dtype(kernel, instr.access), points.vector), id,
                       guarded_load(kernel, instr.access, points.vector, width, names, points.peeled != nullptr,
                                    load_function(points, id)));
  }
  const bool drawn_together = instr.kind == InstrKind::random && points.peeled == nullptr && instr.word < 0 &&
                              points.vector % 4 == 0 && !varies(kernel, instr.args[0], points) &&
                              counts_up(instr.index, points.axis, points.flat, points.vector, 4, kernel);
  if (!drawn_together) return {};
  return fmt::format("pack<int, {0}> x{1} = random_elements<{0}>({2}, {3}, {4});", points.vector, id,
                     value_name(kernel, instr.args[0]), instr.stream, index_text(instr.index, names));
}

// Point j of a flat vector on the axes: "const int past_i1 = (i1 + j) >= 100;", how many rows it is further, and
// "const int j_i1 = i1 + j - past_i1 * 100;", which are its coordinates from then on.
Names emit_advance(Writer& out, const Kernel& kernel, const Points& points) {
  Names names = names_of(kernel);
  std::string step = "j";
  std::int64_t furthest = points.vector - 1;  // of the steps
  for (std::size_t axis = kernel.axes.size(); axis-- > 0;) {
    const std::string name = names.axes[axis], sum = fmt::format("({} + {})", name, step);
    const Dim& extent = kernel.axes[axis].extent;
    const std::string size = parenthesized(dim_text(extent, names)), type = index_type(kernel);
    if (axis == 0) {
      out.line(fmt::format("const {} j_{} = {};", type, name, sum));
    } else {
      const bool once = extent.bounds(kernel.symbols).min >= furthest;
      out.line(fmt::format("const {} past_{} = {} {} {};", type, name, sum, once ? ">=" : "/", size));
      out.line(fmt::format("const {0} j_{1} = {2} - past_{1} * {3};", type, name, sum, size));
      step = "past_" + name;
      furthest = once ? 1 : furthest;
    }
    names.axes[axis] = "j_" + name;
  }
  return names;
}

void emit_packed(Writer& out, const Kernel& kernel, const Points& points, const std::string& j) {
  if (points.packed < 0) return;
  const std::string element =
      encoded(value_name(kernel, points.packed), kernel.instr(points.packed).dtype, points.packed_dtype);
  const bool wrapped = points.packed_type != storage_type(points.packed_dtype);
  out.line(fmt::format("y[{}] = {};", j, wrapped ? fmt::format("{}{{{}}}", points.packed_type, element) : element));
}

void declare_packed(Writer& out, const Points& points) {
  if (points.packed >= 0) out.line(fmt::format("pack<{}, {}> y;", points.packed_type, points.vector));
}

void emit_vector_store(Writer& out, const Kernel& kernel, const Points& points, int index, const Names& names) {
  if (contains(points.kept, index)) {
    out.line(fmt::format("u{0}.put(row, column, y{0});", index));
    return;
  }
  const Store& store = kernel.stores[static_cast<std::size_t>(index)];
  const std::string guard = condition_prefix(points.condition, guard_text(store.access.guards, names));
  out.line(fmt::format("{}{}<{}, {}>({}, y{});", guard, points.streaming ? "store_streaming" : "store", points.vector,
                       store_width(kernel, index, points), address(kernel, store.access, names), index));
}

// `value` as an element of `to` in memory. What was rounded to that before is taken as it was then: the bits are the
// same.
std::string encoded_value(const Kernel& kernel, const Points& points, InstrId value, DType to) {
  const auto rounded = [&](const Instr& instr) {
    return instr.dtype == to && compute_type(to) != to &&
           (instr.kind == InstrKind::round || (instr.kind == InstrKind::map && instr.op == ir::Op::cast)) &&
           compute_type(kernel.instr(instr.args[0]).dtype) == compute_type(to);
  };
  while (!contains(points.held, value) && rounded(kernel.instr(value))) value = kernel.instr(value).args[0];
  return encoded(value_name(kernel, value), compute_type(kernel.instr(value).dtype), to);
}

// The row is the position among those that an outer reduction combines.
void emit_outer(Writer& out, const Kernel& kernel, const Points& points, const std::string& j) {
  for (InstrId reduce : points.outer)
    out.line(accumulate_statement(kernel, reduce, "row", true, fmt::format("{}[{}]", points.held_index, j)));
}

// The loop over the points of a vector.
void emit_loop(Writer& out, const Kernel& kernel, const Points& points, const std::vector<InstrId>& vectors) {
  for (int index : points.stores) {
    const Store& store = kernel.stores[static_cast<std::size_t>(index)];
    if (store_width(kernel, index, points) != 0)
      out.line(fmt::format("{} y{};", pack_type(stored_dtype(kernel, store.access), points.vector), index));
  }
  out.unrolled(fmt::format("for (int j = 0; j < {}; ++j) {{", points.vector));
  const Names names = points.flat ? emit_advance(out, kernel, points) : at_point(names_of(kernel), points.axis, "j");
  const std::vector<InstrId> scope = computed(points);
  for (InstrId id : points.instrs) {
    if (!varies(kernel, id, points)) continue;
    const Instr& instr = kernel.instr(id);
    if (!contains(vectors, id)) {
      define(out, kernel, id, scope, names);
      continue;
    }
    out.line(fmt::format("const {} v{} = {};", value_type(instr.dtype), id, held_value(kernel, points, id, "j")),
             comment(instr));
  }
  emit_saved(out, kernel, points, "j");
  emit_packed(out, kernel, points, "j");
  for (InstrId reduce : points.reduces)
    out.line(points.columns ? accumulate_statement(kernel, reduce, points.position, points.in_order, "[j]")
                            : accumulate_statement(kernel, reduce, points.position + " + j", points.in_order));
  emit_outer(out, kernel, points, "j");
  for (int index : points.stores) {
    const Store& store = kernel.stores[static_cast<std::size_t>(index)];
    if (!store_varies(kernel, store, points)) continue;
    if (store_width(kernel, index, points) == 0) {
      out.line(conditional_store(kernel, store, names, points.condition));
    } else {
      out.line(fmt::format("y{}[j] = {};", index,
                           encoded_value(kernel, points, store.value, stored_dtype(kernel, store.access))));
    }
  }
  out.close();
}

void emit_vector(Writer& out, const Kernel& kernel, const Points& points) {
  const Names names = names_of(kernel);
  const std::vector<InstrId> scope = computed(points);
  std::vector<InstrId> vectors = points.held;
  for (InstrId id : points.instrs) {
    if (!varies(kernel, id, points) && contains(points.held, id)) {
      out.line(fmt::format("const {} v{} = {};", value_type(kernel.instr(id).dtype), id,
                           held_value(kernel, points, id, "0")),
               comment(kernel.instr(id)));
    } else if (!varies(kernel, id, points)) {
      define(out, kernel, id, scope, names);
    } else if (!contains(vectors, id)) {
      const std::string vector = vector_definition(kernel, id, points, names);
      if (vector.empty()) continue;
      out.line("const " + vector);
      vectors.push_back(id);
    }
  }
  declare_packed(out, points);
  emit_loop(out, kernel, points, vectors);
  for (int index : points.stores)
    if (store_width(kernel, index, points) != 0) emit_vector_store(out, kernel, points, index, names);
}

// The stores that do not belong to the points of a vector.
void emit_single_stores(Writer& out, const Kernel& kernel, const Points& points) {
  for (int index : points.stores) {
    const Store& store = kernel.stores[static_cast<std::size_t>(index)];
    if (points.vector > 1 && store_varies(kernel, store, points)) continue;
    if (contains(points.kept, index)) {
      out.line(fmt::format("*u{}.at(row, column) = {};", index,
                           encoded(value_name(kernel, store.value), kernel.instr(store.value).dtype,
                                   stored_dtype(kernel, store.access))));
      continue;
    }
    out.line(conditional_store(kernel, store, names_of(kernel), points.condition));
  }
}

}  // namespace

Points map_points(const Kernel& kernel, const MapSchedule& schedule) {
  Points points;
  std::vector<InstrId> roots;
  for (std::size_t i = 0; i < kernel.stores.size(); ++i) {
    points.stores.push_back(static_cast<int>(i));
    for (InstrId root : roots_of(kernel.stores[i])) roots.push_back(root);
  }
  points.instrs = needed(kernel, roots, std::vector<bool>(kernel.body.size(), false));
  points.axis = static_cast<int>(kernel.axes.size()) - 1;
  points.vector = schedule.vector;
  points.flat = schedule.flat && schedule.vector > 1;
  points.streaming = schedule.cache.streaming;
  if (schedule.cache.keep_reads) points.lasting = points.instrs;
  if (schedule.cache.streaming_loads) points.streamed = loads_read_once(kernel, schedule.spread);
  return points;
}

void declare_held(Writer& out, const Kernel& kernel, const Points& points, int count) {
  for (InstrId id : points.held)
    out.line(
        fmt::format("{} x{}[{}];", pack_type(stored_dtype(kernel, kernel.instr(id).access), points.vector), id, count));
}

void emit_held(Writer& out, const Kernel& kernel, const Points& points) {
  const Names names = names_of(kernel);
  std::vector<InstrId> roots;
  for (InstrId load : points.held)
    for (InstrId operand : operands_of(kernel.instr(load))) roots.push_back(operand);
  define(out, kernel, needed(kernel, roots, std::vector<bool>(kernel.body.size(), false)), names);
  for (InstrId load : points.held) {
    const Access& access = kernel.instr(load).access;
    out.line(fmt::format("x{}{} = {};", load, points.held_index,
                         guarded_load(kernel, access, points.vector, width_of(kernel, access, points), names, false,
                                      load_function(points, load))));
  }
}

Names at_point(Names names, int axis, const std::string& j) {
  std::string& name = names.axes[static_cast<std::size_t>(axis)];
  name = fmt::format("({} + {})", name, j);
  return names;
}

void emit_points(Writer& out, const Kernel& kernel, const Points& points) {
  if (points.vector > 1) {
    emit_vector(out, kernel, points);
  } else {
    const std::vector<InstrId> scope = computed(points);
    for (InstrId id : points.instrs) {
      if (contains(points.held, id)) {
        out.line(fmt::format("const {} v{} = {};", value_type(kernel.instr(id).dtype), id,
                             held_value(kernel, points, id, "0")),
                 comment(kernel.instr(id)));
      } else {
        define(out, kernel, id, scope, names_of(kernel));
      }
    }
    for (InstrId reduce : points.reduces)
      out.line(
          accumulate_statement(kernel, reduce, points.position, points.in_order, points.columns ? points.column : ""));
    emit_outer(out, kernel, points, "0");
    emit_saved(out, kernel, points, "0");
    declare_packed(out, points);
    emit_packed(out, kernel, points, "0");
  }
  emit_single_stores(out, kernel, points);
}

}  // namespace tenon::codegen::cuda

// See points.h.
#include "codegen/emit/cuda/points.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/emit/cuda/expression.h"
#include "codegen/emit/cuda/spell.h"
#include "codegen/vectorize.h"
#include "ir/check.h"

namespace tenon::codegen::cuda {
namespace {

void append(std::vector<InstrId>& to, const std::vector<int>& from) { to.insert(to.end(), from.begin(), from.end()); }

void append_access(std::vector<InstrId>& to, const Access& access) {
  append(to, access.offset.values());
  for (const Guard& guard : access.guards) append(to, guard.index.values());
}

DType stored_dtype(const Kernel& kernel, const Access& access) {
  return kernel.operands[static_cast<std::size_t>(access.operand)].dtype;
}

std::string guarded_load(const Kernel& kernel, const Access& access, int vector, int width, const Names& names) {
  const std::string load = fmt::format("load<{}, {}>({})", vector, width, address(kernel, access, names));
  const std::string guard = guard_text(access.guards, names);
  return guard.empty() ? load
                       : fmt::format("{} ? {} : {}{{}}", guard, load, pack_type(stored_dtype(kernel, access), vector));
}

// Whether something that depends on `axes` differs between the points.
bool varies(const Points& points, std::uint64_t axes) {
  return points.flat ? axes != 0 : points.axis >= 0 && (axes >> points.axis & 1) != 0;
}

bool varies(const Kernel& kernel, InstrId id, const Points& points) { return varies(points, kernel.instr(id).depends); }

// The width at which the points' elements of `access` are moved together, or 0.
int width_of(const Kernel& kernel, const Access& access, const Points& points) {
  return points.flat ? flat_width(access, points.vector, kernel)
                     : vector_width(access, points.axis, points.vector, kernel);
}

bool contains(const std::vector<int>& list, int what) {
  return std::find(list.begin(), list.end(), what) != list.end();
}

void define(Writer& out, const Kernel& kernel, InstrId id, const Names& names) {
  if (kernel.instr(id).kind != InstrKind::literal) out.line(definition(kernel, id, names), comment(kernel.instr(id)));
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
  const std::string text = fmt::format("x{}{}[{}]", id, contains(points.held, id) ? points.held_index : "", j);
  const Instr& instr = kernel.instr(id);
  if (instr.kind == InstrKind::load) return decoded(text, stored_dtype(kernel, instr.access));
  return contains(points.held, id) ? text + points.held_factor : text;
}

// "pack<int, 8> x4 = …": what every point of the vector has its own element of, or nothing.
std::string vector_definition(const Kernel& kernel, InstrId id, const Points& points, const Names& names) {
  const Instr& instr = kernel.instr(id);
  if (instr.kind == InstrKind::load) {
    const int width = width_of(kernel, instr.access, points);
    if (width == 0) return {};
    return fmt::format("{} x{} = {};", pack_type(stored_dtype(kernel, instr.access), points.vector), id,
                       guarded_load(kernel, instr.access, points.vector, width, names));
  }
  const bool drawn_together = instr.kind == InstrKind::random && instr.word < 0 && points.vector % 4 == 0 &&
                              !varies(kernel, instr.args[0], points) &&
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

// The loop over the points of a vector.
void emit_loop(Writer& out, const Kernel& kernel, const Points& points, const std::vector<InstrId>& vectors) {
  for (int index : points.stores) {
    const Store& store = kernel.stores[static_cast<std::size_t>(index)];
    if (store_width(kernel, index, points) != 0)
      out.line(fmt::format("{} y{};", pack_type(stored_dtype(kernel, store.access), points.vector), index));
  }
  out.unrolled(fmt::format("for (int j = 0; j < {}; ++j) {{", points.vector));
  const Names names = points.flat ? emit_advance(out, kernel, points) : at_point(names_of(kernel), points.axis, "j");
  for (InstrId id : points.instrs) {
    if (!varies(kernel, id, points)) continue;
    const Instr& instr = kernel.instr(id);
    if (!contains(vectors, id)) {
      define(out, kernel, id, names);
      continue;
    }
    out.line(fmt::format("const {} v{} = {};", value_type(instr.dtype), id, held_value(kernel, points, id, "j")),
             comment(instr));
  }
  emit_packed(out, kernel, points, "j");
  for (InstrId reduce : points.reduces) out.line(accumulate_statement(kernel, reduce, points.position + " + j"));
  for (int index : points.stores) {
    const Store& store = kernel.stores[static_cast<std::size_t>(index)];
    if (!store_varies(kernel, store, points)) continue;
    if (store_width(kernel, index, points) == 0) {
      out.line(conditional_store(kernel, store, names, points.condition));
    } else {
      out.line(fmt::format("y{}[j] = {};", index,
                           encoded(value_name(kernel, store.value), kernel.instr(store.value).dtype,
                                   stored_dtype(kernel, store.access))));
    }
  }
  out.close();
}

void emit_vector(Writer& out, const Kernel& kernel, const Points& points) {
  const Names names = names_of(kernel);
  std::vector<InstrId> vectors = points.held;
  for (InstrId id : points.instrs) {
    if (!varies(kernel, id, points) && contains(points.held, id)) {
      out.line(fmt::format("const {} v{} = {};", value_type(kernel.instr(id).dtype), id,
                           held_value(kernel, points, id, "0")),
               comment(kernel.instr(id)));
    } else if (!varies(kernel, id, points)) {
      define(out, kernel, id, names);
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
    append(roots, roots_of(kernel.stores[i]));
  }
  points.instrs = needed(kernel, roots, std::vector<bool>(kernel.body.size(), false));
  points.axis = static_cast<int>(kernel.axes.size()) - 1;
  points.vector = schedule.vector;
  points.flat = schedule.flat && schedule.vector > 1;
  points.streaming = schedule.streaming;
  return points;
}

std::vector<InstrId> vector_loads(const Kernel& kernel, const Points& points) {
  std::vector<InstrId> loads;
  for (InstrId id : points.instrs)
    if (points.vector > 1 && kernel.instr(id).kind == InstrKind::load && varies(kernel, id, points) &&
        width_of(kernel, kernel.instr(id).access, points) != 0)
      loads.push_back(id);
  return loads;
}

void declare_held(Writer& out, const Kernel& kernel, const Points& points, int count) {
  for (InstrId id : points.held)
    out.line(
        fmt::format("{} x{}[{}];", pack_type(stored_dtype(kernel, kernel.instr(id).access), points.vector), id, count));
}

void emit_held(Writer& out, const Kernel& kernel, const Points& points) {
  const Names names = names_of(kernel);
  std::vector<InstrId> roots;
  for (InstrId load : points.held) append(roots, operands_of(kernel.instr(load)));
  for (InstrId id : needed(kernel, roots, std::vector<bool>(kernel.body.size(), false))) define(out, kernel, id, names);
  for (InstrId load : points.held) {
    const Access& access = kernel.instr(load).access;
    out.line(fmt::format("x{}{} = {};", load, points.held_index,
                         guarded_load(kernel, access, points.vector, width_of(kernel, access, points), names)));
  }
}

std::vector<InstrId> operands_of(const Instr& instr) {
  std::vector<InstrId> operands = instr.args;
  if (instr.kind == InstrKind::load) append_access(operands, instr.access);
  append(operands, instr.index.values());
  for (const Guard& guard : instr.guards) append(operands, guard.index.values());
  return operands;
}

std::vector<InstrId> roots_of(const Store& store) {
  std::vector<InstrId> roots = {store.value};
  append_access(roots, store.access);
  return roots;
}

std::uint64_t axes_of(const Kernel& kernel, const Store& store) {
  std::uint64_t axes = 0;
  for (InstrId id : roots_of(store)) axes |= kernel.instr(id).depends;
  const auto add = [&](const Index& index) {
    for (std::size_t axis = 0; axis < kernel.axes.size(); ++axis)
      if (index.depends_on(static_cast<int>(axis))) axes |= std::uint64_t{1} << axis;
  };
  add(store.access.offset);
  for (const Guard& guard : store.access.guards) add(guard.index);
  return axes;
}

std::vector<InstrId> needed(const Kernel& kernel, const std::vector<InstrId>& roots, const std::vector<bool>& defined) {
  std::vector<bool> marked(kernel.body.size(), false);
  for (InstrId root : roots) marked[static_cast<std::size_t>(root)] = true;
  std::vector<InstrId> result;
  for (std::size_t i = kernel.body.size(); i-- > 0;) {  // operands come before their users
    if (!marked[i] || defined[i]) continue;
    result.push_back(static_cast<InstrId>(i));
    for (InstrId operand : operands_of(kernel.body[i])) marked[static_cast<std::size_t>(operand)] = true;
  }
  std::reverse(result.begin(), result.end());
  return result;
}

Names at_point(Names names, int axis, const std::string& j) {
  std::string& name = names.axes[static_cast<std::size_t>(axis)];
  name = fmt::format("({} + {})", name, j);
  return names;
}

std::string pack_type(DType dtype, int vector) { return fmt::format("pack<{}, {}>", storage_type(dtype), vector); }

std::string vector_load(const Kernel& kernel, InstrId id, int axis, int vector, const Names& names) {
  const Access& access = kernel.instr(id).access;
  const int width = vector_width(access, axis, vector, kernel);
  return width == 0 ? "" : guarded_load(kernel, access, vector, width, names);
}

void emit_points(Writer& out, const Kernel& kernel, const Points& points) {
  if (points.vector > 1) {
    emit_vector(out, kernel, points);
  } else {
    for (InstrId id : points.instrs) {
      if (contains(points.held, id)) {
        out.line(fmt::format("const {} v{} = {};", value_type(kernel.instr(id).dtype), id,
                             held_value(kernel, points, id, "0")),
                 comment(kernel.instr(id)));
      } else {
        define(out, kernel, id, names_of(kernel));
      }
    }
    for (InstrId reduce : points.reduces) out.line(accumulate_statement(kernel, reduce, points.position));
    declare_packed(out, points);
    emit_packed(out, kernel, points, "0");
  }
  emit_single_stores(out, kernel, points);
}

}  // namespace tenon::codegen::cuda

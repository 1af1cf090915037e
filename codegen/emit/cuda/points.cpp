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

bool varies(const Kernel& kernel, InstrId id, int axis) {
  return axis >= 0 && (kernel.instr(id).depends >> axis & 1) != 0;
}

bool contains(const std::vector<int>& list, int what) {
  return std::find(list.begin(), list.end(), what) != list.end();
}

void define(Writer& out, const Kernel& kernel, InstrId id, const Names& names) {
  if (kernel.instr(id).kind != InstrKind::literal) out.line(definition(kernel, id, names), comment(kernel.instr(id)));
}

bool store_varies(const Kernel& kernel, const Store& store, int axis) {
  return axis >= 0 && (axes_of(kernel, store) >> axis & 1) != 0;
}

// The width at which a store leaves as a vector, or 0.
int store_width(const Kernel& kernel, const Store& store, const Points& points) {
  return points.vector > 1 && store_varies(kernel, store, points.axis)
             ? vector_width(store.access, points.axis, points.vector, kernel)
             : 0;
}

// Point j of a vector that is there already.
std::string held_value(const Kernel& kernel, const Points& points, InstrId id, const std::string& j) {
  const std::string text = fmt::format("x{}{}[{}]", id, contains(points.held, id) ? points.held_index : "", j);
  const Instr& instr = kernel.instr(id);
  return instr.kind == InstrKind::load ? decoded(text, stored_dtype(kernel, instr.access)) : text + points.held_factor;
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
  const Store& store = kernel.stores[static_cast<std::size_t>(index)];
  const std::string guard = condition_prefix(points.condition, guard_text(store.access.guards, names));
  out.line(fmt::format("{}{}<{}, {}>({}, y{});", guard, points.streaming ? "store_streaming" : "store", points.vector,
                       store_width(kernel, store, points), address(kernel, store.access, names), index));
}

// The loop over the points of a vector.
void emit_loop(Writer& out, const Kernel& kernel, const Points& points, const std::vector<InstrId>& vectors) {
  const Names names = at_point(names_of(kernel), points.axis, "j");
  for (int index : points.stores) {
    const Store& store = kernel.stores[static_cast<std::size_t>(index)];
    if (store_width(kernel, store, points) != 0)
      out.line(fmt::format("{} y{};", pack_type(stored_dtype(kernel, store.access), points.vector), index));
  }
  out.unrolled(fmt::format("for (int j = 0; j < {}; ++j) {{", points.vector));
  for (InstrId id : points.instrs) {
    if (!varies(kernel, id, points.axis)) continue;
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
    if (!store_varies(kernel, store, points.axis)) continue;
    if (store_width(kernel, store, points) == 0) {
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
    if (!varies(kernel, id, points.axis) && contains(points.held, id)) {
      out.line(fmt::format("const {} v{} = {};", value_type(kernel.instr(id).dtype), id,
                           held_value(kernel, points, id, "0")),
               comment(kernel.instr(id)));
    } else if (!varies(kernel, id, points.axis)) {
      define(out, kernel, id, names);
    } else if (kernel.instr(id).kind == InstrKind::load && !contains(vectors, id)) {
      const std::string load = vector_load(kernel, id, points.axis, points.vector, names);
      if (load.empty()) continue;
      out.line(fmt::format("const {} x{} = {};",
                           pack_type(stored_dtype(kernel, kernel.instr(id).access), points.vector), id, load));
      vectors.push_back(id);
    }
  }
  declare_packed(out, points);
  emit_loop(out, kernel, points, vectors);
  for (int index : points.stores)
    if (store_width(kernel, kernel.stores[static_cast<std::size_t>(index)], points) != 0)
      emit_vector_store(out, kernel, points, index, names);
}

// The stores that do not belong to the points of a vector.
void emit_single_stores(Writer& out, const Kernel& kernel, const Points& points) {
  for (int index : points.stores) {
    const Store& store = kernel.stores[static_cast<std::size_t>(index)];
    if (points.vector > 1 && store_varies(kernel, store, points.axis)) continue;
    out.line(conditional_store(kernel, store, names_of(kernel), points.condition));
  }
}

}  // namespace

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
  if (width == 0) return {};
  const std::string load = fmt::format("load<{}, {}>({})", vector, width, address(kernel, access, names));
  const std::string guard = guard_text(access.guards, names);
  return guard.empty() ? load
                       : fmt::format("{} ? {} : {}{{}}", guard, load, pack_type(stored_dtype(kernel, access), vector));
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

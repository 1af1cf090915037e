// See vectors.h.
#include "codegen/emit/cuda/vectors.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/analysis/held.h"
#include "codegen/analysis/vectorize.h"
#include "codegen/emit/cuda/text/expression.h"
#include "codegen/emit/cuda/text/spell.h"

namespace tenon::codegen::cuda {
namespace {

// "(in0, i0 + 4097 * r0, 4097)": an element and how many there are.
std::string place(const Kernel& kernel, const Access& access, const Names& names) {
  const Shape& shape = kernel.operands[static_cast<std::size_t>(access.operand)].shape;
  return fmt::format("({}, {}, {})", operand_name(kernel, access.operand), index_text(access.offset, names),
                     dim_text(element_count(shape), names));
}

std::string around_load(const Kernel& kernel, const Access& access, int vector, const Names& names) {
  const Dim count = element_count(kernel.operands[static_cast<std::size_t>(access.operand)].shape);
  return fmt::format("load_around<{}, {}>{}", vector, power_of_two_divisor(count, vector, kernel.symbols) == vector,
                     place(kernel, access, names));
}

}  // namespace

std::string guarded_load(const Kernel& kernel, const Access& access, int vector, int width, const Names& names,
                         bool peeled, const char* function) {
  const auto bytes = size_of(stored_dtype(kernel, access));
  const bool around = peeled && width < vector && width * bytes < 16 && vector * bytes >= 4;
  const std::string load =
      around ? fmt::format("from_around<{}>({}, {})", vector, around_load(kernel, access, vector, names),
                           index_text(access.offset, names))
             : fmt::format("{}<{}, {}>({})", function, vector, width, address(kernel, access, names));
  const std::string guard = guard_text(access.guards, names);
  if (!around && !guard.empty() && std::string_view(function) == "load_kept")  // without a branch
    return fmt::format("load_kept<{}, {}>({}, {})", vector, width, address(kernel, access, names), guard);
  return guard.empty() ? load
                       : fmt::format("{} ? {} : {}{{}}", guard, load, pack_type(stored_dtype(kernel, access), vector));
}

std::string held_type(const Kernel& kernel, InstrId value) {
  const Instr& instr = kernel.instr(value);
  if (instr.kind == InstrKind::load)
    return storage_type(kernel.operands[static_cast<std::size_t>(instr.access.operand)].dtype);
  return instr.kind == InstrKind::round ? storage_type(instr.dtype) : value_type(instr.dtype);
}

DType stored_dtype(const Kernel& kernel, const Access& access) {
  return kernel.operands[static_cast<std::size_t>(access.operand)].dtype;
}

const char* load_function(const Points& points, InstrId load) {
  const auto among = [&](const std::vector<InstrId>& loads) {
    return std::find(loads.begin(), loads.end(), load) != loads.end();
  };
  if (among(points.streamed)) return "load_streaming";
  return among(points.lasting) ? "load_kept" : among(points.here) ? "load_here" : "load";
}

bool varies(const Points& points, std::uint64_t axes) {
  return points.flat ? axes != 0 : points.axis >= 0 && (axes >> points.axis & 1) != 0;
}

int width_of(const Kernel& kernel, const Access& access, const Points& points) {
  if (points.peeled != nullptr) return peeled_width(access, *points.peeled, points.axis, points.vector, kernel);
  return points.flat ? flat_width(access, points.vector, kernel)
                     : vector_width(access, points.axis, points.vector, kernel);
}

std::vector<InstrId> vector_loads(const Kernel& kernel, const Points& points) {
  std::vector<InstrId> loads;
  for (InstrId id : points.instrs)
    if (points.vector > 1 && kernel.instr(id).kind == InstrKind::load && varies(points, kernel.instr(id).depends) &&
        width_of(kernel, kernel.instr(id).access, points) != 0)
      loads.push_back(id);
  return loads;
}

std::string pack_type(DType dtype, int vector) { return fmt::format("pack<{}, {}>", storage_type(dtype), vector); }

std::string vector_load(const Kernel& kernel, InstrId id, int axis, int vector, const Names& names,
                        const char* function) {
  const Access& access = kernel.instr(id).access;
  const int width = vector_width(access, axis, vector, kernel);
  return width == 0 ? "" : guarded_load(kernel, access, vector, width, names, false, function);
}

std::string vector_load(const Kernel& kernel, InstrId id, const Points& points, const Names& names) {
  const Access& access = kernel.instr(id).access;
  const int width = width_of(kernel, access, points);
  return width == 0 ? ""
                    : guarded_load(kernel, access, points.vector, width, names, points.peeled != nullptr,
                                   load_function(points, id));
}

std::string guarded_element(const Kernel& kernel, InstrId load, const Names& names) {
  const Access& access = kernel.instr(load).access;
  const std::string guard = guard_text(access.guards, names), value = element(kernel, access, names);
  return guard.empty() ? value : fmt::format("{} ? {} : {}{{}}", guard, value, held_type(kernel, load));
}

void emit_load_into(Writer& out, const Kernel& kernel, InstrId load, const Points& points, const Names& names,
                    const std::string& vector) {
  if (const std::string text = vector_load(kernel, load, points, names); !text.empty()) {
    out.line(fmt::format("{} = {};", vector, text));
    return;
  }
  out.unrolled(fmt::format("for (int j = 0; j < {}; ++j) {{", points.vector));
  out.line(fmt::format("{}[j] = {};", vector, guarded_element(kernel, load, at_point(names, points.axis, "j"))));
  out.close();
}

}  // namespace tenon::codegen::cuda

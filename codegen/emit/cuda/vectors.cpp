// See vectors.h.
#include "codegen/emit/cuda/vectors.h"

#include <fmt/format.h>

#include "codegen/analysis/vectorize.h"
#include "codegen/emit/cuda/text/expression.h"
#include "codegen/emit/cuda/text/spell.h"
#include "codegen/kernel/uses.h"

namespace tenon::codegen::cuda {
namespace {

// The prelude's function that loads vectors of `load`.
const char* load_function(const CacheHints& cache, InstrId load) {
  if (contains(cache.streamed, load)) return "load_streaming";
  if (contains(cache.kept, load)) return "load_kept";
  if (contains(cache.ahead, load)) return "load_now";
  return contains(cache.prompt, load) ? "load_here" : "load";
}

// Whether two aligned vectors are loaded of which the one between them is made: a peeled row's elements may lie
// anywhere.
bool loads_around(const Lanes& lanes, int width, std::int64_t bytes) {
  return lanes.peeled != nullptr && width < lanes.vector && width * bytes < 16 && lanes.vector * bytes >= 4;
}

std::string around_load(const Kernel& kernel, const Access& access, int vector, const Names& names) {
  const Dim count = element_count(operand_at(kernel, access).shape);
  const std::string offset = index_text(access.offset, names);
  return fmt::format("from_around<{0}>(load_around<{0}, {1}>({2}, {3}, {4}), {3})", vector,
                     power_of_two_divisor(count, vector, kernel.symbols) == vector,
                     operand_name(kernel, access.operand), offset, dim_text(count, names));
}

std::string guarded(const std::string& guard, const std::string& load, const std::string& type) {
  return guard.empty() ? load : fmt::format("{} ? {} : {}{{}}", guard, load, type);
}

}  // namespace

std::string held_type(const Kernel& kernel, InstrId value) {
  const Instr& instr = kernel.instr(value);
  if (instr.kind == InstrKind::load) return storage_type(stored_dtype(kernel, instr.access));
  return instr.kind == InstrKind::round ? storage_type(instr.dtype) : value_type(instr.dtype);
}

bool varies(const Lanes& lanes, std::uint64_t axes) {
  return lanes.flat && !lanes.in_row ? axes != 0 : lanes.axis >= 0 && (axes >> lanes.axis & 1) != 0;
}

int width_of(const Kernel& kernel, const Access& access, const Lanes& lanes) {
  if (lanes.peeled != nullptr) return peeled_width(access, *lanes.peeled, lanes.axis, lanes.vector, kernel);
  return lanes.flat ? flat_width(access, lanes.vector, kernel) : vector_width(access, lanes.axis, lanes.vector, kernel);
}

std::string pack_type(DType dtype, int vector) { return fmt::format("pack<{}, {}>", storage_type(dtype), vector); }

std::string words_type(DType dtype, int vector, int width) {
  return fmt::format("under_way<{}, {}, {}>", storage_type(dtype), vector, width);
}

Names at_point(Names names, int axis, const std::string& j) {
  std::string& name = names.axes[static_cast<std::size_t>(axis)];
  name = fmt::format("({} + {})", name, j);
  return names;
}

std::optional<SharedLoad> shared_load(const Kernel& kernel, InstrId load, const Lanes& lanes, const Names& names,
                                      const CacheHints& cache) {
  const Access& access = kernel.instr(load).access;
  if (lanes.flat || lanes.peeled != nullptr || lanes.axis < 0 || width_of(kernel, access, lanes) != 0)
    return std::nullopt;
  const auto shared = shared_elements(access, lanes.axis, lanes.vector, kernel);
  if (!shared) return std::nullopt;
  const int elements = lanes.vector / shared->points;
  return SharedLoad{fmt::format("{}<{}, {}>({})", load_function(cache, load), elements, shared->width,
                                address(kernel, access, names)),
                    elements, shared->width, shared->points, shared->visible};
}

std::string vector_load(const Kernel& kernel, InstrId load, const Lanes& lanes, const Names& names,
                        const CacheHints& cache) {
  const Access& access = kernel.instr(load).access;
  const int vector = lanes.vector, width = width_of(kernel, access, lanes);
  if (width == 0) {
    const auto shared = shared_load(kernel, load, lanes, names, cache);
    return shared ? fmt::format("spread<{}, {:#x}u>({})", shared->points, shared->visible, shared->value)
                  : std::string();
  }
  const std::string guard = guard_text(access.guards, names), type = pack_type(stored_dtype(kernel, access), vector);
  if (loads_around(lanes, width, size_of(stored_dtype(kernel, access))))
    return guarded(guard, around_load(kernel, access, vector, names), type);
  const std::string function = load_function(cache, load), from = address(kernel, access, names);
  if (!guard.empty() && function == "load_kept")  // without a branch
    return fmt::format("load_kept<{}, {}>({}, {})", vector, width, from, guard);
  return guarded(guard, fmt::format("{}<{}, {}>({})", function, vector, width, from),
                 contains(cache.ahead, load) ? words_type(stored_dtype(kernel, access), vector, width) : type);
}

std::string guarded_element(const Kernel& kernel, InstrId load, const Names& names) {
  const Access& access = kernel.instr(load).access;
  const std::string guard = guard_text(access.guards, names), value = element(kernel, access, names);
  return guard.empty() ? value : fmt::format("{} ? {} : {}{{}}", guard, value, held_type(kernel, load));
}

void emit_load_into(Writer& out, const Kernel& kernel, InstrId load, const Lanes& lanes, const Names& names,
                    const CacheHints& cache, const std::string& vector) {
  if (const std::string text = vector_load(kernel, load, lanes, names, cache); !text.empty()) {
    out.line(fmt::format("{} = {};", vector, text));
    return;
  }
  out.unrolled("j", lanes.vector);
  out.line(fmt::format("{}[j] = {};", vector, guarded_element(kernel, load, at_point(names, lanes.axis, "j"))));
  out.close();
}

}  // namespace tenon::codegen::cuda

// See tensor.h.
#include "codegen/emit/cuda/tensor/tensor.h"

#include <fmt/format.h>

#include "codegen/emit/cuda/emit.h"
#include "codegen/emit/cuda/points.h"
#include "codegen/emit/cuda/text/definitions.h"
#include "codegen/emit/cuda/text/expression.h"
#include "codegen/emit/cuda/text/names.h"
#include "codegen/emit/cuda/text/spell.h"

namespace tenon::codegen::cuda {
namespace {

// The address of the value's elements, or the elements as they are stored.
void emit_stored(Writer& out, const Kernel& kernel, const OperandPart& part, TileElement element,
                 const TileAccess& access, int axis, const CacheHints& cache) {
  const Names names = names_of(kernel);
  Region region = part.region;
  std::erase(region, part.value);
  define(out, kernel, region, names);
  const Access& load = kernel.instr(part.value).access;
  if (access.async) {
    out.line(fmt::format("return {};", address(kernel, load, names)));
    return;
  }
  const std::string elements =
      access.vector == 1 ? fmt::format("load<1, 1>({})", address(kernel, load, names))
                         : vector_load(kernel, part.value, {.axis = axis, .vector = access.vector}, names, cache);
  out.line(access.widened ? fmt::format("return widened<{}>({});", tile_type(element), elements)
                          : fmt::format("return {};", elements));
}

void emit_computed(Writer& out, const Kernel& kernel, const OperandPart& part, TileElement element,
                   const TileAccess& access, int axis, const CacheHints& cache) {
  emit_points(out, kernel,
              {.lanes = {.axis = axis, .vector = access.vector},
               .instrs = part.region,
               .cache = cache,
               .packed = {.value = part.value, .type = tile_type(element), .dtype = element.dtype}});
  out.line("return y;");
}

}  // namespace

std::string tile_type(TileElement element) {
  return element.tensor_cores && element.dtype == DType::f32 ? "tf32" : storage_type(element.dtype);
}

void emit_operand(Writer& out, const Kernel& kernel, const std::string& name, const OperandPart& part,
                  TileElement element, const TileAccess& access, const CacheHints& cache) {
  const Names names = names_of(kernel);
  const std::string type = index_type(kernel);
  const std::string& outer = names.axes[static_cast<std::size_t>(part.outer)];
  const std::string& depth = names.axes[static_cast<std::size_t>(part.depth)];
  out.open(fmt::format("const auto {} = make_operand<{}, {}, {}>([&]({} {}, {} {}) {{", name, access.vector,
                       access.along_depth, access.async, type, outer, type, depth));
  const int axis = access.along_depth ? part.depth : part.outer;
  const bool rounded = element.tensor_cores && element.dtype == DType::f32;  // tf32 is no stored type
  if (access.async || access.widened || (access.as_stored && !rounded)) {
    emit_stored(out, kernel, part, element, access, axis, cache);
  } else {
    emit_computed(out, kernel, part, element, access, axis, cache);
  }
  out.close("});");
}

void emit_result(Writer& out, const Kernel& kernel, const ContractParts& parts, TileElement element) {
  const Names names = names_of(kernel);
  const std::string type = index_type(kernel);
  const int vector = epilogue_vector(kernel, parts.n, 8);
  const auto name = [&](int axis) { return names.axes[static_cast<std::size_t>(axis)]; };
  out.open(fmt::format("const auto out = make_result<{0}>([&]({1} {2}, {1} {3}, const pack<{4}, {0}>& x{5}) {{", vector,
                       type, name(parts.m), name(parts.n), element.dtype == DType::f64 ? "double" : "float",
                       parts.contract));
  Points points{.lanes = {.axis = parts.n, .vector = vector},
                .instrs = {parts.contract},
                .stores = all_stores(kernel),
                .registers = {.held = {parts.contract}}};
  points.instrs.insert(points.instrs.end(), parts.epilogue.begin(), parts.epilogue.end());
  emit_points(out, kernel, points);
  out.close("});");
}

Dim extent_of_axes(const Kernel& kernel, const std::vector<int>& axes) {
  Dim product(1);
  for (int axis : axes) product = product * kernel.axes[static_cast<std::size_t>(axis)].extent;
  return product;
}

void decode_batch(Writer& out, const Kernel& kernel, const std::vector<int>& batch, const std::string& number) {
  if (!batch.empty()) decode_axes(out, kernel, 0, batch.size(), number);
}

}  // namespace tenon::codegen::cuda

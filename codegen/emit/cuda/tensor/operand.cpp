// The operands of contractions as generated code describes them to main loops: see tensor.h.
#include <fmt/format.h>

#include "codegen/emit/cuda/emit.h"
#include "codegen/emit/cuda/points.h"
#include "codegen/emit/cuda/tensor/tensor.h"
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

Points computed(const OperandPart& part, TileElement element, const TileAccess& access, int axis,
                const CacheHints& cache) {
  return {.lanes = {.axis = axis, .vector = access.vector},
          .instrs = part.region,
          .cache = cache,
          .packed = {.value = part.value, .type = tile_type(element), .dtype = element.dtype}};
}

// tf32 is no stored type.
bool is_stored(TileElement element, const TileAccess& access) {
  return access.as_stored && !(element.tensor_cores && element.dtype == DType::f32);
}

// "int m, int k".
std::string parameters(const Kernel& kernel, const OperandPart& part) {
  const Names names = names_of(kernel);
  return fmt::format("{0} {1}, {0} {2}", index_type(kernel), names.axes[static_cast<std::size_t>(part.outer)],
                     names.axes[static_cast<std::size_t>(part.depth)]);
}

// What an operand loads, and what becomes of it, apart. `ahead`: what is loaded stays in words until then.
class OperandAhead {
 public:
  OperandAhead(const Kernel& kernel, const std::string& name, const OperandPart& part, TileElement element,
               const TileAccess& access, const CacheHints& cache, bool ahead)
      : kernel_(kernel),
        name_(name),
        part_(part),
        element_(element),
        access_(access),
        cache_(cache),
        ahead_(ahead),
        points_(computed(part, element, access, axis(), cache)),
        loads_(placed_loads(kernel, points_)) {}

  // "struct b_loads { pack<i8, 16> x1; };"
  void emit_type(Writer& out) const {
    out.open(fmt::format("struct {}_loads {{", name_));
    for (const VectorLoad& load : loads_) out.line(fmt::format("{} {};", ahead_ ? load.words : load.type, load.name));
    out.close("};");
  }
  void emit_load(Writer& out) const {
    Points points = points_;
    if (ahead_) points.cache.ahead = part_.region;
    out.line(fmt::format("{}_loads loaded;", name_));
    for (const VectorLoad& load : placed_loads(kernel_, points))
      out.line(fmt::format("loaded.{} = {};", load.name, load.value));
    out.line("return loaded;");
  }
  void emit_value(Writer& out) const {
    const bool stored = access_.widened || is_stored(element_, access_);
    if (stored && loads_.empty()) return emit_stored(out, kernel_, part_, element_, access_, axis(), cache_);
    for (const VectorLoad& load : loads_)
      out.line(ahead_ ? fmt::format("const auto {1} = unpacked<{0}>(loaded.{1});", load.type, load.name)
                      : fmt::format("const auto& {0} = loaded.{0};", load.name));
    if (stored) {
      out.line(access_.widened ? fmt::format("return widened<{}>({});", tile_type(element_), loads_.front().name)
                               : fmt::format("return {};", loads_.front().name));
      return;
    }
    Points points = points_;
    points.loaded = true;
    emit_points(out, kernel_, points);
    out.line("return y;");
  }

 private:
  int axis() const { return access_.along_depth ? part_.depth : part_.outer; }

  const Kernel& kernel_;
  const std::string name_;
  const OperandPart& part_;
  const TileElement element_;
  const TileAccess& access_;
  const CacheHints& cache_;
  const bool ahead_;
  Points points_;
  std::vector<VectorLoad> loads_;
};

}  // namespace

void emit_operand(Writer& out, const Kernel& kernel, const std::string& name, const OperandPart& part,
                  TileElement element, const TileAccess& access, const CacheHints& cache) {
  const Names names = names_of(kernel);
  const std::string type = index_type(kernel);
  const std::string& outer = names.axes[static_cast<std::size_t>(part.outer)];
  const std::string& depth = names.axes[static_cast<std::size_t>(part.depth)];
  out.open(fmt::format("const auto {} = make_operand<{}, {}, {}>([&]({} {}, {} {}) {{", name, access.vector,
                       access.along_depth, access.async, type, outer, type, depth));
  const int axis = access.along_depth ? part.depth : part.outer;
  if (access.async || access.widened || is_stored(element, access)) {
    emit_stored(out, kernel, part, element, access, axis, cache);
  } else {
    emit_points(out, kernel, computed(part, element, access, axis, cache));
    out.line("return y;");
  }
  out.close("});");
}

void emit_operand_ahead(Writer& out, const Kernel& kernel, const std::string& name, const OperandPart& part,
                        TileElement element, const TileAccess& access, const CacheHints& cache) {
  const OperandAhead ahead(kernel, name, part, element, access, cache, false);
  const std::string place = parameters(kernel, part);
  ahead.emit_type(out);
  out.open(fmt::format("const auto {} = make_operand_ahead<{}, {}>([&]({}) {{", name, access.vector, access.along_depth,
                       place));
  ahead.emit_load(out);
  out.close(fmt::format("}}, [&]({}, const {}_loads& loaded) {{", place, name));
  ahead.emit_value(out);
  out.close("});");
}

void emit_fed_tile(Writer& out, const Kernel& kernel, const std::string& name, const OperandPart& part,
                   const std::vector<int>& batch, TileElement element, const TileAccess& access, const FedTile& tile) {
  const Names names = names_of(kernel);
  const std::string type = index_type(kernel), place = "u32 batch, " + parameters(kernel, part);
  const auto limit = [&](int axis) {
    return fmt::format("({}){}", type,
                       parenthesized(dim_text(kernel.axes[static_cast<std::size_t>(axis)].extent, names)));
  };
  const std::string start =
      fmt::format("const auto load_{} = make_{}_tile<boxed_tile<{}, {}, {}>, {}, {}{}>({}, {}, [&]({}) {{", name,
                  access.async ? "copied" : "fed", tile_type(element), tile.outer, access.along_depth, access.vector,
                  tile.of_rows, access.async ? "" : fmt::format(", {}, {}", tile.whole, tile.registers),
                  limit(part.outer), limit(part.depth), place);
  if (access.async) {
    out.open(start);
    decode_batch(out, kernel, batch, "batch");
    emit_stored(out, kernel, part, element, access, access.along_depth ? part.depth : part.outer, {});
    out.close("});");
    return;
  }
  const CacheHints cache;
  const OperandAhead ahead(kernel, name, part, element, access, cache, true);
  ahead.emit_type(out);
  out.open(start);
  decode_batch(out, kernel, batch, "batch");
  ahead.emit_load(out);
  out.close(fmt::format("}}, [&]({}, const {}_loads& loaded) {{", place, name));
  decode_batch(out, kernel, batch, "batch");
  ahead.emit_value(out);
  out.close("});");
}

}  // namespace tenon::codegen::cuda

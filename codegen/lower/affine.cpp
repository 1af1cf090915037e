// See affine.h.
#include "codegen/lower/affine.h"

#include <variant>

namespace tenon::codegen {
namespace {

constexpr int kMostSteps = 10;  // from a value back to positions and literals: a sum of itself is gone through twice

// Index arithmetic is exact, that of the type is too within these.
constexpr std::int64_t kMost = std::int64_t{1} << 30;

std::optional<Index> affine(const Kernel& kernel, InstrId id, int steps);

std::optional<std::int64_t> literal_of(const Kernel& kernel, InstrId id) {
  const Instr& instr = kernel.instr(id);
  const auto* value = instr.kind == InstrKind::literal ? std::get_if<std::int64_t>(&instr.literal) : nullptr;
  return value != nullptr && *value >= -kMost && *value <= kMost ? std::optional(*value) : std::nullopt;
}

std::optional<Index> affine_map(const Kernel& kernel, const Instr& instr, const IndexContext& context, int steps) {
  using ir::Op;
  if (instr.args.empty() || instr.args.size() > 2) return {};
  const std::optional<Index> a = affine(kernel, instr.args[0], steps - 1);
  if (!a) return {};
  if (instr.op == Op::cast) return a;
  if (instr.args.size() < 2) return {};
  if (instr.op == Op::add || instr.op == Op::sub) {
    const std::optional<Index> b = affine(kernel, instr.args[1], steps - 1);
    if (!b) return {};
    return instr.op == Op::add ? *a + *b : *a - *b;
  }
  const std::optional<std::int64_t> by = literal_of(kernel, instr.args[1]);
  if (!by) return {};
  if (instr.op == Op::mul) return *a * Dim(*by);
  if (*by < 1) return {};
  if (instr.op == Op::floor_div) return floor_div(*a, Dim(*by), context);
  if (instr.op == Op::mod) return mod(*a, Dim(*by), context);
  return {};
}

std::optional<Index> affine(const Kernel& kernel, InstrId id, int steps) {
  const Instr& instr = kernel.instr(id);
  if (steps == 0 || (instr.dtype != DType::i32 && instr.dtype != DType::i64)) return {};
  const IndexContext context{&kernel.axes, &kernel.symbols};
  std::optional<Index> result;
  if (instr.kind == InstrKind::literal) {
    if (const auto value = literal_of(kernel, id)) result = Index(Dim(*value));
  } else if (instr.kind == InstrKind::index) {
    result = instr.index;
  } else if (instr.kind == InstrKind::map) {
    result = affine_map(kernel, instr, context, steps);
  }
  if (!result) return {};
  const SymbolBounds range = bounds(*result, context);
  return range.min >= -kMost && range.max <= kMost ? result : std::nullopt;
}

}  // namespace

std::optional<Index> affine_value(const Kernel& kernel, InstrId id) { return affine(kernel, id, kMostSteps); }

}  // namespace tenon::codegen

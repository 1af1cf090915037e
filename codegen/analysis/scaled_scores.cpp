// See scaled_scores.h.
#include "codegen/analysis/scaled_scores.h"

#include <algorithm>
#include <cmath>

#include "codegen/analysis/draws.h"
#include "codegen/kernel/uses.h"

namespace tenon::codegen {
namespace {

// Of a literal above 0; 0 for all else.
double positive_literal(const Kernel& kernel, InstrId id) {
  const Instr& instr = kernel.instr(id);
  if (instr.kind != InstrKind::literal || !is_real(instr.dtype)) return 0;
  const auto value = std::visit([](auto v) { return static_cast<double>(v); }, instr.literal);
  return value > 0 && std::isfinite(value) ? value : 0;
}

}  // namespace

ScaledScores scaled_scores(const Kernel& kernel, const AttendParts& parts, const KeyMasks& masks) {
  const ScaledScores plain{-1, masks.open, 1};
  const Instr& product = kernel.instr(masks.open);
  if (product.kind != InstrKind::map || product.op != ir::Op::mul || product.dtype != DType::f32) return plain;
  std::ptrdiff_t uses = 0;
  for (const InstrId id : parts.score_region) {
    const std::vector<InstrId> operands = operands_of(kernel.instr(id));
    uses += std::count(operands.begin(), operands.end(), masks.open);
  }
  if (uses > (masks.open == parts.score ? 0 : 1)) return plain;
  for (const int literal : {0, 1}) {
    const double scale = positive_literal(kernel, product.args[static_cast<std::size_t>(literal)]);
    const InstrId value = product.args[static_cast<std::size_t>(1 - literal)];
    // Scales that f32 holds as normal numbers, times the logarithm too.
    if (scale > 1e-30 && scale < 1e30 && kernel.instr(value).dtype == DType::f32)
      return {masks.open, value, static_cast<float>(scale)};
  }
  return plain;
}

Region open_region(const Kernel& kernel, const AttendParts& parts, const KeyMasks& masks) {
  std::vector<bool> given(kernel.body.size(), false);
  given[static_cast<std::size_t>(parts.scores)] = true;
  return needed(kernel, {masks.open}, given);
}

int score_cost(const Kernel& kernel, const AttendParts& parts) {
  int cost = 0;
  const Region open = open_region(kernel, parts, key_masks(kernel));
  for (const Region* region : {&open, &parts.factor_region}) {
    const Region drawn = drawn_by_fours(kernel, *region, parts.j);
    for (InstrId id : *region) {
      const Instr& instr = kernel.instr(id);
      if (instr.kind == InstrKind::map) cost += ir::info(instr.op).cost;
      if (instr.kind == InstrKind::random) cost += contains(drawn, id) ? kDrawCost : kRandomCost;
    }
  }
  return cost;
}

bool weights_are_exponentials(const Kernel& kernel, const AttendParts& parts) {
  if (kernel.instr(parts.score).dtype != DType::f32) return false;
  return std::all_of(parts.weight_region.begin(), parts.weight_region.end(), [&](InstrId id) {
    const Instr& instr = kernel.instr(id);
    const bool known = id == parts.weight || (instr.kind == InstrKind::map && instr.op == ir::Op::sub);
    return known && instr.dtype == DType::f32;
  });
}

}  // namespace tenon::codegen

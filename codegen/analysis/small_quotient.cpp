// See small_quotient.h. The multiple is 2^shift / divisor rounded up (Granlund & Montgomery, "Division by Invariant
// Integers using Multiplication", 1994): what it exceeds that by must not reach the next quotient.
#include "codegen/analysis/small_quotient.h"

#include "codegen/analysis/exact.h"

namespace tenon::codegen {
namespace {

struct Operands {
  IntegerRange dividend;
  std::int64_t divisor = 0;
};

// Of a quotient or remainder by a positive literal.
std::optional<Operands> operands_by_literal(const Kernel& kernel, const Instr& instr) {
  if (instr.kind != InstrKind::map || (instr.op != ir::Op::floor_div && instr.op != ir::Op::mod) ||
      !is_integer(instr.dtype) || kernel.instr(instr.args[1]).kind != InstrKind::literal)
    return std::nullopt;
  const auto dividend = integer_range(kernel, instr.args[0]), divisor = integer_range(kernel, instr.args[1]);
  if (!dividend || !divisor || divisor->low < 1) return std::nullopt;
  return Operands{*dividend, divisor->low};
}

}  // namespace

std::optional<SmallQuotient> small_quotient(std::int64_t low, std::int64_t high, std::int64_t divisor) {
  constexpr std::int64_t kRange = std::int64_t{1} << 32;
  const std::int64_t plus = low < 0 ? (-low + divisor - 1) / divisor * divisor : 0, most = high + plus;
  if (most >= kRange) return std::nullopt;
  for (int shift = 0; shift < 32; ++shift) {
    const std::int64_t power = std::int64_t{1} << shift, multiple = (power + divisor - 1) / divisor;
    if (most != 0 && multiple > (kRange - 1) / most) return std::nullopt;
    if ((multiple * divisor - power) * most < power) return SmallQuotient{divisor, plus, multiple, shift};
  }
  return std::nullopt;
}

std::optional<SmallQuotient> small_quotient(const Kernel& kernel, const Instr& instr) {
  const auto operands = operands_by_literal(kernel, instr);
  return operands ? small_quotient(operands->dividend.low, operands->dividend.high, operands->divisor) : std::nullopt;
}

bool is_own_remainder(const Kernel& kernel, const Instr& instr) {
  const auto operands = instr.op == ir::Op::mod ? operands_by_literal(kernel, instr) : std::nullopt;
  return operands && operands->dividend.low >= 0 && operands->dividend.high < operands->divisor;
}

}  // namespace tenon::codegen

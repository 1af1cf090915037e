// See combining.h.
#include "ir/ops/combining.h"

namespace tenon::ir {

std::optional<Op> combining(Op reduction) {
  if (reduction == Op::sum) return Op::add;
  if (reduction == Op::prod) return Op::mul;
  if (reduction == Op::max) return Op::maximum;
  if (reduction == Op::min) return Op::minimum;
  if (reduction == Op::any) return Op::logical_or;
  if (reduction == Op::all) return Op::logical_and;
  return std::nullopt;
}

}  // namespace tenon::ir

// See masked_scores.h.
#include "codegen/lower/masked_scores.h"

#include "codegen/kernel/uses.h"

namespace tenon::codegen {
namespace {

using ir::Op;

constexpr int kMostMasks = 8;  // one on the other

bool is_map(const Instr& instr, Op op) { return instr.kind == InstrKind::map && instr.op == op; }

// Becomes where(condition, x, -inf), or where(condition, -inf, x).
void select(Kernel& kernel, InstrId sum, InstrId x, InstrId mask) {
  const Instr& selection = kernel.instr(behind_casts(kernel, mask));
  const bool hides = is_minus_infinity(kernel, selection.args[1]);
  Instr& instr = kernel.body[static_cast<std::size_t>(sum)];
  instr.op = Op::where;
  const InstrId condition = selection.args[0], nothing = selection.args[hides ? 1 : 2];
  instr.args = hides ? std::vector<InstrId>{condition, nothing, x} : std::vector<InstrId>{condition, x, nothing};
}

}  // namespace

bool is_added_mask(const Kernel& kernel, InstrId id) {
  const Instr& instr = kernel.instr(behind_casts(kernel, id));
  if (!is_map(instr, Op::where)) return false;
  const auto zero = [&](int arg) {
    return is_zero(kernel.instr(behind_casts(kernel, instr.args[static_cast<std::size_t>(arg)])));
  };
  return (zero(1) && is_minus_infinity(kernel, instr.args[2])) || (zero(2) && is_minus_infinity(kernel, instr.args[1]));
}

void select_masked_scores(Kernel& kernel) {
  InstrId score = kernel.attention.score;
  for (int depth = 0; depth < kMostMasks; ++depth) {
    const InstrId id = behind_casts(kernel, score);
    const Instr& instr = kernel.instr(id);
    if (is_map(instr, Op::where) && is_minus_infinity(kernel, instr.args[2])) {
      score = instr.args[1];
    } else if (is_map(instr, Op::where) && is_minus_infinity(kernel, instr.args[1])) {
      score = instr.args[2];
    } else if (is_map(instr, Op::add) && is_added_mask(kernel, instr.args[1])) {
      score = instr.args[0];
      select(kernel, id, score, instr.args[1]);
    } else if (is_map(instr, Op::add) && is_added_mask(kernel, instr.args[0])) {
      score = instr.args[1];
      select(kernel, id, score, instr.args[0]);
    } else {
      return;
    }
  }
}

}  // namespace tenon::codegen

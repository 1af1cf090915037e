// See narrow.h.
#include "codegen/analysis/narrow.h"

#include <algorithm>

#include "codegen/analysis/rounds.h"
#include "codegen/kernel/uses.h"

namespace tenon::codegen {
namespace {

constexpr int kMostFactors = 3;  // products and quotients on the way, each of which may double the relative error

bool is_narrow(DType dtype) { return is_real(dtype) && size_of(dtype) <= 2; }

bool ends_narrow(const Kernel& kernel, InstrId value, int factors);

// Whether `user` makes nothing wider of its argument `value`.
bool uses_narrowly(const Kernel& kernel, InstrId user, InstrId value, int factors) {
  const Instr& instr = kernel.instr(user);
  if (instr.kind == InstrKind::round) return is_narrow(instr.dtype) || ends_narrow(kernel, user, factors);
  if (instr.kind == InstrKind::reduce) return instr.op == ir::Op::sum && ends_narrow(kernel, user, factors);
  if (instr.kind != InstrKind::map) return false;
  if (instr.op == ir::Op::cast)
    return is_narrow(instr.dtype) || (is_real(instr.dtype) && ends_narrow(kernel, user, factors));
  if (instr.op == ir::Op::mul || instr.op == ir::Op::div) return factors > 0 && ends_narrow(kernel, user, factors - 1);
  if (instr.op == ir::Op::where) return instr.args[0] != value && ends_narrow(kernel, user, factors);
  // A sum of weights is 0 exactly where all of them are.
  return instr.op == ir::Op::equal && kernel.instr(value).kind == InstrKind::reduce &&
         is_zero(kernel.instr(instr.args[1]));
}

bool ends_narrow(const Kernel& kernel, InstrId value, int factors) {
  for (const Store& store : kernel.stores) {
    if (!contains(roots_of(store), value)) continue;
    const DType stored = kernel.operands[static_cast<std::size_t>(store.access.operand)].dtype;
    if (store.value != value || !is_narrow(stored)) return false;
  }
  for (std::size_t i = 0; i < kernel.body.size(); ++i) {
    const Instr& instr = kernel.body[i];
    if (contains(operands_of(instr), value) &&
        !(contains(instr.args, value) && uses_narrowly(kernel, static_cast<InstrId>(i), value, factors)))
      return false;
  }
  return true;
}

}  // namespace

void mark_narrow(Kernel& kernel) {
  if (kernel.kernel_class != ir::KernelClass::reduce) return;
  const std::optional<Online> online = find_online(kernel);
  if (!online || !online->at_most_one) return;
  const InstrId weight = kernel.instr(online->sum).args[0];
  if (compute_type(kernel.instr(weight).dtype) != DType::f32 || !ends_narrow(kernel, weight, kMostFactors)) return;
  kernel.body[static_cast<std::size_t>(weight)].narrow = true;
  for (std::size_t i = 0; i < kernel.body.size(); ++i)
    if (is_share(kernel, static_cast<InstrId>(i))) kernel.body[i].narrow = true;
}

bool has_narrow_weights(const Kernel& kernel) {
  return std::any_of(kernel.body.begin(), kernel.body.end(),
                     [](const Instr& instr) { return instr.narrow && instr.op == ir::Op::exp; });
}

}  // namespace tenon::codegen

// See narrow.h.
#include "codegen/analysis/narrow.h"

#include <algorithm>

#include "codegen/analysis/rounds.h"
#include "codegen/kernel/uses.h"

namespace tenon::codegen {
namespace {

constexpr int kMostFactors = 3;  // products and quotients on the way, each of which may double the relative error

bool is_quotient(ir::Op op) { return op == ir::Op::div || op == ir::Op::reciprocal; }

bool is_narrow(DType dtype) { return is_real(dtype) && size_of(dtype) <= 2; }

// `factors`: how many there may be on the way; `positive`: what is added up of the values is positive.
bool ends_narrow(const Kernel& kernel, InstrId value, int factors, bool positive);

// Whether `user` makes nothing wider of its argument `value`.
bool uses_narrowly(const Kernel& kernel, InstrId user, InstrId value, int factors, bool positive) {
  const Instr& instr = kernel.instr(user);
  if (instr.kind == InstrKind::round) return is_narrow(instr.dtype) || ends_narrow(kernel, user, factors, positive);
  if (instr.kind == InstrKind::reduce)
    return positive && instr.op == ir::Op::sum && ends_narrow(kernel, user, factors, positive);
  if (instr.kind != InstrKind::map) return false;
  if (instr.op == ir::Op::cast)
    return is_narrow(instr.dtype) || (is_real(instr.dtype) && ends_narrow(kernel, user, factors, positive));
  if (instr.op == ir::Op::mul || is_quotient(instr.op))
    return factors > 0 && ends_narrow(kernel, user, factors - 1, positive);
  if (instr.op == ir::Op::where) return instr.args[0] != value && ends_narrow(kernel, user, factors, positive);
  // A sum of weights is 0 exactly where all of them are.
  return instr.op == ir::Op::equal && kernel.instr(value).kind == InstrKind::reduce &&
         is_zero(kernel.instr(instr.args[1]));
}

bool ends_narrow(const Kernel& kernel, InstrId value, int factors, bool positive) {
  for (const Store& store : kernel.stores) {
    if (!contains(roots_of(store), value)) continue;
    const DType stored = kernel.operands[static_cast<std::size_t>(store.access.operand)].dtype;
    if (store.value != value || !is_narrow(stored)) return false;
  }
  for (std::size_t i = 0; i < kernel.body.size(); ++i) {
    const Instr& instr = kernel.body[i];
    if (contains(operands_of(instr), value) &&
        !(contains(instr.args, value) && uses_narrowly(kernel, static_cast<InstrId>(i), value, factors, positive)))
      return false;
  }
  return true;
}

// A quotient of f32 numbers that is no share of a softmax.
bool is_plain_quotient(const Kernel& kernel, InstrId id) {
  const Instr& instr = kernel.instr(id);
  return instr.kind == InstrKind::map && is_quotient(instr.op) && compute_type(instr.dtype) == DType::f32 &&
         !is_share(kernel, id);
}

void mark_weights(Kernel& kernel) {
  if (kernel.kernel_class != ir::KernelClass::reduce) return;
  const std::optional<Online> online = find_online(kernel);
  if (!online || !online->at_most_one) return;
  const InstrId weight = kernel.instr(online->sum).args[0];
  if (compute_type(kernel.instr(weight).dtype) != DType::f32 || !ends_narrow(kernel, weight, kMostFactors, true))
    return;
  kernel.body[static_cast<std::size_t>(weight)].narrow = true;
  for (std::size_t i = 0; i < kernel.body.size(); ++i)
    if (is_share(kernel, static_cast<InstrId>(i))) kernel.body[i].narrow = true;
}

// Whether `id` is made of attention's scores and goes into nothing but the score, by sums, selections and products.
bool makes_score(const Kernel& kernel, InstrId id, InstrId score) {
  if (id == score) return true;
  bool used = false;
  for (std::size_t i = 0; i < kernel.body.size(); ++i) {
    const Instr& instr = kernel.body[i];
    if (!contains(operands_of(instr), id)) continue;
    used = true;
    const bool keeps =
        instr.kind == InstrKind::map && instr.dtype == DType::f32 &&
        (instr.op == ir::Op::add || instr.op == ir::Op::sub || instr.op == ir::Op::mul || instr.op == ir::Op::tanh ||
         instr.op == ir::Op::fma || (instr.op == ir::Op::where && instr.args[0] != id));
    if (!keeps || !makes_score(kernel, static_cast<InstrId>(i), score)) return false;
  }
  return used;
}

// An absolute error of a score is a relative one of its weight.
void mark_scores(Kernel& kernel) {
  if (kernel.kernel_class != ir::KernelClass::attend) return;
  const Attention& attention = kernel.attention;
  if (!ends_narrow(kernel, attention.weight, kMostFactors, true)) return;
  for (InstrId id = attention.scores; id < attention.weight; ++id) {
    Instr& instr = kernel.body[static_cast<std::size_t>(id)];
    if (instr.kind != InstrKind::map || instr.dtype != DType::f32) continue;
    if ((instr.op == ir::Op::tanh || instr.op == ir::Op::div) && makes_score(kernel, id, attention.score))
      instr.narrow = true;
  }
}

// What divides weights along a row divides an attention's sums instead.
void mark_results(Kernel& kernel) {
  if (kernel.kernel_class != ir::KernelClass::attend) return;
  const InstrId mix = kernel.attention.mix;
  if (ends_narrow(kernel, mix, kMostFactors, false)) kernel.body[static_cast<std::size_t>(mix)].narrow = true;
}

}  // namespace

void mark_narrow(Kernel& kernel) {
  mark_weights(kernel);
  mark_scores(kernel);
  mark_results(kernel);
  for (std::size_t i = 0; i < kernel.body.size(); ++i) {
    const auto id = static_cast<InstrId>(i);
    if (is_plain_quotient(kernel, id) && ends_narrow(kernel, id, kMostFactors, false)) kernel.body[i].narrow = true;
  }
}

bool has_narrow_weights(const Kernel& kernel) {
  return std::any_of(kernel.body.begin(), kernel.body.end(),
                     [](const Instr& instr) { return instr.narrow && instr.op == ir::Op::exp; });
}

}  // namespace tenon::codegen

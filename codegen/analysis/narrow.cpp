// See narrow.h.
#include "codegen/analysis/narrow.h"

#include <algorithm>
#include <array>
#include <variant>

#include "codegen/analysis/rounds.h"
#include "codegen/kernel/uses.h"
#include "ir/interpret/numerics.h"

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
  if (instr.composed != Composed::none &&
      !(instr.op == ir::Op::div && instr.args[0] == value && instr.args[1] != value))
    return false;
  if (instr.kind == InstrKind::round) return is_narrow(instr.dtype) || ends_narrow(kernel, user, factors, positive);
  if (instr.kind == InstrKind::reduce)
    return positive && instr.op == ir::Op::sum && ends_narrow(kernel, user, factors, positive);
  if (instr.kind != InstrKind::map) return false;
  if (instr.op == ir::Op::cast)
    return is_narrow(instr.dtype) || (is_real(instr.dtype) && ends_narrow(kernel, user, factors, positive));
  if (instr.op == ir::Op::mul || is_quotient(instr.op))
    return factors > 0 && ends_narrow(kernel, user, factors - 1, positive);
  const bool chooses =
      instr.op == ir::Op::where ? instr.args[0] != value : is_real(instr.dtype) && ir::selects(instr.op);
  if (chooses) return ends_narrow(kernel, user, factors, positive);
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

// ---- library functions ----------------------------------------------------------------------------------------------

// The map that `id` is, alone in using its operands' values, or null.
const Instr* own_map(const Kernel& kernel, InstrId id, ir::Op op) {
  const Instr& instr = kernel.instr(id);
  return instr.kind == InstrKind::map && instr.op == op && !instr.narrow ? &instr : nullptr;
}

bool is_literal(const Kernel& kernel, InstrId id, double value) {
  const Instr& instr = kernel.instr(id);
  return instr.kind == InstrKind::literal &&
         std::visit([&](auto x) { return static_cast<double>(x) == value; }, instr.literal);
}

// The other operand of `sum` where one is the literal 1, or -1.
InstrId beside_one(const Kernel& kernel, InstrId sum) {
  const Instr* add = own_map(kernel, sum, ir::Op::add);
  if (add == nullptr) return -1;
  for (const std::size_t i : {0, 1})
    if (is_literal(kernel, add->args[i], 1)) return add->args[1 - i];
  return -1;
}

// The argument of an exponential, tanh or erf that `id` is and nothing else uses, or -1.
InstrId only_argument(const Kernel& kernel, InstrId id, ir::Op op) {
  if (id < 0) return -1;
  const Instr* map = own_map(kernel, id, op);
  return map == nullptr || map->reused ? -1 : map->args[0];
}

// y of 1 + exp(y), which nothing else uses, or -1.
InstrId logistic_argument(const Kernel& kernel, const Instr& quotient) {
  const InstrId divisor = quotient.args.back();
  if (kernel.instr(divisor).reused || kernel.instr(divisor).depends != quotient.depends) return -1;
  return only_argument(kernel, beside_one(kernel, divisor), ir::Op::exp);
}

// x of max(x, 0) + log1p(exp(-|x|)), or -1.
InstrId softplus_argument(const Kernel& kernel, InstrId id) {
  const Instr* sum = own_map(kernel, id, ir::Op::add);
  if (sum == nullptr || sum->reused) return -1;
  const InstrId power = only_argument(kernel, sum->args[1], ir::Op::log1p);
  const InstrId negated = only_argument(kernel, power, ir::Op::exp);
  const InstrId size = only_argument(kernel, negated, ir::Op::neg);
  const InstrId x = only_argument(kernel, size, ir::Op::abs);
  const Instr* most = own_map(kernel, sum->args[0], ir::Op::maximum);
  return most != nullptr && most->args[0] == x && is_literal(kernel, most->args[1], 0) ? x : -1;
}

// Whether `id` is exp(-|x|).
bool is_share_of_one(const Kernel& kernel, InstrId id) {
  for (const ir::Op op : {ir::Op::exp, ir::Op::neg, ir::Op::abs}) {
    const Instr& instr = kernel.instr(id);
    if (instr.kind != InstrKind::map || instr.op != op) return false;
    id = instr.args[0];
  }
  return true;
}

void become(Instr& instr, Composed composed, ir::Op op, InstrId argument) {
  instr.composed = composed;
  instr.op = op;
  instr.args = op == ir::Op::div ? std::vector{instr.args[0], argument} : std::vector{argument};
}

// What is one function in place of several, whoever sees it: each returns whether `id` is.

bool compose_logistic(Kernel& kernel, InstrId id) {
  Instr& instr = kernel.body[static_cast<std::size_t>(id)];
  const InstrId y = is_quotient(instr.op) ? logistic_argument(kernel, instr) : -1;
  if (y >= 0) become(instr, Composed::logistic, instr.op, y);
  return y >= 0;
}

// tanh(log(1 + exp(x))), which is a quotient of polynomials of exp(x).
bool compose_tanh_of_softplus(Kernel& kernel, InstrId id) {
  Instr& instr = kernel.body[static_cast<std::size_t>(id)];
  const InstrId x = instr.op == ir::Op::tanh ? softplus_argument(kernel, instr.args[0]) : -1;
  if (x >= 0) become(instr, Composed::tanh_of_softplus, instr.op, x);
  return x >= 0;
}

bool compose_log1p_of_share(Kernel& kernel, InstrId id) {
  Instr& instr = kernel.body[static_cast<std::size_t>(id)];
  if (instr.op != ir::Op::log1p || !is_share_of_one(kernel, instr.args[0])) return false;
  instr.composed = Composed::of_share;
  return true;
}

bool compose_one_plus(Kernel& kernel, InstrId id, ir::Op op) {
  Instr& instr = kernel.body[static_cast<std::size_t>(id)];
  const InstrId x = instr.op == ir::Op::add ? only_argument(kernel, beside_one(kernel, id), op) : -1;
  if (x >= 0) become(instr, Composed::one_plus, op, x);
  return x >= 0;
}

// On CUDA: for 16 bits 1 + tanh(x) and 1 + erf(x) too, and no other form of log1p.
void compose(Kernel& kernel, InstrId id, bool narrow) {
  const bool composed =
      compose_logistic(kernel, id) || compose_tanh_of_softplus(kernel, id) ||
      (narrow ? compose_one_plus(kernel, id, ir::Op::tanh) || compose_one_plus(kernel, id, ir::Op::erf)
              : compose_log1p_of_share(kernel, id));
  if (composed) kernel.body[static_cast<std::size_t>(id)].narrow = narrow;
}

// Those that have a form of their own. `sqrt` is no library function: it is exact where its result is a number.
bool has_function(ir::Op op) {
  using ir::Op;
  constexpr std::array kOps{Op::exp, Op::expm1, Op::log, Op::log2, Op::log1p, Op::tanh};
  return std::find(kOps.begin(), kOps.end(), op) != kOps.end();
}

// What a stored number of f32 or f64 is made of without a rounding to 16 bits in between.
std::vector<bool> seen_wide(const Kernel& kernel) {
  std::vector<bool> seen(kernel.body.size(), false);
  const auto is_wide = [](DType dtype) { return is_real(dtype) && !is_narrow(dtype); };
  for (const Store& store : kernel.stores)
    if (is_wide(kernel.operands[static_cast<std::size_t>(store.access.operand)].dtype))
      seen[static_cast<std::size_t>(store.value)] = true;
  for (std::size_t i = kernel.body.size(); i-- > 0;) {
    const Instr& instr = kernel.body[i];
    const bool rounds = instr.kind == InstrKind::round || (instr.kind == InstrKind::map && instr.op == ir::Op::cast);
    if (!seen[i] || !is_real(instr.dtype) || (rounds && is_narrow(instr.dtype))) continue;
    for (InstrId arg : instr.args) seen[static_cast<std::size_t>(arg)] = true;
  }
  return seen;
}

// A result of 16 bits or fewer may be short of what f32 holds, as if it was stored, but where a long sum in f32 or f64
// would show that all err to one side. One of f32 may where it ends in 16 bits.
void mark_functions(Kernel& kernel) {
  if (kernel.kernel_class == ir::KernelClass::attend) return;
  const std::vector<bool> wide = seen_wide(kernel);
  for (std::size_t i = kernel.body.size(); i-- > 0;) {  // what composes before what is composed
    Instr& instr = kernel.body[i];
    if (instr.kind != InstrKind::map || instr.narrow) continue;
    const auto id = static_cast<InstrId>(i);
    if (instr.dtype == DType::f64) compose_tanh_of_softplus(kernel, id);
    if (compute_type(instr.dtype) != DType::f32) continue;
    const bool ends = ends_narrow(kernel, id, kMostFactors, false), few = ends || (is_narrow(instr.dtype) && !wide[i]);
    compose(kernel, id, few);
    if (instr.narrow || instr.composed != Composed::none) continue;
    instr.narrow = (few && has_function(instr.op)) || (ends && instr.op == ir::Op::sqrt);
  }
}

}  // namespace

void mark_narrow(Kernel& kernel) {
  mark_weights(kernel);
  mark_scores(kernel);
  mark_results(kernel);
  mark_functions(kernel);
  for (std::size_t i = 0; i < kernel.body.size(); ++i) {
    const auto id = static_cast<InstrId>(i);
    if (!kernel.body[i].narrow && is_plain_quotient(kernel, id) && ends_narrow(kernel, id, kMostFactors, false))
      kernel.body[i].narrow = true;
  }
}

void mark_composed(Kernel& kernel) {
  for (std::size_t i = kernel.body.size(); i-- > 0;) {
    const auto id = static_cast<InstrId>(i);
    const Instr& instr = kernel.body[i];
    if (instr.kind != InstrKind::map || !is_real(instr.dtype) || compose_tanh_of_softplus(kernel, id)) continue;
    if (compute_type(instr.dtype) == DType::f32 && !compose_log1p_of_share(kernel, id))
      compose_one_plus(kernel, id, ir::Op::tanh);
  }
}

bool has_narrow_weights(const Kernel& kernel) {
  return std::any_of(kernel.body.begin(), kernel.body.end(),
                     [](const Instr& instr) { return instr.narrow && instr.op == ir::Op::exp; });
}

}  // namespace tenon::codegen

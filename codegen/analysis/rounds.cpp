// See rounds.h.
#include "codegen/analysis/rounds.h"

#include <algorithm>
#include <cmath>

#include "codegen/kernel/uses.h"

namespace tenon::codegen {
namespace {

std::uint64_t reduced_axes(const Kernel& kernel) {
  std::uint64_t mask = 0;
  for (std::size_t axis = 0; axis < kernel.axes.size(); ++axis)
    if (kernel.axes[axis].reduced) mask |= std::uint64_t{1} << axis;
  return mask;
}

// For every instruction the number of reductions behind its value, its own included.
// What shares a sweep is as deep as the reduction that it depends on.
std::vector<int> depths(const Kernel& kernel, const std::optional<Online>& online,
                        const std::optional<Moments>& moments) {
  std::vector<int> depth(kernel.body.size(), 0);
  for (std::size_t i = 0; i < kernel.body.size(); ++i) {
    if (online && static_cast<InstrId>(i) == online->sum) {
      depth[i] = depth[static_cast<std::size_t>(online->maximum)];
      continue;
    }
    if (moments && static_cast<InstrId>(i) == moments->squares) {
      depth[i] = depth[static_cast<std::size_t>(moments->sum)];
      continue;
    }
    for (InstrId operand : operands_of(kernel.body[i]))
      depth[i] = std::max(depth[i], depth[static_cast<std::size_t>(operand)]);
    depth[i] += kernel.body[i].kind == InstrKind::reduce;
  }
  return depth;
}

int depth_of(const Store& store, const std::vector<int>& depth) {
  int deepest = 0;
  for (InstrId root : roots_of(store)) deepest = std::max(deepest, depth[static_cast<std::size_t>(root)]);
  return deepest;
}

bool is_literal(const Kernel& kernel, InstrId id, double value) {
  const Instr& instr = kernel.instr(id);
  return instr.kind == InstrKind::literal &&
         std::visit([](auto v) { return static_cast<double>(v); }, instr.literal) == value;
}

bool is_map(const Instr& instr, ir::Op op) { return instr.kind == InstrKind::map && instr.op == op; }

// Whether `mean` divides its first operand, a sum, by the number of terms, or multiplies it by one over that.
bool is_mean(const Kernel& kernel, const Instr& mean) {
  constexpr double kRounding = 1e-6;
  const bool times = is_map(mean, ir::Op::mul);
  if (!times && !is_map(mean, ir::Op::div)) return false;
  const Instr &sum = kernel.instr(mean.args[0]), &by = kernel.instr(mean.args[1]);
  if (!adds_reals(sum) || by.kind != InstrKind::literal) return false;
  Dim length(1);
  for (const int axis : sum.axes) length = length * kernel.axes[static_cast<std::size_t>(axis)].extent;
  if (!length.is_constant()) return false;
  const double number = std::visit([](auto v) { return static_cast<double>(v); }, by.literal);
  const auto terms = static_cast<double>(length.constant());
  return std::abs((times ? number * terms : number / terms) - 1) < kRounding;
}

// Whether `test` holds where `value` is -inf and elsewhere not, but perhaps for inf.
bool finds_nothing(const Kernel& kernel, const Instr& test, InstrId value) {
  if (is_map(test, ir::Op::isinf)) return test.args[0] == value;
  return is_map(test, ir::Op::equal) && test.args[0] == value && is_literal(kernel, test.args[1], -HUGE_VAL);
}

bool is_maximum(const Instr& instr) { return instr.kind == InstrKind::reduce && instr.op == ir::Op::max; }

// Of a maximum, or where(maximum == -inf, 0, maximum), or by isinf: the maximum, or -1 when `id` is something else.
InstrId shifted_by(const Kernel& kernel, InstrId id) {
  const Instr& select = kernel.instr(id);
  if (is_maximum(select)) return id;
  if (!is_map(select, ir::Op::where) || !is_literal(kernel, select.args[1], 0)) return -1;
  const bool guarded = finds_nothing(kernel, kernel.instr(select.args[0]), select.args[2]);
  return guarded && is_maximum(kernel.instr(select.args[2])) ? select.args[2] : -1;
}

bool only_used_by(const Kernel& kernel, InstrId value, const std::vector<InstrId>& users) {
  const auto uses = [&](const std::vector<InstrId>& operands) {
    return std::find(operands.begin(), operands.end(), value) != operands.end();
  };
  for (std::size_t id = 0; id < kernel.body.size(); ++id)
    if (uses(operands_of(kernel.body[id])) && std::find(users.begin(), users.end(), id) == users.end()) return false;
  return std::none_of(kernel.stores.begin(), kernel.stores.end(), [&](const Store& s) { return uses(roots_of(s)); });
}

// The sum of the exponentials exp(x - maximum of x) in f32 that `id` is; -1 where it is none.
InstrId sum_of_weight(const Kernel& kernel, InstrId id) {
  const Instr& weight = kernel.instr(id);
  if (kernel.kernel_class != ir::KernelClass::reduce || !is_map(weight, ir::Op::exp) ||
      compute_type(weight.dtype) != DType::f32)
    return -1;
  const std::optional<Online> online = find_online(kernel);
  return online && online->at_most_one && kernel.instr(online->sum).args[0] == id ? online->sum : -1;
}

}  // namespace

std::optional<Online> find_online(const Kernel& kernel) {
  for (std::size_t i = 0; i < kernel.body.size(); ++i) {
    const Instr& sum = kernel.body[i];
    if (sum.kind != InstrKind::reduce || sum.op != ir::Op::sum) continue;
    const Instr& weight = kernel.instr(sum.args[0]);
    if (!is_map(weight, ir::Op::exp) || compute_type(weight.dtype) != compute_type(sum.dtype)) continue;
    const Instr& difference = kernel.instr(weight.args[0]);
    if (!is_map(difference, ir::Op::sub)) continue;
    if (!element_level(kernel, sum.args[0])) continue;  // a row of equal elements (broadcast) is one value
    Online online;
    online.sum = static_cast<InstrId>(i);
    online.shift = difference.args[1];
    online.maximum = shifted_by(kernel, online.shift);
    if (online.maximum < 0 || kernel.instr(online.maximum).args[0] != difference.args[0]) continue;
    if (compute_type(kernel.instr(online.shift).dtype) != compute_type(sum.dtype)) continue;
    std::vector<bool> known(kernel.body.size(), false);
    known[static_cast<std::size_t>(online.maximum)] = true;
    online.shift_instrs = needed(kernel, {online.shift}, known);
    for (std::size_t id = 0; id < known.size(); ++id) known[id] = !element_level(kernel, static_cast<InstrId>(id));
    online.instrs = needed(kernel, {sum.args[0]}, known);
    online.only_shifts = only_used_by(kernel, online.maximum, online.shift_instrs) &&
                         std::all_of(online.shift_instrs.begin(), online.shift_instrs.end(), [&](InstrId id) {
                           return id == online.shift || only_used_by(kernel, id, online.shift_instrs);
                         });
    online.guarded = online.shift != online.maximum;
    online.at_most_one = online.guarded && is_map(kernel.instr(kernel.instr(online.shift).args[0]), ir::Op::equal);
    return online;
  }
  return std::nullopt;
}

std::optional<Moments> find_moments(const Kernel& kernel) {
  const auto is_f32 = [&](InstrId id) { return kernel.instr(id).dtype == DType::f32; };
  for (std::size_t i = 0; i < kernel.body.size(); ++i) {
    const Instr& squares = kernel.body[i];
    if (!adds_reals(squares) || squares.dtype != DType::f32 || !element_level(kernel, squares.args[0])) continue;
    const Instr& square = kernel.instr(squares.args[0]);
    if (!is_map(square, ir::Op::mul) || square.args[0] != square.args[1]) continue;
    const Instr& difference = kernel.instr(square.args[0]);
    if (!is_map(difference, ir::Op::sub) || !is_f32(squares.args[0]) || !is_f32(square.args[0])) continue;
    Moments moments;
    moments.squares = static_cast<InstrId>(i);
    moments.mean = difference.args[1];
    const Instr& mean = kernel.instr(moments.mean);
    if (!is_mean(kernel, mean) || !is_f32(moments.mean)) continue;
    moments.sum = mean.args[0];
    const Instr& sum = kernel.instr(moments.sum);
    if (!is_f32(moments.sum) || sum.axes != squares.axes || sum.args[0] != difference.args[0]) continue;
    std::vector<bool> known(kernel.body.size(), false);
    for (std::size_t id = 0; id < known.size(); ++id) known[id] = !element_level(kernel, static_cast<InstrId>(id));
    moments.instrs = needed(kernel, {squares.args[0]}, known);
    return moments;
  }
  return std::nullopt;
}

bool is_weight(const Kernel& kernel, InstrId id) { return sum_of_weight(kernel, id) >= 0; }

bool is_share(const Kernel& kernel, InstrId id) {
  const Instr& share = kernel.instr(id);
  if (!is_map(share, ir::Op::div)) return false;
  const InstrId sum = sum_of_weight(kernel, share.args[0]);
  if (sum < 0) return false;
  const Instr& by = kernel.instr(share.args[1]);
  if (share.args[1] == sum) return true;
  if (!is_map(by, ir::Op::where) || by.args[2] != sum || !is_literal(kernel, by.args[1], 1)) return false;
  const Instr& test = kernel.instr(by.args[0]);
  return is_map(test, ir::Op::equal) && test.args[0] == sum && is_literal(kernel, test.args[1], 0);
}

bool is_softmax_maximum(const Kernel& kernel, const Instr& reduce) {
  if (reduce.op != ir::Op::max || !is_real(reduce.dtype)) return false;
  const std::optional<Online> online = find_online(kernel);
  if (!online || &kernel.instr(online->maximum) != &reduce || !online->only_shifts || !online->at_most_one)
    return false;
  const InstrId weight = kernel.instr(online->sum).args[0], difference = kernel.instr(weight).args[0];
  std::vector<InstrId> shares{online->sum};
  for (std::size_t id = 0; id < kernel.body.size(); ++id)
    if (is_share(kernel, static_cast<InstrId>(id)) && kernel.body[id].args[0] == weight)
      shares.push_back(static_cast<InstrId>(id));
  return only_used_by(kernel, online->shift, {difference}) && only_used_by(kernel, difference, {weight}) &&
         only_used_by(kernel, weight, shares);
}

bool element_level(const Kernel& kernel, InstrId instr) {
  return (kernel.instr(instr).depends & reduced_axes(kernel)) != 0;
}

bool adds_reals(const Instr& reduce) {
  return reduce.kind == InstrKind::reduce && is_real(reduce.dtype) &&
         ir::text_for(ir::info(reduce.op), reduce.dtype).llvm == "fadd";
}

int element_cost(const Kernel& kernel, const Sweep& sweep) {
  int cost = 0;
  for (const InstrId id : sweep.instrs) {
    const Instr& instr = kernel.instr(id);
    cost += instr.kind == InstrKind::map ? ir::info(instr.op).cost : instr.kind == InstrKind::random ? kRandomCost : 0;
  }
  return cost;
}

std::vector<InstrId> sweep_roots(const Kernel& kernel, const Sweep& sweep) {
  std::vector<InstrId> roots;
  for (InstrId reduce : sweep.reduces) roots.push_back(kernel.instr(reduce).args[0]);
  for (InstrId reduce : sweep.outer) roots.push_back(kernel.instr(reduce).args[0]);
  for (InstrId root : roots_of(kernel, sweep.stores)) roots.push_back(root);
  return roots;
}

Rounds rounds_of(const Kernel& kernel, SharedSweeps shared) {
  const std::optional<Online> online = shared.online ? find_online(kernel) : std::nullopt;
  const std::optional<Moments> moments = shared.moments ? find_moments(kernel) : std::nullopt;
  const std::vector<int> depth = depths(kernel, online, moments);
  std::vector<InstrId> roots;
  for (const Store& store : kernel.stores)
    for (InstrId root : roots_of(store)) roots.push_back(root);
  const std::vector<InstrId> used = needed(kernel, roots, std::vector<bool>(kernel.body.size(), false));

  Rounds rounds;
  const auto sweep = [&](int round) -> Sweep& {
    if (rounds.sweeps.size() <= static_cast<std::size_t>(round))
      rounds.sweeps.resize(static_cast<std::size_t>(round) + 1);
    return rounds.sweeps[static_cast<std::size_t>(round)];
  };
  const std::vector<bool> outer = outer_values(kernel);
  const auto is_outer = [&](InstrId id) { return outer[static_cast<std::size_t>(id)]; };
  for (InstrId id : used)
    if (kernel.instr(id).kind == InstrKind::reduce && !(online && online->sum == id) &&
        !(moments && moments->squares == id)) {
      Sweep& its = sweep(depth[static_cast<std::size_t>(id)] - 1);
      (is_outer(id) ? its.outer : its.reduces).push_back(id);
    }
  if (online) sweep(depth[static_cast<std::size_t>(online->maximum)] - 1).online = online;
  if (moments) sweep(depth[static_cast<std::size_t>(moments->sum)] - 1).moments = moments;
  for (std::size_t i = 0; i < kernel.stores.size(); ++i) {
    const bool per_row = (axes_of(kernel, kernel.stores[i]) & reduced_axes(kernel)) == 0;
    if (is_outer(kernel.stores[i].value)) {
      rounds.outer_stores.push_back(static_cast<int>(i));
      continue;
    }
    (per_row ? rounds.row_stores : sweep(depth_of(kernel.stores[i], depth)).stores).push_back(static_cast<int>(i));
  }
  // What is known before a sweep: per-row values, and reductions of earlier rounds.
  std::vector<bool> per_row(kernel.body.size());
  for (std::size_t i = 0; i < kernel.body.size(); ++i) per_row[i] = !element_level(kernel, static_cast<InstrId>(i));
  for (InstrId id : used) {
    if (!per_row[static_cast<std::size_t>(id)] || kernel.instr(id).kind == InstrKind::reduce) continue;
    if (online && std::count(online->shift_instrs.begin(), online->shift_instrs.end(), id) > 0) continue;
    const auto round = static_cast<std::size_t>(depth[static_cast<std::size_t>(id)]);
    (round < rounds.sweeps.size() ? rounds.sweeps[round].before : rounds.after).push_back(id);
  }
  for (Sweep& each : rounds.sweeps) {
    each.instrs = needed(kernel, sweep_roots(kernel, each), per_row);
  }
  return rounds;
}

bool may_split(const Rounds& rounds) { return rounds.sweeps.size() == 1; }

}  // namespace tenon::codegen

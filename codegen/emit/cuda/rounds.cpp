// See rounds.h.
#include "codegen/emit/cuda/rounds.h"

#include <algorithm>

#include "codegen/emit/cuda/points.h"

namespace tenon::codegen::cuda {
namespace {

std::uint64_t reduced_axes(const Kernel& kernel) {
  std::uint64_t mask = 0;
  for (std::size_t axis = 0; axis < kernel.axes.size(); ++axis)
    if (kernel.axes[axis].reduced) mask |= std::uint64_t{1} << axis;
  return mask;
}

// For every instruction the number of reductions behind its value, its own included.
std::vector<int> depths(const Kernel& kernel) {
  std::vector<int> depth(kernel.body.size(), 0);
  for (std::size_t i = 0; i < kernel.body.size(); ++i) {
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

}  // namespace

bool element_level(const Kernel& kernel, InstrId instr) {
  return (kernel.instr(instr).depends & reduced_axes(kernel)) != 0;
}

Rounds rounds_of(const Kernel& kernel) {
  const std::vector<int> depth = depths(kernel);
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
  for (InstrId id : used)
    if (kernel.instr(id).kind == InstrKind::reduce)
      sweep(depth[static_cast<std::size_t>(id)] - 1).reduces.push_back(id);
  for (std::size_t i = 0; i < kernel.stores.size(); ++i) {
    const bool per_row = (axes_of(kernel, kernel.stores[i]) & reduced_axes(kernel)) == 0;
    (per_row ? rounds.row_stores : sweep(depth_of(kernel.stores[i], depth)).stores).push_back(static_cast<int>(i));
  }
  // What is known before a sweep: per-row values, and reductions of earlier rounds.
  std::vector<bool> per_row(kernel.body.size());
  for (std::size_t i = 0; i < kernel.body.size(); ++i) per_row[i] = !element_level(kernel, static_cast<InstrId>(i));
  for (InstrId id : used) {
    if (!per_row[static_cast<std::size_t>(id)] || kernel.instr(id).kind == InstrKind::reduce) continue;
    const auto round = static_cast<std::size_t>(depth[static_cast<std::size_t>(id)]);
    (round < rounds.sweeps.size() ? rounds.sweeps[round].before : rounds.after).push_back(id);
  }
  for (Sweep& each : rounds.sweeps) {
    std::vector<InstrId> targets;
    for (InstrId reduce : each.reduces) targets.push_back(kernel.instr(reduce).args[0]);
    for (int store : each.stores)
      for (InstrId root : roots_of(kernel.stores[static_cast<std::size_t>(store)])) targets.push_back(root);
    each.instrs = needed(kernel, targets, per_row);
  }
  return rounds;
}

}  // namespace tenon::codegen::cuda

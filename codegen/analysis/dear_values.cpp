// See dear_values.h.
#include "codegen/analysis/dear_values.h"

#include <algorithm>

#include "codegen/kernel/uses.h"

namespace tenon::codegen {
namespace {

constexpr int kDear = 8;  // issue slots: more than a store and a load of a cache
constexpr int kMostCost = 1000;

int own_cost(const Instr& instr) {
  switch (instr.kind) {
    case InstrKind::map: return ir::info(instr.op).cost;
    case InstrKind::round: return 2;
    case InstrKind::random: return kRandomCost;
    case InstrKind::literal:
    case InstrKind::load:
    case InstrKind::index:
    case InstrKind::inside:
    case InstrKind::reduce:
    case InstrKind::contract: return 0;
  }
  return 0;
}

// What each element's value costs with all that it is computed from.
std::vector<int> costs(const Kernel& kernel) {
  std::vector<int> cost(kernel.body.size(), 0);
  for (std::size_t i = 0; i < kernel.body.size(); ++i) {
    if (!element_level(kernel, static_cast<InstrId>(i)) || kernel.body[i].kind == InstrKind::reduce) continue;
    cost[i] = own_cost(kernel.body[i]);
    for (const InstrId arg : kernel.body[i].args)
      cost[i] = std::min(kMostCost, cost[i] + cost[static_cast<std::size_t>(arg)]);
  }
  return cost;
}

}  // namespace

std::vector<DearValue> dear_values(const Kernel& kernel, const Rounds& rounds) {
  const std::vector<int> cost = costs(kernel);
  const std::size_t none = rounds.sweeps.size();
  std::vector<std::size_t> first(kernel.body.size(), none);
  std::vector<bool> kept(kernel.body.size(), false);
  for (std::size_t number = 0; number < rounds.sweeps.size(); ++number) {
    const Sweep& sweep = rounds.sweeps[number];
    const auto dear = [&](InstrId id) {
      const auto at = static_cast<std::size_t>(id);
      return first[at] < number && cost[at] >= kDear && kernel.body[at].dtype != DType::bool_;
    };
    const auto keep = [&](InstrId id) {
      if (dear(id)) kept[static_cast<std::size_t>(id)] = true;
    };
    for (const InstrId root : sweep_roots(kernel, sweep)) keep(root);
    for (const InstrId id : sweep.instrs)
      if (!dear(id))
        for (const InstrId operand : operands_of(kernel.instr(id))) keep(operand);
    for (const InstrId id : sweep.instrs)
      first[static_cast<std::size_t>(id)] = std::min(first[static_cast<std::size_t>(id)], number);
  }
  std::vector<DearValue> values;
  for (std::size_t id = 0; id < kept.size(); ++id)
    if (kept[id]) values.push_back({static_cast<InstrId>(id), first[id]});
  return values;
}

}  // namespace tenon::codegen

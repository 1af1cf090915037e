// See one_rounding.h.
#include "codegen/lower/one_rounding.h"

#include <algorithm>

#include "codegen/kernel/uses.h"
#include "ir/interpret/numerics.h"

namespace tenon::codegen {
namespace {

using ir::Op;

std::size_t at(std::int32_t id) { return static_cast<std::size_t>(id); }

bool is_narrow(DType dtype) { return is_real(dtype) && size_of(dtype) < 4; }

// ---- the graph ----------------------------------------------------------------------------------------------------

std::vector<bool> stored_values(const ir::Plan& plan) {
  std::vector<bool> stored(plan.graph.values.size(), false);
  for (const ir::Group& group : plan.groups)
    for (ir::ValueId output : group.outputs) stored[at(output)] = true;
  return stored;
}

// A view has the uses of its result: one that is stored is made of its operand by the kernel that stores it, and so is
// what that kernel makes of the view.
std::vector<int> count_uses(const ir::Graph& graph, const std::vector<bool>& stored) {
  std::vector<int> uses(graph.values.size(), 0);
  for (std::size_t value = 0; value < stored.size(); ++value) uses[value] = stored[value] ? 1 : 0;
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    const int added = ir::kind_of(node->op) == ir::Kind::view ? uses[at(node->results[0])] : 1;
    for (ir::ValueId operand : node->operands) uses[at(operand)] = std::min(2, uses[at(operand)] + added);
  }
  return uses;
}

}  // namespace

ValueUses uses_of(const ir::Plan& plan) {
  const ir::Graph& graph = plan.graph;
  std::vector<bool> stored = stored_values(plan);
  const std::vector<int> uses = count_uses(graph, stored);
  ValueUses result{std::vector<bool>(stored.size(), false), std::vector<bool>(stored.size(), false)};
  for (std::size_t value = 0; value < stored.size(); ++value) result.reused[value] = uses[value] > 1;
  // What is stored through views and selections is rounded by that as well.
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    const ir::ValueId made = node->results[0];
    if (!stored[at(made)] || !(ir::kind_of(node->op) == ir::Kind::view || ir::selects(node->op))) continue;
    for (ir::ValueId operand : node->operands)
      if (graph.type(operand).dtype == graph.type(made).dtype) stored[at(operand)] = true;
  }
  // A value without another use is rounded by its store.
  for (std::size_t value = 0; value < stored.size(); ++value)
    result.settled[value] =
        stored[value] && result.reused[value] && is_narrow(graph.type(static_cast<ir::ValueId>(value)).dtype);
  return result;
}

// ---- the kernel ---------------------------------------------------------------------------------------------------

namespace {

bool is_real_map(const Instr& instr) { return instr.kind == InstrKind::map && is_real(instr.dtype); }
bool is_product(const Instr& instr) { return is_real_map(instr) && instr.op == Op::mul; }

// A cast between reals that leaves a register as it is.
bool is_free_cast(const Kernel& kernel, const Instr& instr) {
  if (!is_real_map(instr) || instr.op != Op::cast) return false;
  const DType from = kernel.instr(instr.args[0]).dtype;
  return is_real(from) && compute_type(from) == instr.dtype;
}

// Whether a compiler may see the value of an operand behind the instruction.
bool passes(const Kernel& kernel, const Instr& instr) {
  const bool combines = instr.kind == InstrKind::map || instr.kind == InstrKind::reduce;
  return (combines && is_real(instr.dtype) && ir::selects(instr.op)) || is_free_cast(kernel, instr);
}

// floor_div and mod subtract something of an operand from it.
bool adds(const Instr& instr) {
  return is_real_map(instr) &&
         (instr.op == Op::add || instr.op == Op::sub || instr.op == Op::floor_div || instr.op == Op::mod);
}

bool sums(const Instr& instr) { return instr.kind == InstrKind::reduce && instr.op == Op::sum && is_real(instr.dtype); }

}  // namespace

Product contracted_product(const Kernel& kernel, InstrId id, DType dtype, std::uint64_t depends) {
  Product product;
  while (true) {
    const Instr& instr = kernel.instr(id);
    if (instr.kind != InstrKind::map || instr.reused || instr.depends != depends) return {};
    if (is_product(instr)) {
      product.mul = id;
      return compute_type(instr.dtype) == compute_type(dtype) ? product : Product{};
    }
    const bool negation = is_real_map(instr) && instr.op == Op::neg;
    if (!negation && !is_free_cast(kernel, instr)) return {};
    product.negated = product.negated != negation;
    id = instr.args[0];
  }
}

void mark_products(Kernel& kernel, bool contraction) {
  std::vector<InstrId> roots;
  for (const Store& store : kernel.stores)
    for (InstrId root : roots_of(store)) roots.push_back(root);
  const std::vector<InstrId> used = needed(kernel, roots, std::vector<bool>(kernel.body.size(), false));
  std::vector<bool> added(kernel.body.size(), false), summed(kernel.body.size(), false);  // what uses it does so
  for (auto id = used.rbegin(); id != used.rend(); ++id) {
    Instr& instr = kernel.body[at(*id)];
    if (is_product(instr)) instr.rounded = added[at(*id)] || (summed[at(*id)] && (!contraction || instr.reused));
    const bool passed = passes(kernel, instr), several = passed && instr.reused && summed[at(*id)];
    for (InstrId arg : instr.args) {
      if (adds(instr) || (passed && added[at(*id)]) || several) added[at(arg)] = true;
      if (sums(instr) || (passed && summed[at(*id)])) summed[at(arg)] = true;
    }
  }
}

}  // namespace tenon::codegen

// One group -> one Kernel: lay out the domain, fill the body, cut loops where that removes divisions, collapse,
// schedule.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/analysis/flat_tile.h"
#include "codegen/analysis/narrow.h"
#include "codegen/kernel/kernel.h"
#include "codegen/kernel/visit.h"
#include "codegen/lower/body.h"
#include "codegen/lower/few_elements.h"
#include "codegen/lower/row_order.h"
#include "codegen/lower/vector_product.h"
#include "ir/graph/check.h"

namespace tenon::codegen {
namespace {

constexpr std::size_t kMaxAxes = 32;

// A loop i of extent n that occurs as i / d or i mod d with d dividing n becomes two loops of n/d and d: the division
// is then done by the loops. Records one such cut; false when there is none. Contract and attend loop by tiles.
bool find_cut(const Kernel& kernel, LoopFactors& factors) {
  if (kernel.kernel_class == ir::KernelClass::contract || kernel.kernel_class == ir::KernelClass::attend) return false;
  std::optional<std::pair<int, Dim>> cut;
  const auto look = [&](const Index& index) {
    visit_atoms(index, [&](const IndexAtom& atom) {
      const bool division = atom.kind == IndexAtom::Kind::floor_div || atom.kind == IndexAtom::Kind::mod;
      if (cut || !division || atom.operand.terms().size() != 1 || !atom.operand.constant().is(0)) return;
      const IndexTerm& term = atom.operand.terms()[0];
      if (term.atom->kind != IndexAtom::Kind::axis || !term.coefficient.is(1)) return;
      const Axis& axis = kernel.axes[static_cast<std::size_t>(term.atom->id)];
      if (const auto outer = axis.extent.exact_div(atom.divisor); outer && !outer->is(1))
        cut = {term.atom->id, atom.divisor};
    });
  };
  visit_indices(kernel, look);
  if (!cut || kernel.axes.size() >= kMaxAxes) return false;
  const Axis& axis = kernel.axes[static_cast<std::size_t>(cut->first)];
  const auto underscore = axis.name.find('_');
  const std::string loop = axis.name.substr(0, underscore);
  const std::size_t part = underscore == std::string::npos ? 0 : std::stoul(axis.name.substr(underscore + 1));
  std::vector<Dim>& parts = factors[loop];
  if (parts.empty()) parts = {axis.extent};
  parts[part] = *axis.extent.exact_div(cut->second);
  parts.insert(parts.begin() + static_cast<std::ptrdiff_t>(part) + 1, cut->second);
  return true;
}

std::vector<std::string> symbols_used(const Kernel& kernel) {
  std::set<std::string> names;
  for (const Axis& axis : kernel.axes) axis.extent.collect_symbols(names);
  visit_indices(kernel, [&](const Index& index) {
    index.constant().collect_symbols(names);
    for (const IndexTerm& term : index.terms()) term.coefficient.collect_symbols(names);
    visit_atoms(index, [&](const IndexAtom& atom) {
      atom.divisor.collect_symbols(names);
      atom.operand.constant().collect_symbols(names);
      for (const IndexTerm& term : atom.operand.terms()) term.coefficient.collect_symbols(names);
    });
  });
  visit_guards(kernel, [&](const Guard& guard) { guard.bound.collect_symbols(names); });
  for (const Operand& operand : kernel.operands)  // emitters ask how large a buffer is
    for (const Dim& extent : operand.shape) extent.collect_symbols(names);
  return {names.begin(), names.end()};
}

// The class and the costliest operators: what a profiler shows.
std::string kernel_name(const Kernel& kernel) {
  std::string name = ir::name_of(kernel.kernel_class);
  std::vector<std::string_view> shown;
  for (const Instr& instr : kernel.body) {
    const bool notable = instr.kind == InstrKind::reduce || instr.kind == InstrKind::random ||
                         (instr.kind == InstrKind::map && ir::info(instr.op).cost >= 5);
    const std::string_view op = instr.kind == InstrKind::random ? "random" : ir::name_of(instr.op);
    if (notable && shown.size() < 4 && std::find(shown.begin(), shown.end(), op) == shown.end()) shown.push_back(op);
  }
  for (std::string_view op : shown) name += "_" + std::string(op);
  return name;
}

}  // namespace

bool writes_nothing(const ir::Plan& plan, int group, const Symbols& symbols) {
  const std::vector<ir::ValueId>& outputs = plan.groups.at(static_cast<std::size_t>(group)).outputs;
  return std::all_of(outputs.begin(), outputs.end(), [&](ir::ValueId output) {
    return element_count(plan.graph.type(output).shape).bounds(symbols).max <= 0;
  });
}

Kernel lower(const ir::Plan& plan, int group_number, const Specialization& specialization, const Target& target) {
  const ir::Group& group = plan.groups.at(static_cast<std::size_t>(group_number));
  LoopFactors factors;
  const BodyOptions options{uses_of(plan), target.may.contraction && has_fma(target)};
  Kernel kernel;
  do {
    const Domain domain = make_domain(plan, group, factors, specialization.symbols);
    kernel = Kernel{};
    kernel.kernel_class = group.kernel_class;
    kernel.axes = domain.axes;
    kernel.symbols = specialization.symbols;
    kernel.wide_index = specialization.wide_index;
    kernel.wide_random = specialization.wide_random;
    build_body(kernel, plan, group, domain, options);
  } while (find_cut(kernel, factors));
  collapse_axes(kernel);
  if ((!streams_past_vector(kernel, target) && sum_vector_products(kernel)) || sum_few_products(kernel, target))
    collapse_axes(kernel);
  if (target.kind == TargetKind::cuda && combine_few_elements(kernel)) collapse_axes(kernel);
  if (target.kind == TargetKind::cuda && loads_across(kernel).empty()) lengthen_inner_axis(kernel);
  if (kernel.kernel_class == ir::KernelClass::reduce) gather_selected(kernel);
  if (target.kind == TargetKind::cuda) order_rows(kernel, target);
  if (target.may.narrow) mark_narrow(kernel);
  if (target.may.compose) mark_composed(kernel);
  mark_products(kernel, options.contraction);
  kernel.dims = symbols_used(kernel);
  kernel.name = kernel_name(kernel);
  verify(kernel);
  return kernel;
}

}  // namespace tenon::codegen

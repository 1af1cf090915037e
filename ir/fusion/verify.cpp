// A plan checked from outside: what plan.h promises, derived again from the groups alone.
#include <fmt/format.h>

#include <algorithm>

#include "ir/fusion/cluster.h"
#include "ir/graph/build.h"
#include "ir/graph/check.h"

namespace tenon::ir {
namespace {

using namespace fusion;

class GroupCheck {
 public:
  GroupCheck(const Plan& plan, std::size_t number)
      : plan_(plan), graph_(plan.graph), group_(plan.groups[number]), number_(number) {
    domain_ = domain_of(group_);
    kept_ = axis_bits(domain_, 0, domain_.kept);
  }

  void run() {
    require(!group_.outputs.empty(), "writes nothing");
    require(group_.layouts.size() == group_.outputs.size(), "has not one layout for each output");
    require(std::is_sorted(group_.nodes.begin(), group_.nodes.end()), "has nodes out of order");
    needs_ = needs_of(graph_, group_);
    find_after_outer();
    check_contents();
    for (std::size_t i = 0; i < group_.outputs.size(); ++i) check_output(group_.outputs[i], group_.layouts[i]);
    for (NodeId id : group_.nodes) check_node(id);
    check_counts();
  }

 private:
  void require(bool holds, const std::string& what) const {
    TENON_CHECK(holds, fmt::format("group {} of the plan {}\n{}", number_, what, print(plan_)));
  }

  void find_after_outer() {
    for (NodeId id : group_.nodes) {  // in definition order
      const Node& node = graph_.node(id);
      if (is_outer_node(id) || std::any_of(node.operands.begin(), node.operands.end(), [&](ValueId operand) {
            return after_outer(operand) && needs_.computed.count(operand) != 0;
          }))
        after_outer_.insert(node.results.begin(), node.results.end());
    }
  }

  void check_contents() const {
    std::vector<NodeId> computed;
    for (const auto& [value, layouts] : needs_.computed) computed.push_back(graph_.value(value).producer);
    std::sort(computed.begin(), computed.end());
    require(computed == group_.nodes, "does not hold exactly the nodes that its outputs need");
    require(needs_.read_order.size() == group_.inputs.size(), "has inputs that it does not need");
    for (NodeId id : group_.nodes) {
      const Op op = graph_.node(id).op;
      require(op != Op::input && kind_of(op) != Kind::composite, fmt::format("computes {}", name_of(op)));
    }
  }

  void check_output(ValueId value, const Layout& layout) const {
    const auto axes = covered(layout, domain_);
    const std::uint32_t all = axis_bits(domain_, 0, domain_.rank());
    require(axes.has_value(), "has an output that is no permutation of its axes");
    Dim count(1);
    for (const Digit& digit : layout) count = count * digit.extent;
    require(count == element_count(graph_.type(value).shape), "has an output of another size than its layout");
    bool fits = *axes == kept_;
    if (group_.kernel_class == KernelClass::reduce) fits = fits || *axes == all || after_outer(value);
    if (group_.kernel_class == KernelClass::attend) fits = fits || *axes == axis_bits(domain_, 0, domain_.kept - 1);
    require(fits, "has an output that does not cover its domain");
  }

  const Layout& only_layout(ValueId value) const {
    const std::vector<Layout>& layouts = needs_.computed.at(value);
    require(layouts.size() == 1, fmt::format("needs {} at several layouts", display_name(graph_, value)));
    return layouts.front();
  }

  void check_node(NodeId id) const {
    const Node& node = graph_.node(id);
    if (is_outer_node(id))
      check_outer(node);
    else if (kind_of(node.op) == Kind::reduce)
      check_reduction(node);
    if (after_outer(node.results[0]))
      for (const Layout& layout : needs_.computed.at(node.results[0]))
        require((depends_of(layout) & kept_) == 0, "needs an outer reduction before the last row");
    if (kind_of(node.op) == Kind::contract) check_contraction(id, node);
  }

  bool is_outer_node(NodeId id) const {
    return std::find(group_.outer.begin(), group_.outer.end(), id) != group_.outer.end();
  }

  // Whether `value` is an outer reduction's result, or made of one.
  bool after_outer(ValueId value) const { return after_outer_.count(value) != 0; }

  // They combine the kept axes, and lie on the reduced ones.
  void check_outer(const Node& node) const {
    require(group_.kernel_class == KernelClass::reduce, "has outer reductions and is no reduction");
    require(covered(only_layout(node.results[0]), domain_) == axis_bits(domain_, domain_.kept, domain_.rank()),
            "has an outer reduction that is not on its reduced axes");
    require(without_ones(reduced_shape(node)) == without_ones(group_.kept),
            "has outer reductions over other axes than those it keeps");
  }

  Shape reduced_shape(const Node& node) const {
    const Shape& shape = graph_.type(node.operands[0]).shape;
    Shape reduced;
    for (int axis : reduced_axes(node, static_cast<int>(shape.size())))
      reduced.push_back(shape[static_cast<std::size_t>(axis)]);
    return reduced;
  }

  void check_reduction(const Node& node) const {
    const std::uint32_t rows =
        group_.kernel_class == KernelClass::attend ? axis_bits(domain_, 0, domain_.kept - 1) : kept_;
    require(covered(only_layout(node.results[0]), domain_) == rows, "has a reduction that is not on its kept axes");
    if (group_.kernel_class != KernelClass::reduce) return;
    require(without_ones(reduced_shape(node)) == group_.reduced, "has reductions over different axes");
  }

  void check_contraction(NodeId id, const Node& node) const {
    const Layout& layout = only_layout(node.results[0]);
    if (group_.kernel_class == KernelClass::attend && id == group_.attention.scores) {
      const std::uint32_t expected =
          axis_bits(domain_, 0, domain_.kept - 1) | axis_bits(domain_, domain_.kept, domain_.kept + 1);
      require(covered(layout, domain_) == expected, "needs scores elsewhere than at (batch, i, j)");
      return;
    }
    require(layout == domain_.kept_layout(), "needs its contraction elsewhere than at its own point");
  }

  // Two contractions with the same first operand.
  bool is_pair() const {
    std::vector<ValueId> first;
    for (NodeId id : group_.nodes)
      if (kind_of(graph_.node(id).op) == Kind::contract) first.push_back(graph_.node(id).operands[0]);
    return first.size() == 2 && first[0] == first[1];
  }

  void check_counts() const {
    int reductions = 0, contractions = 0;
    for (NodeId id : group_.nodes) {
      reductions += kind_of(graph_.node(id).op) == Kind::reduce;
      contractions += kind_of(graph_.node(id).op) == Kind::contract;
    }
    switch (group_.kernel_class) {
      case KernelClass::map: require(reductions == 0 && contractions == 0, "is no map"); return;
      case KernelClass::reduce: require(reductions > 0 && contractions == 0, "is no reduction"); return;
      case KernelClass::contract:
        require(reductions == 0 && (contractions == 1 || is_pair()), "is no contraction");
        return;
      case KernelClass::attend:
        require(contractions == 2 && reductions >= 1 && reductions <= 2, "is no attention");
        return;
    }
  }

  const Plan& plan_;
  const Graph& graph_;
  const Group& group_;
  std::size_t number_;
  Domain domain_;
  std::uint32_t kept_ = 0;
  Needs needs_;
  std::set<ValueId> after_outer_;
};

// Members side by side, of classes that are packed with each other, none of which reads what another writes.
void verify_pack(const Plan& plan, const std::vector<int>& pack, int after) {
  const auto require = [&](bool holds, const char* what) {
    TENON_CHECK(holds, fmt::format("a pack of the plan {}\n{}", what, print(plan)));
  };
  require(pack.size() > 1, "has one member");
  std::set<ValueId> written;
  const auto is_product = [&](int number) {
    return plan.groups.at(static_cast<std::size_t>(number)).kernel_class == KernelClass::contract;
  };
  for (std::size_t i = 0; i < pack.size(); ++i) {
    require(i == 0 ? pack[0] > after : pack[i] == pack[i - 1] + 1, "is not of neighbours");
    const Group& group = plan.groups.at(static_cast<std::size_t>(pack[i]));
    require(group.kernel_class != KernelClass::attend, "has an attention among its members");
    require(is_product(pack[i]) == is_product(pack[0]), "has products and other kernels as members");
    for (ValueId input : group.inputs) require(!written.count(input), "has a member that reads another's result");
    written.insert(group.outputs.begin(), group.outputs.end());
  }
}

}  // namespace

void verify(const Plan& plan) {
  const Graph& graph = plan.graph;
  std::set<ValueId> in_memory(graph.inputs.begin(), graph.inputs.end());
  for (std::size_t i = 0; i < plan.groups.size(); ++i) {
    for (ValueId input : plan.groups[i].inputs)
      TENON_CHECK(in_memory.count(input),
                  fmt::format("group {} reads what no group before it wrote\n{}", i, print(plan)));
    GroupCheck(plan, i).run();
    for (ValueId output : plan.groups[i].outputs)
      TENON_CHECK(in_memory.insert(output).second, fmt::format("group {} writes a value again\n{}", i, print(plan)));
  }
  for (const Refusal& refusal : plan.refusals)
    TENON_CHECK(refusal.rule != Rule::none && !refusal.reason.empty(),
                "a refusal of the plan gives no rule or no reason\n" + explain(plan));
  int packed = -1;
  for (const std::vector<int>& pack : plan.packs) {
    verify_pack(plan, pack, packed);
    packed = pack.back();
  }
  std::set<ValueId> outputs(graph.inputs.begin(), graph.inputs.end());
  for (ValueId output : graph.outputs) {
    TENON_CHECK(outputs.insert(output).second,
                "an output of the plan's graph is an input or repeats another\n" + print(plan));
    TENON_CHECK(in_memory.count(output),
                fmt::format("no group writes {}\n{}", display_name(graph, output), print(plan)));
  }
}

}  // namespace tenon::ir

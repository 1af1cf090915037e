// Where the outputs of a group lie on its domain: a walk over the group's nodes, both ways, from the values whose
// coordinates the domain fixes.
#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "codegen/lower/body.h"
#include "ir/check.h"

namespace tenon::codegen {
namespace {

class Walk {
 public:
  Walk(const ir::Plan& plan, const ir::Group& group, const Domain& domain, const Symbols& symbols)
      : graph_(plan.graph), group_(group), domain_(domain), context_{&domain.axes, &symbols} {
    for (ir::NodeId id : group.nodes) {
      const ir::Node& node = graph_.node(id);
      for (ir::ValueId operand : node.operands) users_[operand].push_back(id);
      for (ir::ValueId result : node.results) producers_[result] = id;
    }
  }

  std::map<ir::ValueId, Coordinates> run() {
    for (const auto& [value, coordinates] : domain_.seeds) found(value, coordinates);
    while (!pending_.empty()) {
      const ir::ValueId value = pending_.front();
      pending_.pop_front();
      to_operands(value);
      to_users(value);
    }
    std::map<ir::ValueId, Coordinates> outputs;
    for (ir::ValueId output : group_.outputs) {
      TENON_CHECK(at_.count(output),
                  fmt::format("output {} of a group has no place on its domain", ir::display_name(graph_, output)));
      outputs[output] = at_[output];
    }
    return outputs;
  }

 private:
  void found(ir::ValueId value, Coordinates coordinates) {
    if (at_.emplace(value, std::move(coordinates)).second) pending_.push_back(value);
  }

  const std::vector<Index>& reduced(ir::NodeId node) const {
    static const std::vector<Index> none;
    const auto axes = domain_.reduced.find(node);
    return axes == domain_.reduced.end() ? none : axes->second;
  }

  void to_operands(ir::ValueId value) {
    const auto producer = producers_.find(value);
    if (producer == producers_.end()) return;
    const ir::Node& node = graph_.node(producer->second);
    if (node.op == ir::Op::concat || node.op == ir::Op::pad || node.op == ir::Op::take) return;
    if (ir::kind_of(node.op) == ir::Kind::reduce && !domain_.reduced.count(producer->second)) return;
    for (std::size_t i = 0; i < node.operands.size(); ++i)
      found(node.operands[i], operand_coordinates(graph_, node, i, at_[value], reduced(producer->second), context_));
  }

  void to_users(ir::ValueId value) {
    for (ir::NodeId user : users_[value]) {
      const ir::Node& node = graph_.node(user);
      const auto position = std::find(node.operands.begin(), node.operands.end(), value) - node.operands.begin();
      if (auto result = result_coordinates(graph_, node, static_cast<std::size_t>(position), at_[value], context_))
        found(node.results[0], std::move(*result));
    }
  }

  const ir::Graph& graph_;
  const ir::Group& group_;
  const Domain& domain_;
  IndexContext context_;
  std::map<ir::ValueId, std::vector<ir::NodeId>> users_;
  std::map<ir::ValueId, ir::NodeId> producers_;
  std::map<ir::ValueId, Coordinates> at_;
  std::deque<ir::ValueId> pending_;
};

}  // namespace

std::map<ir::ValueId, Coordinates> locate_outputs(const ir::Plan& plan, const ir::Group& group, const Domain& domain,
                                                  const Symbols& symbols) {
  return Walk(plan, group, domain, symbols).run();
}

Index add_loop(Domain& domain, const std::string& name, const Dim& extent, bool reduced,
               const std::vector<Dim>& factors) {
  std::vector<Dim> extents = factors.empty() ? std::vector<Dim>{extent} : factors;
  Index index(0);
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const std::string axis_name = extents.size() == 1 ? name : fmt::format("{}_{}", name, i);
    index = index * extents[i] + Index::axis(static_cast<int>(domain.axes.size()));
    domain.axes.push_back({axis_name, extents[i], reduced});
  }
  return index;
}

}  // namespace tenon::codegen

// A plan as text: what tests compare and `tenon dump --emit plan` shows. One paragraph a group, then the packs.
#include <fmt/format.h>

#include "ir/fusion/text.h"

namespace tenon::ir {
namespace fusion {

// Names of values that live in memory: the user's, or "k2.0" for the first unnamed output of group 2.
std::vector<std::string> memory_names(const Plan& plan) {
  std::vector<std::string> names(plan.graph.values.size());
  for (std::size_t i = 0; i < plan.graph.values.size(); ++i) names[i] = plan.graph.values[i].name;
  for (std::size_t i = 0; i < plan.graph.outputs.size(); ++i) {
    std::string& name = names[static_cast<std::size_t>(plan.graph.outputs[i])];
    if (name.empty()) name = plan.graph.outputs_names[i];
  }
  for (std::size_t group = 0; group < plan.groups.size(); ++group)
    for (std::size_t i = 0; i < plan.groups[group].outputs.size(); ++i) {
      std::string& name = names[static_cast<std::size_t>(plan.groups[group].outputs[i])];
      if (name.empty()) name = fmt::format("k{}.{}", group, i);
    }
  return names;
}

std::string domain_text(const Group& group) {
  std::string text = tenon::str(group.kept);
  if (!group.reduced.empty()) text += " x " + tenon::str(group.reduced);
  if (!group.outer.empty()) text += " and over its rows";
  return text;
}

// Rank-0 literals say nothing.
std::string operators_text(const Plan& plan, const Group& group) {
  std::string text;
  for (NodeId id : group.nodes) {
    const Node& node = plan.graph.node(id);
    if (node.op == Op::full && plan.graph.type(node.results[0]).shape.empty()) continue;
    text += fmt::format("{}{}", text.empty() ? "" : " ", name_of(node.op));
  }
  return text.empty() ? "literal" : text;
}

std::string launches_text(const Plan& plan) {
  const std::size_t launches = launched_together(plan).size();
  return fmt::format("{} launch{}", launches, launches == 1 ? "" : "es");
}

}  // namespace fusion

namespace {

std::string value_list(const Plan& plan, const std::vector<std::string>& names, const std::vector<ValueId>& values) {
  std::string text;
  for (ValueId value : values)
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", names[static_cast<std::size_t>(value)],
                        str(plan.graph.type(value)));
  return text.empty() ? "nothing" : text;
}

}  // namespace

const char* name_of(KernelClass kernel_class) {
  switch (kernel_class) {
    case KernelClass::map: return "map";
    case KernelClass::reduce: return "reduce";
    case KernelClass::contract: return "contract";
    case KernelClass::attend: return "attend";
  }
  return "";
}

std::string print(const Plan& plan) {
  const std::vector<std::string> names = fusion::memory_names(plan);
  const std::size_t count = plan.groups.size();
  std::string text = fmt::format("plan {}: {} kernel{}", plan.graph.name, count, count == 1 ? "" : "s");
  if (!plan.packs.empty()) text += fmt::format(" in {}", fusion::launches_text(plan));
  text += "\n";
  for (std::size_t i = 0; i < count; ++i) {
    const Group& group = plan.groups[i];
    text += fmt::format("{} {} over {}\n", i, name_of(group.kernel_class), fusion::domain_text(group));
    text += fmt::format("  in  {}\n", value_list(plan, names, group.inputs));
    text += fmt::format("  out {}\n", value_list(plan, names, group.outputs));
    text += fmt::format("  {}\n", fusion::operators_text(plan, group));
  }
  for (const std::vector<int>& pack : plan.packs) text += fmt::format("pack {}\n", fmt::join(pack, " "));
  return text;
}

}  // namespace tenon::ir

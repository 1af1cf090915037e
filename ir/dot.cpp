// One cluster a kernel; edges between clusters are what passes through memory.
#include "ir/dot.h"

#include <fmt/format.h>

namespace tenon::ir {
namespace {

std::string label(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  return fmt::format("{}\\n{}", name_of(node.op), str(graph.type(node.results[0])));
}

// Only what stores a value in a group is worth a node there: literals are not drawn.
bool drawn(const Graph& graph, NodeId id) { return graph.node(id).op != Op::full && graph.node(id).op != Op::input; }

}  // namespace

std::string dot(const Plan& plan) {
  const Graph& graph = plan.graph;
  std::string text =
      fmt::format("digraph {} {{\n  rankdir=TB; node [shape=box, fontname=\"monospace\", fontsize=10];\n", graph.name);
  for (ValueId input : graph.inputs)
    text += fmt::format("  v{} [label=\"{}\\n{}\", shape=ellipse];\n", input, display_name(graph, input),
                        str(graph.type(input)));
  std::vector<std::string> home(graph.values.size());  // the drawn node that stores each value
  for (ValueId input : graph.inputs) home[static_cast<std::size_t>(input)] = fmt::format("v{}", input);
  std::string edges;
  for (std::size_t g = 0; g < plan.groups.size(); ++g) {
    const Group& group = plan.groups[g];
    text += fmt::format("  subgraph cluster_{} {{\n    label=\"kernel {}: {}\"; style=rounded;\n", g, g,
                        name_of(group.kernel_class));
    std::vector<std::string> local = home;
    for (NodeId id : group.nodes) {
      if (!drawn(graph, id)) continue;
      const std::string name = fmt::format("k{}_n{}", g, id);
      text += fmt::format("    {} [label=\"{}\"];\n", name, label(graph, id));
      for (ValueId operand : graph.node(id).operands)
        if (const std::string& from = local[static_cast<std::size_t>(operand)]; !from.empty())
          edges += fmt::format("  {} -> {};\n", from, name);
      for (ValueId result : graph.node(id).results) local[static_cast<std::size_t>(result)] = name;
    }
    for (ValueId output : group.outputs)
      home[static_cast<std::size_t>(output)] = local[static_cast<std::size_t>(output)];
    text += "  }\n";
  }
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
    text += fmt::format("  out{} [label=\"{}\", shape=ellipse];\n", i, graph.outputs_names[i]);
    edges += fmt::format("  {} -> out{};\n", home[static_cast<std::size_t>(graph.outputs[i])], i);
  }
  return text + edges + "}\n";
}

}  // namespace tenon::ir

// One cluster a kernel, and one around those that share a launch; edges between clusters are what passes through
// memory.
#include "ir/fusion/dot.h"

#include <fmt/format.h>

#include <map>

#include "ir/text/text.h"

namespace tenon::ir {
namespace {

// Within the double quotes of DOT.
std::string quoted(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '"') result += '\\';
    result += c;
  }
  return result;
}

// Only what stores a value in a group is worth a node there: literals are not drawn.
bool drawn(const Graph& graph, NodeId id) { return graph.node(id).op != Op::full && graph.node(id).op != Op::input; }

// The kernels drawn so far.
struct Drawing {
  std::vector<std::string> statements;  // by node: names, constants and axes
  std::string text, edges;
  std::vector<std::string> home;  // by value: the drawn node that stores it
};

void draw_group(const Plan& plan, int number, Drawing& drawing) {
  const Graph& graph = plan.graph;
  const Group& group = plan.groups[static_cast<std::size_t>(number)];
  drawing.text += fmt::format("  subgraph cluster_{} {{\n    label=\"kernel {}: {}\"; style=rounded;\n", number, number,
                              name_of(group.kernel_class));
  std::map<ValueId, std::string> local;  // what the group computes itself
  const auto place = [&](ValueId value) -> const std::string& {
    const auto own = local.find(value);
    return own != local.end() ? own->second : drawing.home[static_cast<std::size_t>(value)];
  };
  for (NodeId id : group.nodes) {
    if (!drawn(graph, id)) continue;
    const std::string name = fmt::format("k{}_n{}", number, id);
    drawing.text +=
        fmt::format("    {} [label=\"{}\\n{}\"];\n", name, quoted(drawing.statements[static_cast<std::size_t>(id)]),
                    str(graph.type(graph.node(id).results[0])));
    for (ValueId operand : graph.node(id).operands)
      if (const std::string& from = place(operand); !from.empty())
        drawing.edges += fmt::format("  {} -> {};\n", from, name);
    for (ValueId result : graph.node(id).results) local[result] = name;
  }
  for (ValueId output : group.outputs) drawing.home[static_cast<std::size_t>(output)] = place(output);
  drawing.text += "  }\n";
}

}  // namespace

std::string dot(const Plan& plan) {
  const Graph& graph = plan.graph;
  Drawing drawing;
  drawing.text =
      fmt::format("digraph {} {{\n  rankdir=TB; node [shape=box, fontname=\"monospace\", fontsize=10];\n", graph.name);
  drawing.statements = statements(graph);
  drawing.home.resize(graph.values.size());
  for (ValueId input : graph.inputs) {
    drawing.text += fmt::format("  v{} [label=\"{}\\n{}\", shape=ellipse];\n", input, display_name(graph, input),
                                str(graph.type(input)));
    drawing.home[static_cast<std::size_t>(input)] = fmt::format("v{}", input);
  }
  for (const std::vector<int>& launch : launched_together(plan)) {
    const bool packed = launch.size() > 1;
    if (packed)
      drawing.text +=
          fmt::format("  subgraph cluster_launch_{} {{\n  label=\"one launch\"; style=dashed;\n", launch[0]);
    for (const int group : launch) draw_group(plan, group, drawing);
    if (packed) drawing.text += "  }\n";
  }
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
    drawing.text += fmt::format("  out{} [label=\"{}\", shape=ellipse];\n", i, graph.outputs_names[i]);
    drawing.edges += fmt::format("  {} -> out{};\n", drawing.home[static_cast<std::size_t>(graph.outputs[i])], i);
  }
  return drawing.text + drawing.edges + "}\n";
}

}  // namespace tenon::ir

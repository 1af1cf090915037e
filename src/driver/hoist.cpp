// See hoist.h. The graph is cut before planning by what values weigh, and behind it by what the plan stores.
#include "src/driver/hoist.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/fusion/hoist_groups.h"
#include "ir/passes/passes.h"
#include "src/driver/switches.h"

namespace tenon::src {
namespace {

// Those of the graph's inputs that stand behind the free ones.
std::vector<bool> behind(const ir::Graph& graph, std::size_t free) {
  std::vector<bool> bound(graph.inputs.size());
  for (std::size_t i = free; i < bound.size(); ++i) bound[i] = true;
  return bound;
}

std::size_t free_inputs(const std::vector<bool>& bound) {
  return static_cast<std::size_t>(std::count(bound.begin(), bound.end(), false));
}

// The inputs that a value is made of, by name.
std::vector<std::string> sources_of(const ir::Graph& graph, ir::ValueId value) {
  std::vector<bool> needed(graph.values.size());
  needed[static_cast<std::size_t>(value)] = true;
  for (std::size_t i = graph.nodes.size(); i-- > 0;)
    for (const ir::ValueId result : graph.nodes[i].results)
      if (needed[static_cast<std::size_t>(result)])
        for (const ir::ValueId operand : graph.nodes[i].operands) needed[static_cast<std::size_t>(operand)] = true;
  std::vector<std::string> names;
  for (const ir::ValueId input : graph.inputs)
    if (needed[static_cast<std::size_t>(input)]) names.push_back(graph.value(input).name);
  return names;
}

}  // namespace

Hoisted hoist(const ir::Graph& graph, const std::vector<bool>& bound, const Options& options, const MakePlan& plan) {
  const std::size_t free = free_inputs(bound);
  const bool hoists = parts_without(options.disable).hoist;
  Hoisted hoisted;
  if (hoists) {
    const ir::Graph primitives = ir::run_passes(graph, options.disable);
    if (const auto kept = ir::worth_keeping(primitives, bound); !kept.empty())
      hoisted.steps.push_back(ir::split_weights(primitives, bound, kept));
  }
  if (hoisted.steps.empty()) hoisted.steps.push_back(ir::split_weights(graph, bound, {}));
  hoisted.plan = plan(hoisted.graph());
  if (!hoists) return hoisted;
  if (auto taken = ir::hoist_groups(hoisted.plan, behind(hoisted.plan.graph, free))) {
    hoisted.steps.push_back(std::move(taken->split));
    hoisted.plan = std::move(taken->plan);
  }
  return hoisted;
}

std::string Hoisted::text() const {
  std::string text;
  for (const ir::SplitGraph& step : steps)
    for (std::size_t i = 0; i < step.once.outputs.size(); ++i) {
      const ir::Type& type = step.once.type(step.once.outputs[i]);
      text += fmt::format("{} is computed once of {}: {}, {} bytes\n", step.once.outputs_names[i],
                          fmt::join(sources_of(step.once, step.once.outputs[i]), ", "), ir::str(type),
                          element_count(type.shape).evaluate({}) * size_of(type.dtype));
    }
  return text.empty() ? "" : text + "\n";
}

}  // namespace tenon::src

// tenon explain: the plan, and why it is not fewer kernels.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ir/text.h"
#include "src/pipeline.h"
#include "tools/command.h"

namespace tenon::tools {
namespace {

nlohmann::ordered_json as_json(const ir::Plan& plan) {
  nlohmann::ordered_json document;
  document["graph"] = plan.graph.name;
  document["kernels"] = nlohmann::ordered_json::array();
  for (const ir::Group& group : plan.groups) {
    nlohmann::ordered_json entry;
    entry["class"] = ir::name_of(group.kernel_class);
    for (ir::ValueId value : group.inputs) entry["reads"].push_back(ir::display_name(plan.graph, value));
    for (ir::ValueId value : group.outputs) entry["writes"].push_back(ir::display_name(plan.graph, value));
    for (ir::NodeId node : group.nodes) entry["operators"].push_back(ir::name_of(plan.graph.node(node).op));
    document["kernels"].push_back(std::move(entry));
  }
  document["refusals"] = nlohmann::ordered_json::array();
  for (const ir::Refusal& refusal : plan.refusals)
    document["refusals"].push_back({{"producer", refusal.producer},
                                    {"consumer", refusal.consumer},
                                    {"rule", refusal.rule},
                                    {"reason", refusal.reason},
                                    {"bytes", refusal.bytes}});
  return document;
}

}  // namespace

void add_explain(CLI::App& app, Action& action) {
  const auto arguments = std::make_shared<CompileArguments>();
  const auto json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("explain", "Say why operators share kernels, or do not");
  arguments->add_to(*command);
  command->add_flag("--json", *json, "as JSON");
  command->callback([arguments, json, &action] {
    action = [arguments, json] {
      const ir::Plan plan = src::plan(ir::read_file(arguments->file), arguments->options());
      write_output("-", *json ? as_json(plan).dump(2) + "\n" : ir::print(plan) + "\n" + ir::explain(plan));
      return fine;
    };
  });
}

}  // namespace tenon::tools

// tenon explain: the plan, what each kernel is predicted to cost, and why there are not fewer.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ir/text.h"
#include "src/pipeline.h"
#include "tools/command.h"

namespace tenon::tools {
namespace {

nlohmann::ordered_json as_json(const ir::CostModel& cost) {
  return {{"device", cost.device},
          {"launch_us", cost.launch_us},
          {"bandwidth_gb_s", cost.bandwidth_gb_s},
          {"l2_bandwidth_gb_s", cost.l2_bandwidth_gb_s},
          {"l2_bytes", cost.l2_bytes},
          {"gigaslots_s", cost.gigaslots_s},
          {"tensor_tflops", cost.tensor_tflops},
          {"overlap", cost.overlap}};
}

nlohmann::ordered_json as_json(const ir::Estimate& estimate) {
  return {{"us", estimate.us},       {"memory_us", estimate.memory_us}, {"compute_us", estimate.compute_us},
          {"bytes", estimate.bytes}, {"instructions", estimate.slots},  {"flops", estimate.flops}};
}

nlohmann::ordered_json as_json(const ir::Plan& plan) {
  nlohmann::ordered_json document;
  document["graph"] = plan.graph.name;
  document["cost_model"] = as_json(plan.cost);
  document["live_bytes"] = plan.live_bytes;
  document["kernels"] = nlohmann::ordered_json::array();
  for (const ir::Group& group : plan.groups) {
    nlohmann::ordered_json entry;
    entry["class"] = ir::name_of(group.kernel_class);
    for (ir::ValueId value : group.inputs) entry["reads"].push_back(ir::display_name(plan.graph, value));
    for (ir::ValueId value : group.outputs) entry["writes"].push_back(ir::display_name(plan.graph, value));
    for (ir::NodeId node : group.nodes) entry["operators"].push_back(ir::name_of(plan.graph.node(node).op));
    entry["predicted"] = as_json(group.estimate);
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
  CLI::App* command =
      app.add_subcommand("explain", "Say why operators share kernels, or do not, and what each kernel should cost");
  arguments->add_to(*command);
  command->add_flag("--json", *json, "as JSON");
  command->callback([arguments, json, &action] {
    action = [arguments, json] {
      const ir::Plan plan = src::plan(ir::read_file(arguments->file), arguments->options());
      const std::string text = ir::print(plan) + "\n" + ir::print_estimates(plan) + "\n" + ir::explain(plan);
      write_output("-", *json ? as_json(plan).dump(2) + "\n" : text);
      return fine;
    };
  });
}

}  // namespace tenon::tools

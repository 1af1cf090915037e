// tenon explain: the plan, what each kernel is predicted to cost, and why there are not fewer.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "codegen/analysis/mask_text.h"
#include "codegen/analysis/product_bounds.h"
#include "codegen/analysis/window_text.h"
#include "ir/text/text.h"
#include "src/driver/cost_model.h"
#include "src/driver/hoist.h"
#include "src/driver/pipeline.h"
#include "src/measure/profile.h"
#include "tools/command.h"
#include "tools/progress.h"
#include "tools/weights.h"

namespace tenon::tools {
namespace {

struct ExplainArguments {
  CompileArguments compile;
  std::vector<std::string> weights;  ///< files of inputs that are bound
  bool json = false, measure = false;
};

nlohmann::ordered_json as_json(const ir::CostModel& cost) {
  nlohmann::ordered_json document{{"device", cost.device}};
  for (const src::CostField& field : src::cost_fields()) document[field.name] = cost.*field.value;
  return document;
}

nlohmann::ordered_json as_json(const ir::Estimate& estimate) {
  return {{"us", estimate.us},       {"memory_us", estimate.memory_us}, {"compute_us", estimate.compute_us},
          {"bytes", estimate.bytes}, {"instructions", estimate.slots},  {"flops", estimate.flops}};
}

nlohmann::ordered_json as_json(const ir::Plan& plan, const std::vector<double>& measured_us) {
  nlohmann::ordered_json document;
  document["graph"] = plan.graph.name;
  document["cost_model"] = as_json(plan.cost);
  document["live_bytes"] = plan.live_bytes;
  document["kernels"] = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < plan.groups.size(); ++i) {
    const ir::Group& group = plan.groups[i];
    nlohmann::ordered_json entry;
    entry["class"] = ir::name_of(group.kernel_class);
    for (ir::ValueId value : group.inputs) entry["reads"].push_back(ir::display_name(plan.graph, value));
    for (ir::ValueId value : group.outputs) entry["writes"].push_back(ir::display_name(plan.graph, value));
    for (ir::NodeId node : group.nodes) entry["operators"].push_back(ir::name_of(plan.graph.node(node).op));
    entry["predicted"] = as_json(group.estimate);
    if (i < measured_us.size() && measured_us[i] > 0) entry["measured_us"] = measured_us[i];
    document["kernels"].push_back(std::move(entry));
  }
  document["packs"] = plan.packs;
  document["refusals"] = nlohmann::ordered_json::array();
  for (const ir::Refusal& refusal : plan.refusals)
    document["refusals"].push_back({{"producer", refusal.producer},
                                    {"consumer", refusal.consumer},
                                    {"launch", refusal.launch},
                                    {"rule", ir::name_of(refusal.rule)},
                                    {"reason", refusal.reason},
                                    {"bytes", refusal.bytes}});
  return document;
}

// Microseconds of each group on random data at the sizes that were planned for.
std::vector<double> measured_times(const ExplainArguments& arguments, const ir::Graph& graph, const ir::Plan& plan,
                                   const Options& options, const Bindings& bindings) {
  constexpr double kSeconds = 0.1;
  constexpr std::uint64_t kSeed = 1;
  const Executable executable =
      src::make_executable(plan, src::open_backend(arguments.compile.target, options), options);
  const runtime::Timings timings = waiting(graph.name + ": timing its kernels", [&] {
    return src::time_kernels(executable, random_inputs(graph, bindings, kSeed), bindings, kSeconds);
  });
  std::vector<double> times(plan.groups.size());
  for (const runtime::KernelTimes& kernel : timings.kernels) times[kernel.groups.front()] = 1e3 * kernel.times.median;
  return times;
}

// Of attention and products what masks do, of maps what windows do.
std::vector<std::string> texts_of(const codegen::Kernel& kernel, const std::vector<std::string>& names) {
  if (kernel.kernel_class == ir::KernelClass::map) return codegen::window_texts(kernel, names);
  std::vector<std::string> masks = codegen::mask_texts(kernel, names);
  for (std::string& mask : codegen::product_mask_texts(kernel)) masks.push_back(std::move(mask));
  return masks;
}

// "kernel 1 masks:", "kernel 2 windows:" and a line for each, of every kernel that has some.
std::string explain_schedules(const ExplainArguments& arguments, const ir::Plan& plan, const Options& options) {
  const auto is_explained = [](const ir::Group& group) { return group.kernel_class != ir::KernelClass::reduce; };
  if (std::none_of(plan.groups.begin(), plan.groups.end(), is_explained)) return "";
  const codegen::Target target = src::open_backend(arguments.compile.target, options)->target();
  const codegen::Specialization specialization = codegen::unspecialized(plan);
  std::string text;
  for (std::size_t i = 0; i < plan.groups.size(); ++i) {
    const ir::Group& group = plan.groups[i];
    if (!is_explained(group) || codegen::writes_nothing(plan, static_cast<int>(i), specialization.symbols)) continue;
    codegen::Kernel kernel = codegen::lower(plan, static_cast<int>(i), specialization, target);
    kernel.schedule = codegen::choose_schedule(kernel, target);
    std::vector<std::string> names;
    for (ir::ValueId value : group.inputs) names.push_back(ir::display_name(plan.graph, value));
    const std::vector<std::string> texts = texts_of(kernel, names);
    const char* kind = group.kernel_class == ir::KernelClass::map ? "windows" : "masks";
    if (!texts.empty()) text += fmt::format("kernel {} {}:\n  {}\n", i, kind, fmt::join(texts, "\n  "));
  }
  return text.empty() ? "" : text + "\n";
}

// Which results are written over the inputs that they update is known of built kernels.
std::vector<UpdateInfo> updates_of(const ExplainArguments& arguments, const ir::Graph& graph, const ir::Plan& plan,
                                   const Options& options) {
  if (ir::own_outputs(graph).size() == graph.outputs.size()) return {};
  return src::make_executable(plan, src::open_backend(arguments.compile.target, options), options)
      .updates(options.typical);
}

// "at n = 512, rows = 1024 (assumed; --dim rows=N says another)".
std::string sizes_text(const Bindings& sizes, const Bindings& given) {
  std::string text;
  for (const auto& [name, value] : sizes)
    text += fmt::format("{}{} = {}{}", text.empty() ? "at " : ", ", name, value,
                        given.contains(name) ? "" : fmt::format(" (assumed; --dim {}=N says another)", name));
  return text.empty() ? "" : text + "\n";
}

std::string text_of(const std::vector<UpdateInfo>& updates) {
  std::string text;
  for (const UpdateInfo& update : updates)
    text += update.copied.empty()
                ? fmt::format("{} updates {} in place, {} bytes\n", update.output, update.input, update.bytes)
                : fmt::format("{} is copied into {} behind all kernels, {} bytes: {}\n", update.output, update.input,
                              update.bytes, update.copied);
  return text.empty() ? "" : text + "\n";
}

nlohmann::ordered_json as_json(const std::vector<UpdateInfo>& updates) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const UpdateInfo& update : updates)
    list.push_back({{"output", update.output},
                    {"input", update.input},
                    {"bytes", update.bytes},
                    {"in_place", update.copied.empty()},
                    {"reason", update.copied}});
  return list;
}

// The graph as it runs each time, its plan, and what is computed once of inputs that are bound.
struct Planned {
  ir::Graph graph;
  ir::Plan plan;
  std::string once;
};

Planned plan_of(const ExplainArguments& arguments, const ir::Graph& graph, const Options& options) {
  const auto plan = [&](const ir::Graph& each) { return src::plan(each, arguments.compile.target, options); };
  if (arguments.weights.empty()) return {graph, plan(graph), ""};
  std::vector<bool> bound;
  for (const Weights::Entry* entry : read_weights(arguments.weights, graph).inputs) bound.push_back(entry != nullptr);
  src::Hoisted hoisted = src::hoist(graph, bound, options, plan);
  return {hoisted.graph(), std::move(hoisted.plan), hoisted.text()};
}

int explain(const ExplainArguments& arguments) {
  Options options = arguments.compile.options();
  const ir::Graph written = ir::read_file(arguments.compile.file);
  const Bindings given = options.typical;
  options.typical = arguments.measure ? complete_bindings(written, given) : assumed_bindings(written, given);
  const auto [graph, plan, once] = plan_of(arguments, written, options);
  std::vector<double> measured_us;
  if (arguments.measure) measured_us = measured_times(arguments, graph, plan, options, options.typical);
  const std::vector<UpdateInfo> updates = updates_of(arguments, graph, plan, options);
  if (arguments.json) {
    nlohmann::ordered_json document = as_json(plan, measured_us);
    if (!once.empty()) document["once"] = once;
    if (!updates.empty()) document["updates"] = as_json(updates);
    if (!options.typical.empty()) document["sizes"] = options.typical;
    write_output("-", document.dump(2) + "\n");
  } else {
    write_output("-", once + ir::print(plan) + "\n" + sizes_text(options.typical, given) +
                          ir::print_estimates(plan, measured_us) + "\n" + explain_schedules(arguments, plan, options) +
                          text_of(updates) + ir::explain(plan));
  }
  return fine;
}

}  // namespace

void add_explain(CLI::App& app, Action& action) {
  const auto arguments = std::make_shared<ExplainArguments>();
  CLI::App* command =
      app.add_subcommand("explain", "Say why operators share kernels, or do not, and what each kernel should cost");
  arguments->compile.add_to(*command);
  add_weights(*command, arguments->weights);
  command->add_flag("--measure", arguments->measure, "time each kernel on random data, beside what was predicted");
  command->add_flag("--json", arguments->json, "as JSON");
  command->callback([arguments, &action] { action = [arguments] { return explain(*arguments); }; });
}

}  // namespace tenon::tools

// The whole compiler on one screen: graph -> passes -> plan -> kernel -> schedule -> launch -> source -> binary ->
// executable.
#include "src/driver/pipeline.h"

#include <fmt/format.h>

#include <cstdio>

#include "ir/graph/host_memory.h"
#include "ir/text/text.h"
#include "src/api/open_device.h"
#include "src/driver/bind.h"
#include "src/driver/cost_model.h"
#include "src/driver/kept_plans.h"
#include "src/driver/plan_options.h"
#include "src/driver/switches.h"
#include "src/driver/tune.h"

namespace tenon {
namespace src {
namespace {

void show(const Options& options, const char* level, const std::string& text) {
  if (options.print.count(level)) std::fprintf(stderr, "== %s\n%s\n", level, text.c_str());
}

}  // namespace

ir::Plan plan(const ir::Graph& graph, codegen::TargetKind target, const Options& options, const ir::CostModel& cost) {
  show(options, "graph", ir::print(graph));
  ir::Plan result = kept_plan(graph, plan_options(target, options, cost), options);
  show(options, "plan", ir::print(result));
  return result;
}

ir::Plan plan(const ir::Graph& graph, const runtime::Backend& backend, const Options& options) {
  return plan(graph, backend.target().kind, options, cost_model(backend, options));
}

ir::Plan plan(const ir::Graph& graph, const std::string& target, const Options& options) {
  try {
    return plan(graph, *open_backend(target, options), options);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::no_device) throw;
  }
  const bool named = target != "auto" && target != "cuda";
  return plan(graph, target_kind(target, options), options,
              named ? assumed_cost_model(codegen::cuda_target(target)) : ir::CostModel{});
}

std::vector<codegen::Launch> make_launches(const ir::Plan& plan, const std::vector<int>& groups,
                                           const codegen::Specialization& specialization, const codegen::Target& target,
                                           const FindSchedule& find) {
  codegen::Launch together;
  for (const int group : groups) {
    if (codegen::writes_nothing(plan, group, specialization.symbols)) continue;
    codegen::Kernel kernel = codegen::lower(plan, group, specialization, target);
    std::optional<codegen::Schedule> found;
    if (find) found = find(kernel);
    kernel.schedule = found ? *std::move(found) : codegen::choose_schedule(kernel, target);
    together.groups.push_back(group);
    together.members.push_back(std::move(kernel));
  }
  return codegen::deal_launches(std::move(together), target);
}

std::shared_ptr<const runtime::BuiltLaunch> build_launch(codegen::Launch launch, const runtime::Backend& backend) {
  auto built = std::make_shared<runtime::BuiltLaunch>();
  built->source = backend.emit(launch);
  built->binary = backend.build(built->source);
  built->loaded = backend.load(built->source, built->binary);
  built->launch = std::move(launch);
  return built;
}

Executable make_executable(ir::Plan plan, std::shared_ptr<const runtime::Backend> backend, const Options& options,
                           runtime::Bound bound, runtime::Binder binder) {
  const auto shared_plan = std::make_shared<const ir::Plan>(std::move(plan));
  const auto tunings = open_tunings(options);
  const auto build = [shared_plan, backend, options, find = find_tuned(*backend, tunings, options)](
                         const std::vector<int>& groups, const codegen::Specialization& specialization) {
    std::vector<std::shared_ptr<const runtime::BuiltLaunch>> built;
    for (codegen::Launch& launch : make_launches(*shared_plan, groups, specialization, backend->target(), find)) {
      show(options, "schedule", codegen::print(launch));
      for (const codegen::Kernel& kernel : launch.members) show(options, "kernel", codegen::print(kernel));
      built.push_back(build_launch(std::move(launch), *backend));
      show(options, "source", built.back()->source.text);
    }
    return built;
  };
  auto impl = std::make_shared<Executable::Impl>(*shared_plan, backend, build, std::move(bound));
  impl->binder = std::move(binder);
  impl->replay = options.replay;
  if (parts_without(options.disable).nvtx) impl->nvtx = runtime::Nvtx::attach(options.nvtx_tool);
  if (options.tune) impl->tuner = tuner(tunings, options);
  const Executable executable(std::move(impl));
  if (shared_plan->graph.symbols.empty()) executable.prepare({});
  return executable;
}

Executable compile_graph(const ir::Graph& graph, const std::shared_ptr<const runtime::Backend>& backend,
                         const Options& options) {
  return make_executable(plan(graph, *backend, options), backend, options, {}, binder(graph, backend, options));
}

}  // namespace src

namespace {

Executable compile_on(const Graph& graph, const std::shared_ptr<const runtime::Backend>& backend,
                      const Options& options) {
  return ir::with_host_memory(fmt::format("compiling '{}'", graph.data().name),
                              [&] { return src::compile_graph(graph.data(), backend, options); });
}

}  // namespace

Executable compile(const Graph& graph, const std::string& target, const Options& options) {
  src::check_options(options);
  return compile_on(graph, src::open_backend(target, options), options);
}

Executable compile(const Graph& graph, const Device& device) {
  return compile_on(graph, device.impl()->backend, device.impl()->options);
}

}  // namespace tenon

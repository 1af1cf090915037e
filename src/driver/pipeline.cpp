// The whole compiler on one screen: graph -> plan -> kernel -> source -> binary -> executable.
#include "src/driver/pipeline.h"

#include <fmt/format.h>

#include <cstdio>

#include "ir/graph/host_memory.h"
#include "ir/text/text.h"
#include "runtime/cuda/backend.h"
#include "runtime/executable.h"
#include "src/driver/cost_model.h"
#include "src/driver/search.h"
#include "src/driver/switches.h"
#include "src/driver/tune.h"
#include "tenon_build.h"
#ifdef TENON_WITH_CPU
#include "runtime/cpu/backend.h"
#endif

namespace tenon {
namespace src {
namespace {

constexpr const char* kVersion = TENON_VERSION " " TENON_COMMIT;

void show(const Options& options, const char* level, const std::string& text) {
  if (options.print.count(level)) std::fprintf(stderr, "== %s\n%s\n", level, text.c_str());
}

std::shared_ptr<const runtime::Backend> cuda_backend(const std::string& arch, const Options& options) {
  runtime::cuda::BackendOptions wanted;
  wanted.nvrtc = nvrtc_search(options);
  wanted.arch = arch;
  wanted.with_device = arch.empty();
  wanted.device = options.device;
  wanted.disable = options.disable;
  wanted.tenon_version = kVersion;
  return runtime::cuda::make_backend(wanted, open_cache(options));
}

std::shared_ptr<const runtime::Backend> cpu_backend([[maybe_unused]] const Options& options) {
#ifdef TENON_WITH_CPU
  runtime::cpu::BackendOptions wanted;
  wanted.threads = options.threads;
  wanted.tenon_version = kVersion;
  wanted.disable = options.disable;
  return runtime::cpu::make_backend(wanted, open_cache(options));
#else
  throw Error(ErrorKind::unsupported, "this build has no CPU target", {},
              "configure with -DTENON_CPU=ON (needs LLVM 19), or use a GPU");
#endif
}

}  // namespace

std::shared_ptr<runtime::KernelCache> open_cache(const Options& options) {
  std::shared_ptr<runtime::DiskCache> disk;
  if (options.cache) {
    runtime::DiskCacheOptions folder;
    folder.folder = options.cache_dir;
    folder.max_bytes = options.cache_bytes;
    disk = std::make_shared<runtime::DiskCache>(folder);
  }
  return std::make_shared<runtime::KernelCache>(disk);
}

std::shared_ptr<runtime::Tunings> open_tunings(const Options& options, bool anew) {
  return std::make_shared<runtime::Tunings>(open_cache(options)->disk(), kVersion, anew);
}

std::shared_ptr<const runtime::Backend> open_backend(const std::string& target, const Options& options) {
  if (target == "cpu") return cpu_backend(options);
  if (target == "cuda") return cuda_backend("", options);
  if (target != "auto") return cuda_backend(target, options);
  try {
    return cuda_backend("", options);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::no_device) throw;
    return cpu_backend(options);
  }
}

codegen::TargetKind target_kind(const std::string& target, const Options& options) {
  if (target == "cpu") return codegen::TargetKind::cpu;
  if (target != "auto") return codegen::TargetKind::cuda;
  try {
    return open_backend(target, options)->target().kind;
  } catch (const Error&) {
    return codegen::TargetKind::cuda;
  }
}

ir::Plan plan(const ir::Graph& graph, codegen::TargetKind target, const Options& options, const ir::CostModel& cost) {
  ir::PlanOptions wanted;
  wanted.fuse = options.fuse;
  wanted.mixed_order = target == codegen::TargetKind::cuda;
  if (target == codegen::TargetKind::cpu) wanted.max_packed = 1;  // a CPU has no launch to save
  wanted.max_live_bytes = options.max_live_bytes;
  wanted.typical = options.typical;
  wanted.cost = cost;
  switch_off(options.disable, wanted);
  show(options, "graph", ir::print(graph));
  ir::Plan result = ir::make_plan(graph, wanted, options.disable);
  show(options, "plan", ir::print(result));
  return result;
}

ir::Plan plan(const ir::Graph& graph, const runtime::Backend& backend, const Options& options) {
  return plan(graph, backend.target().kind, options, cost_model(backend, options));
}

ir::Plan plan(const ir::Graph& graph, const std::string& target, const Options& options) {
  std::shared_ptr<const runtime::Backend> backend;
  try {
    backend = open_backend(target, options);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::no_device) throw;
    const bool named = target != "auto" && target != "cuda";
    return plan(graph, target_kind(target, options), options,
                named ? assumed_cost_model(codegen::cuda_target(target)) : ir::CostModel{});
  }
  return plan(graph, *backend, options);
}

std::vector<codegen::Launch> lower_launches(const ir::Plan& plan, const std::vector<int>& groups,
                                            const codegen::Specialization& specialization,
                                            const runtime::Backend& backend, const runtime::Tunings& tunings,
                                            const Options& options) {
  const auto tuned = [&](const codegen::Kernel& kernel) { return tunings.find(backend, kernel); };
  const bool find = parts_without(options.disable).tuned;
  return codegen::lower_launches(plan, groups, specialization, backend.target(),
                                 find ? codegen::FindSchedule(tuned) : codegen::FindSchedule());
}

Executable make_executable(ir::Plan plan, std::shared_ptr<const runtime::Backend> backend, const Options& options) {
  auto shared_plan = std::make_shared<const ir::Plan>(std::move(plan));
  const auto tunings = open_tunings(options);
  const auto lower_groups = [shared_plan, backend, options, tunings](const std::vector<int>& groups,
                                                                     const codegen::Specialization& specialization) {
    auto launches = lower_launches(*shared_plan, groups, specialization, *backend, *tunings, options);
    for (const codegen::Launch& launch : launches) {
      show(options, "schedule", codegen::print(launch));
      for (const codegen::Kernel& kernel : launch.members) show(options, "kernel", codegen::print(kernel));
    }
    return launches;
  };
  auto impl = std::make_shared<Executable::Impl>(*shared_plan, backend, lower_groups);
  impl->replay = options.replay;
  if (options.print.count("source"))
    impl->on_source = [options](const codegen::Source& source) { show(options, "source", source.text); };
  if (parts_without(options.disable).nvtx) impl->nvtx = runtime::Nvtx::attach(options.nvtx_tool);
  if (options.tune)
    impl->tuner = [tunings, options](const Executable::Impl& executable, const runtime::LaunchRecord& record,
                                     std::span<const Buffer> inputs, std::span<const Buffer> outputs) {
      tune(executable, record, inputs, outputs, *tunings, options);
    };
  const Executable executable(std::move(impl));
  if (shared_plan->graph.symbols.empty()) executable.prepare({});
  return executable;
}

}  // namespace src

Executable compile(const Graph& graph, const std::string& target, const Options& options) {
  src::check_options(options);
  const auto backend = src::open_backend(target, options);
  return ir::with_host_memory(fmt::format("compiling '{}'", graph.data().name), [&] {
    return src::make_executable(src::plan(graph.data(), *backend, options), backend, options);
  });
}

}  // namespace tenon

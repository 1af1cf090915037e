// The compiler from end to end, for the library's own tools: the arrows of docs/architecture.md, a few to each call.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "codegen/launch/launch.h"
#include "ir/fusion/plan.h"
#include "runtime/executable.h"
#include "src/driver/backends.h"
#include "tenon/compile.h"

namespace tenon::src {

/// Graph -> plan, for a kind of target and by the numbers of `cost`: whoever has measured a device hands its own in.
ir::Plan plan(const ir::Graph& graph, codegen::TargetKind target, const Options& options,
              const ir::CostModel& cost = {});

/// The plan for a backend's device: by the numbers kept for it, where there are any.
ir::Plan plan(const ir::Graph& graph, const runtime::Backend& backend, const Options& options);

/// The plan for what open_backend(target) opens; by assumptions where it finds no such device.
ir::Plan plan(const ir::Graph& graph, const std::string& target, const Options& options);

/// The schedule to use for a kernel in place of the heuristics', if there is one: what a tuner found.
using FindSchedule = std::function<std::optional<codegen::Schedule>(const codegen::Kernel&)>;

/// Plan -> kernels -> schedules -> launches: of `groups`, which `plan` runs together, for a dimension class. Groups
/// that write no element have none.
std::vector<codegen::Launch> make_launches(const ir::Plan& plan, const std::vector<int>& groups,
                                           const codegen::Specialization& specialization, const codegen::Target& target,
                                           const FindSchedule& find = {});

/// Launch -> source -> binary (compiled, or taken from the cache) -> loaded.
std::shared_ptr<const runtime::BuiltLaunch> build_launch(codegen::Launch launch, const runtime::Backend& backend);

/// Plan -> executable. Kernels are built for each dimension class when it is first met: at once for a plan without
/// symbols.
Executable make_executable(ir::Plan plan, std::shared_ptr<const runtime::Backend> backend, const Options& options,
                           runtime::Bound bound = {}, runtime::Binder binder = {});

/// Graph -> executable, of which more inputs can be bound.
Executable compile_graph(const ir::Graph& graph, const std::shared_ptr<const runtime::Backend>& backend,
                         const Options& options);

}  // namespace tenon::src

// The compiler from end to end, for the library's own tools: what each arrow of docs/architecture.md does, one call
// each.
#pragma once

#include <memory>
#include <string>

#include "codegen/launch/launch.h"
#include "ir/fusion/plan.h"
#include "runtime/backend.h"
#include "runtime/cache.h"
#include "runtime/tunings.h"
#include "tenon/compile.h"

namespace tenon::src {

/// The cache that the options ask for.
std::shared_ptr<runtime::KernelCache> open_cache(const Options& options);

/// The schedules that won before, from the disk cache. `anew`: none is found, only kept.
std::shared_ptr<runtime::Tunings> open_tunings(const Options& options, bool anew = false);

/// The backend named "cpu", "cuda", "auto", or an architecture ("sm_90a": compiles without a device).
std::shared_ptr<const runtime::Backend> open_backend(const std::string& target, const Options& options);

/// The plan for a kind of target, by the numbers of `cost`: whoever has measured a device hands its own in.
ir::Plan plan(const ir::Graph& graph, codegen::TargetKind target, const Options& options,
              const ir::CostModel& cost = {});

/// The kind of what open_backend(target) opens; CUDA where it would fail.
codegen::TargetKind target_kind(const std::string& target, const Options& options);

/// The plan for a backend's device: by the numbers kept for it, where there are any.
ir::Plan plan(const ir::Graph& graph, const runtime::Backend& backend, const Options& options);

/// The plan for what open_backend(target) opens; by assumptions where it finds no such device.
ir::Plan plan(const ir::Graph& graph, const std::string& target, const Options& options);

/// codegen::lower_launches, with the schedules that won where some were tried.
std::vector<codegen::Launch> lower_launches(const ir::Plan& plan, const std::vector<int>& groups,
                                            const codegen::Specialization& specialization,
                                            const runtime::Backend& backend, const runtime::Tunings& tunings,
                                            const Options& options);

/// plan -> executable on an open backend.
Executable make_executable(ir::Plan plan, std::shared_ptr<const runtime::Backend> backend, const Options& options);

}  // namespace tenon::src

// What the options open: a backend for a target, the cache of its kernels, the schedules that won on it.
#pragma once

#include <memory>
#include <string>

#include "codegen/target/target.h"
#include "runtime/backend.h"
#include "runtime/cache.h"
#include "runtime/tunings.h"
#include "tenon/compile.h"

namespace tenon::src {

/// The cache that the options ask for.
std::shared_ptr<runtime::KernelCache> open_cache(const Options& options);

/// The schedules that won before, from the disk cache. `anew`: none is found, only kept.
std::shared_ptr<runtime::Tunings> open_tunings(const Options& options, bool anew = false);

/// The backend named "cpu", "cuda", "cuda:1" (the device of that number), "auto", or an architecture ("sm_90a":
/// compiles without a device). Error(argument) for a number that is none.
std::shared_ptr<const runtime::Backend> open_backend(const std::string& target, const Options& options);

/// The kind of what open_backend(target) opens; CUDA where it would fail.
codegen::TargetKind target_kind(const std::string& target, const Options& options);

}  // namespace tenon::src

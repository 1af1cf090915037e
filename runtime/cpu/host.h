// The machine that runs the kernels, described as a target: processor, features, SIMD width, caches, threads.
#pragma once

#include "codegen/target.h"

namespace tenon::runtime::cpu {

/// Read from the processor and the operating system; the same all through a process.
codegen::Target host_target();

}  // namespace tenon::runtime::cpu

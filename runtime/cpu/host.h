// The machine that runs the kernels, described as a target: processor, features, SIMD width, caches, threads.
#pragma once

#include "codegen/target/target.h"

namespace tenon::runtime::cpu {

/// Read from the processor and the operating system; the same all through a process. `vector_bytes`: 16 or 32 for code
/// as older processors get it, of level 2 or 3 of the x86-64 ABI, which this one must reach; 0 for what it has.
codegen::Target host_target(int vector_bytes = 0);

}  // namespace tenon::runtime::cpu

// What a kernel reads once and no more: such elements need not stay in the caches.
#pragma once

#include <vector>

#include "codegen/kernel.h"

namespace tenon::codegen {

/// The loads that each point has of its own: they vary along every axis, at places that are known from the start, and
/// nothing else loads of their operands. In definition order. `spread`: but for the outermost axis, along which a
/// thread has several points.
std::vector<InstrId> loads_read_once(const Kernel& kernel, bool spread = false);

/// Whether `schedule` reads some of them once: its rows stay in registers, or there is one sweep over them.
bool may_stream_loads(const Kernel& kernel, const ReduceSchedule& schedule);

}  // namespace tenon::codegen

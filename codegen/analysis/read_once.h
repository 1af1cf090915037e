// What a kernel reads once and no more: such elements need not stay in the caches.
#pragma once

#include <vector>

#include "codegen/kernel/kernel.h"

namespace tenon::codegen {

/// The loads that each point has of its own: they vary along every axis, at places that are known from the start, and
/// nothing else loads of their operands. In definition order. `spread`: but for the outermost axis, along which a
/// thread has several points.
std::vector<InstrId> loads_read_once(const Kernel& kernel, bool spread = false);

/// Whether a Map kernel may have what it reads kept in the second-level cache: all of it or nothing, and gathers are
/// better off without.
bool may_keep_reads(const Kernel& kernel);
/// Whether a Reduce kernel that stores elements may have those of its rows kept. A block that is alone on its
/// multiprocessor waits for what is asked for apart (copy_async_kept).
bool may_keep_reads(const Kernel& kernel, const ReduceSchedule& schedule);

/// Those whose vector loads bypass the caches.
std::vector<InstrId> streamed_loads(const Kernel& kernel, const ReduceSchedule& schedule);

/// Whether `schedule` reads some of them once: its rows stay in registers, or there is one sweep over them.
bool may_stream_loads(const Kernel& kernel, const ReduceSchedule& schedule);

}  // namespace tenon::codegen

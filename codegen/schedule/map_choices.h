// What the heuristics of Map kernels share: what a point reads, writes and computes, and the choices that are files of
// their own. choose_map_schedule (choices.h) puts them together.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/kernel/kernel.h"
#include "codegen/schedule/schedule.h"

namespace tenon::codegen {

/// Issue slots of one thread's unrolled body: it keeps registers and compile time.
constexpr std::int64_t kVectorCost = 400;
/// From here on a point is many loads.
constexpr std::size_t kManyLoads = 9;

/// What is read or written at every point: operands that do not vary along the innermost axis cost nothing there.
std::vector<Access> streams(const Kernel& kernel);
/// Each operand of `accesses` once, however many loads read it.
std::vector<Access> streams_of_operands(const std::vector<Access>& accesses);
/// Of one element of each.
std::int64_t bytes_of(const std::vector<Access>& accesses, const Kernel& kernel);
/// Issue slots of one element: what is the same for a whole vector costs less the longer that is.
std::int64_t slots_of_point(const Kernel& kernel);

/// A tile wide enough for 128 bytes of each load on one side, as far as the extents fill it and shared memory holds it,
/// where loads lie across the stores (codegen/schedule/map_tile.cpp).
void choose_tile(MapSchedule& schedule, const Kernel& kernel, const Target& target);
/// Aligned vectors that are shifted, where the tile's rows begin at any element.
void shift_narrow_tile(MapSchedule& schedule, const Kernel& kernel, const Target& target);

/// Narrower vectors, where those of a warp touch so many cache lines that memory waits for the L1
/// (codegen/schedule/map_lines.cpp).
void narrow_apart(MapSchedule& schedule, const Kernel& kernel, const Target& target);

/// Threads that load what their points share once, where there is something (codegen/schedule/map_overlaps.cpp).
bool choose_overlaps(MapSchedule& schedule, const Kernel& kernel);

}  // namespace tenon::codegen

// Sums of gathered rows: threads lie along the rows and walk over those of a bag, whose places are loaded too. A
// compiler that is left to it waits for each row before it asks for the next, to save registers.
#pragma once

#include <vector>

#include "codegen/kernel/kernel.h"

namespace tenon::codegen {

/// Loads of a column kernel's only sweep at places that are loaded along the reduced axes, where the schedule unrolls
/// its loop: so many steps are a tile, whose places are found first, then all of these loads are under way.
std::vector<InstrId> gathers_ahead(const Kernel& kernel, const ReduceSchedule& schedule);

/// Loads of which a column kernel has those of a tile under way together: those gathers, or where a maximum and the
/// exponentials that it shifts share a sweep all plain loads, which the tile then uses twice.
std::vector<InstrId> loads_ahead(const Kernel& kernel, const ReduceSchedule& schedule);

/// Whether some load of a row is at a place that is loaded along the reduced axes.
bool gathers_along_rows(const Kernel& kernel);

}  // namespace tenon::codegen

// Loads of a Map kernel that are contiguous along another axis than the innermost one, along which it stores: read as
// they lie, each transaction of memory would serve one element. Used by the schedule, which decides on a tile in shared
// memory, and by the CUDA emitter, which fills it.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/kernel.h"

namespace tenon::codegen {

/// Shared memory that a kernel may declare in its text.
constexpr std::int64_t kStaticSharedBytes = 48 << 10;

/// The loads that are contiguous along `axis` and strided along the innermost one. Gathers are none.
std::vector<InstrId> transposed_loads(const Kernel& kernel, int axis);

/// The axis with the most bytes in transposed loads; -1 when there are none.
int transposed_axis(const Kernel& kernel);

/// The widest vector up to `limit` and 16 bytes by which `load` may be read along `axis`, whole vectors being inside or
/// outside the domain.
int transposed_vector(const Kernel& kernel, InstrId load, int axis, int limit);

/// Bytes of shared memory of the tiles of `loads`: transpose_tile of the prelude (transpose.cuh).
std::int64_t transpose_bytes(const Kernel& kernel, const std::vector<InstrId>& loads, int rows, int columns);

}  // namespace tenon::codegen

// Accesses of a Map kernel that are contiguous along another axis than the innermost one: made as they come, each
// transaction of memory would serve one element. Used by the schedule, which decides on tiles in shared memory, and by
// the CUDA emitter, which fills them.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/kernel/kernel.h"

namespace tenon::codegen {

/// Shared memory that a kernel may declare in its text.
constexpr std::int64_t kStaticSharedBytes = 48 << 10;

/// What crosses from one direction to the other: loads (instructions) and stores (indices into Kernel::stores) that are
/// contiguous along `axis` and strided along the innermost one. Gathers and guarded stores are none.
struct Transposed {
  std::vector<InstrId> loads;
  std::vector<int> stores;
  bool empty() const { return loads.empty() && stores.empty(); }
};
Transposed transposed_along(const Kernel& kernel, int axis);

/// Random bits whose blocks of four words lie along the tile's axis and not along the innermost one: drawn along the
/// former, a block is computed once and not for each of its words. None where the tile shifts.
std::vector<InstrId> draws_along(const Kernel& kernel, const MapTile& tile);

/// The axis with the most bytes in transposed accesses; -1 when there are none.
int transposed_axis(const Kernel& kernel);

/// The widest vector up to `limit` and 16 bytes by which `access` may be made along `axis`, whole vectors being inside
/// or outside the domain.
int transposed_vector(const Kernel& kernel, const Access& access, int axis, int limit);

/// Of a schedule whose tile shifts: whether a transposed load is made by vectors from any element on, and whether the
/// stores' vectors begin where rows are aligned, as some would else be narrower than 16 bytes or `vector`.
bool shifts_load(const Kernel& kernel, const MapSchedule& schedule, InstrId load);
bool shifts_stores(const Kernel& kernel, const MapSchedule& schedule);
/// Whether the tile of a schedule may shift: nothing is guarded, no store is transposed, and the stores of a row are
/// all aligned alike.
bool may_shift(const Kernel& kernel, const MapSchedule& schedule);
/// Whether some load or store is wider in a tile that shifts.
bool gains_by_shift(const Kernel& kernel, const MapSchedule& schedule);

/// Bytes of shared memory of one tile for each access along the tile's axis, and each draw: transpose_tile of the
/// prelude (transpose.cuh).
std::int64_t transpose_bytes(const Kernel& kernel, const MapTile& tile);

}  // namespace tenon::codegen

// The loop structure of each kernel class, and the pieces that several of them use.
#pragma once

#include <vector>

#include "codegen/emit/llvm/scope.h"

namespace tenon::codegen::simd {

class LongSums;

Source emit_map(Unit& unit);
Source emit_map_tile(Unit& unit);  ///< of a schedule with a tile_axis
Source emit_reduce(Unit& unit);
Source emit_contract(Unit& unit);
Source emit_attend(Unit& unit);

/// Binds `axes`, outermost first, from the row-major number `linear` of a point of theirs.
void bind_point(Unit& unit, Scope& scope, const std::vector<int>& axes, Value* linear);
/// The product of the extents of `axes`.
Dim point_count(const Kernel& kernel, const std::vector<int>& axes);
/// ceil(dim / divisor).
Dim ceil_div(const Dim& dim, std::int64_t divisor);
const Dim& extent_of(const Kernel& kernel, int axis);
/// for each task in range: body(scope inside, task).
void for_tasks(Unit& unit, Scope& root, TaskRange range, const std::function<void(Scope&, Value*)>& body);

/// `count` vectors of `lanes` elements of `axis` from `base`, each in a scope inside `scope`; `mask` is of all.
std::vector<Scope> vectors_from(Unit& unit, Scope& scope, int axis, Value* base, int lanes, int count,
                                Value* mask = nullptr);

/// for (base = begin; base < end; base += lanes) with `axis` along the lanes; the last turn, when it is not full, is
/// masked. `unroll` vectors of a full turn are given to body together; `sums` are accumulated by it.
void for_lanes(Unit& unit, Scope& scope, int axis, Value* begin, Value* end, int lanes, int unroll,
               const std::function<void(std::vector<Scope>&)>& body, const LongSums* sums = nullptr);
/// loop_in over blocks of `sums`, which may be null.
void loop_in_blocks(Unit& unit, Scope& scope, Value* begin, Value* end, std::int64_t step, const std::string& name,
                    const LongSums* sums, const std::function<void(Scope&, Value*)>& body);
/// Whether the extent (or every begin and end) is known to be a multiple of `lanes`.
bool divisible(const Unit& unit, const Dim& extent, int lanes);

}  // namespace tenon::codegen::simd

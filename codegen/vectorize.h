// Which accesses a thread may take as vectors: how an offset moves along one axis, and how it is aligned. Relies on the
// runtime's promise that every buffer starts at a multiple of 256 bytes.
#pragma once

#include <cstdint>
#include <optional>

#include "codegen/kernel.h"

namespace tenon::codegen {

/// What index(axis + j) - index(axis) is for 0 <= j < vector when `axis` is a multiple of `vector`: c for c * j, or
/// nothing when it is no such multiple. Instruction values that vary along the axis count as unknown.
std::optional<std::int64_t> step_along(const Index& index, int axis, int vector, const Kernel& kernel);

/// The largest known divisor of `index` at multiples of `vector` of `axis`.
std::int64_t divisor_of(const Index& index, int axis, int vector, const Kernel& kernel);

/// Elements of `access` that one memory operation may take: the access is contiguous along `axis`, and whole vectors
/// are inside or outside its guards. 0 when it is not so; at most `vector` and 16 bytes.
int vector_width(const Access& access, int axis, int vector, const Kernel& kernel);

/// The greatest power of two up to `limit` that divides `extent` for every value of the symbols.
int power_of_two_divisor(const Dim& extent, int limit, const Symbols& symbols);

}  // namespace tenon::codegen

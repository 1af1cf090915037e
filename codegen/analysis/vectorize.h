// Which accesses a thread may take as vectors: how an offset moves along one axis, and how it is aligned. Relies on the
// runtime's promise that every buffer starts at a multiple of 256 bytes.
#pragma once

#include <cstdint>
#include <optional>

#include "codegen/kernel/kernel.h"

namespace tenon::codegen {

/// Of one element as it lies in memory.
std::int64_t element_bytes(const Kernel& kernel, const Access& access);
/// Of the elements that are stored, the bytes of the narrowest.
std::int64_t narrowest_stored(const Kernel& kernel);

/// What index(axis + j) - index(axis) is for 0 <= j < vector when `axis` is a multiple of `vector`: c for c * j, or
/// nothing when it is no such multiple. Instruction values that vary along the axis count as unknown.
std::optional<std::int64_t> step_along(const Index& index, int axis, int vector, const Kernel& kernel);

/// The largest known divisor of `index` at multiples of `vector` of `axis`.
std::int64_t divisor_of(const Index& index, int axis, int vector, const Kernel& kernel);

/// Elements of `access` that one memory operation may take: the access is contiguous along `axis`, and whole vectors
/// are inside or outside its guards. 0 when it is not so; at most `vector` and 16 bytes.
int vector_width(const Access& access, int axis, int vector, const Kernel& kernel);

/// Whether rows along `axis`, the innermost, may end within cache lines in which the next ones begin.
bool rows_share_lines(const Kernel& kernel, const Access& access, int axis);

/// Bit j: all of `guards` hold at point j of `vector` points from a multiple of `vector` along `axis` on. Nothing
/// unless that follows from j alone: where they ask for (axis + c) mod d, say.
std::optional<std::uint32_t> visible_points(const std::vector<Guard>& guards, int axis, int vector,
                                            const Kernel& kernel);

/// Elements that neighbouring points share: those of a byte that holds two values, of a picture that is enlarged, a
/// scale that a group of weights has.
struct SharedElements {
  int points = 0;             ///< that share one, a power of two from 2 on; all of a vector where it has one element
  int width = 0;              ///< elements that one memory operation may take, as for vector_width
  std::uint32_t visible = 0;  ///< bit j: the guards hold at point j of a vector
};
/// How `vector` points, from a multiple of `vector` along `axis` on, share the elements of `access`: nothing unless
/// point j has element j / points, and whether a guard holds follows from j alone and holds at a point of each element.
std::optional<SharedElements> shared_elements(const Access& access, int axis, int vector, const Kernel& kernel);

/// vector_width along the points of the whole domain in row-major order, across the ends of rows: 0 unless the access
/// lies like the domain, at a distance. The first point is a multiple of `vector`.
int flat_width(const Access& access, int vector, const Kernel& kernel);

/// Whether `index` at `vector` points from a multiple of `vector` on is c, c + 1, …, and c a multiple of `divisor`:
/// along `axis`, or along the whole domain when it is `flat`.
bool counts_up(const Index& index, int axis, bool flat, int vector, int divisor, const Kernel& kernel);

/// Elements that one memory operation may take where vectors begin not at multiples of `vector` along `axis` but where
/// the offset of `reference` is one: 0 unless the access is contiguous and its guards do not vary along the axis.
int peeled_width(const Access& access, const Access& reference, int axis, int vector, const Kernel& kernel);

/// The greatest power of two up to `limit` that divides `extent` for every value of the symbols.
int power_of_two_divisor(const Dim& extent, int limit, const Symbols& symbols);

}  // namespace tenon::codegen

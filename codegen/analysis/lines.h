// What the L1 does for the loads of a Map kernel that lie apart: each load of a warp takes a turn for every cache line
// of 128 bytes that it touches. Of kernels whose extents and offsets are numbers.
#pragma once

#include <cstdint>
#include <optional>

#include "codegen/kernel/kernel.h"

namespace tenon::codegen {

/// Cache lines of the loads of a warp, each of whose threads has some points of the domain that follow each other.
struct Lines {
  std::int64_t touched = 0;   ///< summed over its loads
  std::int64_t distinct = 0;  ///< each counted once
};
/// Of threads with `vector` points, which take as many elements at once as vector_width or, where vectors are `flat`,
/// flat_width allow.
std::optional<Lines> lines_of_warp(const Kernel& kernel, int vector, bool flat);

/// Of the sectors of 32 bytes that `access` brings for so many neighbouring points of the domain, the share that these
/// use.
std::optional<double> share_of_sectors(const Kernel& kernel, const Access& access, std::int64_t points);

}  // namespace tenon::codegen

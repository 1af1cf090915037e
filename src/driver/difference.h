// Compares two arrays where they are: on the target, by a graph.
#pragma once

#include <cstdint>
#include <memory>

#include "runtime/backend.h"
#include "tenon/compile.h"

namespace tenon::src {

/// How many elements of `actual` are not what `expected` has, which is of the same dtype and shape. Reals may differ as
/// sums in another order do: by 4 units in the last place of the larger of the value and a tenth of the largest one
/// (f32 and f64: 256 units). NaN equals NaN. Integers and bools are equal or not.
std::int64_t count_different(const Buffer& actual, const Buffer& expected,
                             const std::shared_ptr<const runtime::Backend>& backend, const Options& options);

}  // namespace tenon::src

// How many bytes an array takes: the one place that multiplies sizes which come from outside.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tenon/dtype.h"

namespace tenon::ir {

/// The most bytes that a value may have: more than a device or process has, and sums of thousands of such sizes stay
/// within 64 bits.
inline constexpr std::int64_t kMaxValueBytes = std::int64_t{1} << 50;

/// The bytes of a dense array; nothing when an extent is negative or there are more than kMaxValueBytes. An extent of 0
/// makes it 0 bytes, whatever the others are.
std::optional<std::int64_t> byte_count(DType dtype, const std::vector<std::int64_t>& shape);

}  // namespace tenon::ir

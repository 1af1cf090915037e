// f32 operands of products in f16, which tensor cores multiply, and the rows that boxes bring.
#pragma once

#include <cstdint>

#include "ir/graph/graph.h"

namespace tenon::ir::fusion {

inline constexpr std::int64_t kRowBytes = 16;    ///< to which a box's rows are aligned
inline constexpr std::int64_t kLineBytes = 128;  ///< of the caches: rows that split them come at half the speed
inline constexpr double kLowScale = 0x1p11;      ///< of the low parts: f16 has 11 bits

/// The zeros behind `extent` elements of 16 bits with which rows of them begin at boundaries that boxes need; whole
/// lines, where that is little more. 0 where they do.
std::int64_t zeros_behind(std::int64_t extent);

/// `value` with so many zeros behind it along `axis`.
ValueId with_zeros(Graph& graph, ValueId value, std::int64_t axis, std::int64_t zeros, const Place& place);

/// Whether the rows of the matrix, perhaps seen transposed, lie along its axis `depth`.
bool rows_along(const Graph& graph, ValueId operand, std::int64_t depth);

/// Elements [start, stop) of `operand` along `axis`.
ValueId part_of_depth(Graph& graph, ValueId operand, std::int64_t axis, std::int64_t start, std::int64_t stop,
                      const Place& place);

struct HalvesOptions {
  std::int64_t depth = 0;  ///< the axis along which each line of the operand has a scale
  std::int64_t zeros = 0;  ///< behind each part along it
  bool both = true;        ///< high and low parts, one behind the other along the depth; else the high ones alone
  bool low_first = false;
};

/// Scaled by a power of two for each row (column, of the second operand), so that its greatest element is near 2^13.
struct Halves {
  ValueId values = -1;   ///< f16; a view of `stored`, which lies as the matrix does
  ValueId unscale = -1;  ///< what to multiply by again
  ValueId stored = -1;
};

/// With both parts, x = high + low / kLowScale: to 2^-22 of itself down to 2^-27 of the row's greatest, and to 2^-49 of
/// that below. With one, to 11 bits, as tf32 has them. Rows of no whole 16 bytes get zeros behind them.
Halves halves_of(Graph& graph, ValueId operand, const HalvesOptions& options, const Place& place);

}  // namespace tenon::ir::fusion

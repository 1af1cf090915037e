// Arithmetic on layouts: the mixed-radix digits by which the planner knows, in time O(rank), whether two groups can run
// over one domain. A reshape never changes a layout, a transpose permutes it, a broadcast drops digits from it.
#pragma once

#include <optional>
#include <vector>

#include "ir/fusion/plan.h"

namespace tenon::ir::fusion {

/// Digits that are no plain digit of the domain; `divisor` then tells one such coordinate from another.
inline constexpr int kMoved = -1;     ///< slice, flip: another element of the same row
inline constexpr int kGathered = -2;  ///< take: an element that an index value picks
inline constexpr int kGuarded = -3;   ///< pad, concat: another element of the row, where a condition holds

/// The axes of a group: kept ones first.
struct Domain {
  std::vector<Dim> extents;
  int kept = 0;

  int rank() const { return static_cast<int>(extents.size()); }
  Digit whole(int axis) const { return {axis, 1, extents[static_cast<std::size_t>(axis)], 1U << axis}; }
  /// The axes [first, last) in order.
  Layout axes(int first, int last) const;
  Layout kept_layout() const { return axes(0, kept); }
};

/// Without digits of extent 1, neighbours merged.
Layout normalized(const Layout& layout);

/// The axes along which the layout varies, as bits.
std::uint32_t depends_of(const Layout& layout);
/// Atoms of the longest coordinate that is no plain digit.
int terms_of(const Layout& layout);
/// Whether every digit is a plain one.
bool is_plain(const Layout& layout);
bool is_gathered(const Layout& layout);
bool is_guarded(const Layout& layout);

/// `layout` cut into one piece for each extent of `shape`; nothing when the boundaries do not meet.
std::optional<std::vector<Layout>> segments(const Layout& layout, const Shape& shape);

/// The pieces of `layout` for each extent of `shape`. Dimensions that end within a digit are moved ones of all digits
/// that they share; side by side again, in order, they are these digits.
std::vector<Layout> pieces(const Layout& layout, const Shape& shape);

/// One digit of `extent` that varies with `layout` but is none of its digits; `id` identifies what was done to it, the
/// digit also knows by what other moves the layout came about. Behind a condition it stays behind one.
Digit moved(const Layout& layout, const Dim& extent, std::int64_t id, int kind = kMoved);

/// One behind the other, and normalized.
Layout concatenated(const std::vector<Layout>& pieces);

/// For each axis of a domain `from`, its digits in terms of another; nothing where unknown.
using AxisMap = std::vector<std::optional<Layout>>;

/// A value lies at `layout` on one domain and at `other` on the domain `from`: what that says of the axes of `from`.
AxisMap align(const Layout& layout, const Layout& other, const Domain& from);

/// Whether each axis of `from` is the axis of that number of `to`.
bool is_identity(const AxisMap& map, const Domain& from, const Domain& to);

/// `layout` on the domain `from`, expressed through `map`. Digits that the map does not know become moved ones.
Layout substitute(const Layout& layout, const Domain& from, const AxisMap& map);

/// The axes of `domain` that `digits` cover exactly once each, as bits; nothing when some axis is covered twice or
/// partly, or a digit is not plain.
std::optional<std::uint32_t> covered(const Layout& digits, const Domain& domain);

/// Bits of the axes [first, last) whose extent is not 1.
std::uint32_t axis_bits(const Domain& domain, int first, int last);

}  // namespace tenon::ir::fusion

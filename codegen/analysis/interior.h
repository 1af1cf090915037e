// Where the guards of a kernel hold: the interior, a range of each axis. Guards of one axis alone bound it; others, of
// several axes or of gathered values, are no part of it and stay.
#pragma once

#include <optional>
#include <vector>

#include "codegen/kernel/kernel.h"
#include "codegen/schedule/schedule.h"

namespace tenon::codegen {

/// Points of `axis` from the greatest of `lows` up to the least of `highs`, without it; where there is none of a kind,
/// from 0, or up to the extent.
struct AxisRange {
  int axis = -1;
  std::vector<Dim> lows, highs;
};

/// Inside all ranges, each guard of one axis holds.
using Interior = std::vector<AxisRange>;

/// Whether the guard asks for k + c * axis of constant c, and the interior says where it holds.
bool is_of_one_axis(const Guard& guard);
/// Empty where no guard is of one axis.
Interior interior_of(const Kernel& kernel);
/// Nothing where no guard bounds that axis.
const AxisRange* range_along(const Interior& interior, int axis);

/// The kernel at points of an interior, without the guards that hold there; instructions keep their numbers.
Kernel inside_of(Kernel kernel, const Interior& interior);
/// What threads of a GPU with this schedule take for the interior (MapSchedule::interior): along all axes where most
/// warps lie inside wholly, since the others go both ways; else along the axis before the innermost alone, where a
/// thread has single points, or pairs, of several rows, and that is so there. Empty where it is nowhere.
Interior interior_of_warps(const Kernel& kernel, const MapSchedule& schedule);
/// The same, or all axes where a schedule asks for an interior that few warps lie in.
Interior interior_with(const Kernel& kernel, const MapSchedule& schedule);

/// How many points of an axis lie outside, where that is a constant.
std::optional<std::int64_t> points_outside(const AxisRange& range, const Kernel& kernel);
/// The share of the points that lie inside, 0 where that is not known; axes of unknown extent are taken for long ones.
/// Of groups of points with `spans` along the axes (empty: single ones), the share that lies wholly inside, about.
double share_inside(const Interior& interior, const Kernel& kernel, const std::vector<std::int64_t>& spans = {});

}  // namespace tenon::codegen

// See window_text.h.
#include "codegen/analysis/window_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/analysis/gathered_rows.h"
#include "codegen/analysis/interior.h"
#include "codegen/analysis/overlap.h"
#include "codegen/analysis/vectorize.h"

namespace tenon::codegen {
namespace {

std::string text_of(const Overlap& overlap, const MapSchedule& schedule, const Kernel& kernel,
                    const std::vector<std::string>& operands) {
  const auto bytes = overlap.aligned * element_bytes(kernel, overlap.stretch);
  return fmt::format("{}: {} loads of {} {} {} of {} bytes",
                     operands.at(static_cast<std::size_t>(overlap.stretch.operand)),
                     overlap.loads.size() * static_cast<std::size_t>(schedule.vector), schedule.vector,
                     schedule.vector == 1 ? "result are" : "results are", overlap.vectors(), bytes);
}

// Of all points, where their number is known.
std::string text_of(const Interior& interior, const Kernel& kernel) {
  double share = 1;
  bool known = true;
  for (const AxisRange& range : interior) {
    const Axis& axis = kernel.axes[static_cast<std::size_t>(range.axis)];
    const auto outside = points_outside(range, kernel);
    known = known && axis.extent.is_constant() && outside;
    if (known)
      share *= std::max(0.0, 1 - static_cast<double>(*outside) /
                                     static_cast<double>(std::max<std::int64_t>(1, axis.extent.constant())));
  }
  return known ? fmt::format("all but {:.2g} % of the results lie inside: no guards", 100 * (1 - share))
               : "results that lie inside have no guards";
}

}  // namespace

std::vector<std::string> window_texts(const Kernel& kernel, const std::vector<std::string>& operands) {
  const auto* schedule = std::get_if<MapSchedule>(&kernel.schedule);
  std::vector<std::string> texts;
  if (schedule == nullptr) return texts;
  const VectorPoints points{static_cast<int>(kernel.axes.size()) - 1, schedule->vector, schedule->flat};
  for (const Overlap& overlap : schedule->overlaps ? overlaps_of(kernel, points) : std::vector<Overlap>{})
    texts.push_back(text_of(overlap, *schedule, kernel, operands));
  for (const GatheredRows& rows : schedule->staged ? gathered_rows(kernel) : std::vector<GatheredRows>{})
    texts.push_back(fmt::format("{}: {} elements of a row are gathered from shared memory",
                                operands.at(static_cast<std::size_t>(rows.operand)), rows.length));
  if (schedule->strip > 1 && !schedule->staged)
    texts.push_back(fmt::format("a thread has {} neighbouring rows: {:.0f} % of the loads are left", schedule->strip,
                                100 * loads_left(kernel, points.axis - 1, schedule->strip)));
  if (schedule->interior) texts.push_back(text_of(interior_with(kernel, *schedule), kernel));
  return texts;
}

}  // namespace tenon::codegen

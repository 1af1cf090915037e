// Map kernels: one thread for each `vector` consecutive points of the innermost axis, or of the whole domain across the
// ends of rows, found from one linear index over the domain. Relies on axes being collapsed, so that most kernels have
// one.
#include <fmt/format.h>

#include "codegen/emit/cuda/emit.h"
#include "codegen/emit/cuda/points.h"
#include "codegen/vectorize.h"
#include "ir/check.h"

namespace tenon::codegen::cuda {
namespace {

// The last vector of a domain that the vector does not divide: element by element.
void emit_ragged(Writer& out, const Kernel& kernel, const Points& points, const std::string& total) {
  out.open(fmt::format("if (point + {} <= {}) {{", points.vector, total));
  emit_points(out, kernel, points);
  out.close("} else {");
  Points scalar = points;
  scalar.vector = 1;
  scalar.flat = false;
  out.line("#pragma unroll 1");
  out.open(fmt::format("for ({} last = point; last < {}; ++last) {{", unsigned_index_type(kernel), total));
  decode_axes(out, kernel, 0, kernel.axes.size(), "last");
  emit_points(out, kernel, scalar);
  out.close();
  out.close();
}

}  // namespace

Source emit_map(const Kernel& kernel, const Target&) {
  const auto& schedule = std::get<MapSchedule>(kernel.schedule);
  if (schedule.tile_axis >= 0) return emit_transposing_map(kernel);
  const Points points = map_points(kernel, schedule);
  const std::size_t rank = kernel.axes.size();
  const int vector = schedule.vector;
  const Dim count = extent_of(kernel, 0, rank);
  const bool along_all = rank == 1 || schedule.flat;
  const Dim& along = along_all ? count : kernel.axes.back().extent;
  const bool whole = vector == 1 || (rank > 0 && power_of_two_divisor(along, vector, kernel.symbols) == vector);
  TENON_CHECK(whole || along_all, "a vector must divide the innermost of several axes");

  const std::string total = dim_text(count, names_of(kernel));
  const std::int64_t per_block = std::int64_t{schedule.threads} * vector * schedule.unroll;
  const std::string type = unsigned_index_type(kernel);

  Writer out(1);
  std::string block = kernel.wide_index ? "(u64)blockIdx.x" : "blockIdx.x";
  if (schedule.unroll > 1) {
    out.unrolled(fmt::format("for (int u = 0; u < {}; ++u) {{", schedule.unroll));
    block = fmt::format("({} * {} + u)", block, schedule.unroll);
  }
  const std::string thread = fmt::format("{} * {} + threadIdx.x", block, schedule.threads);
  out.line(fmt::format("const {} point = {};", type, vector > 1 ? fmt::format("({}) * {}", thread, vector) : thread));
  const bool exact = count.is_constant() && count.constant() % per_block == 0;
  if (!exact) out.line(fmt::format("if (point >= {}) {};", total, schedule.unroll > 1 ? "break" : "return"));
  decode_axes(out, kernel, 0, rank, "point");
  if (whole) {
    emit_points(out, kernel, points);
  } else {
    emit_ragged(out, kernel, points, total);
  }
  if (schedule.unroll > 1) out.close();

  LaunchRule launch;
  launch.grid_x = blocks_of(count, per_block);
  launch.block = schedule.threads;
  return finish(kernel, out, launch);
}

}  // namespace tenon::codegen::cuda

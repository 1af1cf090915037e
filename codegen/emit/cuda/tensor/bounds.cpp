// See bounds.h. Sums are in 64 bits where 31 may not hold them.
#include "codegen/emit/cuda/tensor/bounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "codegen/emit/cuda/text/names.h"
#include "codegen/emit/cuda/text/spell.h"

namespace tenon::codegen::cuda {
namespace {

std::int64_t slope(const PositionBound& bound, int axis) { return bound.slopes[static_cast<std::size_t>(axis)]; }

// The first and the last of a tile along an axis.
struct Ends {
  int axis;
  std::string first, last;
};

// "n - m_last + 7": the least that the bound's sum can be, what varies along other axes aside.
std::string least_text(const PositionBound& bound, const std::vector<Ends>& ends, const Names& names,
                       const std::string& type) {
  std::string text;
  for (const Ends& each : ends) {
    const std::int64_t factor = slope(bound, each.axis);
    if (factor == 0) continue;
    text += text.empty() ? (factor > 0 ? "" : "-") : (factor > 0 ? " + " : " - ");
    if (std::abs(factor) != 1) text += fmt::format("{} * ", std::abs(factor));
    text += factor > 0 ? each.first : each.last;
  }
  if (text.empty()) return fmt::format("({})({})", type, dim_text(bound.constant, names));
  if (bound.constant.is(0)) return text;
  return fmt::format("{} + ({})({})", text, type, dim_text(bound.constant, names));
}

std::string extent_text(const Kernel& kernel, int axis, const Names& names, const std::string& type) {
  return fmt::format("({})({})", type, dim_text(kernel.axes[static_cast<std::size_t>(axis)].extent, names));
}

void emit_last(Writer& out, const Kernel& kernel, const std::string& name, int axis, int size, const Names& names,
               const std::string& type) {
  out.line(fmt::format("const {3} {0}_last = min({0} + {1}, {2}) - 1;", name, size,
                       extent_text(kernel, axis, names, type), type));
}

// Takes from [begin, end) what `bound` hides, whose slope along the range is 1 or -1, or 0: it hides all or nothing.
void emit_cut(Writer& out, const PositionBound& bound, int along, const std::string& least) {
  const std::int64_t factor = slope(bound, along);
  if (factor == 0) out.line(fmt::format("if ({} > 0) end = begin;", least));
  if (factor == 1) out.line(fmt::format("end = min(end, 1 - ({}));", least));
  if (factor == -1) out.line(fmt::format("begin = max(begin, {});", least));
}

// "const auto rows_of = [&](i64 n) -> depth_range { … };": of the tiles at columns from n on. A slope of several rows
// is not looked at: the order of tiles is all that goes by it.
void emit_rows_of(Writer& out, const Kernel& kernel, const ContractParts& parts, const ProductBounds& bounds,
                  int columns) {
  const Names names = names_of(kernel);
  const std::string type = bound_type(kernel, parts);
  out.open(fmt::format("const auto rows_of = [&]({0} n) -> depth_range<{0}> {{", type));
  emit_last(out, kernel, "n", parts.n, columns, names, type);
  out.line(fmt::format("{} begin = 0, end = {};", type, extent_text(kernel, parts.m, names, type)));
  for (const PositionBound& bound : bounds.result)
    emit_cut(out, bound, parts.m, least_text(bound, {{parts.n, "n", "n_last"}}, names, type));
  out.line("return {begin, end};");
  out.close("};");
}

}  // namespace

std::string bound_type(const Kernel& kernel, const ContractParts& parts) {
  constexpr double kMost = 1 << 30;  // twice as much is 31 bits: tiles reach beyond the end
  const auto most = [&](const Dim& dim) {
    const SymbolBounds range = dim.bounds(kernel.symbols);
    return std::max(std::abs(static_cast<double>(range.min)), std::abs(static_cast<double>(range.max)));
  };
  double greatest = 0;
  for (const int axis : {parts.m, parts.n, parts.k})
    greatest = std::max(greatest, most(kernel.axes[static_cast<std::size_t>(axis)].extent));
  const ProductBounds bounds = product_bounds(kernel, parts);
  for (const std::vector<PositionBound>* some : {&bounds.result, &bounds.depth})
    for (const PositionBound& bound : *some) {
      double sum = most(bound.constant);
      for (const int axis : {parts.m, parts.n, parts.k})
        sum += std::abs(static_cast<double>(slope(bound, axis))) *
               most(kernel.axes[static_cast<std::size_t>(axis)].extent);
      greatest = std::max(greatest, sum);
    }
  return greatest < kMost ? "int" : "i64";
}

void emit_depth_of(Writer& out, const Kernel& kernel, const ContractParts& parts, int rows, int columns) {
  const int step = std::get<ContractSchedule>(kernel.schedule).tile_k;
  const ProductBounds bounds = product_bounds(kernel, parts);
  const Names names = names_of(kernel);
  const std::vector<Ends> ends{{parts.m, "m", "m_last"}, {parts.n, "n", "n_last"}};
  const std::string type = bound_type(kernel, parts);
  out.open(fmt::format("const auto depth_of = [&]({0} m, {0} n) -> depth_range<{0}> {{", type));
  emit_last(out, kernel, "m", parts.m, rows, names, type);
  emit_last(out, kernel, "n", parts.n, columns, names, type);
  out.line(fmt::format("{} begin = 0, end = {};", type, extent_text(kernel, parts.k, names, type)));
  for (const PositionBound& bound : bounds.depth) emit_cut(out, bound, parts.k, least_text(bound, ends, names, type));
  if (!bounds.depth.empty()) out.line(fmt::format("begin -= begin % {};", step));
  for (const PositionBound& bound : bounds.result) emit_cut(out, bound, parts.k, least_text(bound, ends, names, type));
  out.line("return {begin, max(begin, end)};");
  out.close("};");
}

void emit_bounds(Writer& out, const Kernel& kernel, const ContractParts& parts, int rows, int columns) {
  const ProductBounds bounds = product_bounds(kernel, parts);
  emit_depth_of(out, kernel, parts, rows, columns);
  emit_rows_of(out, kernel, parts, bounds, columns);
  out.line(fmt::format("const auto bounds = make_bounded_depth<{}, {}, {}, {}, {}>(depth_of, rows_of);",
                       bound_type(kernel, parts), rows, columns, growth_of_depth(bounds, parts.m) > 0,
                       growth_of_depth(bounds, parts.n) > 0));
}

std::string first_block(const ProductBounds& bounds, const ContractParts& parts) {
  const bool grows = growth_of_depth(bounds, parts.m) > 0 ||
                     (growth_of_depth(bounds, parts.m) == 0 && growth_of_depth(bounds, parts.n) > 0);
  return grows ? "gridDim.x - 1 - blockIdx.x" : "blockIdx.x";
}

}  // namespace tenon::codegen::cuda

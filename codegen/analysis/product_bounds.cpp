// See product_bounds.h.
#include "codegen/analysis/product_bounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "codegen/kernel/uses.h"

namespace tenon::codegen {
namespace {

using ir::Op;
using Bounds = std::vector<PositionBound>;

constexpr int kMostMasks = 8;             // one on the other
constexpr std::int64_t kMostTiles = 256;  // along an axis, that are looked at

std::uint64_t bit(int axis) { return std::uint64_t{1} << axis; }

std::int64_t slope(const PositionBound& bound, int axis) { return bound.slopes[static_cast<std::size_t>(axis)]; }

// Where each instruction's value makes a difference to what is stored: nothing where it makes none.
class Needs {
 public:
  Needs(const Kernel& kernel, std::uint64_t positions)
      : kernel_(kernel), positions_(positions), where_(kernel.body.size()) {
    for (const Store& store : kernel.stores)
      for (const InstrId root : roots_of(store)) meet(root, {});
    for (std::size_t id = kernel.body.size(); id-- > 0;)
      if (where_[id]) pass_on(static_cast<InstrId>(id));
  }

  const std::optional<Bounds>& of(InstrId id) const { return where_[static_cast<std::size_t>(id)]; }

 private:
  // What it is needed for in several places, it is needed for where all of these bounds hold, or more widely.
  void meet(InstrId id, const Bounds& bounds) {
    std::optional<Bounds>& known = where_[static_cast<std::size_t>(id)];
    if (!known) {
      known = bounds;
      return;
    }
    std::erase_if(*known, [&](const PositionBound& bound) {
      return std::find(bounds.begin(), bounds.end(), bound) == bounds.end();
    });
  }

  void pass_on(InstrId id) {
    const Instr& instr = kernel_.instr(id);
    const Bounds bounds = *where_[static_cast<std::size_t>(id)];
    if (instr.kind != InstrKind::map || instr.op != Op::where) {
      for (const InstrId operand : operands_of(instr)) meet(operand, bounds);
      return;
    }
    meet(instr.args[0], bounds);
    for (const bool holds : {true, false}) {
      Bounds chosen = bounds;
      add_position_bounds(kernel_, {instr.args[0], holds}, positions_, 0, chosen);
      meet(instr.args[holds ? 1 : 2], chosen);
    }
  }

  const Kernel& kernel_;
  std::uint64_t positions_;
  std::vector<std::optional<Bounds>> where_;  // by instruction
};

// Of selections between an operand's elements and 0.
void add_zero_masks(const Kernel& kernel, InstrId value, std::uint64_t positions, Bounds& bounds) {
  for (int depth = 0; depth < kMostMasks; ++depth) {
    const Instr& selection = kernel.instr(behind_casts(kernel, value));
    if (selection.kind != InstrKind::map || selection.op != Op::where) return;
    const auto is_nothing = [&](std::size_t arg) {
      return is_zero(kernel.instr(behind_casts(kernel, selection.args[arg])));
    };
    if (!is_nothing(1) && !is_nothing(2)) return;
    const bool holds = is_nothing(2);
    add_position_bounds(kernel, {selection.args[0], holds}, positions, 0, bounds);
    value = selection.args[holds ? 1 : 2];
  }
}

bool is_constant(const PositionBound& bound) {
  return std::all_of(bound.slopes.begin(), bound.slopes.end(), [](std::int64_t slope) { return slope == 0; });
}

// ---- at sizes
// --------------------------------------------------------------------------------------------------------

// Of an axis, in one tile.
struct Extent {
  int axis;
  std::int64_t first, last;
};

// The least that the sum of the bound can be in a tile, at depth 0.
std::int64_t least(const PositionBound& bound, const Symbols& symbols, const Extent& m, const Extent& n) {
  std::int64_t sum = typical(bound.constant, symbols);
  for (const Extent& each : {m, n})
    sum += slope(bound, each.axis) * (slope(bound, each.axis) > 0 ? each.first : each.last);
  return sum;
}

std::string terms_text(const PositionBound& bound, const ContractParts& parts, int but, std::int64_t sign) {
  std::string text;
  const auto add = [&](std::int64_t factor, const std::string& what) {
    if (factor == 0) return;
    const bool first = text.empty();
    text += first ? (factor < 0 ? "-" : "") : (factor < 0 ? " - " : " + ");
    const std::int64_t size = std::abs(factor);
    text += what.empty() ? std::to_string(size) : size == 1 ? what : fmt::format("{} {}", size, what);
  };
  if (parts.m != but) add(sign * slope(bound, parts.m), "row");
  if (parts.n != but) add(sign * slope(bound, parts.n), "column");
  if (bound.constant.is_constant()) {
    add(sign * bound.constant.constant(), "");
  } else {
    text += fmt::format("{}{}({})", text.empty() ? "" : " ", sign < 0 ? "- " : "+ ", bound.constant.str());
  }
  return text.empty() ? "0" : text;
}

}  // namespace

ProductBounds product_bounds(const Kernel& kernel, const ContractParts& parts) {
  const std::uint64_t of_result = bit(parts.m) | bit(parts.n), positions = of_result | bit(parts.k);
  const Needs needs(kernel, of_result);
  Bounds found = needs.of(parts.contract).value_or(Bounds{});
  if (parts.second) {
    const Bounds other = needs.of(parts.second->contract).value_or(Bounds{});
    std::erase_if(
        found, [&](const PositionBound& bound) { return std::find(other.begin(), other.end(), bound) == other.end(); });
  }
  add_zero_masks(kernel, parts.a.value, positions, found);
  if (!parts.second) add_zero_masks(kernel, parts.b.value, positions, found);
  ProductBounds bounds;
  for (const PositionBound& bound : found) {
    if (bound.value >= 0 || is_constant(bound)) continue;
    const std::int64_t along = slope(bound, parts.k);
    if (along == 0) bounds.result.push_back(bound);
    if (along == 1 || along == -1) bounds.depth.push_back(bound);
  }
  return bounds;
}

std::int64_t growth_of_depth(const ProductBounds& bounds, int axis) {
  std::int64_t growth = 0;
  for (const PositionBound& bound : bounds.depth) growth -= slope(bound, axis);
  return growth;
}

ProductShare product_share(const Kernel& kernel, const ContractParts& parts, const ProductBounds& bounds,
                           std::int64_t tile_m, std::int64_t tile_n) {
  if (bounds.empty()) return {};
  const auto extent = [&](int axis) {
    return std::max<std::int64_t>(1, typical(kernel.axes[static_cast<std::size_t>(axis)].extent, kernel.symbols));
  };
  const std::int64_t rows = extent(parts.m), columns = extent(parts.n), depth = extent(parts.k);
  const std::int64_t tiles_m = (rows + tile_m - 1) / tile_m, tiles_n = (columns + tile_n - 1) / tile_n;
  const std::int64_t step_m = (tiles_m + kMostTiles - 1) / kMostTiles, step_n = (tiles_n + kMostTiles - 1) / kMostTiles;
  double all = 0, some = 0, share = 0;
  for (std::int64_t i = step_m / 2; i < tiles_m; i += step_m)
    for (std::int64_t j = step_n / 2; j < tiles_n; j += step_n) {
      const Extent m{parts.m, i * tile_m, std::min((i + 1) * tile_m, rows) - 1};
      const Extent n{parts.n, j * tile_n, std::min((j + 1) * tile_n, columns) - 1};
      std::int64_t begin = 0, end = depth;
      for (const PositionBound& bound : bounds.result)
        if (least(bound, kernel.symbols, m, n) > 0) end = 0;
      for (const PositionBound& bound : bounds.depth) {
        const std::int64_t sum = least(bound, kernel.symbols, m, n);
        if (slope(bound, parts.k) > 0) {
          end = std::min(end, 1 - sum);
        } else {
          begin = std::max(begin, sum);
        }
      }
      all += 1;
      if (end <= begin) continue;
      some += 1;
      share += static_cast<double>(end - begin) / static_cast<double>(depth);
    }
  if (some == 0) return {0, 0};
  return {some / all, share / some};
}

std::vector<std::string> product_mask_texts(const Kernel& kernel) {
  const auto* schedule = std::get_if<ContractSchedule>(&kernel.schedule);
  if (schedule == nullptr || !schedule->bounded) return {};
  const ContractParts parts = contract_parts(kernel);
  const ProductBounds bounds = product_bounds(kernel, parts);
  std::vector<std::string> texts;
  const auto add = [&](const PositionBound& bound, int axis, const std::string& name, const std::string& what) {
    const std::int64_t sign = slope(bound, axis);
    const std::string factor = std::abs(sign) == 1 ? "" : fmt::format("{} ", std::abs(sign));
    texts.push_back(fmt::format("{}{} {} {}: {}", factor, name,
                                sign > 0 ? "<=" : ">=", terms_text(bound, parts, axis, sign > 0 ? -1 : 1), what));
  };
  for (const PositionBound& bound : bounds.result) {
    const bool column = slope(bound, parts.n) != 0;
    add(bound, column ? parts.n : parts.m, column ? "column" : "row", "tiles elsewhere are not multiplied");
  }
  for (const PositionBound& bound : bounds.depth)
    add(bound, parts.k, "depth", "the rest of a tile's is not multiplied");
  const ProductShare share =
      product_share(kernel, parts, bounds, schedule->tile_m, schedule->tile_n / schedule->products);
  texts.push_back(fmt::format("{:.0f} % of the product is left in tiles of {} x {}", 100 * share.tiles * share.depth,
                              schedule->tile_m, schedule->tile_n / schedule->products));
  return texts;
}

}  // namespace tenon::codegen

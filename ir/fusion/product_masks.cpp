// See product_masks.h.
#include "ir/fusion/product_masks.h"

#include <algorithm>
#include <array>

namespace tenon::ir::fusion {
namespace {

constexpr std::size_t kGrid = 32;       // positions along each of rows, columns and depth
constexpr std::size_t kMostUsers = 32;  // values between a product and what is stored
constexpr int kMostDepth = 16;          // operators of a mask, one behind the other
constexpr int kMostMasks = 8;           // one on the other

using Coordinates = std::vector<std::int64_t>;

using Mask = ProductMask;
using Masks = std::vector<Mask>;

class Positions {
 public:
  explicit Positions(const Context& context) : context_(context), graph_(context.graph) {}

  // False where a comparison of positions says that the mask does not hold.
  bool may_hold(const Mask& mask, const Coordinates& place) const {
    const Coordinates at = fitted(mask.condition, place);
    const Node& node = graph_.producer(mask.condition);
    if (node.op == Op::logical_not) return may_hold({node.operands[0], !mask.holds}, within(node, 0, at));
    if (node.op == (mask.holds ? Op::logical_and : Op::logical_or))
      return may_hold({node.operands[0], mask.holds}, within(node, 0, at)) &&
             may_hold({node.operands[1], mask.holds}, within(node, 1, at));
    if (const auto inside = through_view(node, at)) return may_hold({node.operands[0], mask.holds}, *inside);
    const auto truth = compared(node, at);
    return !truth || *truth == mask.holds;
  }

 private:
  std::vector<std::int64_t> shape(ValueId value) const {
    std::vector<std::int64_t> extents;
    for (const Dim& dim : graph_.type(value).shape)
      extents.push_back(static_cast<std::int64_t>(std::min(context_.extent(dim), 0x1p31)));
    return extents;
  }

  // The place in a value that is broadcast to where `at` is.
  Coordinates fitted(ValueId value, const Coordinates& at) const {
    const std::vector<std::int64_t> extents = shape(value);
    Coordinates inside(extents.size(), 0);
    for (std::size_t axis = 0; axis < std::min(extents.size(), at.size()); ++axis)
      if (extents[extents.size() - 1 - axis] != 1) inside[inside.size() - 1 - axis] = at[at.size() - 1 - axis];
    return inside;
  }
  Coordinates within(const Node& node, std::size_t operand, const Coordinates& at) const {
    return fitted(node.operands[operand], at);
  }

  std::optional<Coordinates> through_view(const Node& node, const Coordinates& at) const {
    if (node.op == Op::broadcast_to) return within(node, 0, at);
    if (node.op == Op::transpose) {
      const auto perm = node.attrs.get<std::vector<std::int64_t>>("perm");
      Coordinates inside(at.size());
      for (std::size_t axis = 0; axis < at.size(); ++axis) inside[static_cast<std::size_t>(perm[axis])] = at[axis];
      return inside;
    }
    if (node.op != Op::reshape) return std::nullopt;
    const std::vector<std::int64_t> from = shape(node.operands[0]), to = shape(node.results[0]);
    std::int64_t place = 0;
    for (std::size_t axis = 0; axis < to.size(); ++axis) place = place * to[axis] + at[axis];
    Coordinates inside(from.size());
    for (std::size_t axis = from.size(); axis-- > 0; place /= std::max<std::int64_t>(1, from[axis]))
      inside[axis] = place % std::max<std::int64_t>(1, from[axis]);
    return inside;
  }

  std::optional<bool> compared(const Node& node, const Coordinates& at) const {
    if (node.operands.size() != 2 || kind_of(node.op) != Kind::map) return std::nullopt;
    const auto a = number(node.operands[0], within(node, 0, at), 0);
    const auto b = number(node.operands[1], within(node, 1, at), 0);
    if (!a || !b) return std::nullopt;
    if (node.op == Op::less) return *a < *b;
    if (node.op == Op::less_equal) return *a <= *b;
    if (node.op == Op::greater) return *a > *b;
    if (node.op == Op::greater_equal) return *a >= *b;
    return std::nullopt;
  }

  std::optional<std::int64_t> number(ValueId value, const Coordinates& at, int depth) const {
    const Node& node = graph_.producer(value);
    if (depth > kMostDepth || !is_integer(graph_.type(value).dtype)) return std::nullopt;
    if (node.op == Op::iota) {
      const auto axis = node.attrs.get_or<std::int64_t>("axis", 0);
      return at[static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(at.size()) : axis)];
    }
    if (node.op == Op::full)
      return std::visit([](auto scalar) { return static_cast<std::int64_t>(scalar); }, node.attrs.get<Scalar>("value"));
    if (node.op == Op::cast) return number(node.operands[0], at, depth + 1);
    if (const auto inside = through_view(node, at)) return number(node.operands[0], *inside, depth + 1);
    if (node.op != Op::add && node.op != Op::sub) return std::nullopt;
    const auto a = number(node.operands[0], within(node, 0, at), depth + 1);
    const auto b = number(node.operands[1], within(node, 1, at), depth + 1);
    if (!a || !b) return std::nullopt;
    return node.op == Op::add ? *a + *b : *a - *b;
  }

  const Context& context_;
  const Graph& graph_;
};

// What selects the value on all ways to results, or to what is no map.
Masks masks_behind(const Context& context, ValueId value, std::size_t& left) {
  const auto at = static_cast<std::size_t>(value);
  std::optional<Masks> all;
  const auto meet = [&](Masks masks) {
    if (!all) {
      all = std::move(masks);
    } else {
      std::erase_if(*all, [&](const Mask& mask) { return std::find(masks.begin(), masks.end(), mask) == masks.end(); });
    }
  };
  if (context.graph_output[at]) return {};
  for (const NodeId user : context.users[at]) {
    if (!context.live[static_cast<std::size_t>(user)]) continue;
    const Node& node = context.graph.node(user);
    if (kind_of(node.op) != Kind::map || left == 0) return {};
    --left;
    Masks masks = masks_behind(context, node.results[0], left);
    const bool selects = node.op == Op::where && node.operands[0] != value && node.operands[1] != node.operands[2];
    if (selects) masks.push_back({node.operands[0], node.operands[1] == value});
    meet(std::move(masks));
  }
  return all.value_or(Masks{});
}

// Of selections between an operand and 0.
Masks zero_masks(const Graph& graph, ValueId value) {
  Masks masks;
  const auto behind_casts = [&](ValueId of) {
    for (int depth = 0; depth < kMostDepth; ++depth) {
      const Node& node = graph.producer(of);
      if (node.op != Op::cast && node.op != Op::broadcast_to) break;
      of = node.operands[0];
    }
    return of;
  };
  const auto is_nothing = [&](ValueId of) {
    const Node& node = graph.producer(behind_casts(of));
    if (node.op != Op::full) return false;
    return std::visit([](auto scalar) { return static_cast<double>(scalar) == 0; }, node.attrs.get<Scalar>("value"));
  };
  for (int depth = 0; depth < kMostMasks; ++depth) {
    const Node& node = graph.producer(value);
    if (node.op == Op::cast) {
      value = node.operands[0];
      continue;
    }
    if (node.op != Op::where || is_nothing(node.operands[1]) == is_nothing(node.operands[2])) break;
    const bool holds = is_nothing(node.operands[2]);
    masks.push_back({node.operands[0], holds});
    value = node.operands[holds ? 1 : 2];
  }
  return masks;
}

using Grid = std::array<std::array<bool, kGrid>, kGrid>;

// Where the masks let something through, of a matrix that is `like`: rows and columns at the middles of the grid.
Grid open(const Context& context, const Masks& masks, ValueId like) {
  const Positions positions(context);
  const Shape& shape = context.graph.type(like).shape;
  const auto middle = [&](std::size_t axis, std::size_t i) {
    return static_cast<std::int64_t>(std::min(context.extent(shape[axis]), 0x1p31) * (static_cast<double>(i) + 0.5) /
                                     kGrid);
  };
  Grid grid;
  Coordinates at(shape.size(), 0);
  for (std::size_t i = 0; i < kGrid; ++i)
    for (std::size_t j = 0; j < kGrid; ++j) {
      at[at.size() - 2] = middle(at.size() - 2, i), at[at.size() - 1] = middle(at.size() - 1, j);
      grid[i][j] =
          std::all_of(masks.begin(), masks.end(), [&](const Mask& mask) { return positions.may_hold(mask, at); });
    }
  return grid;
}

}  // namespace

std::optional<ProductMask> result_mask(const Context& context, NodeId matmul) {
  const ValueId result = context.graph.node(matmul).results[0];
  if (context.graph.type(result).shape.size() < 2) return std::nullopt;
  std::size_t left = kMostUsers;
  for (const Mask& mask : masks_behind(context, result, left)) {
    const Grid grid = open(context, {mask}, result);
    for (const auto& row : grid)
      if (std::count(row.begin(), row.end(), false) > 0) return mask;
  }
  return std::nullopt;
}

std::array<double, 4> multiplied_shares(const Context& context, NodeId matmul) {
  const Graph& graph = context.graph;
  const Node& node = graph.node(matmul);
  const ValueId a = node.operands[0], b = node.operands[1], result = node.results[0];
  for (const ValueId value : {a, b, result})
    if (graph.type(value).shape.size() < 2) return {1, 1, 1, 1};
  std::size_t left = kMostUsers;
  const Masks of_result = masks_behind(context, result, left), of_a = zero_masks(graph, a), of_b = zero_masks(graph, b);
  if (of_result.empty() && of_a.empty() && of_b.empty()) return {1, 1, 1, 1};
  const Grid results = open(context, of_result, result), rows = open(context, of_a, a),
             columns = open(context, of_b, b);
  constexpr double kAll = kGrid * kGrid * kGrid;
  std::array<double, 4> shares;
  for (const unsigned computed : {0U, 1U, 2U, 3U}) {
    const bool all_rows = (computed & 1U) == 0, all_columns = (computed & 2U) == 0;
    double multiplied = 0;
    for (std::size_t i = 0; i < kGrid; ++i)
      for (std::size_t j = 0; j < kGrid; ++j)
        for (std::size_t q = 0; q < kGrid && results[i][j]; ++q)
          multiplied += (all_rows || rows[i][q]) && (all_columns || columns[q][j]) ? 1 : 0;
    shares[computed] = std::max(1.0, multiplied) / kAll;
  }
  return shares;
}

}  // namespace tenon::ir::fusion

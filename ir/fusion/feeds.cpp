// See feeds.h.
#include "ir/fusion/feeds.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "ir/fusion/product_masks.h"

namespace tenon::ir::fusion {
namespace {

// Of what their instructions allow, what threads bring in whole products: 4.5 elements a clock of 8
// (bench/results/matmul-log.md).
constexpr double kFedShare = 0.56;

// As in codegen/schedule/contract.cpp: up to so many rows (columns) a matrix streams past them, at the speed of memory
// whatever is computed of it; the tiles that threads bring operands to; the least depth of a part.
constexpr std::int64_t kFewRows = 32;
struct Tile {
  double m, n;
};
constexpr Tile kTiles[] = {{256, 128}, {128, 256}, {128, 128}, {64, 128}};
constexpr double kLeastDepth = 256;

constexpr std::int64_t kRowBytes = 16;  // to which a box's rows are aligned
constexpr double kThreadsOfProcessor = 2048;

struct Sizes {
  Dim m, n, batch = 1;
};

// Rows of all batches are those of one matrix where the second operand has no batch.
Sizes sizes_of(const Graph& graph, const Node& matmul) {
  const Shape &b = graph.type(matmul.operands[1]).shape, &result = graph.type(matmul.results[0]).shape;
  const std::size_t rank = result.size();
  Sizes sizes{result[rank - 2], result[rank - 1]};
  Dim& outer =
      std::all_of(b.begin(), b.end() - 2, [](const Dim& extent) { return extent.is(1); }) ? sizes.m : sizes.batch;
  for (std::size_t axis = 0; axis + 2 < rank; ++axis) outer = outer * result[axis];
  return sizes;
}

// The value in front of the views that are computed wherever `value` is, those that ask for no condition or table.
ValueId behind_views(const Context& context, ValueId value) {
  for (;;) {
    const NodeId maker = context.graph.value(value).producer;
    const Node& node = context.graph.node(maker);
    if (!context.cloned[static_cast<std::size_t>(maker)] || kind_of(node.op) != Kind::view || node.op == Op::pad ||
        node.op == Op::concat || node.op == Op::take)
      return value;
    value = node.operands[0];
  }
}

bool is_cloned_map(const Context& context, ValueId value) {
  const NodeId maker = context.graph.value(value).producer;
  return context.cloned[static_cast<std::size_t>(maker)] && kind_of(context.graph.node(maker).op) == Kind::map;
}

// The operands, as bits, that boxes would bring if they were in memory. Of unknown sizes: whether that holds for all,
// as a whole matrix is not stored for the sake of few rows.
unsigned boxed_operands(const Context& context, NodeId matmul) {
  const Graph& graph = context.graph;
  const Node& node = graph.node(matmul);
  const Type &a = graph.type(node.operands[0]), &b = graph.type(node.operands[1]);
  const DType result = graph.type(node.results[0]).dtype;
  if (context.options.cost.fed_elements_ns == 0 || a.shape.size() < 2 || b.shape.size() < 2) return 0;
  const ContractionElement element = contraction_element(
      a.dtype, b.dtype, result, node.attrs.get_or<bool>("tf32", false), context.options.cost.tensor_cores);
  if (!element.tensor_cores || size_of(element.dtype) != 2) return 0;
  const Sizes sizes = sizes_of(graph, node);
  if (std::min(context.extent(sizes.m), context.extent(sizes.n)) <= kFewRows) return 0;
  const auto many = [&](const Dim& extent) { return extent.bounds(graph.symbols).min > kFewRows; };
  const auto as_boxes = [&](const Type& type) {
    return type.dtype == element.dtype &&
           type.shape.back().bounds(graph.symbols).divisor * size_of(type.dtype) % kRowBytes == 0;
  };
  return (many(sizes.n) && as_boxes(a) ? 1U : 0U) | (many(sizes.m) && as_boxes(b) ? 2U : 0U);
}

// The axes of the result's rows and columns; a vector has none of rows.
std::uint32_t column_bit(const Domain& domain) { return axis_bits(domain, std::max(0, domain.kept - 1), domain.kept); }
std::uint32_t row_bit(const Domain& domain) {
  return axis_bits(domain, std::max(0, domain.kept - 2), std::max(0, domain.kept - 1));
}

}  // namespace

void find_feeds(const Context& context, NodeId matmul, Cluster& cluster) {
  const Node& node = context.graph.node(matmul);
  cluster.boxed = boxed_operands(context, matmul);
  for (const std::size_t operand : {0, 1})
    if (is_cloned_map(context, behind_views(context, node.operands[operand]))) cluster.computed |= 1U << operand;
  if (context.options.cost.product_bounds) cluster.shares = multiplied_shares(context, matmul);
}

void compute_operand(Cluster& cluster, const Layout& layout) {
  const std::uint32_t depends = depends_of(layout);
  const double share = cluster.share();
  if ((depends & column_bit(cluster.domain)) != 0)
    cluster.computed |= 2U;
  else if ((depends & row_bit(cluster.domain)) != 0 || cluster.computed == 0)  // else a part of either
    cluster.computed |= 1U;
  for (double* flops : {&cluster.flops, &cluster.tensor_flops, &cluster.lane_flops}) *flops *= cluster.share() / share;
}

double feed_us(const Context& context, const Cluster& cluster) {
  const unsigned fed = cluster.boxed & cluster.computed;
  if (fed == 0) return 0;
  const CostModel& cost = context.options.cost;
  const Domain& domain = cluster.domain;
  const auto extent = [&](int axis) { return context.extent(domain.extents[static_cast<std::size_t>(axis)]); };
  double m = extent(domain.kept - 2), batch = context.points(domain, 0, domain.kept - 2);
  const double k = std::max(1.0, extent(domain.kept));
  const double products = cluster.flops / (2 * std::max(1.0, context.points(domain)) * cluster.share());
  const double n = products * extent(domain.kept - 1);  // side by side
  const std::uint32_t batches = axis_bits(domain, 0, domain.kept - 2);
  const bool one_matrix = std::none_of(cluster.reads.begin(), cluster.reads.end(), [&](const Read& read) {
    return std::any_of(read.layouts.begin(), read.layouts.end(), [&](const Layout& layout) {
      return is_operand(cluster, layout) && (depends_of(layout) & column_bit(domain)) != 0 &&
             (depends_of(layout) & batches) != 0;
    });
  });
  if (one_matrix) m *= batch, batch = 1;
  const double processors = std::max(1.0, cost.threads / kThreadsOfProcessor);
  double least = 0;
  for (const Tile& tile : kTiles)
    for (double parts = 1; parts <= cost.depth_parts; parts *= 2) {
      if (parts > 1 && k / parts < kLeastDepth) break;
      const double tiles = batch * std::ceil(m / tile.m) * std::ceil(n / tile.n);
      const double elements = ((fed & 1U) != 0 ? tile.m : 0) + ((fed & 2U) != 0 ? tile.n : 0);
      const double us =
          std::ceil(tiles * parts / processors) * elements * k / parts / (kFedShare * cost.fed_elements_ns * 1e3);
      if (least == 0 || us < least) least = us;
    }
  return least * cluster.share();
}

void price_cloned_operands(Context& context, const AttentionSearch& attention) {
  std::set<NodeId> apart;
  for (const std::vector<NodeId>& nodes : attention.nodes) apart.insert(nodes.begin(), nodes.end());
  std::set<NodeId> priced;
  for (std::size_t i = 0; i < context.graph.nodes.size(); ++i) {
    const Node& node = context.graph.nodes[i];
    const auto id = static_cast<NodeId>(i);
    if (!context.live[i] || kind_of(node.op) != Kind::contract || apart.count(id) != 0) continue;
    const unsigned boxed = boxed_operands(context, id);
    for (const std::size_t operand : {0, 1}) {
      const ValueId value = behind_views(context, node.operands[operand]);
      const bool one = context.count[static_cast<std::size_t>(value)] <= 1;
      if ((boxed >> operand & 1U) != 0 && is_cloned_map(context, value) && !one)
        priced.insert(context.graph.value(value).producer);
    }
  }
  for (const NodeId id : priced) context.cloned[static_cast<std::size_t>(id)] = false;
}

}  // namespace tenon::ir::fusion

// Places through one node, for each kind of node, and the walk over many.
#include "ir/fusion/demand.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/fusion/cluster.h"
#include "ir/graph/build.h"
#include "ir/graph/check.h"
#include "ir/graph/view.h"
#include "tenon/error.h"

namespace tenon::ir::fusion {
namespace {

// NumPy's alignment at the last axis: digits of dimensions that the operand repeats are dropped.
Layout broadcast_layout(const Layout& result, const Shape& from, const Shape& to) {
  if (from == to) return result;
  if (std::all_of(to.begin(), to.end(), [](const Dim& extent) { return extent.is(1); })) return {};
  const std::vector<Layout> parts = pieces(result, from);
  const std::size_t shift = from.size() - to.size();
  std::vector<Layout> kept;
  for (std::size_t i = 0; i < to.size(); ++i)
    if (!to[i].is(1)) kept.push_back(parts[i + shift]);
  return concatenated(kept);
}

Layout reduce_operand_layout(const Graph& graph, const Node& node, const Layout& result, const Layout& combined) {
  const Shape& shape = graph.type(node.operands[0]).shape;
  const std::vector<int> axes = reduced_axes(node, static_cast<int>(shape.size()));
  Shape kept, reduced;
  std::vector<bool> is_reduced(shape.size());
  for (int axis : axes) is_reduced[static_cast<std::size_t>(axis)] = true;
  for (std::size_t i = 0; i < shape.size(); ++i) (is_reduced[i] ? reduced : kept).push_back(shape[i]);
  const std::vector<Layout> outer = pieces(result, kept), inner = pieces(combined, reduced);
  std::vector<Layout> all;
  for (std::size_t i = 0, k = 0, r = 0; i < shape.size(); ++i) all.push_back(is_reduced[i] ? inner[r++] : outer[k++]);
  return concatenated(all);
}

// (batch, m, k) x (batch, k, n) with broadcast batches; 1-D operands have no m, or no n.
Layout matmul_operand_layout(const Graph& graph, const Node& node, std::size_t operand, const Layout& result,
                             const Layout& combined) {
  const Shape& a = graph.type(node.operands[0]).shape;
  const Shape& b = graph.type(node.operands[1]).shape;
  const Shape& shape = graph.type(node.results[0]).shape;
  const std::vector<Layout> parts = pieces(result, shape);
  const std::size_t rows = a.size() > 1, columns = b.size() > 1;
  const std::size_t batch = shape.size() - rows - columns;
  const Shape& own = operand == 0 ? a : b;
  const std::size_t own_batch = own.size() < 2 ? 0 : own.size() - 2;
  std::vector<Layout> all;
  for (std::size_t i = 0; i < own_batch; ++i)
    if (!own[i].is(1)) all.push_back(parts[batch - own_batch + i]);
  if (operand == 0) {
    if (rows) all.push_back(parts[batch]);
    all.push_back(combined);
  } else {
    all.push_back(combined);
    if (columns) all.push_back(parts.back());
  }
  return concatenated(all);
}

std::int64_t coordinate_id(NodeId node, std::size_t operand, std::size_t axis) {
  return ((static_cast<std::int64_t>(node) << 24) + static_cast<std::int64_t>(operand)) * kMaxRank +
         static_cast<std::int64_t>(axis);
}

// The axes of `result` along which `node` takes other elements than its own.
std::vector<bool> moved_axes(const Graph& graph, const Node& node) {
  const Shape& shape = graph.type(node.operands[0]).shape;
  const int rank = static_cast<int>(shape.size());
  std::vector<bool> moved(shape.size());
  if (node.op == Op::slice) {
    const std::vector<SliceRange> ranges = slice_ranges(node.attrs, shape, graph.symbols);
    for (std::size_t i = 0; i < shape.size(); ++i)
      moved[i] = !(ranges[i].start.is(0) && ranges[i].step == 1 && ranges[i].extent == shape[i]);
  } else if (node.op == Op::flip) {
    for (int axis : flipped_axes(node.attrs, rank)) moved[static_cast<std::size_t>(axis)] = true;
  } else if (node.op == Op::pad) {
    const auto& low = node.attrs.get<std::vector<Dim>>("low");
    const auto& high = node.attrs.get<std::vector<Dim>>("high");
    for (std::size_t i = 0; i < shape.size(); ++i) moved[i] = !low[i].is(0) || !high[i].is(0);
  } else {
    TENON_CHECK(node.op == Op::concat, "not a view that moves elements: " + std::string(name_of(node.op)));
    const std::int64_t axis = node.attrs.get_or<std::int64_t>("axis", 0);
    moved[static_cast<std::size_t>(axis < 0 ? axis + rank : axis)] = node.operands.size() > 1;
  }
  return moved;
}

Layout moving_view_layout(const Graph& graph, NodeId id, std::size_t operand, const Layout& result) {
  const Node& node = graph.node(id);
  const Shape& shape = graph.type(node.operands[operand]).shape;
  const std::vector<Layout> parts = pieces(result, graph.type(node.results[0]).shape);
  const std::vector<bool> moves = moved_axes(graph, node);
  const int kind = node.op == Op::pad || node.op == Op::concat ? kGuarded : kMoved;
  std::vector<Layout> all;
  for (std::size_t i = 0; i < shape.size(); ++i)
    all.push_back(moves[i] ? Layout{moved(parts[i], shape[i], coordinate_id(id, operand, i), kind)} : parts[i]);
  return concatenated(all);
}

// take: (…, table axis, …) gathered at index[…]: the result has the index's axes in place of the table's.
Layout take_layout(const Graph& graph, NodeId id, std::size_t operand, const Layout& result) {
  const Node& node = graph.node(id);
  const Shape& table = graph.type(node.operands[0]).shape;
  const std::size_t index_rank = graph.type(node.operands[1]).shape.size();
  const std::int64_t given = node.attrs.get_or<std::int64_t>("axis", 0);
  const auto axis = static_cast<std::size_t>(given < 0 ? given + static_cast<std::int64_t>(table.size()) : given);
  const std::vector<Layout> parts = pieces(result, graph.type(node.results[0]).shape);
  const auto at = [&](std::size_t i) { return parts.begin() + static_cast<std::ptrdiff_t>(i); };
  const std::vector<Layout> index(at(axis), at(axis + index_rank));
  if (operand == 1) return concatenated(index);
  std::vector<Layout> all(parts.begin(), at(axis));
  all.push_back({moved(concatenated(index), table[axis], coordinate_id(id, operand, axis), kGathered)});
  all.insert(all.end(), at(axis + index_rank), parts.end());
  return concatenated(all);
}

Layout view_operand_layout(const Graph& graph, NodeId id, std::size_t operand, const Layout& result) {
  const Node& node = graph.node(id);
  const Shape& from = graph.type(node.results[0]).shape;
  const Shape& to = graph.type(node.operands[operand]).shape;
  if (node.op == Op::reshape) return result;
  if (node.op == Op::broadcast_to) return broadcast_layout(result, from, to);
  if (node.op == Op::take) return take_layout(graph, id, operand, result);
  if (node.op != Op::transpose) return moving_view_layout(graph, id, operand, result);
  const std::vector<int> perm = permutation(node.attrs, static_cast<int>(to.size()));
  const std::vector<Layout> parts = pieces(result, from);
  std::vector<Layout> permuted(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) permuted[static_cast<std::size_t>(perm[i])] = parts[i];
  return concatenated(permuted);
}

// A backstop: where options.max_places is 0 nothing else bounds the walk.
constexpr std::size_t kMostPlaces = 1 << 13;

[[noreturn]] void too_many_places(const Graph& graph) {
  throw Error(
      ErrorKind::resource,
      fmt::format("a kernel of '{}' needs a value at too many places: at more than {}", graph.name, kMostPlaces), {},
      "leave 'places' switched on (tenon switches), or return a value on the way, which is then stored");
}

}  // namespace

Layout operand_layout(const Graph& graph, NodeId id, std::size_t operand, const Layout& result,
                      const Layout& combined) {
  const Node& node = graph.node(id);
  switch (kind_of(node.op)) {
    case Kind::map:
      return broadcast_layout(result, graph.type(node.results[0]).shape, graph.type(node.operands[operand]).shape);
    case Kind::reduce: return reduce_operand_layout(graph, node, result, combined);
    case Kind::contract: return matmul_operand_layout(graph, node, operand, result, combined);
    case Kind::view: return view_operand_layout(graph, id, operand, result);
    case Kind::random: return {};
    case Kind::source:
    case Kind::composite: break;
  }
  TENON_CHECK(false, "no operands to layout for " + std::string(name_of(node.op)));
  return {};
}

std::optional<Layout> viewed_layout(const Graph& graph, const Node& node, const Layout& operand) {
  if (node.op == Op::reshape) return operand;
  if (node.op != Op::transpose) return std::nullopt;
  const Shape& shape = graph.type(node.operands[0]).shape;
  const auto parts = segments(operand, shape);
  if (!parts) return std::nullopt;
  std::vector<Layout> permuted;
  for (int axis : permutation(node.attrs, static_cast<int>(shape.size())))
    permuted.push_back((*parts)[static_cast<std::size_t>(axis)]);
  return concatenated(permuted);
}

void demand(const Graph& graph, ValueId value, const Layout& layout, const std::function<bool(ValueId)>& from_memory,
            const Combined& combined, Needs& needs) {
  std::vector<std::pair<ValueId, Layout>> pending{{value, layout}};  // a stack: groups may be deep
  while (!pending.empty() && needs.left > 0) {
    auto [next, at] = std::move(pending.back());
    pending.pop_back();
    const bool read = from_memory(next);
    std::vector<Layout>& layouts = (read ? needs.read : needs.computed)[next];
    if (read && layouts.empty()) needs.read_order.push_back(next);
    if (std::find(layouts.begin(), layouts.end(), at) != layouts.end()) continue;
    if (layouts.size() == kMostPlaces) too_many_places(graph);
    layouts.push_back(at);
    --needs.left;
    if (read) continue;
    const NodeId id = graph.value(next).producer;
    const Node& node = graph.node(id);
    const Layout inner = combined(id, at);
    for (std::size_t i = node.operands.size(); i-- > 0;)
      pending.emplace_back(node.operands[i], operand_layout(graph, id, i, at, inner));
  }
}

Domain domain_of(const Group& group) {
  Domain domain{group.kept, static_cast<int>(group.kept.size())};
  domain.extents.insert(domain.extents.end(), group.reduced.begin(), group.reduced.end());
  return domain;
}

Needs needs_of(const Graph& graph, const Group& group) {
  const auto from_memory = [&](ValueId value) {
    return std::find(group.inputs.begin(), group.inputs.end(), value) != group.inputs.end();
  };
  const Combined combined = combined_axes(graph, group.kernel_class, domain_of(group), group.attention.scores);
  Needs needs;
  for (std::size_t i = 0; i < group.outputs.size(); ++i)
    demand(graph, group.outputs[i], group.layouts[i], from_memory, combined, needs);
  return needs;
}

}  // namespace tenon::ir::fusion

namespace tenon::ir {

std::map<ValueId, std::vector<Layout>> computed_layouts(const Graph& graph, const Group& group) {
  return fusion::needs_of(graph, group).computed;
}

}  // namespace tenon::ir

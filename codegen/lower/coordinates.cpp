// How coordinates pass through one node, from result to operand.
#include <algorithm>

#include "codegen/lower/body.h"
#include "ir/graph/build.h"
#include "ir/graph/check.h"
#include "ir/graph/view.h"

namespace tenon::codegen {
namespace {

using ir::Op;

// Reshape by segments: where the running products of both shapes meet, the shapes are cut, and each piece is flattened
// and cut anew on its own. Symbolic outer extents then stay out of the divisions of the inner ones.
Coordinates reshape_coordinates(const Coordinates& from, const Shape& from_shape, const Shape& to_shape,
                                const IndexContext& context) {
  Coordinates to;
  std::size_t i = 0, j = 0;
  while (i < from_shape.size() || j < to_shape.size()) {
    std::vector<Index> piece;
    Shape piece_from, piece_to;
    Dim from_count(1), to_count(1);
    const auto take_from = [&] {
      piece.push_back(from[i]);
      piece_from.push_back(from_shape[i]);
      from_count = from_count * from_shape[i++];
    };
    const auto take_to = [&] {
      piece_to.push_back(to_shape[j]);
      to_count = to_count * to_shape[j++];
    };
    if (i < from_shape.size()) take_from();
    if (j < to_shape.size()) take_to();
    while (!(from_count == to_count) && (i < from_shape.size() || j < to_shape.size())) {
      const bool grow_from =
          i < from_shape.size() && (j == to_shape.size() || to_count.exact_div(from_count).has_value() ||
                                    !from_count.exact_div(to_count).has_value());
      grow_from ? take_from() : take_to();
    }
    const Coordinates cut =
        piece_from == piece_to ? piece : delinearize(linearize(piece, piece_from), piece_to, context);
    to.insert(to.end(), cut.begin(), cut.end());
  }
  return to;
}

// NumPy's alignment at the last axis; a broadcast extent of 1 is read at 0.
Coordinates broadcast_coordinates(const Coordinates& result, const Shape& result_shape, const Shape& operand_shape) {
  Coordinates operand(operand_shape.size());
  const std::size_t shift = result_shape.size() - operand_shape.size();
  for (std::size_t i = 0; i < operand_shape.size(); ++i)
    operand[i] = operand_shape[i].is(1) ? Index(0) : result[i + shift];
  return operand;
}

Coordinates reduce_operand(const ir::Node& node, const Shape& shape, const Coordinates& result,
                           const std::vector<Index>& reduced) {
  const std::vector<int> axes = ir::reduced_axes(node, static_cast<int>(shape.size()));
  const bool keepdims = node.attrs.get_or<bool>("keepdims", false);
  Coordinates operand(shape.size());
  std::size_t kept = 0, combined = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (std::find(axes.begin(), axes.end(), static_cast<int>(i)) != axes.end()) {
      operand[i] = reduced[combined++];
      kept += keepdims;
    } else {
      operand[i] = result[kept++];
    }
  }
  return operand;
}

// matmul: (batch, m, k) x (batch, k, n); 1-D operands have no m, or no n.
Coordinates matmul_operand(const ir::Graph& graph, const ir::Node& node, std::size_t operand, const Coordinates& result,
                           const Index& k) {
  const Shape& a = graph.type(node.operands[0]).shape;
  const Shape& b = graph.type(node.operands[1]).shape;
  const std::size_t rows = a.size() > 1, columns = b.size() > 1;
  const std::size_t batch_rank = result.size() - rows - columns;
  const Shape& own = operand == 0 ? a : b;
  Coordinates coordinates(own.size());
  const std::size_t own_batch = own.size() < 2 ? 0 : own.size() - 2;
  for (std::size_t i = 0; i < own_batch; ++i)
    coordinates[i] = own[i].is(1) ? Index(0) : result[batch_rank - own_batch + i];
  if (operand == 0) {
    if (rows) coordinates[own_batch] = result[batch_rank];
    coordinates.back() = k;
  } else {
    coordinates[own_batch] = k;
    if (columns) coordinates.back() = result.back();
  }
  return coordinates;
}

Coordinates slice_operand(const ir::Graph& graph, const ir::Node& node, const Coordinates& result) {
  const std::vector<ir::SliceRange> ranges =
      ir::slice_ranges(node.attrs, graph.type(node.operands[0]).shape, graph.symbols);
  Coordinates operand(result.size());
  for (std::size_t i = 0; i < result.size(); ++i) operand[i] = result[i] * Dim(ranges[i].step) + Index(ranges[i].start);
  return operand;
}

// The axes of a flip: its own inverse.
Coordinates flip_coordinates(const ir::Graph& graph, const ir::Node& node, Coordinates at) {
  const Shape& shape = graph.type(node.operands[0]).shape;
  for (int axis : ir::flipped_axes(node.attrs, static_cast<int>(shape.size()))) {
    const auto i = static_cast<std::size_t>(axis);
    at[i] = Index(shape[i] - 1) - at[i];
  }
  return at;
}

}  // namespace

Coordinates operand_coordinates(const ir::Graph& graph, const ir::Node& node, std::size_t operand,
                                const Coordinates& result, const std::vector<Index>& reduced,
                                const IndexContext& context) {
  const Shape& from = graph.type(node.results[0]).shape;
  const Shape& to = graph.type(node.operands[operand]).shape;
  switch (ir::kind_of(node.op)) {
    case ir::Kind::map: return broadcast_coordinates(result, from, to);
    case ir::Kind::reduce: return reduce_operand(node, to, result, reduced);
    case ir::Kind::contract: return matmul_operand(graph, node, operand, result, reduced.at(0));
    case ir::Kind::random: return {};  // the seed
    case ir::Kind::view: break;
    case ir::Kind::source:
    case ir::Kind::composite: TENON_CHECK(false, "no coordinates pass through " + std::string(ir::name_of(node.op)));
  }
  if (node.op == Op::reshape) return reshape_coordinates(result, from, to, context);
  if (node.op == Op::broadcast_to) return broadcast_coordinates(result, from, to);
  if (node.op == Op::slice) return slice_operand(graph, node, result);
  if (node.op == Op::flip) return flip_coordinates(graph, node, result);
  TENON_CHECK(node.op == Op::transpose, "operands of " + std::string(ir::name_of(node.op)) + " are conditional");
  const std::vector<int> perm = ir::permutation(node.attrs, static_cast<int>(to.size()));
  Coordinates coordinates(to.size());
  for (std::size_t i = 0; i < perm.size(); ++i) coordinates[static_cast<std::size_t>(perm[i])] = result[i];
  return coordinates;
}

}  // namespace tenon::codegen

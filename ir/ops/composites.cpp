// expand_composite(): from a composite to its composition, and the shorthands in which compositions are written.
#include "ir/ops/composites.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/graph/check.h"
#include "ir/ops/infer.h"

namespace tenon::ir {
namespace {

using Expand = std::vector<ValueId> (*)(const Expansion&);

Expand expansion_of(Op op) {
  static constexpr std::pair<Op, Expand> kTable[] = {
#define TENON_COMPOSITE(name, ...) {Op::name, &expand_##name},
#include "ir/ops.def"
  };
  const auto found =
      std::find_if(std::begin(kTable), std::end(kTable), [&](const auto& row) { return row.first == op; });
  TENON_CHECK(found != std::end(kTable), fmt::format("{} is no composite", name_of(op)));
  return found->second;
}

}  // namespace

std::vector<ValueId> expand_composite(Graph& graph, Op op, const std::vector<ValueId>& operands, const Attrs& attrs,
                                      const Place& place) {
  const Attrs complete = with_defaults(op, attrs);
  return expansion_of(op)(Expansion(graph, operands, complete, place));
}

// The composition itself decides the types: a scratch graph takes it and is thrown away.
std::vector<Type> infer_composite(const Inference& in) {
  Graph scratch;
  scratch.symbols = in.symbols;
  std::vector<ValueId> operands;
  for (const Type& type : in.operands) operands.push_back(push_node(scratch, {Op::input, {}, {}, {}, {}}, {type})[0]);
  std::vector<Type> types;
  for (ValueId result : expand_composite(scratch, in.op, operands, in.attrs, {})) types.push_back(scratch.type(result));
  return types;
}

ValueId Expansion::operator()(Op op, std::initializer_list<ValueId> op_operands, Attrs op_attrs) const {
  return append_one(graph_, op, op_operands, std::move(op_attrs), place_);
}

ValueId Expansion::literal(double value, DType dtype) const { return append_literal(graph_, value, dtype, place_); }

ValueId Expansion::literal(double value, ValueId like) const { return literal(value, dtype(like)); }

ValueId Expansion::cast(ValueId value, DType to) const {
  return dtype(value) == to ? value : (*this)(Op::cast, {value}, {{"dtype", to}});
}

ValueId Expansion::reshape(ValueId value, const Shape& to) const {
  return shape(value) == to ? value : (*this)(Op::reshape, {value}, {{"shape", to}});
}

ValueId Expansion::dimension(const Dim& dim, DType dtype) const {
  if (dim.is_constant()) return append_literal(graph_, dim.constant(), dtype, place_);
  return (*this)(Op::dim_value, {}, {{"value", std::vector{dim}}, {"dtype", dtype}});
}

ValueId Expansion::concat(const std::vector<ValueId>& pieces, int axis) const {
  return append_one(graph_, Op::concat, pieces, {{"axis", std::int64_t{axis}}}, place_);
}

ValueId Expansion::reduce(Op op, ValueId value, const std::vector<int>& axes, bool keepdims) const {
  Attrs reduce_attrs{{"axis", std::vector<std::int64_t>(axes.begin(), axes.end())}};
  if (keepdims) reduce_attrs.set("keepdims", true);
  return (*this)(op, {value}, std::move(reduce_attrs));
}

std::vector<int> Expansion::axes(int rank) const {
  if (attrs.has("axis")) return normalize_axes(attrs.get<std::vector<std::int64_t>>("axis"), rank);
  std::vector<int> all;
  for (int axis = 0; axis < rank; ++axis) all.push_back(axis);
  return all;
}

void Expansion::require_real(ValueId value) const {
  if (!is_real(dtype(value)))
    type_error(fmt::format("takes reals, not {}", str(type(value))), "cast the operand: cast(x, dtype=f32)");
}

ValueId Expansion::widened(ValueId value) const {
  require_real(value);
  return cast(value, compute_type(dtype(value)));
}

Shape keep_axes(Shape shape, const std::vector<int>& axes) {
  for (int axis : axes) shape[static_cast<std::size_t>(axis)] = Dim(1);
  return shape;
}

Dim extent_of(const Shape& shape, const std::vector<int>& axes) {
  Dim count(1);
  for (int axis : axes) count = count * shape[static_cast<std::size_t>(axis)];
  return count;
}

}  // namespace tenon::ir

// Composites that only move elements, and linear.
#include <fmt/format.h>

#include <algorithm>

#include "ir/ops/composites.h"
#include "ir/ops/infer.h"

namespace tenon::ir {
namespace {

using Integers = std::vector<std::int64_t>;

// The operand's shape with extents of 1 at `axes` of the result.
Shape expanded_shape(const Shape& shape, const Integers& axes) {
  const int rank = static_cast<int>(shape.size() + axes.size());
  if (rank > kMaxRank)
    type_error(fmt::format("rank {} is over the limit of {}", rank, kMaxRank), "merge axes with reshape");
  Shape result;
  auto next = shape.begin();
  const std::vector<int> inserted = normalize_axes(axes, rank);
  for (int axis = 0; axis < rank; ++axis)
    result.push_back(std::binary_search(inserted.begin(), inserted.end(), axis) ? Dim(1) : *next++);
  return result;
}

}  // namespace

std::vector<ValueId> expand_expand_dims(const Expansion& e) {
  const ValueId x = e.operands[0];
  return {e(Op::reshape, {x}, {{"shape", expanded_shape(e.shape(x), e.attrs.get<Integers>("axis"))}})};
}

std::vector<ValueId> expand_squeeze(const Expansion& e) {
  const ValueId x = e.operands[0];
  const Shape from = e.shape(x);
  const bool named = e.attrs.has("axis");
  const std::vector<int> axes = e.axes(e.rank(x));
  Shape shape;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const bool removable = from[i].is(1);
    const bool asked = std::binary_search(axes.begin(), axes.end(), static_cast<int>(i));
    if (named && asked && !removable)
      type_error(fmt::format("axis {} of {} has extent {}, not 1", i, str(e.type(x)), from[i].str()),
                 "name axes of extent 1");
    if (!asked || !removable) shape.push_back(from[i]);
  }
  return {e(Op::reshape, {x}, {{"shape", shape}})};
}

std::vector<ValueId> expand_split(const Expansion& e) {
  const ValueId x = e.operands[0];
  const int axis = normalize_axis(e.attrs.get<std::int64_t>("axis"), e.rank(x));
  const auto& sections = e.attrs.get<Integers>("sections");
  Dim total(0);
  for (std::int64_t section : sections) {
    if (section < 0) type_error(fmt::format("a section of {} elements", section), "sections are 0 or more");
    total = total + Dim(section);
  }
  const Dim extent = e.shape(x)[static_cast<std::size_t>(axis)];
  if (!(total == extent))
    type_error(fmt::format("sections add up to {}, but axis {} of {} has extent {}", total.str(), axis, str(e.type(x)),
                           extent.str()),
               "list the extent of every piece, e.g. sections=[2, 2]; slice cuts symbolic extents");
  std::vector<ValueId> pieces;
  Dim start(0);
  for (std::int64_t section : sections) {
    const Dim stop = start + Dim(section);
    pieces.push_back(
        e(Op::slice, {x}, {{"axis", Integers{axis}}, {"start", std::vector{start}}, {"stop", std::vector{stop}}}));
    start = stop;
  }
  return pieces;
}

std::vector<ValueId> expand_stack(const Expansion& e) {
  const Shape shape = e.shape(e.operands[0]);
  const int axis = normalize_axis(e.attrs.get<std::int64_t>("axis"), static_cast<int>(shape.size()) + 1);
  const Type first = e.type(e.operands[0]);
  std::vector<ValueId> pieces;
  for (ValueId operand : e.operands) {
    if (!(e.type(operand) == first))
      type_error(fmt::format("operands have different types: {} and {}", str(first), str(e.type(operand))),
                 "all operands must have one dtype and shape");
    pieces.push_back(e(Op::reshape, {operand}, {{"shape", expanded_shape(shape, {axis})}}));
  }
  return {e.concat(pieces, axis)};
}

std::vector<ValueId> expand_linear(const Expansion& e) {
  const ValueId x = e.operands[0], weight = e.operands.size() > 1 ? e.operands[1] : -1;
  if (e.operands.size() < 2 || e.operands.size() > 3)
    type_error(fmt::format("takes x, weight and maybe a bias; {} given", e.operands.size()),
               "write linear(x, weight, bias)");
  if (e.rank(weight) != 2)
    type_error(fmt::format("the weight must be a matrix [out, in], not {}", str(e.type(weight))),
               "use matmul for other shapes");
  if (e.rank(x) == 0 || !(e.shape(x).back() == e.shape(weight)[1]))
    type_error(fmt::format("the last extents of x {} and weight {} differ", str(e.type(x)), str(e.type(weight))),
               "the weight is [out, in]: transpose it or check its shape");
  Attrs attrs;
  if (e.attrs.has("dtype")) attrs.set("dtype", e.attrs.get<DType>("dtype"));
  const ValueId product = e(Op::matmul, {x, e(Op::transpose, {weight}, {{"perm", Integers{1, 0}}})}, attrs);
  if (e.operands.size() == 2) return {product};
  const ValueId bias = e.operands[2];
  const Shape wanted{e.shape(weight)[0]};
  if (e.shape(bias) != wanted || (e.dtype(bias) != e.dtype(x) && e.dtype(bias) != e.dtype(product)))
    type_error(fmt::format("the bias must be {}, not {}", str(Type{e.dtype(product), wanted}), str(e.type(bias))),
               "give one element for each row of the weight");
  return {e(Op::add, {product, e.cast(bias, e.dtype(product))})};
}

}  // namespace tenon::ir

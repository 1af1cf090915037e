// Views: elements copied from where an index map finds them.
#include "ir/graph/view.h"

#include <algorithm>

#include "ir/graph/build.h"
#include "ir/graph/check.h"
#include "ir/interpret/interpreter.h"
#include "ir/ops/evaluate.h"

namespace tenon::ir {
namespace {

// result[index] = x[map(index)], in row-major order of the result.
Array read_through(const Array& x, const Strides& map, Extents shape) {
  Array result(x.dtype, std::move(shape));
  by_class(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* from = x.elements<T>().data();
    T* to = result.elements<T>().data();
    const std::int64_t run = result.shape.empty() ? 1 : result.shape.back();
    const std::int64_t stride = result.shape.empty() ? 0 : map.of.back();
    for_each_run(result.shape, std::array{map}, [&](const std::array<std::int64_t, 1>& at) {
      for (std::int64_t j = 0; j < run; ++j) *to++ = from[at[0] + j * stride];
    });
  });
  return result;
}

// result[map(index)] = x[index].
void write_through(const Array& x, const Strides& map, Array& result) {
  by_class(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* from = x.elements<T>().data();
    T* to = result.elements<T>().data();
    const std::int64_t run = x.shape.empty() ? 1 : x.shape.back();
    const std::int64_t stride = x.shape.empty() ? 0 : map.of.back();
    for_each_run(x.shape, std::array{map}, [&](const std::array<std::int64_t, 1>& at) {
      for (std::int64_t j = 0; j < run; ++j) to[at[0] + j * stride] = *from++;
    });
  });
}

Array interpret_reshape(const Step& step) {
  Array result = step.operands[0].use_count() == 1 ? std::move(*step.operands[0]) : step.operand(0);
  result.shape = step.result_shape();
  return result;
}

Array interpret_transpose(const Step& step) {
  const Array& x = step.operand(0);
  const Strides from = dense(x.shape);
  Strides map;
  for (const int axis : permutation(step.node.attrs, static_cast<int>(x.shape.size())))
    map.of.push_back(from.of[static_cast<std::size_t>(axis)]);
  return read_through(x, map, step.result_shape());
}

Array interpret_broadcast_to(const Step& step) {
  const Extents shape = step.result_shape();
  return read_through(step.operand(0), broadcast_strides(step.operand(0).shape, shape), shape);
}

Array interpret_slice(const Step& step) {
  const Array& x = step.operand(0);
  Strides map = dense(x.shape);
  const Shape& shape = step.graph.type(step.node.operands[0]).shape;
  const auto ranges = slice_ranges(step.node.attrs, shape, step.graph.symbols);
  for (std::size_t axis = 0; axis < ranges.size(); ++axis) {
    map.offset += ranges[axis].start.evaluate(step.bindings) * map.of[axis];
    const bool moves = ranges[axis].extent.evaluate(step.bindings) > 1;  // else the step may be any number
    map.of[axis] = moves ? map.of[axis] * ranges[axis].step : 0;
  }
  return read_through(x, map, step.result_shape());
}

Array interpret_flip(const Step& step) {
  const Array& x = step.operand(0);
  Strides map = dense(x.shape);
  for (const int flipped : flipped_axes(step.node.attrs, static_cast<int>(x.shape.size()))) {
    const auto axis = static_cast<std::size_t>(flipped);
    map.offset += (x.shape[axis] - 1) * map.of[axis];
    map.of[axis] = -map.of[axis];
  }
  return read_through(x, map, step.result_shape());
}

Array interpret_pad(const Step& step) {
  Array result(step.result_dtype(), step.result_shape());
  const Scalar value = step.node.attrs.has("value") ? step.node.attrs.get<Scalar>("value") : Scalar(std::int64_t{0});
  fill(result, value);
  Strides map = dense(result.shape);
  const auto& low = step.node.attrs.get<std::vector<Dim>>("low");
  for (std::size_t axis = 0; axis < low.size(); ++axis) map.offset += low[axis].evaluate(step.bindings) * map.of[axis];
  write_through(step.operand(0), map, result);
  return result;
}

std::size_t axis_of(const Step& step, std::size_t rank) {
  const std::int64_t axis = step.node.attrs.get_or<std::int64_t>("axis", 0);
  return static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis);
}

Array interpret_concat(const Step& step) {
  Array result(step.result_dtype(), step.result_shape());
  const std::size_t axis = axis_of(step, result.shape.size());
  Strides map = dense(result.shape);
  const std::int64_t stride = map.of[axis];
  for (const auto& operand : step.operands) {
    write_through(*operand, map, result);
    map.offset += operand->shape[axis] * stride;
  }
  return result;
}

// x seen as (outer, extent, inner): each index copies one inner row per outer one.
Array interpret_take(const Step& step) {
  const Array &x = step.operand(0), &indices = step.operand(1);
  Array result(step.result_dtype(), step.result_shape());
  const std::size_t axis = axis_of(step, x.shape.size());
  const std::int64_t extent = x.shape[axis], n = indices.size();
  std::int64_t inner = 1;
  for (std::size_t a = axis + 1; a < x.shape.size(); ++a) inner *= x.shape[a];
  if (extent == 0 || result.size() == 0) return result;
  by_class(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* from = x.elements<T>().data();
    T* to = result.elements<T>().data();
    const std::int64_t outer = x.size() / (extent * inner);
    for (std::int64_t o = 0; o < outer; ++o)
      for (std::int64_t i = 0; i < n; ++i) {
        std::int64_t index = indices.integers[static_cast<std::size_t>(i)];
        index = std::clamp<std::int64_t>(index < 0 ? index + extent : index, 0, extent - 1);
        to = std::copy_n(from + (o * extent + index) * inner, inner, to);
      }
  });
  return result;
}

}  // namespace

Array interpret_view(const Step& step) {
  // Views are few and each has an index map of its own; ir/graph/view.h says what their attributes mean.
  const Op op = step.node.op;
  if (op == Op::reshape) return interpret_reshape(step);
  if (op == Op::transpose) return interpret_transpose(step);
  if (op == Op::broadcast_to) return interpret_broadcast_to(step);
  if (op == Op::slice) return interpret_slice(step);
  if (op == Op::flip) return interpret_flip(step);
  if (op == Op::pad) return interpret_pad(step);
  if (op == Op::concat) return interpret_concat(step);
  TENON_CHECK(op == Op::take, "the interpreter does not know the view '" + std::string(name_of(op)) + "'");
  return interpret_take(step);
}

}  // namespace tenon::ir

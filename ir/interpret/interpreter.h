// Inside the interpreter: values as dense arrays of double or int64, and what each kind of op does with them.
// ir/interpret/interpreter.cpp walks the graph; each other ir/interpreter_*.cpp holds one kind.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/interpret/interpret.h"
#include "ir/interpret/numerics.h"

namespace tenon::ir {

using Extents = std::vector<std::int64_t>;

/// A value: reals as double, integers and bool as int64, row-major.
struct Array {
  DType dtype = DType::f32;
  Extents shape;
  std::vector<double> reals;
  std::vector<std::int64_t> integers;

  /// Elements of `dtype`, all 0; Error(resource) when they do not fit in memory.
  Array(DType of, Extents extents);
  std::int64_t size() const;
  /// The elements as doubles or as integers.
  template <typename T>
  std::vector<T>& elements();
  template <typename T>
  const std::vector<T>& elements() const {
    return const_cast<Array*>(this)->elements<T>();
  }
};

template <>
inline std::vector<double>& Array::elements<double>() {
  return reals;
}
template <>
inline std::vector<std::int64_t>& Array::elements<std::int64_t>() {
  return integers;
}

/// Calls f(double{}) or f(int64{}), by the dtype's class.
template <typename F>
void by_class(DType dtype, F f) {
  is_real(dtype) ? f(double{}) : f(std::int64_t{});
}

/// Where an axis-wise walk finds its elements in another array: offset + sum of index * stride.
struct Strides {
  std::int64_t offset = 0;
  Extents of;
};

/// The strides of a dense row-major array.
Strides dense(const Extents& shape);
/// The strides with which an array of shape `from` is read as one of shape `to`, by NumPy broadcasting.
Strides broadcast_strides(const Extents& from, const Extents& to);

/// Calls f(begins) for each run along the last axis of `shape`, in row-major order; begins[i] is where the run starts
/// in the array that maps[i] describes. A rank-0 shape is one run of one element.
template <std::size_t N, typename F>
void for_each_run(const Extents& shape, const std::array<Strides, N>& maps, F f) {
  std::array<std::int64_t, N> at;
  for (std::size_t m = 0; m < N; ++m) at[m] = maps[m].offset;
  for (const std::int64_t extent : shape)
    if (extent == 0) return;
  Extents index(shape.size());
  while (true) {
    f(at);
    std::size_t axis = shape.empty() ? 0 : shape.size() - 1;
    while (axis > 0) {
      --axis;
      for (std::size_t m = 0; m < N; ++m) at[m] += maps[m].of[axis];
      if (++index[axis] < shape[axis]) break;
      for (std::size_t m = 0; m < N; ++m) at[m] -= maps[m].of[axis] * shape[axis];
      index[axis] = 0;
      if (axis == 0) return;
    }
    if (shape.size() < 2) return;
  }
}

/// One node about to be evaluated.
struct Step {
  const Graph& graph;
  const Node& node;
  const Bindings& bindings;
  const Numerics numerics;
  std::vector<std::shared_ptr<Array>>& operands;  ///< owned alone where this is the last use: may be overwritten

  const Array& operand(std::size_t i) const { return *operands[i]; }
  DType result_dtype() const { return graph.type(node.results[0]).dtype; }
  Extents result_shape() const;
};

/// Every element of `array` becomes `value`, by the rules of `cast`.
void fill(Array& array, const Scalar& value);

Array interpret_map(const Step& step);
Array interpret_reduce(const Step& step);
Array interpret_view(const Step& step);
Array interpret_matmul(const Step& step);

}  // namespace tenon::ir

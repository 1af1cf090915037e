// What a graph that was recorded in C++ computes, by the interpreter, as plain numbers.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "ir/graph/graph.h"
#include "ir/interpret/interpret.h"
#include "ir/text/text.h"
#include "tenon/tenon.h"

namespace tenon {

using Numbers = std::vector<double>;

inline ir::HostArray array_of(DType dtype, const Shape& shape, const Numbers& values, const Bindings& bindings) {
  std::vector<std::int64_t> extents;
  for (const Dim& extent : shape) extents.push_back(extent.evaluate(bindings));
  ir::HostArray array = ir::make_array(dtype, extents);
  EXPECT_EQ(ir::element_count(array), static_cast<std::int64_t>(values.size()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (is_real(dtype)) {
      ir::set_real(array, static_cast<std::int64_t>(i), values[i]);
    } else {
      ir::set_integer(array, static_cast<std::int64_t>(i), static_cast<std::int64_t>(values[i]));
    }
  }
  return array;
}

inline Numbers numbers_of(const ir::HostArray& array) {
  Numbers numbers;
  for (std::int64_t i = 0; i < ir::element_count(array); ++i)
    numbers.push_back(is_real(array.dtype) ? ir::get_real(array, i) : static_cast<double>(ir::get_integer(array, i)));
  return numbers;
}

/// The value of `y`, which becomes the result of its graph; the graph's text reads back as the same graph.
inline Numbers value_of(Graph g, const Tensor& y, const std::vector<Numbers>& inputs, const Bindings& bindings = {}) {
  g.output("y" + std::to_string(g.outputs().size()), y);
  EXPECT_TRUE(ir::same(Graph::parse(g.str()).data(), g.data())) << g.str();
  std::vector<ir::HostArray> arrays;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Tensor input = g.inputs()[i].value;
    arrays.push_back(array_of(input.dtype(), input.shape(), inputs[i], bindings));
  }
  return numbers_of(ir::interpret(g.data(), arrays, bindings).back());
}

/// 0, 1, 2, …
inline Numbers counting(std::size_t count) {
  Numbers numbers;
  for (std::size_t i = 0; i < count; ++i) numbers.push_back(static_cast<double>(i));
  return numbers;
}

}  // namespace tenon

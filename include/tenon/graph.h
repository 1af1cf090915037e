// Recording a graph in C++. A Tensor stands for a value of a Graph; operators on tensors append to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tenon/dtype.h"
#include "tenon/error.h"
#include "tenon/shape.h"

namespace tenon {

namespace ir {
struct Graph;
}

class Graph;

/// A value of a graph: a handle, cheap to copy. It keeps its graph alive.
class Tensor {
 public:
  Tensor() = default;  ///< stands for nothing; using it is Error(argument)
  DType dtype() const;
  const Shape& shape() const;
  int rank() const { return static_cast<int>(shape().size()); }
  /// Names the value in dumps and errors; returns the tensor. Letters, digits and '_'; must be new in the graph.
  Tensor named(const std::string& name) const;

  struct Access;  // the library's way in

 private:
  std::shared_ptr<ir::Graph> graph_;
  std::int32_t value_ = -1;
};

/// A dense row-major array on the host.
struct Array {
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;

  /// An array of f32 from `values`; Error(argument) when their number does not fit `shape`.
  static Array from(const std::vector<float>& values, std::vector<std::int64_t> shape);
  /// The elements as doubles (exact for every dtype but i64 beyond 2^53).
  std::vector<double> to_doubles() const;
};

/// An operator graph under construction.
class Graph {
 public:
  explicit Graph(std::string name = "main");

  /// A named dimension, for shapes: `auto rows = g.dim("rows", {.min = 1, .max = 65536, .divisor = 8})`.
  Dim dim(const std::string& name, SymbolBounds bounds = {});
  /// A graph input. Error(type) when the name is taken or the shape does not fit.
  Tensor input(const std::string& name, DType dtype, const Shape& shape);
  /// A rank-0 literal.
  Tensor literal(double value, DType dtype);
  /// Declares `value` a result named `name`; results come in the order of these calls.
  void output(const std::string& name, const Tensor& value);

  /// Reads a `.tn` or `.json` file, or the text form from a string.
  static Graph load(const std::string& path);
  static Graph parse(const std::string& text);
  /// The text form, and the same as JSON.
  std::string str() const;
  std::string json() const;

  const ir::Graph& data() const { return *graph_; }
  explicit Graph(ir::Graph graph);

 private:
  friend struct Tensor::Access;
  std::shared_ptr<ir::Graph> graph_;
};

}  // namespace tenon

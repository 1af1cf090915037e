// Recording a graph in C++. A Tensor stands for a value of a Graph; operators on tensors append to it.
#pragma once

#include <cstdint>
#include <memory>
#include <source_location>
#include <string>
#include <vector>

#include "tenon/array.h"
#include "tenon/dtype.h"
#include "tenon/error.h"
#include "tenon/scalar.h"
#include "tenon/shape.h"

namespace tenon {

namespace ir {
struct Graph;
}

/// The caller's line, which errors name. Never passed by hand.
using Location = std::source_location;

class Graph;
class Indices;

/// A value of a graph: a handle, cheap to copy. It keeps its graph alive. Operators on it are in tenon/ops.h.
class Tensor {
 public:
  Tensor() = default;  ///< stands for nothing; using it is Error(argument)
  Tensor(const Tensor&) = default;
  Tensor(Tensor&&) noexcept = default;
  Tensor& operator=(const Tensor&) & = default;  // not to what an operator returns: x[0] = y would change nothing
  Tensor& operator=(Tensor&&) & noexcept = default;
  ~Tensor() = default;

  DType dtype() const;
  Shape shape() const;
  int rank() const;
  /// Names the value in dumps and errors; returns the tensor. A letter or '_', then letters, digits and '_';
  /// Error(type) when it is no such name, or when another value has it.
  Tensor named(const std::string& name, Location at = Location::current()) const;

  /// A part of the tensor by NumPy's rules for integers, ranges, newaxis and ellipsis (tenon/index.h): `x[-1]`,
  /// `x[{0, Range{1, 3}, newaxis}]` is x[0, 1:3, None]. Axes without an index are kept whole. Error(type) for too many
  /// indices, two ellipses, or an integer that is, or with symbols may be, out of range. A value never changes: there
  /// is no assignment to a part.
  Tensor operator[](const Indices& indices) const;

  struct Access;  // the library's way in

 private:
  std::shared_ptr<ir::Graph> graph_;
  std::int32_t value_ = -1;
};

/// An input or output of a graph.
struct Port {
  std::string name;
  Tensor value;
  std::string updates;  ///< of an output: the name of the input that it updates; empty: it has memory of its own
};

/// An operator graph under construction: a handle; copies share the graph. Not for several threads at once.
class Graph {
 public:
  /// `name` heads the text form; Error(type) when it is no name.
  explicit Graph(const std::string& name = "main", Location at = Location::current());

  /// A named dimension, for shapes: `auto rows = g.dim("rows", {.min = 1, .max = 65536, .divisor = 8})`. Error(type)
  /// when no value satisfies the bounds, or when the dimension has other bounds already.
  Dim dim(const std::string& name, SymbolBounds bounds = {}, Location at = Location::current());
  /// A graph input. Error(type) when the name is taken or the shape does not fit.
  Tensor input(const std::string& name, DType dtype, const Shape& shape, Location at = Location::current());
  /// A rank-0 literal; Error(type) when `dtype` cannot hold it. Operators take plain numbers too (tenon/ops.h).
  Tensor literal(Scalar value, DType dtype, Location at = Location::current());
  /// Declares `value` a result named `name`; results come in the order of these calls. Error(type) when the name is
  /// taken, Error(argument) when the value is not of this graph.
  void output(const std::string& name, const Tensor& value, Location at = Location::current());

  /// Declares `value` the new content of `input`, a result named `<input>_next`: Executable::run leaves it in the
  /// input's buffer, and takes no buffer for it. Every other operator of the graph sees the old content, wherever the
  /// call stands. Error(type) when `input` is none, is updated already, or has another dtype or shape than `value`.
  void update(const Tensor& input, const Tensor& value, Location at = Location::current());

  /// What was declared so far, in order.
  std::vector<Port> inputs() const;
  std::vector<Port> outputs() const;

  /// Reads a `.tn` or `.json` file, or the text form from a string. Error(io), or Error(parse) and Error(type) with
  /// line and column.
  static Graph load(const std::string& path);
  static Graph parse(const std::string& text);
  /// The text form, and the same as JSON. Graph::parse(g.str()) is an equal graph, once this one has an output.
  std::string str() const;
  std::string json() const;

  const ir::Graph& data() const { return *graph_; }
  explicit Graph(ir::Graph graph);

 private:
  friend struct Tensor::Access;
  std::shared_ptr<ir::Graph> graph_;
};

}  // namespace tenon

// How the C++ builders append to a graph: operands that are tensors or numbers become values, and errors say the
// caller's line.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ir/graph/graph.h"
#include "tenon/operand.h"

namespace tenon {

/// The library's way into tensors and graphs.
struct Tensor::Access {
  static Tensor make(std::shared_ptr<ir::Graph> graph, ir::ValueId value) {
    Tensor tensor;
    tensor.graph_ = std::move(graph);
    tensor.value_ = value;
    return tensor;
  }
  static const std::shared_ptr<ir::Graph>& graph(const Tensor& tensor) { return tensor.graph_; }
  static const std::shared_ptr<ir::Graph>& graph(const Graph& graph) { return graph.graph_; }
  static ir::ValueId value(const Tensor& tensor) { return tensor.value_; }
};

namespace src {

Place place_of(const Location& at, const std::string& value = {});

/// Appends `op` to the graph of its operands. Attributes that have their default value are left out.
std::vector<Tensor> record(ir::Op op, const std::vector<Operand>& operands, ir::Attrs attrs = {});
Tensor record_one(ir::Op op, const std::vector<Operand>& operands, ir::Attrs attrs = {});

/// Appends a source, to `graph` or to that of a tensor.
Tensor record_source(const Graph& graph, ir::Op op, ir::Attrs attrs, const Location& at);
Tensor record_source(const Tensor& beside, ir::Op op, ir::Attrs attrs, const Location& at);

/// Appends a rank-0 literal to the graph of a tensor; errors name `op`.
Tensor record_literal(ir::Op op, const Tensor& beside, const Scalar& value, DType dtype, const Location& at);

/// What a function named `name` needs that looks at its operand before it records anything: Error(argument) for a
/// number and for an empty Tensor. `number` counts operands from 1.
const Tensor& tensor_of(const std::string& name, const Operand& x, std::size_t number = 1);

/// The symbols of a tensor's graph.
const Symbols& symbols_of(const Tensor& tensor);

}  // namespace src
}  // namespace tenon

// Runs a graph: composites decomposed, nodes in definition order, each value freed after its last use.
#include "ir/interpret/interpreter.h"

#include <fmt/format.h>

#include <new>

#include "ir/graph/check.h"
#include "ir/graph/host_memory.h"
#include "ir/graph/sizes.h"
#include "ir/ops/evaluate.h"
#include "ir/ops/formats.h"
#include "ir/ops/random.h"
#include "ir/passes/passes.h"

namespace tenon::ir {
namespace {

Extents evaluate_shape(const Shape& shape, const Bindings& bindings) {
  Extents extents;
  for (const Dim& dim : shape) extents.push_back(dim.evaluate(bindings));
  return extents;
}

Array from_host(const HostArray& host) {
  Array array(host.dtype, host.shape);
  const std::int64_t n = array.size();
  if (is_real(host.dtype)) {
    for (std::int64_t i = 0; i < n; ++i) array.reals[static_cast<std::size_t>(i)] = get_real(host, i);
  } else {
    for (std::int64_t i = 0; i < n; ++i) array.integers[static_cast<std::size_t>(i)] = get_integer(host, i);
  }
  return array;
}

HostArray to_host(const Array& array) {
  HostArray host = make_array(array.dtype, array.shape);
  const std::int64_t n = array.size();
  if (is_real(host.dtype)) {
    for (std::int64_t i = 0; i < n; ++i) set_real(host, i, array.reals[static_cast<std::size_t>(i)]);
  } else {
    for (std::int64_t i = 0; i < n; ++i) set_integer(host, i, array.integers[static_cast<std::size_t>(i)]);
  }
  return host;
}

Array interpret_full(const Step& step) {
  Array result(step.result_dtype(), step.result_shape());
  fill(result, step.node.attrs.get<Scalar>("value"));
  return result;
}

Array interpret_iota(const Step& step) {
  Array result(step.result_dtype(), step.result_shape());
  const int rank = static_cast<int>(result.shape.size());
  const auto axis = static_cast<std::size_t>((step.node.attrs.get_or<std::int64_t>("axis", 0) + rank) % rank);
  std::int64_t inner = 1;
  for (std::size_t a = axis + 1; a < result.shape.size(); ++a) inner *= result.shape[a];
  for (std::int64_t i = 0; i < result.size(); ++i) {
    const std::int64_t index = i / inner % result.shape[axis];
    if (is_real(result.dtype)) {
      result.reals[static_cast<std::size_t>(i)] = real_from_integer(result.dtype, index);
    } else {
      result.integers[static_cast<std::size_t>(i)] = integer_from_integer(result.dtype, index);
    }
  }
  return result;
}

Array interpret_dim_value(const Step& step) {
  Array result(step.result_dtype(), {});
  fill(result, Scalar(step.node.attrs.get<std::vector<Dim>>("value").at(0).evaluate(step.bindings)));
  return result;
}

Array interpret_source(const Step& step) {
  if (step.node.op == Op::iota) return interpret_iota(step);
  if (step.node.op == Op::dim_value) return interpret_dim_value(step);
  TENON_CHECK(step.node.op == Op::full,
              fmt::format("the interpreter does not know the source '{}'", name_of(step.node.op)));
  return interpret_full(step);
}

Array interpret_random_bits(const Step& step) {
  Array result(step.result_dtype(), step.result_shape());
  const auto seed = static_cast<std::uint64_t>(step.operand(0).integers.at(0));
  const auto stream = static_cast<std::uint64_t>(step.node.attrs.get_or<std::int64_t>("stream", 0));
  const int word = static_cast<int>(step.node.attrs.get_or<std::int64_t>("word", -1));
  for (std::int64_t i = 0; i < result.size(); ++i)
    result.integers[static_cast<std::size_t>(i)] =
        static_cast<std::int32_t>(random_bits(seed, stream, static_cast<std::uint64_t>(i), word));
  return result;
}

Array interpret_node(const Step& step) {
  switch (kind_of(step.node.op)) {
    case Kind::map: return interpret_map(step);
    case Kind::reduce: return interpret_reduce(step);
    case Kind::view: return interpret_view(step);
    case Kind::source: return interpret_source(step);
    case Kind::random: return interpret_random_bits(step);
    case Kind::contract: return interpret_matmul(step);
    case Kind::composite: break;
  }
  TENON_CHECK(false, fmt::format("'{}' is left after decompose", name_of(step.node.op)));
  return Array(DType::f32, {});
}

// For each value, the node that uses it last; outputs are used by a node past the end.
std::vector<NodeId> last_uses(const Graph& graph) {
  std::vector<NodeId> last(graph.values.size(), -1);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n)
    for (const ValueId operand : graph.nodes[n].operands)
      last[static_cast<std::size_t>(operand)] = static_cast<NodeId>(n);
  for (const ValueId output : graph.outputs)
    last[static_cast<std::size_t>(output)] = static_cast<NodeId>(graph.nodes.size());
  return last;
}

void check_input(const Graph& graph, std::size_t i, const HostArray& input) {
  const Value& value = graph.value(graph.inputs[i]);
  if (input.dtype != value.type.dtype)
    throw Error(
        ErrorKind::argument,
        fmt::format("input '{}' is {}, the graph says {}", value.name, name_of(input.dtype), name_of(value.type.dtype)),
        {}, fmt::format("convert it to {}", name_of(value.type.dtype)));
  const HostArray like = make_array(input.dtype, input.shape);
  if (like.bytes.size() != input.bytes.size())
    throw Error(ErrorKind::argument,
                fmt::format("input '{}' holds {} bytes, {}[{}] needs {}", value.name, input.bytes.size(),
                            name_of(input.dtype), fmt::join(input.shape, ", "), like.bytes.size()),
                {}, "give the whole array, row-major");
}

}  // namespace

Array::Array(DType of, Extents extents) : dtype(of), shape(std::move(extents)) {
  for (const std::int64_t extent : shape) TENON_CHECK(extent >= 0, "negative extent");
  try {
    const std::optional<std::int64_t> bytes = byte_count(DType::f64, shape);  // as it is held here
    if (!bytes) throw std::bad_alloc();
    const auto n = static_cast<std::size_t>(*bytes / size_of(DType::f64));
    is_real(dtype) ? reals.resize(n) : integers.resize(n);
  } catch (const std::exception&) {
    throw Error(ErrorKind::resource,
                fmt::format("a value of {}[{}] does not fit in memory", name_of(dtype), fmt::join(shape, ", ")), {},
                "use smaller extents");
  }
}

std::int64_t Array::size() const { return static_cast<std::int64_t>(is_real(dtype) ? reals.size() : integers.size()); }

Extents Step::result_shape() const { return evaluate_shape(graph.type(node.results[0]).shape, bindings); }

void fill(Array& array, const Scalar& value) {
  const DType from = std::holds_alternative<double>(value) ? DType::f64 : DType::i64;
  const Scalar converted = convert(value, from, array.dtype);
  std::visit(
      [&](auto x) {
        array.reals.assign(array.reals.size(), static_cast<double>(x));
        array.integers.assign(array.integers.size(), static_cast<std::int64_t>(x));
      },
      converted);
}

Strides dense(const Extents& shape) { return broadcast_strides(shape, shape); }

Strides broadcast_strides(const Extents& from, const Extents& to) {
  TENON_CHECK(from.size() <= to.size(), "broadcast to a lower rank");
  Strides strides{0, Extents(to.size(), 0)};
  std::int64_t stride = 1;
  for (std::size_t i = from.size(), j = to.size(); i-- > 0;) {
    --j;
    TENON_CHECK(from[i] == to[j] || from[i] == 1, "shapes do not broadcast");
    strides.of[j] = from[i] == 1 ? 0 : stride;
    stride *= from[i];
  }
  return strides;
}

namespace {

std::vector<HostArray> interpret_all(const Graph& original, const std::vector<HostArray>& inputs, const Bindings& given,
                                     const InterpretOptions& options) {
  std::vector<Extents> shapes;
  for (const HostArray& input : inputs) shapes.push_back(input.shape);
  const Bindings bindings = bind_symbols(original, shapes, given);
  for (std::size_t i = 0; i < inputs.size(); ++i) check_input(original, i, inputs[i]);

  const Graph graph = decompose(original);
  const std::vector<NodeId> last = last_uses(graph);
  std::vector<std::shared_ptr<Array>> values(graph.values.size());
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (last[static_cast<std::size_t>(graph.inputs[i])] >= 0)
      values[static_cast<std::size_t>(graph.inputs[i])] = std::make_shared<Array>(from_host(inputs[i]));

  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    if (node.op == Op::input || last[static_cast<std::size_t>(node.results[0])] < 0) continue;
    std::vector<std::shared_ptr<Array>> operands;
    for (const ValueId id : node.operands) operands.push_back(values[static_cast<std::size_t>(id)]);
    for (const ValueId id : node.operands)
      if (last[static_cast<std::size_t>(id)] == static_cast<NodeId>(n)) values[static_cast<std::size_t>(id)].reset();
    const Numerics numerics(options, static_cast<NodeId>(n));
    Array result = interpret_node({graph, node, bindings, numerics, operands});
    TENON_CHECK(result.shape == evaluate_shape(graph.type(node.results[0]).shape, bindings),
                fmt::format("'{}' gave another shape than was inferred", name_of(node.op)));
    values[static_cast<std::size_t>(node.results[0])] = std::make_shared<Array>(std::move(result));
  }

  std::vector<HostArray> outputs;
  for (const ValueId output : graph.outputs) outputs.push_back(to_host(*values[static_cast<std::size_t>(output)]));
  return outputs;
}

}  // namespace

std::vector<HostArray> interpret(const Graph& graph, const std::vector<HostArray>& inputs, const Bindings& given,
                                 const InterpretOptions& options) {
  return with_host_memory(fmt::format("interpreting '{}'", graph.name),
                          [&] { return interpret_all(graph, inputs, given, options); });
}

}  // namespace tenon::ir

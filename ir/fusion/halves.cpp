// See halves.h.
#include "ir/fusion/halves.h"

#include "ir/graph/build.h"

namespace tenon::ir::fusion {
namespace {

constexpr std::int64_t kLeastOfLines = 4;  // elements of a row for each that is added, so that it is whole lines

}  // namespace

ValueId with_zeros(Graph& graph, ValueId value, std::int64_t axis, std::int64_t zeros, const Place& place) {
  if (zeros == 0) return value;
  std::vector<Dim> low(graph.type(value).shape.size(), Dim(0)), high = low;
  high[static_cast<std::size_t>(axis)] = Dim(zeros);
  return append_one(graph, Op::pad, {value}, {{"low", low}, {"high", high}, {"value", Scalar(0.0)}}, place);
}

std::int64_t zeros_behind(std::int64_t extent) {
  const auto missing = [&](std::int64_t bytes) { return (bytes / 2 - extent % (bytes / 2)) % (bytes / 2); };
  if (missing(kRowBytes) == 0) return 0;
  return kLeastOfLines * missing(kLineBytes) <= extent ? missing(kLineBytes) : missing(kRowBytes);
}

bool rows_along(const Graph& graph, ValueId operand, std::int64_t depth) {
  const Node& maker = graph.producer(operand);
  if (maker.op != Op::transpose) return depth + 1 == std::ssize(graph.type(operand).shape);
  const auto perm = maker.attrs.get<std::vector<std::int64_t>>("perm");
  return rows_along(graph, maker.operands[0], perm[static_cast<std::size_t>(depth)]);
}

ValueId part_of_depth(Graph& graph, ValueId operand, std::int64_t axis, std::int64_t start, std::int64_t stop,
                      const Place& place) {
  return append_one(
      graph, Op::slice, {operand},
      {{"axis", std::vector<std::int64_t>{axis}}, {"start", Shape{Dim(start)}}, {"stop", Shape{Dim(stop)}}}, place);
}

Halves halves_of(Graph& graph, ValueId operand, const HalvesOptions& options, const Place& place) {
  const auto append = [&](Op op, std::vector<ValueId> operands, Attrs attrs = {}) {
    return append_one(graph, op, std::move(operands), std::move(attrs), place);
  };
  const Node& maker = graph.producer(operand);
  if (maker.op == Op::transpose) {  // the copy lies as the matrix does
    const Attrs attrs = maker.attrs;
    HalvesOptions of_rows = options;
    of_rows.depth = attrs.get<std::vector<std::int64_t>>("perm")[static_cast<std::size_t>(options.depth)];
    const Halves of = halves_of(graph, maker.operands[0], of_rows, place);
    return {append(Op::transpose, {of.values}, attrs), append(Op::transpose, {of.unscale}, attrs), of.stored};
  }
  const std::int64_t depth = options.depth;
  const auto literal = [&](double value) { return append_literal(graph, Scalar(value), DType::f32, place); };
  const auto cast = [&](ValueId value, DType dtype) { return append(Op::cast, {value}, {{"dtype", dtype}}); };
  const ValueId size = append(Op::abs, {operand});
  const ValueId greatest = append(Op::max, {size}, {{"axis", std::vector<std::int64_t>{depth}}, {"keepdims", true}});
  const ValueId bits =
      append(Op::bitcast, {append(Op::maximum, {greatest, literal(0x1p-100)})}, {{"dtype", DType::i32}});
  const ValueId exponent = append_literal(graph, Scalar(std::int64_t{0x7f800000}), DType::i32, place);
  const ValueId power = append(Op::bitcast, {append(Op::bitwise_and, {bits, exponent})}, {{"dtype", DType::f32}});
  const ValueId scaled = append(Op::mul, {operand, append(Op::div, {literal(0x1p13), power})});
  const auto last = std::ssize(graph.type(operand).shape) - 1;
  const std::int64_t across = last == depth ? 0 : graph.type(operand).shape.back().constant();
  const auto filled = [&](ValueId part) {
    const ValueId whole = with_zeros(graph, part, depth, options.zeros, place);
    return with_zeros(graph, whole, last, zeros_behind(across), place);
  };
  const ValueId high = cast(scaled, DType::f16);
  Halves result{filled(high), append(Op::mul, {power, literal(0x1p-13)}), -1};
  if (options.both) {
    const ValueId rest = append(Op::sub, {scaled, cast(high, DType::f32)});
    const ValueId low = filled(cast(append(Op::mul, {rest, literal(kLowScale)}), DType::f16));
    result.values =
        append(Op::concat, options.low_first ? std::vector{low, result.values} : std::vector{result.values, low},
               {{"axis", depth}});
  }
  result.stored = result.values;
  if (zeros_behind(across) > 0) result.values = part_of_depth(graph, result.values, last, 0, across, place);
  return result;
}

}  // namespace tenon::ir::fusion

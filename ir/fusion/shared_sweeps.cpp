// Sums that kernels take in the sweep of a reduction that they depend on: of exponentials that a maximum shifts, and of
// squares around a mean. What is recognised here is what codegen/analysis/rounds.h finds in the kernel.
#include <algorithm>
#include <optional>

#include "ir/fusion/cluster.h"
#include "ir/graph/build.h"

namespace tenon::ir::fusion {
namespace {

// What `value` is a view of.
const Node& behind_views(const Graph& graph, ValueId value) {
  const Node* node = &graph.producer(value);
  while (node->op == Op::broadcast_to || node->op == Op::reshape) node = &graph.producer(node->operands[0]);
  return *node;
}

std::optional<double> literal(const Graph& graph, ValueId value) {
  const Node& node = behind_views(graph, value);
  if (node.op != Op::full) return std::nullopt;
  return std::visit([](auto v) { return static_cast<double>(v); }, node.attrs.get<Scalar>("value"));
}

// Of the same operand.
bool reduces_alike(const Graph& graph, const Node& a, const Node& b) {
  const auto rank = static_cast<int>(graph.type(a.operands[0]).shape.size());
  return reduced_axes(a, rank) == reduced_axes(b, rank);
}

// Whether `shift` is the maximum of `x` along the axes of `sum`, or that with 0 where it is infinite.
bool shifts(const Graph& graph, const Node& sum, ValueId x, ValueId shift) {
  const Node& select = behind_views(graph, shift);
  const bool guarded = select.op == Op::where && literal(graph, select.operands[1]) == 0.0;
  const Node& maximum = guarded ? behind_views(graph, select.operands[2]) : select;
  return maximum.op == Op::max && maximum.operands[0] == x && reduces_alike(graph, maximum, sum);
}

// Whether `mean` is that of `x` along the axes of `sum`, of a number of elements that is known.
bool is_mean(const Graph& graph, const Node& sum, ValueId x, ValueId mean) {
  const Node& quotient = behind_views(graph, mean);
  if (quotient.op != Op::div && quotient.op != Op::mul) return false;
  const Node& total = behind_views(graph, quotient.operands[0]);
  return total.op == Op::sum && total.operands[0] == x && reduces_alike(graph, total, sum) &&
         element_count(graph.type(x).shape).is_constant() && literal(graph, quotient.operands[1]).has_value();
}

// Whether one term of the sum at most is not 0: that whose position a value of the row names.
bool picks_element(const Graph& graph, const Node& sum) {
  const Node& select = behind_views(graph, sum.operands[0]);
  const auto rank = static_cast<int>(graph.type(sum.operands[0]).shape.size());
  if (select.op != Op::where || literal(graph, select.operands[2]) != 0.0 || reduced_axes(sum, rank).size() != 1)
    return false;
  const Node& test = behind_views(graph, select.operands[0]);
  return test.op == Op::equal && std::any_of(test.operands.begin(), test.operands.end(),
                                             [&](ValueId side) { return behind_views(graph, side).op == Op::iota; });
}

}  // namespace

SweepOf sweep_of(const Context& context, const Node& node) {
  const Graph& graph = context.graph;
  if (node.op != Op::sum) return SweepOf::own;
  if (context.options.cost.online && picks_element(graph, node)) return SweepOf::any;
  const Node& summed = graph.producer(node.operands[0]);
  if (summed.op == Op::exp) {
    const Node& shifted = graph.producer(summed.operands[0]);
    return context.options.cost.online && shifted.op == Op::sub &&
                   shifts(graph, node, shifted.operands[0], shifted.operands[1])
               ? SweepOf::maximum
               : SweepOf::own;
  }
  if (summed.op != Op::mul || summed.operands[0] != summed.operands[1]) return SweepOf::own;
  const Node& deviation = graph.producer(summed.operands[0]);
  return context.options.cost.moments && deviation.op == Op::sub && graph.type(summed.results[0]).dtype == DType::f32 &&
                 is_mean(graph, node, deviation.operands[0], deviation.operands[1])
             ? SweepOf::mean
             : SweepOf::own;
}

int sweeps_of(const Cluster& cluster) {
  if (cluster.kernel_class != KernelClass::reduce) return 1;
  int sweeps = std::max(1, cluster.rounds);
  const std::uint32_t reduced = axis_bits(cluster.domain, cluster.domain.kept, cluster.domain.rank());
  for (const Result& result : cluster.results)
    if ((depends_of(result.layout) & reduced) != 0 && !is_outer(cluster.domain, result.layout))
      sweeps = std::max(sweeps, result.rounds + 1);
  return sweeps;
}

}  // namespace tenon::ir::fusion

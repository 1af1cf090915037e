// See wide_attention.h.
#include "ir/fusion/wide_attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace tenon::ir::fusion {
namespace {

ContractionElement element_of(const Context& context, const Node& node) {
  const auto dtype = [&](ValueId value) { return context.graph.type(value).dtype; };
  return contraction_element(dtype(node.operands[0]), dtype(node.operands[1]), dtype(node.results[0]),
                             node.attrs.get_or<bool>("tf32", false), context.options.cost.tensor_cores);
}

struct Facts {
  ContractionElement scores, mix;
  double depth = 0, width = 0;
  double rows = 0;
  double columns = 0;  // that plain lanes mix at once

  bool sixteen_bits() const {
    return scores.tensor_cores && mix.tensor_cores && scores.dtype == mix.dtype && size_of(mix.dtype) == 2;
  }
};

Facts facts_of(const Context& context, NodeId scores, NodeId mix) {
  const Graph& graph = context.graph;
  const Node &first = graph.node(scores), &second = graph.node(mix);
  Facts facts{element_of(context, first), element_of(context, second)};
  facts.depth = context.extent(graph.type(first.operands[0]).shape.back());
  const Shape& mixed = graph.type(second.results[0]).shape;
  facts.width = context.extent(mixed.back());
  facts.rows = std::max(1.0, context.extent(mixed[mixed.size() - 2]));
  const bool wide = facts.scores.dtype == DType::f64 || facts.mix.dtype == DType::f64;
  facts.columns = context.options.cost.attend_columns / (wide ? 2 : 1);
  return facts;
}

bool all_known(const Shape& shape) {
  return std::all_of(shape.begin(), shape.end(), [](const Dim& extent) { return extent.is_constant(); });
}

}  // namespace

AttentionWork attention_work(const Context& context, NodeId scores, NodeId mix) {
  const CostModel& cost = context.options.cost;
  const double extent = cost.attend_extent;
  if (extent == 0) return {};
  const Facts facts = facts_of(context, scores, mix);
  if (facts.sixteen_bits() && facts.depth <= extent && facts.width <= extent) return {};
  return {false, std::max(1.0, std::ceil(facts.width / facts.columns)),
          std::ceil(facts.rows / cost.attend_rows) * cost.attend_rows / facts.rows};
}

std::string why_apart(const Context& context, NodeId scores, NodeId mix) {
  const AttentionWork work = attention_work(context, scores, mix);
  if (work.tensor_cores) return {};
  const Facts facts = facts_of(context, scores, mix);
  const Graph& graph = context.graph;
  if (work.score_times == 1 && !facts.sixteen_bits()) return {};
  if (!all_known(graph.type(graph.node(scores).results[0]).shape) ||
      !all_known(graph.type(graph.node(mix).results[0]).shape) ||
      !all_known(graph.type(graph.node(scores).operands[0]).shape))
    return {};
  std::string why =
      facts.sixteen_bits()
          ? fmt::format("tensor cores take attention up to a depth and width of {:.0f}, not {:.0f} and {:.0f}",
                        context.options.cost.attend_extent, facts.depth, facts.width)
          : fmt::format("plain lanes multiply an attention of {}", name_of(facts.mix.dtype));
  std::vector<std::string> more;
  if (work.row_times > 1) more.push_back(fmt::format("whole tiles of {:.0f} rows", context.options.cost.attend_rows));
  if (work.score_times > 1)
    more.push_back(fmt::format("its scores {:.0f} times, for {:.0f} columns each", work.score_times, facts.columns));
  if (!more.empty()) why += fmt::format(", and one kernel would compute {}", fmt::join(more, " and "));
  return why;
}

double apart_gain(const Context& context, const std::vector<NodeId>& nodes) {
  constexpr double kGain = 1.25, kHidden = 2;
  const Graph& graph = context.graph;
  const auto is_lowest = [&](ValueId value) {
    const Node* node = &graph.producer(value);
    while (node->op == Op::cast || node->op == Op::broadcast_to || node->op == Op::reshape)
      node = &graph.producer(node->operands[0]);
    if (node->op != Op::full) return false;
    const auto scalar = node->attrs.get<Scalar>("value");
    const double* real = std::get_if<double>(&scalar);
    return real != nullptr && *real == -std::numeric_limits<double>::infinity();
  };
  const bool masked = std::any_of(nodes.begin(), nodes.end(), [&](NodeId id) {
    const Node& node = graph.node(id);
    return node.op == Op::where && (is_lowest(node.operands[1]) || is_lowest(node.operands[2]));
  });
  return masked ? kHidden * kGain : kGain;
}

}  // namespace tenon::ir::fusion

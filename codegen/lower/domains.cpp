// The loops of each kernel class, and where its anchor values lie on them.
//   map       the largest output's axes
//   reduce    the first reduction's operand: kept axes, then reduced ones
//   contract  batch axes, m, n, then k
//   attend    batch axes, i (queries), e (columns of v), then j (keys) and d (columns of q)
// The last axes of contract and attend are always there, with extent 1 where an operand is one-dimensional.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/lower/body.h"
#include "ir/build.h"
#include "ir/check.h"

namespace tenon::codegen {
namespace {

std::vector<Dim> factors_of(const LoopFactors& factors, const std::string& loop) {
  const auto found = factors.find(loop);
  return found == factors.end() ? std::vector<Dim>{} : found->second;
}

std::vector<ir::NodeId> nodes_of_kind(const ir::Plan& plan, const ir::Group& group, ir::Kind kind) {
  std::vector<ir::NodeId> nodes;
  for (ir::NodeId id : group.nodes)
    if (ir::kind_of(plan.graph.node(id).op) == kind) nodes.push_back(id);
  return nodes;
}

// The indices of `node`'s reduced dimensions, given those of the group's reduced loops: dimensions of extent 1 take
// index 0, the others the loops in order.
std::vector<Index> match_reduced(const ir::Graph& graph, const ir::Node& node, const std::vector<Index>& loops) {
  const Shape& shape = graph.type(node.operands[0]).shape;
  std::vector<Index> indices;
  std::size_t next = 0;
  for (int axis : ir::reduced_axes(node, static_cast<int>(shape.size()))) {
    if (shape[static_cast<std::size_t>(axis)].is(1)) {
      indices.push_back(Index(0));
    } else {
      TENON_CHECK(next < loops.size(), "the reductions of a group have different reduced axes");
      indices.push_back(loops[next++]);
    }
  }
  return indices;
}

}  // namespace

Domain map_domain(const ir::Plan& plan, const ir::Group& group, const LoopFactors& factors) {
  const ir::Graph& graph = plan.graph;
  const auto larger = [&](ir::ValueId a, ir::ValueId b) {
    const Dim difference = element_count(graph.type(a).shape) - element_count(graph.type(b).shape);
    return difference.bounds(graph.symbols).min > 0;
  };
  ir::ValueId root = group.outputs.at(0);
  for (ir::ValueId output : group.outputs)
    if (larger(output, root)) root = output;
  Domain domain;
  Coordinates& at = domain.seeds[root];
  for (const Dim& extent : graph.type(root).shape) {
    const std::string name = fmt::format("i{}", at.size());
    at.push_back(add_loop(domain, name, extent, false, factors_of(factors, name)));
  }
  if (at.empty()) add_loop(domain, "i", Dim(1), false, {});
  return domain;
}

Domain reduce_domain(const ir::Plan& plan, const ir::Group& group, const LoopFactors& factors) {
  const ir::Graph& graph = plan.graph;
  const std::vector<ir::NodeId> reductions = nodes_of_kind(plan, group, ir::Kind::reduce);
  // The anchor names the loops: the reduction with the most dimensions that are not 1.
  const auto true_axes = [&](ir::NodeId id) {
    const Shape& shape = graph.type(graph.node(id).operands[0]).shape;
    const std::vector<int> axes = ir::reduced_axes(graph.node(id), static_cast<int>(shape.size()));
    return std::count_if(axes.begin(), axes.end(),
                         [&](int axis) { return !shape[static_cast<std::size_t>(axis)].is(1); });
  };
  const ir::NodeId anchor = *std::max_element(reductions.begin(), reductions.end(),
                                              [&](ir::NodeId a, ir::NodeId b) { return true_axes(a) < true_axes(b); });
  const ir::Node& node = graph.node(anchor);
  const Shape& shape = graph.type(node.operands[0]).shape;
  const std::vector<int> axes = ir::reduced_axes(node, static_cast<int>(shape.size()));
  const auto is_reduced = [&](std::size_t i) {
    return std::find(axes.begin(), axes.end(), static_cast<int>(i)) != axes.end();
  };

  Domain domain;
  Coordinates& at = domain.seeds[node.operands[0]];
  at.resize(shape.size());
  std::vector<Index> loops;
  for (const bool reduced : {false, true})
    for (std::size_t i = 0; i < shape.size(); ++i) {
      if (is_reduced(i) != reduced) continue;
      if (reduced && shape[i].is(1)) {
        at[i] = Index(0);
        continue;
      }
      const std::string name = fmt::format("{}{}", reduced ? 'r' : 'i', i);
      at[i] = add_loop(domain, name, shape[i], reduced, factors_of(factors, name));
      if (reduced) loops.push_back(at[i]);
    }
  if (loops.empty()) add_loop(domain, "r", Dim(1), true, {});
  for (ir::NodeId id : reductions) domain.reduced[id] = match_reduced(graph, graph.node(id), loops);
  return domain;
}

namespace {

// Loops for a matmul's result: batch axes, then one for its rows and one for its columns (extent 1 where it has none).
Coordinates result_loops(Domain& domain, const ir::Graph& graph, const ir::Node& matmul, const char* rows,
                         const char* columns) {
  const Shape& shape = graph.type(matmul.results[0]).shape;
  const bool has_rows = graph.type(matmul.operands[0]).shape.size() > 1;
  const bool has_columns = graph.type(matmul.operands[1]).shape.size() > 1;
  const std::size_t batch = shape.size() - has_rows - has_columns;
  Coordinates at;
  for (std::size_t i = 0; i < batch; ++i) at.push_back(add_loop(domain, fmt::format("b{}", i), shape[i], false, {}));
  const Index row = add_loop(domain, rows, has_rows ? shape[batch] : Dim(1), false, {});
  const Index column = add_loop(domain, columns, has_columns ? shape.back() : Dim(1), false, {});
  if (has_rows) at.push_back(row);
  if (has_columns) at.push_back(column);
  return at;
}

}  // namespace

Domain contract_domain(const ir::Plan& plan, const ir::Group& group, const LoopFactors&) {
  const std::vector<ir::NodeId> matmuls = nodes_of_kind(plan, group, ir::Kind::contract);
  TENON_CHECK(matmuls.size() == 1, "a contract group holds one matmul");
  const ir::Node& matmul = plan.graph.node(matmuls[0]);
  Domain domain;
  domain.seeds[matmul.results[0]] = result_loops(domain, plan.graph, matmul, "m", "n");
  const Dim& k = plan.graph.type(matmul.operands[0]).shape.back();
  domain.reduced[matmuls[0]] = {add_loop(domain, "k", k, true, {})};
  return domain;
}

Domain attend_domain(const ir::Plan& plan, const ir::Group& group, const LoopFactors&) {
  const std::vector<ir::NodeId> matmuls = nodes_of_kind(plan, group, ir::Kind::contract);
  TENON_CHECK(matmuls.size() == 2, "an attend group holds two matmuls");
  const ir::Node& scores = plan.graph.node(matmuls[0]);
  const ir::Node& mix = plan.graph.node(matmuls[1]);
  Domain domain;
  domain.seeds[mix.results[0]] = result_loops(domain, plan.graph, mix, "i", "e");
  const Index j = add_loop(domain, "j", plan.graph.type(mix.operands[0]).shape.back(), true, {});
  const Index d = add_loop(domain, "d", plan.graph.type(scores.operands[0]).shape.back(), true, {});
  domain.reduced[matmuls[0]] = {d};
  domain.reduced[matmuls[1]] = {j};
  for (ir::NodeId id : nodes_of_kind(plan, group, ir::Kind::reduce)) domain.reduced[id] = {j};
  return domain;
}

}  // namespace tenon::codegen

// A pool is a reduction of a few elements whose results are reduced again: the largest of each 2 x 2, then the mean of
// all. Two reductions over different axes are two kernels, so the first becomes maps of slices, which the second
// computes on its way. Left as they are: reductions of reductions and contractions, with which they may share a kernel,
// and those whose results meet their operand again (softmax of a few).
#include <set>

#include "ir/graph/build.h"
#include "ir/graph/view.h"
#include "ir/ops/combining.h"
#include "ir/passes/passes.h"
#include "ir/passes/rewrite.h"

namespace tenon::ir {
namespace {

constexpr std::int64_t kMostElements = 16;  // of a pool's window
constexpr std::size_t kMostNodes = 64;      // looked at before and behind it

class UnrollPools {
 public:
  explicit UnrollPools(const Graph& graph) : graph_(graph), users_(users_of(graph)), rewrite_(graph) {}

  Graph run() {
    for (const Node& node : graph_.nodes) {
      if (is_pool(node))
        rewrite_.replace(node.results[0], unrolled(node));
      else
        rewrite_.copy(node);
    }
    return rewrite_.finish();
  }

 private:
  Dim count(ValueId value) const { return element_count(graph_.type(value).shape); }

  bool is_pool(const Node& node) const {
    if (kind_of(node.op) != Kind::reduce || !combining(node.op) || node.attrs.has("dtype")) return false;
    const Shape& shape = graph_.type(node.operands[0]).shape;
    std::int64_t elements = 1;
    for (int axis : reduced_axes(node, static_cast<int>(shape.size()))) {
      const Dim& extent = shape[static_cast<std::size_t>(axis)];
      if (!extent.is_constant() || extent.constant() < 1 || extent.constant() > kMostElements) return false;
      elements *= extent.constant();
      if (elements > kMostElements) return false;
    }
    return elements > 1 && of_elements(node.operands[0]) && is_reduced_again(node.results[0]);
  }

  // Whether no reduction or contraction makes it.
  bool of_elements(ValueId value) const {
    std::vector<ValueId> pending{value};
    std::set<ValueId> seen;
    while (!pending.empty()) {
      const ValueId next = pending.back();
      pending.pop_back();
      if (!seen.insert(next).second) continue;
      const Node& node = graph_.producer(next);
      const Kind kind = kind_of(node.op);
      if (kind == Kind::reduce || kind == Kind::contract || seen.size() > kMostNodes) return false;
      pending.insert(pending.end(), node.operands.begin(), node.operands.end());
    }
    return true;
  }

  // Whether all that is made of it element by element ends in reductions of more than one element, or in results.
  bool is_reduced_again(ValueId value) const {
    const Dim elements = count(value);
    std::vector<ValueId> pending{value};
    std::set<ValueId> seen;
    bool reduced = false;
    while (!pending.empty()) {
      const ValueId next = pending.back();
      pending.pop_back();
      if (!seen.insert(next).second) continue;
      if (seen.size() > kMostNodes) return false;
      for (NodeId user : users_[static_cast<std::size_t>(next)]) {
        const Node& node = graph_.node(user);
        const bool same = count(node.results[0]) == elements;
        if (kind_of(node.op) == Kind::reduce && !same) {
          reduced = true;
        } else if (same && (kind_of(node.op) == Kind::map || node.op == Op::reshape)) {
          pending.push_back(node.results[0]);
        } else {
          return false;
        }
      }
    }
    return reduced;
  }

  // Sums of narrow reals are kept in f32 until their end, as a reduction keeps them.
  ValueId unrolled(const Node& node) {
    Graph& graph = rewrite_.graph;
    const ValueId x = rewrite_[node.operands[0]];
    const Type result = graph_.type(node.results[0]);
    const bool widened = is_real(result.dtype) && size_of(result.dtype) < 4 && combining(node.op) != Op::maximum &&
                         combining(node.op) != Op::minimum;
    ValueId combined = -1;
    for (const std::vector<std::int64_t>& at : window(node)) {
      ValueId element = append_one(graph, Op::slice, {x}, slice_at(node, at));
      if (widened) element = append_one(graph, Op::cast, {element}, {{"dtype", DType::f32}});
      combined = combined < 0 ? element : append_one(graph, *combining(node.op), {combined, element});
    }
    if (widened) combined = append_one(graph, Op::cast, {combined}, {{"dtype", result.dtype}});
    return append_one(graph, Op::reshape, {combined}, {{"shape", result.shape}});
  }

  // The places of a window's elements along the reduced axes, in row-major order.
  std::vector<std::vector<std::int64_t>> window(const Node& node) const {
    const Shape& shape = graph_.type(node.operands[0]).shape;
    std::vector<std::vector<std::int64_t>> places{{}};
    for (int axis : reduced_axes(node, static_cast<int>(shape.size()))) {
      std::vector<std::vector<std::int64_t>> longer;
      for (const auto& place : places)
        for (std::int64_t i = 0; i < shape[static_cast<std::size_t>(axis)].constant(); ++i) {
          longer.push_back(place);
          longer.back().push_back(i);
        }
      places = std::move(longer);
    }
    return places;
  }

  Attrs slice_at(const Node& node, const std::vector<std::int64_t>& at) const {
    std::vector<std::int64_t> axes;
    for (int axis : reduced_axes(node, static_cast<int>(graph_.type(node.operands[0]).shape.size())))
      axes.push_back(axis);
    std::vector<Dim> start, stop;
    for (std::int64_t i : at) {
      start.emplace_back(i);
      stop.emplace_back(i + 1);
    }
    return {{"axis", axes}, {"start", start}, {"stop", stop}};
  }

  const Graph& graph_;
  std::vector<std::vector<NodeId>> users_;
  Rewrite rewrite_;
};

}  // namespace

Graph unroll_pools(const Graph& graph) { return UnrollPools(graph).run(); }

}  // namespace tenon::ir

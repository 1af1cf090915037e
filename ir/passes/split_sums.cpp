// A sum over everything of what rows made of their own reductions: the divergence of two softmaxes, say, or the mean of
// a log-softmax. Over rows and over everything are two kernels, with all elements in memory between them. So the sum is
// taken along the rows first, in the kernel that has them, and then over what is left. The order of a sum is free
// (docs/numerics.md); narrow reals are added in f32 until the end, as one sum adds them.
#include <algorithm>
#include <optional>
#include <set>

#include "ir/graph/build.h"
#include "ir/passes/passes.h"
#include "ir/passes/rewrite.h"

namespace tenon::ir {
namespace {

constexpr std::size_t kMostNodes = 64;  // looked at before a sum

using Axes = std::vector<std::int64_t>;

class SplitSums {
 public:
  explicit SplitSums(const Graph& graph) : graph_(graph), rewrite_(graph) {}

  Graph run() {
    for (const Node& node : graph_.nodes) {
      const std::optional<Axes> row = node.op == Op::sum ? row_before(node) : std::nullopt;
      if (row)
        rewrite_.replace(node.results[0], in_rows(node, *row));
      else
        rewrite_.copy(node);
    }
    return rewrite_.finish();
  }

 private:
  const Shape& shape(ValueId value) const { return graph_.type(value).shape; }
  bool is_map(const Node& node) const { return kind_of(node.op) == Kind::map; }

  // The axes of `all` that `part` is repeated along: a map's operand, or a broadcast's.
  static Axes repeated(const Shape& part, const Shape& all) {
    Axes axes;
    const std::size_t ahead = all.size() - part.size();
    for (std::size_t axis = 0; axis < all.size(); ++axis)
      if (all[axis] != Dim(1) && (axis < ahead || part[axis - ahead] != all[axis]))
        axes.push_back(static_cast<std::int64_t>(axis));
    return axes;
  }

  // Whether a reduction of as many elements as `elements` makes it.
  bool is_reduced_from(ValueId value, const Dim& elements) const {
    std::vector<ValueId> pending{value};
    std::set<ValueId> seen;
    while (!pending.empty()) {
      const ValueId next = pending.back();
      pending.pop_back();
      if (!seen.insert(next).second) continue;
      if (seen.size() > kMostNodes) return false;
      const Node& node = graph_.producer(next);
      if (kind_of(node.op) == Kind::reduce && element_count(shape(node.operands[0])) == elements) return true;
      if (is_map(node) || node.op == Op::reshape || kind_of(node.op) == Kind::reduce)
        pending.insert(pending.end(), node.operands.begin(), node.operands.end());
    }
    return false;
  }

  // The axes of the rows whose reductions the sum's operand is made of, where the sum is over these and others.
  std::optional<Axes> row_before(const Node& sum) const {
    if (!is_real(graph_.type(sum.results[0]).dtype)) return std::nullopt;
    const Shape& all = shape(sum.operands[0]);
    std::optional<Axes> row;
    std::vector<ValueId> pending{sum.operands[0]};
    std::set<ValueId> seen;
    while (!pending.empty()) {
      const ValueId next = pending.back();
      pending.pop_back();
      if (!seen.insert(next).second) continue;
      if (seen.size() > kMostNodes) return std::nullopt;
      if (shape(next) != all) {
        if (!is_reduced_from(next, element_count(all))) continue;
        const Axes axes = repeated(shape(next), all);
        if (row && *row != axes) return std::nullopt;
        row = axes;
        continue;
      }
      const Node& node = graph_.producer(next);
      if (is_map(node) || node.op == Op::broadcast_to)
        pending.insert(pending.end(), node.operands.begin(), node.operands.end());
    }
    if (!row || row->empty()) return std::nullopt;
    auto reduced = reduced_axes(sum, static_cast<int>(all.size()));
    std::erase_if(reduced, [&](int axis) { return all[static_cast<std::size_t>(axis)].is(1); });
    const auto is_reduced = [&](std::int64_t axis) {
      return std::find(reduced.begin(), reduced.end(), static_cast<int>(axis)) != reduced.end();
    };
    if (row->size() >= reduced.size() || !std::all_of(row->begin(), row->end(), is_reduced)) return std::nullopt;
    return row;
  }

  ValueId in_rows(const Node& sum, const Axes& row) {
    Graph& graph = rewrite_.graph;
    const Type result = graph_.type(sum.results[0]);
    const bool narrow = size_of(result.dtype) < 4;
    ValueId x = rewrite_[sum.operands[0]];
    if (narrow) x = append_one(graph, Op::cast, {x}, {{"dtype", DType::f32}});
    x = append_one(graph, Op::sum, {x}, {{"axis", row}, {"keepdims", true}});
    x = append_one(graph, Op::sum, {x}, sum.attrs);
    return narrow ? append_one(graph, Op::cast, {x}, {{"dtype", result.dtype}}) : x;
  }

  const Graph& graph_;
  Rewrite rewrite_;
};

}  // namespace

Graph split_sums(const Graph& graph) { return SplitSums(graph).run(); }

}  // namespace tenon::ir

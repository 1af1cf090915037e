// A sum over everything of what rows made of their own reductions: the divergence of two softmaxes, say, or the mean of
// a log-softmax. Over rows and over everything are two kernels, with all elements in memory between them. So the sum is
// taken along the rows first, in the kernel that has them, and then over what is left. So is a sum over everything
// beside a sum of the same over rows: that of the rows' sums reads no element again. The order of a sum is free
// (docs/numerics.md); narrow reals are added in f32 until the end, as one sum adds them.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "ir/graph/build.h"
#include "ir/passes/passes.h"
#include "ir/passes/rewrite.h"

namespace tenon::ir {
namespace {

constexpr std::size_t kMostNodes = 64;   // looked at before a sum, and behind it
constexpr std::int64_t kLeastOfRow = 8;  // elements: of shorter rows the sums are as many bytes as what they are of

using Axes = std::vector<std::int64_t>;

class SplitSums {
 public:
  explicit SplitSums(const Graph& graph) : graph_(graph), rewrite_(graph), users_(users_of(graph)) {
    for (const Node& node : graph.nodes)
      if (may_nest(node.op)) beside_[{node.op, taken(node)}].emplace(axes_of(node), &node);
    for (const Node& node : graph.nodes)
      if (const Node* rows = may_nest(node.op) ? rows_beside(node) : nullptr) rows_[&node] = rows;
    for (const auto& [node, rows] : rows_)
      if (is_narrow_sum(*rows)) widened_.insert(rows);
  }

  Graph run() {
    for (const Node& node : graph_.nodes) {
      const std::optional<Axes> row = node.op == Op::sum ? row_before(node) : std::nullopt;
      if (row)
        rewrite_.replace(node.results[0], in_rows(node, *row));
      else if (const auto found = rows_.find(&node); found != rows_.end())
        rewrite_.replace(node.results[0], of_rows(node, *found->second));
      else if (widened_.count(&node) != 0)
        rewrite_.replace(node.results[0], rounded_rows(node));
      else
        rewrite_.copy(node);
    }
    return rewrite_.finish();
  }

 private:
  // Reductions of reductions: their order changes nothing, or is free.
  static bool may_nest(Op op) {
    return op == Op::sum || op == Op::max || op == Op::min || op == Op::any || op == Op::all;
  }
  bool is_narrow_sum(const Node& node) const {
    const DType dtype = graph_.type(node.results[0]).dtype;
    return node.op == Op::sum && is_real(dtype) && size_of(dtype) < 4;
  }

  // What it reduces, whoever has cast that, and the dtype it does so in.
  std::pair<ValueId, DType> taken(const Node& reduce) const {
    const ValueId operand = reduce.operands[0];
    const Node& producer = graph_.producer(operand);
    return {producer.op == Op::cast ? producer.operands[0] : operand, graph_.type(operand).dtype};
  }

  // Its axes, but those of one element.
  Axes axes_of(const Node& reduce) const {
    const Shape& all = shape(reduce.operands[0]);
    Axes axes;
    for (const int axis : reduced_axes(reduce, static_cast<int>(all.size())))
      if (!all[static_cast<std::size_t>(axis)].is(1)) axes.push_back(axis);
    return axes;
  }

  // What reduces the same over the fewest axes, all of them among those of `reduce`.
  const Node* rows_beside(const Node& reduce) const {
    const Axes all = axes_of(reduce);
    const Node* rows = nullptr;
    std::size_t fewest = all.size();
    for (const auto& [axes, node] : beside_.at({reduce.op, taken(reduce)})) {
      if (axes.empty() || axes.size() >= fewest) continue;
      if (!std::includes(all.begin(), all.end(), axes.begin(), axes.end())) continue;
      const Dim elements = elements_along(axes, shape(reduce.operands[0]));
      if (elements.is_constant() && elements.constant() < kLeastOfRow) continue;
      rows = node;
      fewest = axes.size();
    }
    return rows != nullptr && !meets_elements(reduce) ? rows : nullptr;
  }

  static Dim elements_along(const Axes& axes, const Shape& shape) {
    Dim elements = 1;
    for (const std::int64_t axis : axes) elements = elements * shape[static_cast<std::size_t>(axis)];
    return elements;
  }

  // Whether the result meets as many elements as were reduced again: a kernel that holds them has it without rows.
  bool meets_elements(const Node& reduce) const {
    const Dim elements = element_count(shape(reduce.operands[0]));
    std::vector<ValueId> pending{reduce.results[0]};
    std::set<ValueId> seen;
    while (!pending.empty()) {
      const ValueId next = pending.back();
      pending.pop_back();
      if (!seen.insert(next).second) continue;
      if (seen.size() > kMostNodes || element_count(shape(next)) == elements) return true;
      for (const NodeId user : users_[static_cast<std::size_t>(next)]) {
        const std::vector<ValueId>& results = graph_.node(user).results;
        pending.insert(pending.end(), results.begin(), results.end());
      }
    }
    return false;
  }

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

  ValueId append(Op op, ValueId x, Attrs attrs) { return append_one(rewrite_.graph, op, {x}, attrs); }
  ValueId reshaped(ValueId x, const Shape& shape) { return append(Op::reshape, x, {{"shape", shape}}); }

  // What a narrow sum takes in the dtype that it is added in.
  ValueId widened(const Node& reduce) {
    const ValueId x = rewrite_[reduce.operands[0]];
    return is_narrow_sum(reduce) ? append(Op::cast, x, {{"dtype", DType::f32}}) : x;
  }
  ValueId rounded(const Node& reduce, ValueId x) {
    return is_narrow_sum(reduce) ? append(Op::cast, x, {{"dtype", graph_.type(reduce.results[0]).dtype}}) : x;
  }

  ValueId in_rows(const Node& sum, const Axes& row) {
    const ValueId rows = append(Op::sum, widened(sum), {{"axis", row}, {"keepdims", true}});
    return rounded(sum, append(Op::sum, rows, sum.attrs));
  }

  // The rows' results, before a narrow one is rounded.
  static Attrs attrs_of_wide(const Axes& row) { return {{"axis", row}}; }
  ValueId rounded_rows(const Node& rows) {
    const ValueId made = append(rows.op, widened(rows), attrs_of_wide(axes_of(rows)));
    return rounded(rows, reshaped(made, shape(rows.results[0])));
  }

  // From the rows' results, which are made again, since the rows' own node may come later: equal ones are merged.
  ValueId of_rows(const Node& reduce, const Node& rows) {
    const bool narrow = is_narrow_sum(rows);
    const ValueId made = append(rows.op, widened(reduce), narrow ? attrs_of_wide(axes_of(rows)) : rows.attrs);
    Shape kept = shape(reduce.operands[0]);
    for (const std::int64_t axis : axes_of(rows)) kept[static_cast<std::size_t>(axis)] = 1;
    return rounded(reduce, append(reduce.op, reshaped(made, kept), reduce.attrs));
  }

  const Graph& graph_;
  Rewrite rewrite_;
  const std::vector<std::vector<NodeId>> users_;
  std::map<std::pair<Op, std::pair<ValueId, DType>>, std::map<Axes, const Node*>> beside_;  // who reduces the same
  std::map<const Node*, const Node*> rows_;  // a reduction, and that over fewer axes whose results it takes
  std::set<const Node*> widened_;            // of these, those that are rounded
};

}  // namespace

Graph split_sums(const Graph& graph) { return SplitSums(graph).run(); }

}  // namespace tenon::ir

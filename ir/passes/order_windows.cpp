// A window over a tensor, the largest or the sum of some elements around each, is written as a chain of slices: ((a +
// b) + c) + d. Where no order of them changes a bit, the terms are combined along the innermost axis first, then along
// the next, each time in halves: what one window makes of a row, or of two neighbours, the windows beside it make too,
// so that a kernel which computes several of them does it once.
#include <algorithm>
#include <vector>

#include "ir/graph/build.h"
#include "ir/graph/view.h"
#include "ir/passes/passes.h"
#include "ir/passes/rewrite.h"

namespace tenon::ir {
namespace {

constexpr std::size_t kLeastTerms = 4;

// Whether terms may change places and be combined in any order, also NaN and numbers that wrap around.
bool is_free_of_order(Op op, DType dtype) {
  if (op == Op::maximum || op == Op::minimum) return true;
  if (op == Op::add || op == Op::mul) return !is_real(dtype);
  return op == Op::bitwise_and || op == Op::bitwise_or || op == Op::bitwise_xor;
}

// A slice of what the window is over, by where it begins.
struct Term {
  std::vector<std::int64_t> start;
  ValueId value;  // of the old graph
};

class OrderWindows {
 public:
  explicit OrderWindows(const Graph& graph) : graph_(graph), users_(users_of(graph)), rewrite_(graph) {}

  Graph run() {
    for (const Node& node : graph_.nodes) {
      std::vector<Term> terms = is_end_of_chain(node) ? window(node) : std::vector<Term>{};
      if (terms.empty()) {
        rewrite_.copy(node);
        continue;
      }
      std::stable_sort(terms.begin(), terms.end(), [](const Term& a, const Term& b) { return a.start < b.start; });
      rewrite_.replace(node.results[0], combined(node, terms, 0));
    }
    return rewrite_.finish();
  }

 private:
  const Type& type_of(ValueId value) const { return graph_.type(value); }

  // The same operator on the same type.
  bool continues(const Node& chain, const Node& node) const {
    return node.op == chain.op && type_of(node.results[0]).dtype == type_of(chain.results[0]).dtype &&
           type_of(node.results[0]).shape == type_of(chain.results[0]).shape;
  }

  bool is_within(const Node& chain, ValueId value) const {
    return users_[static_cast<std::size_t>(value)].size() == 1 && !is_result(value) &&
           continues(chain, graph_.producer(value));
  }

  bool is_result(ValueId value) const {
    return std::find(graph_.outputs.begin(), graph_.outputs.end(), value) != graph_.outputs.end();
  }

  bool is_end_of_chain(const Node& node) const {
    if (node.results.size() != 1 || !is_free_of_order(node.op, type_of(node.results[0]).dtype)) return false;
    const std::vector<NodeId>& users = users_[static_cast<std::size_t>(node.results[0])];
    return users.size() != 1 || is_result(node.results[0]) || !continues(node, graph_.node(users[0]));
  }

  // The terms of a chain, if they are slices of one tensor, of known starts and the same steps; else none.
  std::vector<Term> window(const Node& end) const {
    std::vector<Term> terms;
    std::vector<ValueId> pending = end.operands;
    ValueId over = -1;
    std::vector<std::int64_t> steps;
    while (!pending.empty()) {
      const ValueId value = pending.back();
      pending.pop_back();
      const Node& node = graph_.producer(value);
      if (is_within(end, value)) {
        pending.insert(pending.end(), node.operands.begin(), node.operands.end());
        continue;
      }
      if (node.op != Op::slice || type_of(value).shape != type_of(end.results[0]).shape) return {};
      if (over >= 0 && node.operands[0] != over) return {};
      over = node.operands[0];
      Term term{{}, value};
      std::vector<std::int64_t> its_steps;
      for (const SliceRange& range : slice_ranges(node.attrs, type_of(over).shape, graph_.symbols)) {
        if (!range.start.is_constant()) return {};
        term.start.push_back(range.start.constant());
        its_steps.push_back(range.step);
      }
      if (!terms.empty() && its_steps != steps) return {};
      steps = its_steps;
      terms.push_back(std::move(term));
    }
    if (terms.size() < kLeastTerms) return {};
    return terms;
  }

  // Of sorted terms that begin alike along the axes ahead of `axis`.
  ValueId combined(const Node& chain, const std::vector<Term>& terms, std::size_t axis) {
    std::vector<ValueId> parts;
    if (axis == terms.front().start.size()) {
      for (const Term& term : terms) parts.push_back(rewrite_[term.value]);
      return halved(chain, parts);
    }
    for (auto first = terms.begin(); first != terms.end();) {
      const auto last =
          std::find_if(first, terms.end(), [&](const Term& term) { return term.start[axis] != first->start[axis]; });
      parts.push_back(combined(chain, {first, last}, axis + 1));
      first = last;
    }
    return halved(chain, parts);
  }

  // The first half is a power of two of them: neighbouring windows cut alike.
  ValueId halved(const Node& chain, const std::vector<ValueId>& parts) {
    if (parts.size() == 1) return parts[0];
    std::size_t half = 1;
    while (2 * half < parts.size()) half *= 2;
    const auto middle = parts.begin() + static_cast<std::ptrdiff_t>(half);
    const ValueId first = halved(chain, {parts.begin(), middle}), second = halved(chain, {middle, parts.end()});
    return append_one(rewrite_.graph, chain.op, {first, second}, {}, chain.place);
  }

  const Graph& graph_;
  std::vector<std::vector<NodeId>> users_;
  Rewrite rewrite_;
};

}  // namespace

Graph order_windows(const Graph& graph) { return OrderWindows(graph).run(); }

}  // namespace tenon::ir

// Equality of graphs as a reader sees them: what is computed, and how it is called at the border.
#include <algorithm>
#include <unordered_map>
#include <vector>

#include "ir/text/literal.h"
#include "ir/text/text.h"

namespace tenon::ir {
namespace {

bool same_attr(const AttrValue& a, const AttrValue& b, DType dtype) {
  if (a.index() != b.index()) return false;
  if (const auto* x = std::get_if<double>(&a)) return same_real(*x, std::get<double>(b));
  if (const auto* x = std::get_if<Scalar>(&a)) return same_scalar(*x, std::get<Scalar>(b), dtype);
  return a == b;
}

// `dtype` is the node's, which scalars take.
bool same_attrs(const Attrs& a, const Attrs& b, DType dtype) {
  return a.items().size() == b.items().size() && std::all_of(a.items().begin(), a.items().end(), [&](const auto& item) {
           const AttrValue* other = b.find(item.first);
           return other != nullptr && same_attr(item.second, *other, dtype);
         });
}

// "" or "v12": a name that the printer made up.
bool is_made_up(const std::string& name) {
  return name.empty() ||
         (name.size() > 1 && name[0] == 'v' && name.find_first_not_of("0123456789", 1) == std::string::npos);
}

bool same_name(const Graph& a, ValueId x, const Graph& b, ValueId y) {
  const std::string& p = a.value(x).name;
  const std::string& q = b.value(y).name;
  return p == q || p.empty() || q.empty() || (is_made_up(p) && is_made_up(q));
}

// Nodes that outputs depend on, in order, without inputs and literals (which compare by value where they are used).
std::vector<const Node*> live_nodes(const Graph& graph) {
  std::vector<bool> live(graph.values.size());
  for (ValueId output : graph.outputs) live[static_cast<std::size_t>(output)] = true;
  std::vector<const Node*> nodes;
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    if (std::none_of(node->results.begin(), node->results.end(),
                     [&](ValueId v) { return live[static_cast<std::size_t>(v)]; }))
      continue;
    for (ValueId operand : node->operands) live[static_cast<std::size_t>(operand)] = true;
    if (node->op != Op::input && !is_literal(graph, node->results.front())) nodes.push_back(&*node);
  }
  std::reverse(nodes.begin(), nodes.end());
  return nodes;
}

class Comparer {
 public:
  Comparer(const Graph& a, const Graph& b) : a_(a), b_(b) {}

  bool run() {
    if (a_.name != b_.name || a_.symbols != b_.symbols || a_.outputs_names != b_.outputs_names ||
        a_.updates != b_.updates)
      return false;
    if (a_.inputs.size() != b_.inputs.size() || a_.outputs.size() != b_.outputs.size()) return false;
    for (std::size_t i = 0; i < a_.inputs.size(); ++i) {
      if (a_.value(a_.inputs[i]).name != b_.value(b_.inputs[i]).name) return false;
      if (!match(a_.inputs[i], b_.inputs[i])) return false;
    }
    const auto left = live_nodes(a_), right = live_nodes(b_);
    if (!std::equal(left.begin(), left.end(), right.begin(), right.end(),
                    [&](const Node* x, const Node* y) { return same_node(*x, *y); }))
      return false;
    return same_values(a_.outputs, b_.outputs);
  }

 private:
  bool match(ValueId x, ValueId y) {
    image_[x] = y;
    return a_.type(x) == b_.type(y);
  }

  bool same_value(ValueId x, ValueId y) const {
    if (is_literal(a_, x) != is_literal(b_, y) || a_.type(x) != b_.type(y)) return false;
    if (is_literal(a_, x))
      return same_scalar(a_.producer(x).attrs.get<Scalar>("value"), b_.producer(y).attrs.get<Scalar>("value"),
                         a_.type(x).dtype);
    const auto found = image_.find(x);
    return found != image_.end() && found->second == y;
  }

  bool same_values(const std::vector<ValueId>& x, const std::vector<ValueId>& y) const {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), [&](ValueId p, ValueId q) { return same_value(p, q); });
  }

  bool same_node(const Node& x, const Node& y) {
    if (x.op != y.op || x.results.size() != y.results.size() ||
        !same_attrs(x.attrs, y.attrs, a_.type(x.results.front()).dtype) || !same_values(x.operands, y.operands))
      return false;
    for (std::size_t i = 0; i < x.results.size(); ++i)
      if (!same_name(a_, x.results[i], b_, y.results[i]) || !match(x.results[i], y.results[i])) return false;
    return true;
  }

  const Graph& a_;
  const Graph& b_;
  std::unordered_map<ValueId, ValueId> image_;
};

}  // namespace

bool same(const Graph& a, const Graph& b) { return Comparer(a, b).run(); }

}  // namespace tenon::ir

// What the planner knows of a graph before it starts: users, sizes at the typical binding, and which nodes are so cheap
// that they are computed wherever they are needed.
#include <algorithm>

#include "ir/check.h"
#include "ir/fusion/cluster.h"

namespace tenon::ir::fusion {
namespace {

constexpr std::int64_t kTypicalExtent = 1024;
constexpr double kCloneSlots = 48;    // masks, positions: whole expressions of values that are nowhere in memory
constexpr double kScalarSlots = 256;  // single numbers: computed once a thread, not once an element

std::vector<bool> live_nodes(const Graph& graph) {
  std::vector<bool> live(graph.nodes.size());
  std::vector<NodeId> pending;
  const auto need = [&](ValueId value) {
    const NodeId node = graph.value(value).producer;
    if (!live[static_cast<std::size_t>(node)]) pending.push_back(node);
    live[static_cast<std::size_t>(node)] = true;
  };
  for (ValueId output : graph.outputs) need(output);
  while (!pending.empty()) {
    const NodeId node = pending.back();
    pending.pop_back();
    for (ValueId operand : graph.node(node).operands) need(operand);
  }
  return live;
}

Bindings typical_bindings(const Graph& graph, const Bindings& given) {
  Bindings typical;
  for (const auto& [name, bounds] : graph.symbols) {
    const auto found = given.find(name);
    std::int64_t value = found != given.end() ? found->second : kTypicalExtent;
    if (found == given.end()) {
      value = std::clamp(value, bounds.min, bounds.max);
      value -= value % std::max<std::int64_t>(bounds.divisor, 1);
      if (value < bounds.min) value += bounds.divisor;
    }
    typical[name] = value;
  }
  return typical;
}

// What cloning a value costs: slots for each element, and whether it comes from memory or is one number.
struct Clone {
  double slots = 0;
  bool free = false;    // from no memory
  bool scalar = false;  // one number, from literals and single-number inputs
};

bool is_widening(const Graph& graph, const Node& node) {
  return node.op == Op::cast &&
         size_of(graph.type(node.results[0]).dtype) >= size_of(graph.type(node.operands[0]).dtype);
}

class Cloning {
 public:
  Cloning(const Graph& graph) : graph_(graph), values_(graph.values.size()), cloned_(graph.nodes.size()) {}

  std::vector<bool> run() {
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) cloned_[i] = decide(graph_.nodes[i]);
    return std::move(cloned_);
  }

 private:
  Clone& of(ValueId value) { return values_[static_cast<std::size_t>(value)]; }

  bool decide(const Node& node) {
    const ValueId result = node.results[0];
    const Kind kind = kind_of(node.op);
    Clone clone{0, true, element_count(graph_.type(result).shape).is(1)};
    for (ValueId operand : node.operands) {
      clone.slots += of(operand).slots;
      clone.free = clone.free && of(operand).free;
      clone.scalar = clone.scalar && of(operand).scalar;
    }
    if (kind == Kind::source) {
      clone.free = node.op != Op::input;
      of(result) = clone;
      return node.op != Op::input;
    }
    if (kind == Kind::map) clone.slots += info(node.op).cost;
    if (kind != Kind::map && kind != Kind::view) return false;
    const bool cheap = (clone.free && clone.slots <= kCloneSlots) || (clone.scalar && clone.slots <= kScalarSlots);
    if (kind == Kind::map && !cheap && !is_widening(graph_, node)) return false;
    of(result) = clone;
    return true;
  }

  const Graph& graph_;
  std::vector<Clone> values_;
  std::vector<bool> cloned_;
};

}  // namespace

Context::Context(const Graph& g, const PlanOptions& o)
    : graph(g),
      options(o),
      typical(typical_bindings(g, o.typical)),
      users(users_of(g)),
      live(live_nodes(g)),
      cloned(Cloning(g).run()),
      graph_output(g.values.size()) {
  for (ValueId output : g.outputs) graph_output[static_cast<std::size_t>(output)] = true;
  for (const Value& value : g.values) {
    double elements = 1;
    for (const Dim& dim : value.type.shape) elements *= extent(dim);
    count.push_back(elements);
    bytes.push_back(elements * static_cast<double>(size_of(value.type.dtype)));
  }
}

double Context::extent(const Dim& dim) const {
  return static_cast<double>(dim.is_constant() ? dim.constant() : dim.evaluate(typical));
}

double Context::points(const Domain& domain, int first, int last) const {
  double product = 1;
  for (int axis = first; axis < last; ++axis) product *= extent(domain.extents[static_cast<std::size_t>(axis)]);
  return product;
}

}  // namespace tenon::ir::fusion

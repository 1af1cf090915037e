// What the planner knows of a graph before it starts: users, sizes at the typical binding, and which nodes are so cheap
// that they are computed wherever they are needed.
#include <algorithm>

#include "ir/fusion/cluster.h"
#include "ir/graph/check.h"

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
  int depth = 0;        // clones one on top of the other
  bool stored = true;
  std::vector<ValueId> reads = {};  // of a clone, sorted: what is read for it, which may have become more than is
};

constexpr int kCloneDepth = 256;  // lowering follows them one inside the other

bool is_widening(const Graph& graph, const Node& node) {
  return node.op == Op::cast &&
         size_of(graph.type(node.results[0]).dtype) >= size_of(graph.type(node.operands[0]).dtype);
}

class Cloning {
 public:
  Cloning(const Graph& graph, int max_pointers)
      : graph_(graph), max_pointers_(max_pointers), values_(graph.values.size()), cloned_(graph.nodes.size()) {}

  void run(Context& context) {
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) cloned_[i] = decide(graph_.nodes[i]);
    for (const Clone& clone : values_) {
      const int pointers = clone.stored ? 1 : static_cast<int>(clone.reads.size());
      context.pointers.push_back(pointers);
      context.depth.push_back(pointers > 0 ? clone.depth : 0);
    }
    context.cloned = std::move(cloned_);
  }

 private:
  Clone& of(ValueId value) { return values_[static_cast<std::size_t>(value)]; }

  static std::vector<ValueId> distinct(std::vector<ValueId> values) {
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    return values;
  }

  std::vector<ValueId> reads_of(const std::vector<ValueId>& operands) {
    std::vector<ValueId> reads;
    for (ValueId operand : operands) {
      const Clone& clone = of(operand);
      if (clone.stored) {
        reads.push_back(operand);
      } else {
        reads.insert(reads.end(), clone.reads.begin(), clone.reads.end());
      }
    }
    return distinct(std::move(reads));
  }

  // What takes the most pointers is stored, until those of all operands are few enough for one kernel. Each takes one
  // then at least, and concats have no more operands than that (concats.h).
  std::vector<ValueId> few_reads_of(const std::vector<ValueId>& operands) {
    std::vector<ValueId> reads = reads_of(operands);
    while (reads.size() > static_cast<std::size_t>(max_pointers_)) {
      const ValueId most = *std::max_element(operands.begin(), operands.end(), [&](ValueId a, ValueId b) {
        return of(a).reads.size() < of(b).reads.size();
      });
      if (of(most).reads.size() <= 1) break;
      of(most) = {};
      cloned_[static_cast<std::size_t>(graph_.value(most).producer)] = false;
      reads = reads_of(operands);
    }
    return reads;
  }

  bool decide(const Node& node) {
    const ValueId result = node.results[0];
    const Kind kind = kind_of(node.op);
    const std::vector<ValueId> operands = distinct(node.operands);
    Clone clone{0, true, element_count(graph_.type(result).shape).is(1), 0, false, few_reads_of(operands)};
    for (ValueId operand : node.operands) {
      clone.slots += of(operand).slots;
      clone.free = clone.free && of(operand).free;
      clone.scalar = clone.scalar && of(operand).scalar;
      clone.depth = std::max(clone.depth, of(operand).depth + 1);
    }
    if (kind == Kind::source) {
      clone.free = node.op != Op::input;
      clone.stored = node.op == Op::input;
      of(result) = clone;
      return node.op != Op::input;
    }
    if (kind == Kind::map) clone.slots += info(node.op).cost;
    if (kind != Kind::map && kind != Kind::view) return false;
    const bool cheap = (clone.free && clone.slots <= kCloneSlots) || (clone.scalar && clone.slots <= kScalarSlots);
    if (kind == Kind::map && !cheap && !is_widening(graph_, node)) return false;
    if (clone.depth > kCloneDepth) return false;
    of(result) = std::move(clone);
    return true;
  }

  const Graph& graph_;
  int max_pointers_;
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
      graph_output(g.values.size()),
      tile_mask(g.values.size()) {
  Cloning(g, o.max_pointers).run(*this);
  for (ValueId output : g.outputs) graph_output[static_cast<std::size_t>(output)] = true;
  for (const Value& value : g.values) {
    double elements = 1;
    for (const Dim& dim : value.type.shape) elements *= extent(dim);
    count.push_back(elements);
    bytes.push_back(elements * static_cast<double>(size_of(value.type.dtype)));
  }
}

double Context::extent(const Dim& dim) const {
  if (dim.is_constant()) return static_cast<double>(dim.constant());
  try {
    return static_cast<double>(dim.evaluate(typical));
  } catch (const Error&) {  // leaves 64 bits at the typical sizes: the real ones are checked where they are bound
    return 0x1p63;
  }
}

double Context::points(const Domain& domain, int first, int last) const {
  double product = 1;
  for (int axis = first; axis < last; ++axis) product *= extent(domain.extents[static_cast<std::size_t>(axis)]);
  return product;
}

}  // namespace tenon::ir::fusion

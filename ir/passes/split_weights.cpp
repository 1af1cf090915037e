// Walks in definition order for what depends on what, and two copies of the parts of the graph that are needed.
#include "ir/passes/split_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "ir/graph/build.h"
#include "ir/graph/check.h"
#include "ir/passes/rewrite.h"

namespace tenon::ir {
namespace {

std::size_t at(ValueId value) { return static_cast<std::size_t>(value); }

bool without_symbols(const Shape& shape) {
  return std::all_of(shape.begin(), shape.end(), [](const Dim& extent) { return extent.is_constant(); });
}

// Whether sizes stand in the node: then it depends on symbols although it may have no operand.
bool without_symbols(const Graph& graph, const Node& node) {
  for (const auto& [name, value] : node.attrs.items())
    if (const auto* dims = std::get_if<std::vector<Dim>>(&value))
      if (!without_symbols(*dims)) return false;
  return std::all_of(node.results.begin(), node.results.end(),
                     [&](ValueId result) { return without_symbols(graph.type(result).shape); });
}

// What a value depends on; of the operands the greatest is the result's.
enum class Depends : std::uint8_t { nothing, bound, run };

std::vector<Depends> dependences(const Graph& graph, const std::vector<bool>& bound) {
  std::vector<Depends> depends(graph.values.size(), Depends::run);
  for (std::size_t i = 0; i < graph.inputs.size(); ++i)
    if (bound[i] && without_symbols(graph.type(graph.inputs[i]).shape)) depends[at(graph.inputs[i])] = Depends::bound;
  for (const Node& node : graph.nodes) {
    if (node.op == Op::input) continue;
    Depends most = without_symbols(graph, node) ? Depends::nothing : Depends::run;
    for (const ValueId operand : node.operands) most = std::max(most, depends[at(operand)]);
    for (const ValueId result : node.results) depends[at(result)] = most;
  }
  return depends;
}

std::int64_t bytes_of(const Graph& graph, ValueId value) {
  const Type& type = graph.type(value);
  return element_count(type.shape).evaluate({}) * size_of(type.dtype);
}

// Nodes that some of `wanted` needs, where `known` values need nothing.
std::vector<bool> needed_nodes(const Graph& graph, const std::vector<ValueId>& wanted, const std::set<ValueId>& known) {
  std::vector<bool> needed(graph.nodes.size());
  const auto need = [&](ValueId value) {
    if (!known.contains(value)) needed[static_cast<std::size_t>(graph.value(value).producer)] = true;
  };
  for (const ValueId value : wanted) need(value);
  for (std::size_t i = graph.nodes.size(); i-- > 0;)
    if (needed[i])
      for (const ValueId operand : graph.nodes[i].operands) need(operand);
  return needed;
}

bool is_needed(const Graph& graph, const std::vector<bool>& needed, ValueId value) {
  return needed[static_cast<std::size_t>(graph.value(value).producer)];
}

// Finds the values to keep: walks up from those that a run needs.
class Keeper {
 public:
  Keeper(const Graph& graph, const std::vector<bool>& bound)
      : graph_(graph), depends_(dependences(graph, bound)), seen_(graph.values.size()) {}

  std::vector<ValueId> run() {
    for (const Node& node : graph_.nodes) {
      if (node.op == Op::input || depends_[at(node.results.front())] != Depends::run) continue;
      for (const ValueId operand : node.operands) look_at(operand);
    }
    std::sort(kept_.begin(), kept_.end());
    drop_larger();
    return kept_;
  }

 private:
  void look_at(ValueId value) {
    std::vector<ValueId> stack{value};
    while (!stack.empty()) {
      const ValueId next = stack.back();
      stack.pop_back();
      if (depends_[at(next)] != Depends::bound || seen_[at(next)]) continue;
      seen_[at(next)] = true;
      const Node& node = graph_.producer(next);
      if (node.op == Op::input) continue;
      if (computes(node) && bytes_of(graph_, next) <= bytes_of_sources(next)) {
        kept_.push_back(next);
      } else {
        stack.insert(stack.end(), node.operands.begin(), node.operands.end());
      }
    }
  }

  bool computes(const Node& node) const {
    if (kind_of(node.op) == Kind::view || node.results.size() > 1) return false;
    return node.op != Op::cast ||
           size_of(graph_.type(node.results.front()).dtype) <= size_of(graph_.type(node.operands.front()).dtype);
  }

  std::vector<ValueId> sources(const std::vector<ValueId>& values) const {
    const std::vector<bool> needed = needed_nodes(graph_, values, {});
    std::vector<ValueId> found;
    for (const ValueId input : graph_.inputs)
      if (is_needed(graph_, needed, input)) found.push_back(input);
    return found;
  }

  std::int64_t bytes_of_all(const std::vector<ValueId>& values) const {
    return std::accumulate(values.begin(), values.end(), std::int64_t{0},
                           [&](std::int64_t sum, ValueId value) { return sum + bytes_of(graph_, value); });
  }
  std::int64_t bytes_of_sources(ValueId value) const { return bytes_of_all(sources({value})); }

  // Values that share sources, as sets.
  std::vector<std::vector<ValueId>> sharing() const {
    std::vector<std::vector<ValueId>> sets;
    std::vector<std::set<ValueId>> sets_sources;
    for (const ValueId value : kept_) {
      std::vector<ValueId> set{value};
      const std::vector<ValueId> mine = sources({value});
      std::set<ValueId> all(mine.begin(), mine.end());
      for (std::size_t i = sets.size(); i-- > 0;) {
        if (std::none_of(mine.begin(), mine.end(), [&](ValueId source) { return sets_sources[i].contains(source); }))
          continue;
        set.insert(set.end(), sets[i].begin(), sets[i].end());
        all.merge(sets_sources[i]);
        sets.erase(sets.begin() + static_cast<std::ptrdiff_t>(i));
        sets_sources.erase(sets_sources.begin() + static_cast<std::ptrdiff_t>(i));
      }
      sets.push_back(std::move(set));
      sets_sources.push_back(std::move(all));
    }
    return sets;
  }

  // Sets share no source, so that one which is dropped leaves the others' counts as they are.
  void drop_larger() {
    const std::vector<bool> needed =
        needed_nodes(graph_, graph_.outputs, std::set<ValueId>(kept_.begin(), kept_.end()));
    std::set<ValueId> dropped;
    for (const std::vector<ValueId>& set : sharing()) {
      std::vector<ValueId> freed = sources(set);
      std::erase_if(freed, [&](ValueId source) { return is_needed(graph_, needed, source); });
      if (bytes_of_all(set) > bytes_of_all(freed)) dropped.insert(set.begin(), set.end());
    }
    std::erase_if(kept_, [&](ValueId value) { return dropped.contains(value); });
  }

  const Graph& graph_;
  const std::vector<Depends> depends_;
  std::vector<bool> seen_;
  std::vector<ValueId> kept_;
};

// A name for each kept value: its own, or "once0" and so on, that nothing else in the graph has.
std::vector<std::string> names_of(const Graph& graph, const std::vector<ValueId>& kept) {
  std::set<std::string> taken;
  for (const Value& value : graph.values) taken.insert(value.name);
  std::vector<std::string> names;
  for (const ValueId value : kept) {
    std::string name = graph.value(value).name;
    for (std::size_t i = names.size(); name.empty() || (graph.value(value).name.empty() && taken.contains(name)); ++i)
      name = fmt::format("once{}", i);
    taken.insert(name);
    names.push_back(std::move(name));
  }
  return names;
}

void cut_once(const Graph& graph, const std::vector<ValueId>& kept, const std::vector<std::string>& names,
              SplitGraph& split) {
  const std::vector<bool> needed = needed_nodes(graph, kept, {});
  Rewrite rewrite(graph);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i)
    if (needed[i]) rewrite.copy(graph.nodes[i]);
  split.once = std::move(rewrite.graph);
  split.once.symbols.clear();
  split.once.inputs.clear();
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    if (!is_needed(graph, needed, graph.inputs[i])) continue;
    split.once.inputs.push_back(rewrite[graph.inputs[i]]);
    split.once_inputs.push_back(static_cast<int>(i));
  }
  for (std::size_t i = 0; i < kept.size(); ++i) append_output(split.once, rewrite[kept[i]], names[i]);
}

void cut_each(const Graph& graph, const std::vector<bool>& bound, const std::vector<ValueId>& kept,
              const std::vector<std::string>& names, SplitGraph& split) {
  std::vector<bool> needed = needed_nodes(graph, graph.outputs, std::set<ValueId>(kept.begin(), kept.end()));
  for (std::size_t i = 0; i < graph.inputs.size(); ++i)
    if (!bound[i]) needed[static_cast<std::size_t>(graph.value(graph.inputs[i]).producer)] = true;
  Rewrite rewrite(graph);
  std::vector<ValueId> kept_inputs;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    const Type& type = graph.type(kept[i]);
    kept_inputs.push_back(append_input(rewrite.graph, names[i], type.dtype, type.shape));
    rewrite.replace(kept[i], kept_inputs.back());
  }
  for (std::size_t i = 0; i < graph.nodes.size(); ++i)
    if (needed[i]) rewrite.copy(graph.nodes[i]);
  std::vector<int> places(graph.inputs.size(), -1);
  std::vector<ValueId> inputs, last;
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    if (bound[i] && !is_needed(graph, needed, graph.inputs[i])) continue;
    if (bound[i]) split.each_bound.push_back(static_cast<int>(i));
    if (!bound[i]) places[i] = static_cast<int>(inputs.size());
    (bound[i] ? last : inputs).push_back(rewrite[graph.inputs[i]]);
  }
  for (std::size_t i = 0; i < kept.size(); ++i) split.each_bound.push_back(static_cast<int>(graph.inputs.size() + i));
  inputs.insert(inputs.end(), last.begin(), last.end());
  inputs.insert(inputs.end(), kept_inputs.begin(), kept_inputs.end());
  for (std::size_t i = 0; i < graph.values.size(); ++i) split.each_values.push_back(rewrite[static_cast<ValueId>(i)]);
  split.each = rewrite.finish();
  split.each.inputs = std::move(inputs);
  for (int& updated : split.each.updates)
    if (updated >= 0) updated = places[static_cast<std::size_t>(updated)];
}

}  // namespace

std::vector<bool> same_in_each_run(const Graph& graph, const std::vector<bool>& bound) {
  const std::vector<Depends> depends = dependences(graph, bound);
  std::vector<bool> same;
  for (const Depends each : depends) same.push_back(each == Depends::bound);
  return same;
}

std::vector<ValueId> worth_keeping(const Graph& graph, const std::vector<bool>& bound) {
  return Keeper(graph, bound).run();
}

SplitGraph split_weights(const Graph& graph, const std::vector<bool>& bound, const std::vector<ValueId>& kept) {
  TENON_CHECK(bound.size() == graph.inputs.size(), "inputs that are not known to be bound or free");
  SplitGraph split;
  const std::vector<std::string> names = names_of(graph, kept);
  cut_once(graph, kept, names, split);
  cut_each(graph, bound, kept, names, split);
  return split;
}

}  // namespace tenon::ir

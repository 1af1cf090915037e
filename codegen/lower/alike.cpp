// See alike.h. Everything of a group that lower() looks at is written down, with values numbered in the order in which
// the walk from the group's outputs meets them: groups with equal keys are the same to it.
#include "codegen/lower/alike.h"

#include <cstring>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <variant>

#include "codegen/lower/one_rounding.h"

namespace tenon::codegen {
namespace {

class GroupKey {
 public:
  GroupKey(const ir::Plan& plan, const ValueUses& uses, const std::vector<bool>& given, const ir::Group& group,
           std::string& key)
      : graph_(plan.graph), uses_(uses), given_(given), group_(group), key_(key) {}

  void write() {
    write(group_.kernel_class);
    write(group_.inputs.size());
    for (const ir::ValueId input : group_.inputs) {
      numbers_.try_emplace(input, numbers_.size());
      facts(input);
      write(static_cast<bool>(given_[at(input)]));
    }
    write(group_.kept);
    write(group_.reduced);
    write(group_.outputs.size());
    for (const ir::ValueId output : group_.outputs) value(output);
    write(group_.layouts);
    write(group_.nodes.size());
    for (const ir::NodeId id : group_.nodes) node(id);
    write(group_.outer.size());
    for (const ir::NodeId id : group_.outer) node(id);
    attention();
  }

 private:
  static std::size_t at(std::int32_t id) { return static_cast<std::size_t>(id); }

  template <typename T>
  void write(const T& fact) {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    const std::size_t end = key_.size();
    key_.resize(end + sizeof fact);
    std::memcpy(key_.data() + end, &fact, sizeof fact);
  }

  void write(const std::string& text) {
    write(text.size());
    key_ += text;
  }

  void write(const Dim& extent) {
    write(extent.is_constant());
    if (extent.is_constant()) {
      write(extent.constant());
    } else {
      write(extent.str());
    }
  }

  void write(const ir::Digit& digit) {
    write(digit.axis);
    write(digit.divisor);
    write(digit.extent);
    write(digit.depends);
    write(digit.terms);
  }

  template <typename T>
  void write(const std::vector<T>& list) {
    write(list.size());
    for (const T& item : list) write(item);
  }

  template <typename... T>
  void write(const std::variant<T...>& one) {
    write(one.index());
    std::visit([this](const auto& held) { write(held); }, one);
  }

  void facts(ir::ValueId id) {
    const ir::Type& type = graph_.type(id);
    write(type.dtype);
    write(type.shape);
    write(static_cast<bool>(uses_.reused[at(id)]));
    write(static_cast<bool>(uses_.settled[at(id)]));
  }

  // A value, and at the first time what it is computed from. A stack: groups may be deep.
  void value(ir::ValueId root) {
    std::vector<ir::ValueId> pending{root};
    while (!pending.empty()) {
      const ir::ValueId id = pending.back();
      pending.pop_back();
      const auto [known, is_new] = numbers_.try_emplace(id, numbers_.size());
      write(known->second);
      if (!is_new || id < 0) continue;
      facts(id);
      const ir::Node& maker = graph_.producer(id);
      write(maker.op);
      write(graph_.value(id).result);
      write(maker.attrs.items().size());
      for (const auto& [name, attribute] : maker.attrs.items()) {
        write(name);
        write(attribute);
      }
      write(maker.operands.size());
      pending.insert(pending.end(), maker.operands.rbegin(), maker.operands.rend());
    }
  }

  void node(ir::NodeId id) { value(id < 0 ? -1 : graph_.node(id).results.front()); }

  void attention() {
    const ir::Attention& parts = group_.attention;
    for (const ir::NodeId id : {parts.scores, parts.mix}) node(id);
    for (const ir::ValueId id : {parts.score, parts.shift, parts.maximum, parts.weight, parts.sum}) value(id);
    write(parts.scaling.size());
    for (const ir::Scaling& scaling : parts.scaling) {
      node(scaling.node);
      write(scaling.weights);
    }
  }

  const ir::Graph& graph_;
  const ValueUses& uses_;
  const std::vector<bool>& given_;  ///< value: an input of the graph
  const ir::Group& group_;
  std::string& key_;
  std::unordered_map<ir::ValueId, std::size_t> numbers_;
};

}  // namespace

std::vector<std::size_t> first_alike(const ir::Plan& plan, const std::vector<std::vector<int>>& sets) {
  const ValueUses uses = uses_of(plan);
  std::vector<bool> given(plan.graph.values.size());
  for (const ir::ValueId input : plan.graph.inputs) given[static_cast<std::size_t>(input)] = true;
  std::unordered_map<std::string, std::size_t> known;
  std::vector<std::size_t> first;
  for (const std::vector<int>& set : sets) {
    std::string key;
    for (const int group : set) GroupKey(plan, uses, given, plan.groups[static_cast<std::size_t>(group)], key).write();
    first.push_back(known.try_emplace(std::move(key), first.size()).first->second);
  }
  return first;
}

}  // namespace tenon::codegen

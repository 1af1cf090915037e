// Merges equal nodes by hash-consing. Reals in attributes are compared as bits: -0 is not 0, and NaN equals itself.
#include <bit>
#include <functional>
#include <unordered_map>

#include "ir/passes/passes.h"
#include "ir/passes/rewrite.h"

namespace tenon::ir {
namespace {

void mix(std::size_t& hash, std::size_t value) { hash = (hash ^ value) * 0x9e3779b97f4a7c15u + (hash >> 29); }

struct HashOf {
  std::size_t operator()(std::int64_t value) const { return static_cast<std::size_t>(value); }
  std::size_t operator()(double value) const { return static_cast<std::size_t>(std::bit_cast<std::uint64_t>(value)); }
  std::size_t operator()(bool value) const { return value ? 3 : 5; }
  std::size_t operator()(DType value) const { return static_cast<std::size_t>(value); }
  std::size_t operator()(const std::string& value) const { return std::hash<std::string>()(value); }
  std::size_t operator()(const Scalar& value) const { return std::visit(*this, value); }
  std::size_t operator()(const Dim& dim) const {
    return dim.is_constant() ? (*this)(dim.constant()) : (*this)(dim.str());
  }
  template <typename T>
  std::size_t operator()(const std::vector<T>& list) const {
    std::size_t hash = list.size();
    for (const T& item : list) mix(hash, (*this)(item));
    return hash;
  }
};

struct Identical {
  bool operator()(double a, double b) const {
    return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
  }
  bool operator()(const Scalar& a, const Scalar& b) const { return std::visit(*this, a, b); }
  template <typename T>
  bool operator()(const T& a, const T& b) const {
    return a == b;
  }
  template <typename T, typename U>
  bool operator()(const T&, const U&) const {
    return false;
  }
};

std::size_t hash_of(const Node& node) {
  std::size_t hash = static_cast<std::size_t>(node.op);
  for (ValueId operand : node.operands) mix(hash, static_cast<std::size_t>(operand));
  for (const auto& [name, value] : node.attrs.items()) {
    mix(hash, std::hash<std::string>()(name));
    mix(hash, std::visit(HashOf(), value));
  }
  return hash;
}

bool identical(const Node& a, const Node& b) {
  if (a.op != b.op || a.operands != b.operands || a.attrs.items().size() != b.attrs.items().size()) return false;
  for (std::size_t i = 0; i < a.attrs.items().size(); ++i) {
    const auto& [name, value] = a.attrs.items()[i];
    const auto& [other_name, other_value] = b.attrs.items()[i];
    if (name != other_name || !std::visit(Identical(), value, other_value)) return false;
  }
  return true;
}

}  // namespace

Graph eliminate_common_subexpressions(const Graph& graph) {
  Rewrite rewrite(graph);
  std::unordered_multimap<std::size_t, NodeId> seen;  // nodes of the new graph
  seen.reserve(graph.nodes.size());
  for (const Node& node : graph.nodes) {
    if (node.op == Op::input) {
      rewrite.copy(node);
      continue;
    }
    const Node now{node.op, rewrite.mapped(node.operands), node.attrs, {}, {}};
    const std::size_t hash = hash_of(now);
    const auto [first, last] = seen.equal_range(hash);
    auto match = first;
    while (match != last && !identical(rewrite.graph.node(match->second), now)) ++match;
    if (match != last) {
      rewrite.replace(node.results, std::vector(rewrite.graph.node(match->second).results));
    } else {
      seen.emplace(hash, static_cast<NodeId>(rewrite.graph.nodes.size()));
      rewrite.copy(node);
    }
  }
  return rewrite.finish();
}

}  // namespace tenon::ir

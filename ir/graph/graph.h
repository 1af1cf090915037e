// The Graph: SSA values in definition order, each with a dtype and a shape. Plain data; everything that changes or
// reads it is a free function. Nodes are appended through ir/graph/build.h, which checks and infers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ir/ops/op.h"
#include "tenon/dtype.h"
#include "tenon/error.h"
#include "tenon/shape.h"

namespace tenon::ir {

using ValueId = std::int32_t;
using NodeId = std::int32_t;

struct Type {
  DType dtype = DType::f32;
  Shape shape;
  bool operator==(const Type&) const = default;
};

/// "bf16[rows, 4096]".
std::string str(const Type& type);

/// A literal: a real, an integer or a bool, before it takes a dtype.
using Scalar = std::variant<double, std::int64_t, bool>;

using AttrValue =
    std::variant<std::int64_t, std::vector<std::int64_t>, double, bool, std::string, DType, std::vector<Dim>, Scalar>;

/// Attributes of a node: only those that were given, ordered as in the op's signature.
class Attrs {
 public:
  Attrs() = default;
  Attrs(std::initializer_list<std::pair<std::string, AttrValue>> items) : items_(items) {}

  void set(std::string name, AttrValue value);
  const AttrValue* find(std::string_view name) const;
  bool has(std::string_view name) const { return find(name) != nullptr; }

  /// The value of type T under `name`; Error(internal) when absent or of another type.
  template <typename T>
  const T& get(std::string_view name) const;
  /// The value under `name`, or `fallback` when absent.
  template <typename T>
  T get_or(std::string_view name, T fallback) const {
    return has(name) ? get<T>(name) : fallback;
  }

  const std::vector<std::pair<std::string, AttrValue>>& items() const { return items_; }
  bool operator==(const Attrs&) const = default;

 private:
  std::vector<std::pair<std::string, AttrValue>> items_;
};

struct Value {
  Type type;
  NodeId producer = -1;
  int result = 0;    ///< which result of the producer
  std::string name;  ///< as the user wrote it; empty: the printer makes one up
};

struct Node {
  Op op;
  std::vector<ValueId> operands;
  Attrs attrs;
  std::vector<ValueId> results;
  Place place;  ///< in the file it was read from, if any
};

struct Graph {
  std::string name = "main";
  Symbols symbols;
  std::vector<Value> values;
  std::vector<Node> nodes;                 ///< definition order: operands come before their users
  std::vector<ValueId> inputs;             ///< results of Op::input nodes, in signature order
  std::vector<ValueId> outputs;            ///< in return order; a value may appear more than once
  std::vector<std::string> outputs_names;  ///< one for each output, unique
  std::vector<int> updates;                ///< for each output the position of the input that it updates, -1: none

  const Type& type(ValueId value) const { return values[static_cast<std::size_t>(value)].type; }
  const Value& value(ValueId value) const { return values[static_cast<std::size_t>(value)]; }
  const Node& producer(ValueId value) const {
    return nodes[static_cast<std::size_t>(values[static_cast<std::size_t>(value)].producer)];
  }
  const Node& node(NodeId node) const { return nodes[static_cast<std::size_t>(node)]; }
};

/// Positions of the outputs that update no input: those for which a caller has memory.
std::vector<std::size_t> own_outputs(const Graph& graph);

/// The nodes that use each value, in order (a node appears once for each operand it takes it as).
std::vector<std::vector<NodeId>> users_of(const Graph& graph);

/// The value as the text form prints it: its name, or "%<id>" when unnamed.
std::string display_name(const Graph& graph, ValueId value);

}  // namespace tenon::ir

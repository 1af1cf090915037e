// Which elements a node needs of its operands, as layouts, and which values a group reads from memory.
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <vector>

#include "ir/fusion/layout.h"

namespace tenon::ir::fusion {

/// The combined axes of a reduce or contract node inside a group, whose result lies at `result`; empty for any other
/// node.
using Combined = std::function<Layout(NodeId, const Layout& result)>;

/// Where operand `operand` of node `id` lies when its result lies at `result`.
Layout operand_layout(const Graph& graph, NodeId id, std::size_t operand, const Layout& result, const Layout& combined);

/// Where the result of the view `node` lies when its operand lies at `operand`: for reshape and transpose; nothing for
/// other nodes and where extents do not divide.
std::optional<Layout> viewed_layout(const Graph& graph, const Node& node, const Layout& operand);

/// What a walk from the outputs of a group back to memory meets: each value with the distinct layouts at which it is
/// needed, in the order found.
struct Needs {
  std::map<ValueId, std::vector<Layout>> read;                 ///< taken from memory
  std::map<ValueId, std::vector<Layout>> computed;             ///< computed in the group
  std::vector<ValueId> read_order;                             ///< first use, depth first
  std::size_t left = std::numeric_limits<std::size_t>::max();  ///< layouts that the walk may still add; at 0 it ended
};

/// Adds what `value` at `layout` needs. `from_memory(v)` says where the walk stops.
void demand(const Graph& graph, ValueId value, const Layout& layout, const std::function<bool(ValueId)>& from_memory,
            const Combined& combined, Needs& needs);

/// The axes of a finished group, kept ones first.
Domain domain_of(const Group& group);

/// What a finished group needs, from its outputs back to its inputs.
Needs needs_of(const Graph& graph, const Group& group);

}  // namespace tenon::ir::fusion

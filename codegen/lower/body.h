// From a group of the plan to the body of a kernel, driven by demand: a store asks for the value at its coordinates,
// and each node asks its operands at the coordinates that it needs. Views only change coordinates; a graph value that
// the group reads becomes a load. One mechanism serves every kernel class.
#pragma once

#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "codegen/kernel.h"

namespace tenon::codegen {

using Coordinates = std::vector<Index>;

/// The loops of a kernel before its body exists: the axes, where some values lie on them, and over which axes each
/// reduction or contraction of the group combines.
struct Domain {
  std::vector<Axis> axes;
  std::map<ir::ValueId, Coordinates> seeds;          ///< values whose coordinates define the domain
  std::map<ir::NodeId, std::vector<Index>> reduced;  ///< for each combined dimension of the node, its index
};

/// A logical loop of `extent`, cut into the given factors (outermost first): appends their axes to `domain` and returns
/// the loop's index. No factors: one axis.
Index add_loop(Domain& domain, const std::string& name, const Dim& extent, bool reduced,
               const std::vector<Dim>& factors);

/// Coordinates of `node`'s operand number `operand` when its result is at `result`. Not for concat, pad and take,
/// whose operands are conditional.
Coordinates operand_coordinates(const ir::Graph& graph, const ir::Node& node, std::size_t operand,
                                const Coordinates& result, const std::vector<Index>& reduced,
                                const IndexContext& context);

/// The inverse, where the node is a bijection between that operand and the result or the result forgets reduced axes;
/// nothing otherwise.
std::optional<Coordinates> result_coordinates(const ir::Graph& graph, const ir::Node& node, std::size_t operand,
                                              const Coordinates& at, const IndexContext& context);

/// The coordinates of every output of the group, found by walking from the domain's seeds along its nodes.
std::map<ir::ValueId, Coordinates> locate_outputs(const ir::Plan& plan, const ir::Group& group, const Domain& domain,
                                                  const Symbols& symbols);

/// Fills operands, body, stores and dims of `kernel`, whose axes and symbols are set.
void build_body(Kernel& kernel, const ir::Plan& plan, const ir::Group& group, const Domain& domain);

/// How each kernel class lays out its domain. `factors` holds, by loop name, the cuts found useful so far.
using LoopFactors = std::map<std::string, std::vector<Dim>>;
Domain map_domain(const ir::Plan& plan, const ir::Group& group, const LoopFactors& factors);
Domain reduce_domain(const ir::Plan& plan, const ir::Group& group, const LoopFactors& factors);
Domain contract_domain(const ir::Plan& plan, const ir::Group& group, const LoopFactors& factors);
Domain attend_domain(const ir::Plan& plan, const ir::Group& group, const LoopFactors& factors);

}  // namespace tenon::codegen

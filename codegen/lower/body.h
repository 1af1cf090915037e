// From a group of the plan to the body of a kernel, driven by demand: a store asks for the value at its coordinates,
// and each node asks its operands at the coordinates that it needs. Views only change coordinates; a graph value that
// the group reads becomes a load. One mechanism serves every kernel class.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "codegen/kernel/kernel.h"
#include "codegen/lower/one_rounding.h"

namespace tenon::codegen {

using Coordinates = std::vector<Index>;

/// The loops of a kernel before its body exists: its axes, the index of each of the group's kept and reduced extents on
/// them, and over which of these each reduction or contraction combines.
struct Domain {
  std::vector<Axis> axes;
  std::vector<Index> loops;                          ///< of Group::kept, then Group::reduced
  std::map<ir::NodeId, std::vector<Index>> reduced;  ///< for each combined dimension of the node, its index
};

/// By loop name, the factors into which a loop is cut, outermost first.
using LoopFactors = std::map<std::string, std::vector<Dim>>;

/// The loops of a group: one axis for each kept and reduced extent, or several where `factors` cuts it. `symbols`: what
/// the kernel's class knows of them.
Domain make_domain(const ir::Plan& plan, const ir::Group& group, const LoopFactors& factors, const Symbols& symbols);

/// The row-major offset, in its own array, of the element of a value with this layout at the domain's current point.
Index offset_of(const ir::Layout& layout, const Domain& domain, const IndexContext& context);

/// Its coordinates in an array of `shape`; nothing where an extent of `shape` is not made of whole digits.
std::optional<Coordinates> coordinates_of(const ir::Layout& layout, const Shape& shape, const Domain& domain,
                                          const IndexContext& context);

/// Coordinates of `node`'s operand number `operand` when its result is at `result`. Not for concat, pad and take,
/// whose operands are conditional.
Coordinates operand_coordinates(const ir::Graph& graph, const ir::Node& node, std::size_t operand,
                                const Coordinates& result, const std::vector<Index>& reduced,
                                const IndexContext& context);

struct BodyOptions {
  ValueUses uses;           ///< of the plan
  bool contraction = true;  ///< products and sums may be one fma
};

/// The parts of an attention in the body of its kernel; `combine` gives the instruction of a reduction's or
/// contraction's result (codegen/lower/attention.cpp).
Attention attention_in(const Kernel& kernel, const ir::Graph& graph, const ir::Attention& found,
                       const std::function<InstrId(ir::ValueId)>& combine);

/// Fills operands, body, stores and attention of `kernel`, whose axes and symbols are set.
void build_body(Kernel& kernel, const ir::Plan& plan, const ir::Group& group, const Domain& domain,
                const BodyOptions& options);

/// Sums over a row that select one of its elements become that element (codegen/lower/select.cpp).
void gather_selected(Kernel& kernel);

}  // namespace tenon::codegen

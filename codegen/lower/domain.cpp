// The loops of each kernel class, from the extents that the plan gives the group:
//   map       kept axes
//   reduce    kept axes, then the reduced ones
//   contract  batch axes, m, n, then k
//   attend    batch axes, i (queries), e (columns of v), then s (keys, the source) and d (columns of q)
// The last axes of contract and attend have fixed meanings and are never cut.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/lower/body.h"
#include "ir/fusion/layout.h"
#include "ir/graph/build.h"
#include "ir/graph/check.h"

namespace tenon::codegen {
namespace {

std::string loop_name(const ir::Group& group, std::size_t loop, std::size_t kept) {
  switch (group.kernel_class) {
    case ir::KernelClass::map: return fmt::format("i{}", loop);
    case ir::KernelClass::reduce: return loop < kept ? fmt::format("i{}", loop) : fmt::format("r{}", loop - kept);
    case ir::KernelClass::contract:
      return loop + 2 < kept ? fmt::format("b{}", loop) : std::string(1, "mnk"[loop + 2 - kept]);
    case ir::KernelClass::attend:
      return loop + 2 < kept ? fmt::format("b{}", loop) : std::string(1, "iesd"[loop + 2 - kept]);
  }
  return {};
}

// A loop cut into `extents` (outermost first): its axes, and its index on them.
Index add_loop(Domain& domain, const std::string& name, const std::vector<Dim>& extents, bool reduced) {
  Index index(0);
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const std::string axis_name = extents.size() == 1 ? name : fmt::format("{}_{}", name, i);
    index = index * extents[i] + Index::axis(static_cast<int>(domain.axes.size()));
    domain.axes.push_back({axis_name, extents[i], reduced});
  }
  return index;
}

// The indices of a reduction's reduced dimensions: those of extent 1 are at 0, the others take the group's loops in
// order.
std::vector<Index> match_reduced(const ir::Graph& graph, const ir::Node& node, const std::vector<Index>& loops) {
  const Shape& shape = graph.type(node.operands[0]).shape;
  std::vector<Index> indices;
  std::size_t next = 0;
  for (int axis : ir::reduced_axes(node, static_cast<int>(shape.size()))) {
    if (shape[static_cast<std::size_t>(axis)].is(1)) {
      indices.push_back(Index(0));
    } else {
      TENON_CHECK(next < loops.size(), "the reductions of a group have different reduced axes");
      indices.push_back(loops[next++]);
    }
  }
  return indices;
}

// Which loops each reduction and contraction of the group combines: reduced ones, an outer reduction the kept ones.
void assign_reduced(Domain& domain, const ir::Plan& plan, const ir::Group& group) {
  const std::vector<Index> reduced(domain.loops.begin() + static_cast<std::ptrdiff_t>(group.kept.size()),
                                   domain.loops.end());
  std::vector<Index> true_loops;  // reductions leave extents of 1 aside
  for (std::size_t i = 0; i < reduced.size(); ++i)
    if (!group.reduced[i].is(1)) true_loops.push_back(reduced[i]);
  std::vector<Index> kept_loops;  // of outer reductions
  for (std::size_t i = 0; i < group.kept.size(); ++i)
    if (!group.kept[i].is(1)) kept_loops.push_back(domain.loops[i]);
  for (ir::NodeId id : group.nodes) {
    const ir::Node& node = plan.graph.node(id);
    if (std::find(group.outer.begin(), group.outer.end(), id) != group.outer.end()) {
      domain.reduced[id] = match_reduced(plan.graph, node, kept_loops);
      continue;
    }
    const bool attend = group.kernel_class == ir::KernelClass::attend;
    if (ir::kind_of(node.op) == ir::Kind::contract) {
      domain.reduced[id] = {attend && id == group.attention.scores ? reduced.at(1) : reduced.at(0)};
    } else if (ir::kind_of(node.op) == ir::Kind::reduce && group.kernel_class != ir::KernelClass::map) {
      domain.reduced[id] = attend ? std::vector<Index>{reduced.at(0)} : match_reduced(plan.graph, node, true_loops);
    }
  }
}

// What a vector operand of a matmul leaves out of its result: the rows, the columns, or both.
struct MissingLoops {
  bool rows = false, columns = false;
};

MissingLoops missing_loops(const ir::Plan& plan, const ir::Group& group) {
  MissingLoops missing;
  if (group.kernel_class != ir::KernelClass::contract) return missing;
  for (ir::NodeId id : group.nodes) {
    const ir::Node& node = plan.graph.node(id);
    if (ir::kind_of(node.op) != ir::Kind::contract) continue;
    missing.rows = plan.graph.type(node.operands[0]).shape.size() == 1;
    missing.columns = plan.graph.type(node.operands[1]).shape.size() == 1;
  }
  return missing;
}

}  // namespace

Domain make_domain(const ir::Plan& plan, const ir::Group& group, const LoopFactors& factors, const Symbols& symbols) {
  Domain domain;
  const std::size_t kept = group.kept.size();
  const MissingLoops missing = missing_loops(plan, group);
  const std::size_t all_kept = kept + missing.rows + missing.columns;
  std::size_t position = 0;  // among the class's loops, the missing ones included
  const auto add = [&](const Dim& extent, bool reduced) {
    const std::string name = loop_name(group, position++, all_kept);
    const auto cut = factors.find(name);
    return add_loop(domain, name, cut == factors.end() ? std::vector<Dim>{extent} : cut->second, reduced);
  };
  for (std::size_t loop = 0; loop < kept; ++loop) {
    if (missing.rows && position + 2 == all_kept) add(Dim(1), false);
    // Values without columns are not written, but the rows of an attention are: at its first column.
    const bool no_columns =
        group.kernel_class == ir::KernelClass::attend && loop + 1 == kept && group.kept[loop].bounds(symbols).max <= 0;
    domain.loops.push_back(add(no_columns ? Dim(1) : group.kept[loop], false));
  }
  while (position < all_kept) add(Dim(1), false);
  for (const Dim& extent : group.reduced) domain.loops.push_back(add(extent, true));
  if (group.kernel_class == ir::KernelClass::map && kept == 0) add_loop(domain, "i", {Dim(1)}, false);
  if (group.kernel_class == ir::KernelClass::reduce && group.reduced.empty()) add_loop(domain, "r", {Dim(1)}, true);
  assign_reduced(domain, plan, group);
  return domain;
}

Index offset_of(const ir::Layout& layout, const Domain& domain, const IndexContext& context) {
  Index offset(0);
  for (const ir::Digit& digit : layout) {
    const Index& loop = domain.loops.at(static_cast<std::size_t>(digit.axis));
    offset = offset * digit.extent + mod(floor_div(loop, digit.divisor, context), digit.extent, context);
  }
  return offset;
}

std::optional<Coordinates> coordinates_of(const ir::Layout& layout, const Shape& shape, const Domain& domain,
                                          const IndexContext& context) {
  const auto pieces = ir::fusion::segments(layout, shape);
  if (!pieces) return std::nullopt;
  Coordinates coordinates;
  for (const ir::Layout& piece : *pieces) coordinates.push_back(offset_of(piece, domain, context));
  return coordinates;
}

}  // namespace tenon::codegen

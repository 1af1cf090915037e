// Masks that are added to the scores of an attention: 0 where a query sees a key, -inf elsewhere, alone or in a sum
// with a bias. Such a sum is a selection, and becomes one as the body is built, so that masks have one form: what
// bounds the keys (codegen/analysis/key_bounds.h) and what tells tiles of them apart (tile_tests.h) find it however the
// user wrote it. A score that is not finite is hidden too (docs/numerics.md).
#pragma once

#include <functional>
#include <set>
#include <vector>

#include "codegen/kernel/kernel.h"

namespace tenon::codegen {

/// A selection against -inf: of another value where `condition` is `holds`.
struct Mask {
  InstrId condition = -1;
  bool holds = true;
  InstrId nothing = -1;  ///< -inf
};

/// Puts an instruction behind the others of a body.
using Append = std::function<InstrId(Instr)>;

/// The sums of the graph that the score is made of last, through selections, casts and views.
std::set<ir::NodeId> sums_of_score(const ir::Graph& graph, const ir::Attention& attention);

/// The selection between the scores and the score where it is the only one, nothing but sums, casts and views stands
/// behind it, and the score reads no operand but queries and keys beside its condition; -1 elsewhere.
ir::NodeId lone_selection(const ir::Graph& graph, const ir::Attention& attention);

/// Whether the value is a literal so low that, added to a score or in place of it, it leaves no weight beside that of
/// another key.
bool is_lowest(const Kernel& kernel, InstrId id);

/// `id` where no mask hides it, the masks added to `masks`: behind casts between reals, and roundings, which are made
/// anew.
InstrId unmasked(const Kernel& kernel, InstrId id, std::vector<Mask>& masks, const Append& append);

/// `id` where all masks leave it, else -inf.
InstrId masked(const Kernel& kernel, InstrId id, const std::vector<Mask>& masks, const Append& append);

/// x + y as terms of a score, -1 where neither has a mask. `add` makes the sum of what no mask hides; a term of 0 has
/// none.
InstrId masked_sum(const Kernel& kernel, InstrId x, InstrId y, const Append& append,
                   const std::function<InstrId(InstrId, InstrId)>& add);

}  // namespace tenon::codegen

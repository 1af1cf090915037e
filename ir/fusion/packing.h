// Horizontal packing: small groups that need nothing of each other become members of one pack, which CUDA runs as one
// launch. The last step of the planner: groups stay what they are, only their order changes.
#pragma once

#include "ir/fusion/partition.h"

namespace tenon::ir::fusion {

/// Groups in launch order with the packs among them.
struct Packing {
  std::vector<std::size_t> order;       ///< positions in the groups that were given; members lie side by side
  std::vector<std::vector<int>> packs;  ///< positions in `order`
  std::vector<Refusal> refusals;        ///< groups are positions in `order`
};

/// Packs `groups`, which can run in their order: a sweep that moves a group forward to a pack, or the pack back to the
/// group, where what they read is made before and what they make is read behind. `clusters`: what each group was made
/// of. No pack where options.max_live_bytes would be exceeded.
Packing pack_groups(const Context& context, const std::vector<Group>& groups,
                    const std::vector<const Cluster*>& clusters);

}  // namespace tenon::ir::fusion

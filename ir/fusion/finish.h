// From the final clusters to the groups of a plan.
#pragma once

#include "ir/fusion/partition.h"

namespace tenon::ir::fusion {

/// Lets clusters store a result in the layout in which everyone needs it (a chain of reshapes and transposes that is
/// the result's only use). Returns the view for each value that is replaced so, -1 for the others.
std::vector<ValueId> absorb_views(const Context& context, Partition& partition);

/// The groups in an order in which they can run (one that keeps within options.max_live_bytes, or Error(resource)), and
/// for each cluster the number of its group.
std::vector<Group> make_groups(const Context& context, const Partition& partition, std::vector<int>& group_of);

}  // namespace tenon::ir::fusion

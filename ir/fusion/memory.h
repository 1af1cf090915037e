// How much memory the intermediates of a plan take while it runs: each lives from the kernel that makes it to the last
// one that reads it. Sizes are those of the typical binding; graph inputs and results are the caller's.
#pragma once

#include "ir/fusion/partition.h"

namespace tenon::ir::fusion {

/// Most bytes alive at once when the clusters run in `order`.
double peak_live_bytes(const Context& context, const Partition& partition, const std::vector<int>& order);

/// The same after `second` merged into `first`, for which order.convex(first, second) has just returned true.
double peak_live_bytes_after(const Context& context, const Partition& partition, const Order& order, int first,
                             int second);

/// The same of groups, each of which runs at its one of `steps`.
double peak_live_bytes(const Context& context, const std::vector<Group>& groups, const std::vector<int>& steps);

/// Groups in an order in which they can run that keeps little alive: of those that can run next, the one that adds
/// least, then the one with most kernels waiting for it in a row. Not the best order (finding it is NP-hard: Sethi,
/// "Complete register allocation problems", 1975). `order` is any in which they can run.
std::vector<std::size_t> frugal_order(const Context& context, const std::vector<Group>& groups,
                                      const std::vector<std::size_t>& order);

/// "1.5 MB".
std::string bytes_text(double bytes);

}  // namespace tenon::ir::fusion

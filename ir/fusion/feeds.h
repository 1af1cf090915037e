// How the operands of a product come to warpgroups (sm_90a). One thread asks for boxes of what lies in memory as it is
// multiplied. What is computed on its way in threads bring element by element, again for every tile: a kernel of its
// own that stores it may take less time than that.
#pragma once

#include "ir/fusion/cluster.h"

namespace tenon::ir::fusion {

/// Fills what a Contract cluster of one matmul knows of its operands: Cluster::boxed, computed and shares.
void find_feeds(const Context& context, NodeId matmul, Cluster& cluster);

/// From now on the operand of a Contract cluster that lies at `layout` is computed on its way in.
void compute_operand(Cluster& cluster, const Layout& layout);

/// Microseconds in which threads bring the operands of a Contract cluster that boxes would bring if they were in
/// memory; 0 where there are none.
double feed_us(const Context& context, const Cluster& cluster);

/// Marks maps to be stored (no longer cloned) of which a product needs the results as such operands: as clusters of
/// their own they join it where that takes less time. `attention`: whose products are not looked at.
void price_cloned_operands(Context& context, const AttentionSearch& attention);

}  // namespace tenon::ir::fusion

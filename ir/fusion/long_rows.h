// Rows that are needed again after their reduction. Blocks hold short ones; what none can hold is read by one block,
// and again in each further sweep. Where there are few such rows, kernels apart may be faster: one sweep each, cut in
// parts over the whole device, and then a map over all elements. cut_into_groups predicts both.
#pragma once

#include "ir/fusion/cluster.h"
#include "ir/fusion/legality.h"

namespace tenon::ir::fusion {

/// Whether more of what each element of each row of a Reduce cluster reads lies across the rows than along them, as
/// codegen's column_wise() has it.
bool lies_in_columns(const Context& context, const Cluster& cluster);

/// Microseconds of the memory traffic of a kernel that needs its rows again and moves `bytes`: one block holds a row; a
/// longer one as many as it takes, a power of two, together; what no number of blocks can hold is read by one block,
/// and again in each further sweep, from the cache if all rows fit there.
double rows_us(const Context& context, const Cluster& cluster, double bytes);

/// Whether the sweeps of a Reduce cluster would take less time as kernels of their own, which read its rows as often.
bool are_better_apart(const Context& context, const Cluster& cluster);

/// Where Context::rows_apart: that no merge makes such a kernel.
Verdict check_rows(const Context& context, const Cluster& a, const Cluster& b, const Cluster& merged);

}  // namespace tenon::ir::fusion

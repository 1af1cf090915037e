// Results of rows that lie across them in memory: a norm whose result is transposed. What neighbours in a row store is
// rows apart, so that each element costs a sector of memory, however narrow it is. A kernel that stores the rows as
// they lie, or their statistics alone, and a map that turns them through tiles may be faster. cut_into_groups predicts
// both.
#pragma once

#include "ir/fusion/cluster.h"
#include "ir/fusion/legality.h"

namespace tenon::ir::fusion {

/// Microseconds by which a Reduce cluster that reads along its rows takes longer because of results that lie across
/// them. 0 for rows of up to 1024 elements that follow one another as they do in the result: a block has enough of
/// these side by side (codegen/schedule/reduce_staged.cpp).
double across_us(const Context& context, const Cluster& cluster);

/// Whether a map apart, which reads what the rows leave in memory, would take less time than that of these results.
bool is_better_turned(const Context& context, const Cluster& cluster, const std::vector<Result>& results);

/// Where Context::turned_apart: that no merge makes such a kernel.
Verdict check_across(const Context& context, const Cluster& a, const Cluster& b, const Cluster& merged);

}  // namespace tenon::ir::fusion

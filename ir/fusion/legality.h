// Two clusters as one kernel, in the two ways that there are: a map computed inside its consumer (legality_absorb.cpp),
// and work on the domain of another cluster (legality_extend.cpp), with what both need. legality.cpp chooses between
// them.
#pragma once

#include <string>

#include "ir/fusion/cluster.h"

namespace tenon::ir::fusion {

/// `producer`, a map, computed wherever `consumer` reads what it makes. `merged` holds all but its nodes where the
/// verdict is legal, and nothing to rely on otherwise.
Verdict absorb(const Context& context, const Cluster& producer, const Cluster& consumer,
               const NeededElsewhere& elsewhere, Cluster& merged);

/// `consumer` on the domain of `producer`, which reduces or contracts: each point needs what is made at that point.
Verdict extend(const Context& context, const Cluster& producer, const Cluster& consumer,
               const NeededElsewhere& elsewhere, Cluster& merged);

/// The same where each axis of `consumer` is the one of `producer` that `axes` says. What a consumer reads of the
/// producer's results must be plain.
Verdict extend_along(const Context& context, const Cluster& producer, const Cluster& consumer, const AxisMap& axes,
                     const NeededElsewhere& elsewhere, Cluster& merged);

/// Whether two contractions have the same first operand, the same axes, and second operands that lie alike, so that the
/// tensor cores can take both as one matrix of twice the columns.
bool may_pair(const Cluster& producer, const Cluster& consumer);

/// Both as one kernel, where may_pair holds and `consumer` needs what `producer` makes at each of its points.
Verdict pair(const Context& context, const Cluster& producer, const Cluster& consumer, const NeededElsewhere& elsewhere,
             Cluster& merged);

/// `guest` on the domain of `host`, whose axes it shares by what both read.
Verdict host_sibling(const Context& context, const Cluster& host, const Cluster& guest, Cluster& merged);

/// A refusal: the rule, and the reason in words.
inline Verdict no(Rule rule, std::string reason) { return {rule, std::move(reason)}; }

/// The value's own name, or "the result of add".
std::string name(const Context& context, ValueId value);

/// "[n, 4096]": axes `first` to `last` of a domain.
std::string extents(const Domain& domain, int first, int last);

/// "[n] x [4096]": kept axes, and those that are reduced.
std::string describe(const Domain& domain);

Verdict different_domain(const Cluster& a, const Cluster& b);

/// Whether `merged`, the two as one kernel, repeats no more than the limit, or no more than one of them does already.
Verdict check_places(const Context& context, const Cluster& a, const Cluster& b, const Cluster& merged);

/// Layouts of one domain on another: most often the axes are the same, and nothing changes.
class Rebase {
 public:
  Rebase(const Domain& from, const Domain& to, const AxisMap& map)
      : from_(from), map_(map), identity_(is_identity(map, from, to)) {}
  Layout operator()(const Layout& layout) const { return identity_ ? layout : substitute(layout, from_, map_); }

 private:
  const Domain& from_;
  const AxisMap& map_;
  bool identity_;
};

/// In the order of values; a layout that is there already is not added again.
void add_read(std::vector<Read>& reads, const Read& of, const Layout& layout);
void add_result(std::vector<Result>& results, Result result);

/// Whether a result on `digits` of the domain can be stored by a kernel of this class: it covers the kept axes, all
/// axes, or (attend) one number for each row.
bool storable(const Cluster& cluster, const Layout& digits);

/// Whether blocks that walk over the rows of `cluster`, with outer reductions beside them, would read what it reads
/// along the rows; legal where it has no outer reductions.
Verdict check_outer_reads(const Context& context, const Cluster& cluster);

/// The digits of all axes that are mapped.
Layout image_of(const AxisMap& map);

}  // namespace tenon::ir::fusion

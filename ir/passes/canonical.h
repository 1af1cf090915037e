// What canonicalize's rules see and make. Internal to canonicalize*.cpp.
#pragma once

#include <optional>
#include <vector>

#include "ir/graph/graph.h"

namespace tenon::ir {

/// A node that is about to be appended; its operands are in the new graph and canonical.
struct Draft {
  Op op;
  std::vector<ValueId> operands;
  Attrs attrs;
  Type type;  ///< of its one result
  Place place;
};

class Canonical {
 public:
  explicit Canonical(Graph& graph) : graph_(graph) {}

  const Graph& graph() const { return graph_; }
  const Type& type(ValueId value) const { return graph_.type(value); }
  const Node& producer(ValueId value) const { return graph_.producer(value); }
  /// The operand of `value`'s producer when that is `op`, or nothing.
  std::optional<ValueId> under(Op op, ValueId value) const;
  /// What every element of `value` is, when that is known.
  std::optional<Scalar> constant(ValueId value) const;
  /// Whether the value has been rounded to its dtype: a narrow real need not be until it is stored or cast.
  bool is_rounded(ValueId value) const;

  /// Appends the draft in its canonical form.
  ValueId append(Draft draft);
  /// As append, with the type inferred.
  ValueId append(Op op, std::vector<ValueId> operands, Attrs attrs, const Place& place);
  ValueId full(const Type& type, const Scalar& value, const Place& place);
  /// `value` with the shape that `draft` has.
  ValueId broadcast(ValueId value, const Draft& draft);

 private:
  Graph& graph_;
  std::vector<bool> rounded_;  // by ValueId, grown on demand
};

/// Each returns what stands for the draft, or nothing when it is canonical already. They may edit the draft, to
/// spell the same node better.
std::optional<ValueId> canonical_map(Canonical& c, Draft& draft);
std::optional<ValueId> canonical_view(Canonical& c, Draft& draft);
std::optional<ValueId> canonical_reduce(Canonical& c, Draft& draft);

/// Of integers instead of the reals that they became (canonicalize_comparison.cpp).
std::optional<ValueId> canonical_comparison(Canonical& c, const Draft& draft);

/// Tests of elements, and any and all of them, that are the same for a whole row (canonicalize_row.cpp).
std::optional<ValueId> canonical_row_test(Canonical& c, const Draft& draft);
std::optional<ValueId> canonical_row_quantifier(Canonical& c, const Draft& draft);

}  // namespace tenon::ir

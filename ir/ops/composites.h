// How composites are written: one function each, named expand_<op>, over an Expansion that appends to the graph.
// Internal to ir/. A row of ops.def without its function does not link.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "ir/graph/build.h"

namespace tenon::ir {

/// One composite being expanded: its operands and attributes (defaults filled in), and shorthands for appending.
class Expansion {
 public:
  Expansion(Graph& graph, const std::vector<ValueId>& given, const Attrs& complete, const Place& place)
      : operands(given), attrs(complete), graph_(graph), place_(place) {}

  const std::vector<ValueId>& operands;
  const Attrs& attrs;

  Type type(ValueId value) const { return graph_.type(value); }  // a copy: appending moves the values
  DType dtype(ValueId value) const { return graph_.type(value).dtype; }
  Shape shape(ValueId value) const { return graph_.type(value).shape; }
  int rank(ValueId value) const { return static_cast<int>(graph_.type(value).shape.size()); }
  const Symbols& symbols() const { return graph_.symbols; }

  ValueId operator()(Op op, std::initializer_list<ValueId> op_operands, Attrs op_attrs = {}) const;
  /// A rank-0 constant of the dtype of `like`.
  ValueId literal(double value, ValueId like) const;
  ValueId literal(double value, DType dtype) const;
  /// `value` itself when it has the dtype already.
  ValueId cast(ValueId value, DType dtype) const;
  /// `value` itself when it has the shape already.
  ValueId reshape(ValueId value, const Shape& shape) const;
  /// The value of a dimension: a literal when it is constant.
  ValueId dimension(const Dim& dim, DType dtype) const;
  ValueId concat(const std::vector<ValueId>& pieces, int axis) const;
  ValueId reduce(Op op, ValueId value, const std::vector<int>& axes, bool keepdims) const;

  /// The axes that the attribute `axis` names for an operand of this rank; all when absent.
  std::vector<int> axes(int rank) const;

  void require_real(ValueId value) const;
  /// Real, and cast to the type in which its arithmetic is done (f32 for 16-bit and 8-bit reals).
  ValueId widened(ValueId value) const;

 private:
  Graph& graph_;
  const Place& place_;
};

/// The shape with the extents at `axes` (sorted) replaced by 1.
Shape keep_axes(Shape shape, const std::vector<int>& axes);
/// The product of the extents at `axes`.
Dim extent_of(const Shape& shape, const std::vector<int>& axes);

// What composites share with each other.
ValueId mean_of(const Expansion& e, ValueId x, const std::vector<int>& axes, bool keepdims);
ValueId logsumexp_of(const Expansion& e, ValueId x, const std::vector<int>& axes, bool keepdims);
ValueId silu_of(const Expansion& e, ValueId x);
/// f32 uniform on [0, 1) from 24 bits of word `word` (-1: one block for four elements).
ValueId uniform_f32(const Expansion& e, ValueId seed, const Shape& shape, std::int64_t stream, int word);

#define TENON_COMPOSITE(name, ...) std::vector<ValueId> expand_##name(const Expansion& e);
#include "ir/ops.def"

}  // namespace tenon::ir

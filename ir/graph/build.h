// How a graph grows: each call checks the operands, infers the result types and appends one node.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ir/graph/graph.h"

namespace tenon::ir {

/// The result types of `op` on operands of these types. Throws Error(type) that names the op, the shapes and the
/// remedy. Composites are inferred by expanding them, so that they have one meaning.
std::vector<Type> infer(Op op, std::span<const Type> operands, const Attrs& attrs, const Symbols& symbols);

/// Appends `op`; returns its results. Errors are said to be at `place`.
std::vector<ValueId> append(Graph& graph, Op op, std::vector<ValueId> operands, Attrs attrs = {}, Place place = {});

/// As append, for ops with one result.
ValueId append_one(Graph& graph, Op op, std::vector<ValueId> operands, Attrs attrs = {}, Place place = {});

/// Appends an input and names it.
ValueId append_input(Graph& graph, const std::string& name, DType dtype, Shape shape, Place place = {});

/// A rank-0 literal of `dtype`; the scalar must be representable (Error(type) otherwise: 1.5 as i32, 300 as u8).
ValueId append_literal(Graph& graph, Scalar value, DType dtype, Place place = {});

/// Marks `value` as a result under `name` (unique among results).
void append_output(Graph& graph, ValueId value, const std::string& name);

/// A result that updates `input`: a run leaves it in the input's memory. Error(type) where `input` is none, has another
/// dtype or shape, or is updated already.
void append_update(Graph& graph, ValueId value, const std::string& name, ValueId input, Place place = {});

/// The shape to which these broadcast by NumPy's rules; Error(type) when they do not.
Shape broadcast(std::span<const Shape> shapes);

/// `attrs` with ops.def's defaults filled in for what was not given.
Attrs with_defaults(Op op, const Attrs& attrs);

/// Axes as the user wrote them (negative from the end), checked against `rank`, sorted, distinct.
std::vector<int> normalize_axes(const std::vector<std::int64_t>& axes, int rank);

/// The axes over which a reduce node reduces: `axis`, or all when absent.
std::vector<int> reduced_axes(const Node& node, int operand_rank);

/// Expands the composite `op` into `graph`, primitives and composites alike, and returns its results.
/// Operands have been checked for count only.
std::vector<ValueId> expand_composite(Graph& graph, Op op, const std::vector<ValueId>& operands, const Attrs& attrs,
                                      const Place& place);

/// Throws Error(internal) with the graph printed when it breaks an invariant: operands defined before use, types as
/// inferred, names unique, attributes in the op's signature.
void verify(const Graph& graph);

}  // namespace tenon::ir

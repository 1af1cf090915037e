// Inference, one function for each kind of op; ir/ops/infer.cpp picks one and puts the op's name before its errors.
// Internal to ir/: everybody else appends through ir/graph/build.h.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ir/graph/graph.h"

namespace tenon::ir {

/// What an inference function sees. `attrs` is complete: ops.def's defaults are filled in.
struct Inference {
  Op op;
  std::span<const Type> operands;
  const Attrs& attrs;
  const Symbols& symbols;
};

/// Throws Error(type). The op's name is put in front of `message` on the way out of infer().
[[noreturn]] void type_error(const std::string& message, const std::string& remedy);

/// Whether every binding of the symbols makes `dim` at least `value`.
bool at_least(const Dim& dim, std::int64_t value, const Symbols& symbols);

/// Checks what holds for every type: rank, extents that cannot be negative, an element count within 2^62.
void check_type(const Type& type, const Symbols& symbols);

/// The broadcast shape of these operands; the error shows their types.
Shape broadcast_types(std::span<const Type> types);

/// One axis, negative from the end.
int normalize_axis(std::int64_t axis, int rank);

/// `value` as `dtype` holds it: a double, an integer or a bool. Error(type) when it cannot.
Scalar fit_scalar(const Scalar& value, DType dtype);

Type infer_map(const Inference& in);
Type infer_reduce(const Inference& in);
Type infer_view(const Inference& in);
Type infer_source(const Inference& in);
Type infer_random(const Inference& in);
Type infer_matmul(const Inference& in);
std::vector<Type> infer_composite(const Inference& in);

/// `attrs` in the order of the op's signature, with values in the signature's types (an int where a real, a list or
/// dims are wanted). Error(type) for unknown, missing or mistyped attributes.
Attrs normalize_attributes(Op op, Attrs attrs);

/// Appends a node without checks or inference: for passes that copy what has been inferred.
std::vector<ValueId> push_node(Graph& graph, Node node, std::vector<Type> types);

}  // namespace tenon::ir

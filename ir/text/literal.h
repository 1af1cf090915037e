// Scalar literals: which dtype one takes, how one is written, and which values are written as one.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/graph/graph.h"

namespace tenon::ir {

/// The dtype of a literal as operand `index` of `op`: a dtype of its own for seeds and indices (i64) and conditions
/// (bool), else that of the first operand of the same class that is no literal. `operands` holds nothing for literals.
std::optional<DType> literal_dtype(Op op, std::size_t index, std::span<const std::optional<DType>> operands);

/// "0.1", "2.0", "1e-05", "-inf", "nan": the shortest text that reads back as `value` and as no integer.
std::string format_real(double value);
/// `value` as a literal of `dtype`: for reals up to f32 the shortest text that reads back as the same f32.
std::string format_scalar(const Scalar& value, DType dtype);
/// As format_scalar, where no dtype is known.
std::string format_scalar(const Scalar& value);

/// `value` as the kind of literal that `dtype` has: a real for reals, an integer for integers.
Scalar canonical_scalar(const Scalar& value, DType dtype);

/// The same element of `dtype`: reals up to f32 compare as f32, NaN equals NaN, zeros by sign.
bool same_scalar(const Scalar& a, const Scalar& b, DType dtype);
bool same_real(double a, double b);

/// Whether `value` is the result of a rank-0 `full`.
bool is_literal(const Graph& graph, ValueId value);

/// For each value, whether the text form writes it inside the calls that use it: an unnamed literal that takes the
/// right dtype wherever it is used, and is no output.
std::vector<bool> inline_literals(const Graph& graph);

}  // namespace tenon::ir

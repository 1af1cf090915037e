// One map op or one step of a reduction on scalars: ops.def's expressions as functions. What the interpreter and
// constant folding call.
#pragma once

#include <cstdint>
#include <span>

#include "ir/graph/graph.h"
#include "ir/ops/op.h"
#include "tenon/dtype.h"

namespace tenon::ir {

using RealFunction = double (*)(double a, double b, double c);
using IntegerFunction = std::int64_t (*)(std::int64_t a, std::int64_t b, std::int64_t c);

/// The table's meaning of a map op, or a reduction's combining step; null where the table says NONE. Operands beyond
/// the op's count are ignored; a comparison yields 0 or 1. Nothing is rounded or wrapped to a dtype.
RealFunction real_function(Op op);
IntegerFunction integer_function(Op op);

/// The value of an empty reduction over `dtype`; only for reductions that have one.
double real_identity(Op op);
std::int64_t integer_identity(Op op, DType dtype);

/// A map op on literals: operands of `operand_dtype` (of `where`: of its second and third) give a literal of
/// `result_dtype`, rounded or wrapped to it.
Scalar evaluate(Op op, DType operand_dtype, DType result_dtype, std::span<const Scalar> operands);

/// What `cast` and `bitcast` mean on one literal.
Scalar convert(Scalar value, DType from, DType to);
Scalar reinterpret(Scalar value, DType from, DType to);

}  // namespace tenon::ir

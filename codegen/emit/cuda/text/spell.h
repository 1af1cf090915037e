// How dtypes, literals and conversions are written in generated CUDA. Relies on codegen/prelude for the names.
//
// An element has two forms: in memory ("storage": bf16, u8 for bool) and in a register ("value": the compute type).
#pragma once

#include <string>

#include "ir/graph/graph.h"
#include "tenon/dtype.h"

namespace tenon::codegen::cuda {

/// "bf16", "float", "u8": an element in memory.
std::string storage_type(DType dtype);
/// "float", "i64", "bool": an element in a register.
std::string value_type(DType dtype);

/// `scalar` as a value of `dtype`: "0x1.8p-1f", "i8(3)", "-inf_f32()", "true".
std::string literal(const ir::Scalar& scalar, DType dtype);

/// An element in memory, `text`, as a value.
std::string decoded(const std::string& text, DType dtype);
/// The value `text` of `from` as an element of `to` in memory, rounded once.
std::string encoded(const std::string& text, DType from, DType to);
/// `cast`: the value `text` of `from` as a value of `to`, rounded to it.
std::string converted(const std::string& text, DType from, DType to);
/// `bitcast`: the value whose element of `to` has the bits of the element of `from`.
std::string reinterpreted(const std::string& text, DType from, DType to);

/// `text` in parentheses unless it is one word, call or subscript.
std::string parenthesized(const std::string& text);

}  // namespace tenon::codegen::cuda

// The parts of the text form below statements: dimensions, types, literals and attribute values.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "ir/graph/graph.h"
#include "ir/ops/op.h"
#include "ir/text/cursor.h"

namespace tenon::ir {

/// Which symbols a dimension may name: those known already, or, in a signature, any.
enum class SymbolUse : std::uint8_t { known, declare };

/// An expression over symbols: "rows", "2*rows + 1", "floordiv(rows, 4)", "-1".
Dim parse_dim(Cursor& cursor, Symbols& symbols, SymbolUse use);
/// The same from a text of its own (JSON); errors are at `place`.
Dim parse_dim_text(std::string_view text, Symbols& symbols, SymbolUse use, const Place& place);

/// "f32[rows, 4]", "f32[]" or "f32".
Type parse_type(Cursor& cursor, Symbols& symbols, SymbolUse use);

/// An integer with its sign; the error that there is none carries `remedy`.
std::int64_t parse_integer(Cursor& cursor, const std::string& remedy = {});
/// Whether f64 holds `value` and its neighbours exactly.
bool is_exact_real(std::int64_t value);
/// A literal when one stands here: a number, inf, nan, true or false, with its sign.
std::optional<Scalar> accept_scalar(Cursor& cursor);

/// The value of attribute `spec` of `op`.
AttrValue parse_attr_value(Cursor& cursor, const OpInfo& op, const AttrSpec& spec, Symbols& symbols);

/// `shape` as the extents of a declared value: not negative, at most kMaxRank; Error(type) at `place` otherwise.
void check_declared_shape(const Shape& shape, const Place& place);

/// Adds `name` with the bounds of any dimension; Error(resource) beyond kMaxSymbols.
void declare_symbol(Symbols& symbols, const std::string& name, const Place& place);

}  // namespace tenon::ir

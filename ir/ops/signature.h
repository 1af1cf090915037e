// What a front end checks of a call before inference: the op exists, its attributes are its own, none is missing.
// The text and the JSON reader share these, so that both give the same messages.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/ops/op.h"

namespace tenon::ir {

/// "sum(x, axis: ints = none, keepdims: bool = false, dtype: dtype = none)".
std::string signature(const OpInfo& op);

/// The op spelled `name`; Error(parse) with the likely spelling.
const OpInfo& op_named(std::string_view name, const Place& place);
/// The dtype spelled `name`; Error(parse) with the likely spelling.
DType dtype_named(std::string_view name, const Place& place);
/// The attribute `name` of `op`; Error(type) with the likely spelling and the signature.
const AttrSpec& attr_named(const OpInfo& op, std::string_view name, const Place& place);

/// Error(type): `spec` was given `found`, which is of another type. `meant` is the value to write instead, if known.
[[noreturn]] void fail_attr_type(const OpInfo& op, const AttrSpec& spec, const std::string& found, const Place& place,
                                 const std::string& meant = {});

/// Error(type) when `op` does not take `count` operands.
void check_operand_count(const OpInfo& op, std::size_t count, const Place& place);

/// The given attributes in the signature's order; Error(type) when a required one is missing.
Attrs in_signature_order(const OpInfo& op, std::vector<std::pair<std::string, AttrValue>> given, const Place& place);

}  // namespace tenon::ir

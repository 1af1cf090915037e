// Small graphs in the text form that call an op: tests that must hold for every row of the op table walk these.
#pragma once

#include <string>
#include <vector>

#include "ir/ops/op.h"

namespace tenon::ir {

/// Graphs of one call each, for every operand dtype that a map or reduction takes, and for the attributes of the rest.
/// Never empty, save for Op::input.
std::vector<std::string> sample_calls(const OpInfo& op);

}  // namespace tenon::ir

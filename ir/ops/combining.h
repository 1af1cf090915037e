// Reductions as maps of two elements.
#pragma once

#include <optional>

#include "ir/ops/op.h"

namespace tenon::ir {

/// The map that combines two elements as a reduction does; nothing where it finds an index.
std::optional<Op> combining(Op reduction);

}  // namespace tenon::ir

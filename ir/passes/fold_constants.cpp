#include "ir/passes/passes.h"

namespace tenon::ir {
Graph fold_constants(const Graph& graph) { return graph; }
}  // namespace tenon::ir

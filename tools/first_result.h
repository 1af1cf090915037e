// How long a fresh process takes to its first result.
#pragma once

#include <string>

#include "ir/graph/graph.h"
#include "tenon/compile.h"

namespace tenon::tools {

struct FirstResult {
  double device_ms = 0;  ///< opening the target: driver, context, compiler library
  double first_ms = 0;   ///< from the graph to its result: plan, compile or load from the cache, launch, wait
  int kernels = 0;
  int compiles = 0;  ///< kernels that no cache had
};

/// By the host's clock, once, and only the first call in a process is a first result. Inputs are zeros that lie in the
/// target's memory before the clock starts. Error: whatever compiling and running may throw.
FirstResult first_result(const ir::Graph& graph, const Bindings& bindings, const std::string& target,
                         const Options& options);

}  // namespace tenon::tools

// A small graph that shows what an operator does, with numbers.
#pragma once

#include <string>
#include <vector>

#include "ir/interpret/interpret.h"
#include "ir/ops/op.h"

namespace tenon::tools {

struct OpExample {
  ir::Graph graph;
  Bindings bindings;
  std::vector<ir::HostArray> inputs, outputs;  ///< the outputs are the interpreter's
};

/// Every operator of the table has one.
OpExample example_of(const ir::OpInfo& op);

}  // namespace tenon::tools

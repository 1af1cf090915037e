// The names that the printers give to values: the user's where they can be read back, made-up ones elsewhere.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/graph.h"

namespace tenon::ir {

/// Whether the text form reads `name` as something other than a value.
bool is_reserved(std::string_view name);

struct Names {
  std::string graph;
  std::vector<std::string> values;   ///< by ValueId; empty for inlined literals
  std::vector<std::string> outputs;  ///< by position
};

/// Unique identifiers for everything that `graph` prints; `inlined` as from inline_literals.
Names printed_names(const Graph& graph, const std::vector<bool>& inlined);

/// The first of "out<position>", "out<position + 1>", … that `taken` does not hold.
std::string output_name(std::size_t position, const std::vector<std::string>& taken);

}  // namespace tenon::ir

// Checks that both readers make of what a file declares.
#pragma once

#include <cstddef>
#include <set>
#include <string>

#include "ir/graph/graph.h"

namespace tenon::ir {

/// Error(resource) for a text beyond kMaxFileBytes.
void check_file_size(std::size_t bytes, const std::string& file);
/// Error(resource) when no node may be added any more.
void check_node_count(const Graph& graph, const Place& place);
/// Error(resource) when `count` inputs, or outputs, are all there may be.
void check_border_count(std::size_t count, const Place& place);
/// Error(type) when no value of the symbol can satisfy `bounds`.
void check_bounds(const std::string& symbol, const SymbolBounds& bounds, const Place& place);
/// Error(type) when a symbol is neither an input's whole extent nor named in `bound_by_caller`.
void check_symbols_decided(const Graph& graph, const std::set<std::string>& bound_by_caller, const Place& place);

/// The symbols that some input has as a whole extent, so that its shape decides them.
std::set<std::string> decided_symbols(const Graph& graph);

}  // namespace tenon::ir

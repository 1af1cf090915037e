// What a graph file may hold. Files are untrusted: beyond these sizes a reader stops with an Error(resource) or
// Error(parse), so that hostile input costs bounded time and memory.
#pragma once

#include <cstddef>

namespace tenon::ir {

inline constexpr std::size_t kMaxFileBytes = std::size_t{64} << 20;
inline constexpr std::size_t kMaxNodes = 1'000'000;       ///< nodes of a graph, its inputs among them
inline constexpr int kMaxNesting = 200;                   ///< calls in calls (text), arrays and objects (JSON)
inline constexpr std::size_t kMaxNameLength = 64;         ///< of values, graphs, dimensions and strings
inline constexpr std::size_t kMaxListLength = 4096;       ///< items of one attribute
inline constexpr std::size_t kMaxOperands = 4096;         ///< operands of one call
inline constexpr int kMaxDimTokens = 128;                 ///< numbers and names in one dimension expression
inline constexpr std::size_t kMaxInputs = 16'384;         ///< inputs of a graph, and outputs
inline constexpr std::size_t kMaxSymbols = 1024;          ///< dimension symbols of a graph
inline constexpr std::size_t kMaxJsonValues = 8'000'000;  ///< values in a JSON file

}  // namespace tenon::ir

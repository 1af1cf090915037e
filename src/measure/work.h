// What a graph cannot avoid, however it is fused: the bytes it must move and the multiplications it must do. Rates of
// these are the same measure for every plan and every peer.
#pragma once

#include <cstdint>

#include "ir/graph/graph.h"

namespace tenon::src {

/// Inputs that are used and distinct outputs, each once. Of an input that is only gathered from or sliced, behind
/// casts, other maps and views too, as much as is taken.
std::int64_t unavoidable_bytes(const ir::Graph& graph, const Bindings& bindings);

/// Two for each multiplication of the matmuls and attentions that the user wrote; masked scores are not counted.
double contraction_flops(const ir::Graph& graph, const Bindings& bindings);

}  // namespace tenon::src

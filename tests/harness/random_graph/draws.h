// The kinds of draw, each of which appends one operator or a pattern of a few. True where something was appended.
#pragma once

#include <span>

#include "tests/harness/random_graph/generator.h"

namespace tenon::test {

struct Draw {
  const char* name;
  double weight;  ///< of all draws, in a graph that has no favourite
  bool pattern;   ///< several operators that belong together: what a graph may have as its favourite
  bool (*grow)(Generator&);
};

/// Every kind of draw.
std::span<const Draw> all_draws();

// One operator each, of any kind (operators.cpp, views.cpp, products.cpp, composites.cpp).
bool draw_map(Generator& g);
bool draw_power(Generator& g);
bool draw_reduce(Generator& g);
bool draw_source(Generator& g);
bool draw_view(Generator& g);
bool draw_matmul(Generator& g);
bool draw_attention(Generator& g);
bool draw_composite(Generator& g);

// Patterns.
bool draw_view_chain(Generator& g);        ///< reshape, transpose and slice around products, attentions, reductions
bool draw_heads(Generator& g);             ///< a projection cut in heads, attention, and back
bool draw_seen_twice(Generator& g);        ///< one value returned in several shapes, beside a transposed operand
bool draw_stencil(Generator& g);           ///< pads and slices that overlap, again and again
bool draw_roll(Generator& g);              ///< what was rolled or flipped meets itself again
bool draw_many(Generator& g);              ///< operands by the hundred
bool draw_weights(Generator& g);           ///< a softmax whose scores or weights are conditional, and a second product
bool draw_joined_rows(Generator& g);       ///< a concat, take or pad, then a norm or a softmax of its rows
bool draw_shifted_product(Generator& g);   ///< exponentials of what is a product, shifted by its maximum
bool draw_both_ways(Generator& g);         ///< reductions over rows and over columns of the same tensors
bool draw_split_reductions(Generator& g);  ///< a pool, and a reduction of the rest

/// One view of `x`, of any kind.
bool append_view(Generator& g, ir::ValueId x);
/// Axes cut, permuted and joined again.
ir::ValueId regrouped(Generator& g, ir::ValueId x);
/// Some constant extents split in two.
Shape split_axes(Generator& g, const Shape& shape);
/// Some neighbours joined.
Shape join_axes(Generator& g, const Shape& shape);

}  // namespace tenon::test

// Products that a contraction's kernel would run badly as they stand, as others that mean the same.
#pragma once

#include <vector>

#include "ir/fusion/plan.h"

namespace tenon::ir::fusion {

struct Products {
  Graph graph;
  std::vector<ValueId> stored;  ///< values of `graph` that are to be in memory, whatever it would save to compute them
  std::vector<ValueId> parts;   ///< products that stand for others: no attention's
  std::vector<Refusal> apart;   ///< attention whose second product became several: `value` is what stands for it
};

/// `graph` (decomposed) with matmuls, other than those of attention (find_attention, `wide`), rewritten where the cost
/// model gains by it:
///   options.pad_rows      an operand whose rows begin off 16-byte boundaries is copied into rows that do not
///   options.turn_f8       an operand that lies across the depth is copied to lie along it: tensor cores take f8 so
///   options.turn_few      so are few rows or columns beside a matrix that streams: each block reads all of them
///   options.split_depth   few tiles of a long depth become batches, one for each part of the depth, in f32, and their
///                         sum; what equal parts leave is a product of its own
///   options.pair_products a product of which two halves of the columns are needed beside each other becomes two
///   options.split_f32     f32 operands become f16, in two parts for f32's accuracy or one for tf32's, scaled by powers
///                         of two so that a row's greatest element is near 2^13; what a mask of positions hides of the
///                         result, it hides of both products
/// A sum over the parts adds the same products in another order (docs/numerics.md, sums).
Products arrange_products(Graph graph, const PlanOptions& options, bool wide = true);

}  // namespace tenon::ir::fusion

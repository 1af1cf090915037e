// One value, one rounding: wherever a graph's value is computed, and whatever uses it, it is the same number
// (docs/numerics.md). Two things would break that. A compiler contracts a product with one of several sums that use it,
// and the others see it rounded; and what a kernel stores is rounded to 16 bits, while the kernel goes on with f32.
//
// So what is contracted is decided here, by facts of the graph that all kernels share: a product with one use, an
// addition or subtraction, becomes an fma with it. All others that compilers could contract are marked.
#pragma once

#include <vector>

#include "codegen/kernel/kernel.h"

namespace tenon::codegen {

/// Of each value of the plan's graph.
struct ValueUses {
  std::vector<bool> reused;  ///< it has several uses; those of its views are its own, and being stored is one
  std::vector<bool>
      settled;  ///< rounded to its dtype, which is narrower than f32, as it is made: some kernel stores it
};
ValueUses uses_of(const ir::Plan& plan);

/// A product behind negations.
struct Product {
  InstrId mul = -1;
  bool negated = false;
};

/// The product that the sum or difference to be made of `id`, in `dtype` and along the axes `depends`, may be
/// contracted with: it has no other use, and varies along the same axes.
Product contracted_product(const Kernel& kernel, InstrId id, DType dtype, std::uint64_t depends);

/// Marks the products that compilers must not contract (Instr::rounded): those that reach a sum otherwise. Where
/// nothing may be contracted (not `contraction`), also those that only a reduction sums.
void mark_products(Kernel& kernel, bool contraction);

}  // namespace tenon::codegen

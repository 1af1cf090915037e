// The list of passes: what the pipeline runs, in this order.
#include "ir/passes/passes.h"

namespace tenon::ir {

std::span<const Pass> pass_table() {
  static constexpr Pass kPasses[] = {
      {"decompose", decompose, "composites become primitives"},
      {"canonicalize", canonicalize, "one spelling for each thing, exactly"},
      {"pools", unroll_pools, "small windows that are reduced again become maps"},
      {"fold", fold_constants, "maps of literals are evaluated"},
      {"powers", expand_powers, "powers by small constants are products, roots and quotients"},
      {"cse", eliminate_common_subexpressions, "equal nodes are merged"},
      {"dce", eliminate_dead_code, "what no result needs is dropped"},
  };
  return kPasses;
}

}  // namespace tenon::ir

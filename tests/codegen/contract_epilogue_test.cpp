// What a product's epilogue reads, one value a row or one a column, compiles in every main loop that has it.
#include <gtest/gtest.h>

#include "codegen/kernel/kernel.h"
#include "ir/fusion/plan.h"
#include "ir/text/text.h"
#include "tests/codegen/compile_everywhere.h"
#include "tests/harness/scheduled_kernel.h"

namespace tenon::codegen {
namespace {

// A value of a row is one load for all of a thread's columns; a value of a column is one vector.
TEST(ContractEpilogues, AValueARowIsReadAheadOfTheSums) {
  const Target target = cuda_target("sm_90a");
  for (const char* text :
       {R"(graph products_of_f32(x: f32[256, 128], w: f32[128, 256], s: f32[256, 1]) {
    y = matmul(x, w)
    z = mul(y, s)
    return z
  })",
        R"(graph a_row_and_a_column(x: bf16[256, 128], w: bf16[128, 256], s: f32[256, 1], b: f32[256]) {
    y: f32[256, 256] = matmul(x, w, dtype=f32)
    z = mul(y, s)
    t = add(z, b)
    return t
  })"}) {
    const ir::Plan plan = ir::make_plan(ir::parse(text), {});
    test::expect_compiles_for(emit_cuda(test::scheduled_kernel(plan, 0, specialize(plan, {}), target), target),
                              {target.arch});
  }
}

}  // namespace
}  // namespace tenon::codegen

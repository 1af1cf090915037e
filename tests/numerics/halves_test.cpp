// f32 products as three of f16 parts: the graph that the planner makes of one means the same.
#include <gtest/gtest.h>

#include "ir/fusion/plan.h"
#include "ir/interpret/interpret.h"
#include "ir/text/text.h"
#include "tests/harness/differential.h"
#include "tests/harness/guarded.h"

namespace tenon::test {
namespace {

// Rows of no whole 16 bytes get zeros behind them, along the depth in both operands, so that boxes bring them.
TEST(ProductsInHalves, OddRowsAreFilledWithZeros) {
  ir::PlanOptions options;
  options.split_f32 = true;
  options.cost.launch_us = 0;
  options.cost.lane_tflops = 1e-6;  // small ones are cut too
  for (const char* product :
       {"x: f32[70, 53], w: f32[53, 75]) { y = matmul(x, w)", "x: f32[70, 53], w: f32[75, 53]) { y = linear(x, w)",
        "x: f32[53, 70], w: f32[53, 75]) { y = matmul(transpose(x), w)",
        "x: f32[53, 70], w: f32[75, 53]) { y = matmul(transpose(x), transpose(w))",
        "x: f32[64, 56], w: f32[56, 72]) { y = matmul(x, w)"}) {
    const ir::Graph graph = ir::parse(std::string("graph g(") + product + "; return y }");
    const ir::Plan plan = ir::make_plan(graph, options);
    int parts = 0;
    for (const ir::Group& group : plan.groups)
      for (const ir::ValueId output : group.outputs) {
        const ir::Type& type = plan.graph.type(output);
        if (type.dtype != DType::f16) continue;
        ++parts;
        EXPECT_EQ(type.shape.back().constant() % 8, 0) << product;
      }
    EXPECT_EQ(parts, 2) << product;
    const auto inputs = data_for(graph, {});
    for (const ir::Comparison& output : ir::compare_with_interpreter(graph, inputs, ir::interpret(plan.graph, inputs)))
      EXPECT_TRUE(is_right(output)) << product;
  }
}

}  // namespace
}  // namespace tenon::test

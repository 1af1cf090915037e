// What is hoisted behind the planner: what it would store in each run of bound inputs alone.
#include "src/driver/hoist.h"

#include <gtest/gtest.h>

#include "ir/text/text.h"
#include "src/driver/cost_model.h"
#include "src/driver/pipeline.h"

namespace tenon::src {
namespace {

// With the input "w" bound, for a CUDA device that is not here.
Hoisted hoist_w(const std::string& text, const std::set<std::string>& disable = {}) {
  Options options;
  options.cache = false;
  options.disable = disable;
  const ir::Graph graph = ir::parse(text);
  std::vector<bool> bound;
  for (const ir::ValueId input : graph.inputs) bound.push_back(graph.value(input).name == "w");
  const ir::CostModel cost = assumed_cost_model(codegen::cuda_target("sm_90a"));
  return hoist(graph, bound, options,
               [&](const ir::Graph& each) { return plan(each, codegen::TargetKind::cuda, options, cost); });
}

std::string classes_of(const ir::Plan& plan) {
  std::string text;
  for (const ir::Group& group : plan.groups)
    text += std::string(text.empty() ? "" : " ") + ir::name_of(group.kernel_class);
  return text;
}

TEST(Hoist, KeepsRowsThatThePlanAligns) {
  const Hoisted hoisted = hoist_w(
      "graph g(x: bf16[2048, 4096], w: bf16[2048, 4093]) {\n"
      "  y = matmul(slice(x, start=[0, 0], stop=[2048, 4093]), transpose(w))\n  return y\n}\n");
  EXPECT_EQ(hoisted.text(), "once0 is computed once of w: bf16[2048, 4096], 16777216 bytes\n\n");
  EXPECT_EQ(classes_of(hoisted.plan), "contract");
}

TEST(Hoist, KeepsThePartsOfF32Operands) {
  const std::string product = "graph g(x: f32[2048, 2048], w: f32[2048, 2048]) {\n  y = matmul(x, w)\n  return y\n}\n";
  const Hoisted hoisted = hoist_w(product);
  EXPECT_EQ(hoisted.graph().inputs.size(), 3U);
  EXPECT_EQ(classes_of(hoisted.plan), "reduce map contract contract");
  ir::verify(hoisted.plan);
  const Hoisted none = hoist_w(product, {"hoist"});
  EXPECT_EQ(none.text(), "");
  EXPECT_EQ(classes_of(none.plan), "reduce map reduce map contract contract");
}

TEST(Hoist, LeavesToAKernelWhatItComputesAsItReads) {
  const Hoisted hoisted = hoist_w(
      "graph g(x: bf16[16, 4096], w: i8[4096, 4096], s: bf16[4096]) {\n"
      "  y = mul(matmul(x, transpose(cast(w, dtype=bf16))), s)\n  return y\n}\n");
  EXPECT_EQ(hoisted.text(), "");
}

}  // namespace
}  // namespace tenon::src

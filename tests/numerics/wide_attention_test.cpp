// Attention that is planned apart (ir/fusion/wide_attention.h) means what one kernel means. The planner is told of a
// device whose kernels hold 16 columns and multiply slowly, so that small graphs show it.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "ir/text/text.h"
#include "src/driver/pipeline.h"
#include "tests/harness/differential.h"
#include "tests/harness/guarded.h"
#include "tests/harness/targets.h"

namespace tenon::test {
namespace {

ir::CostModel narrow_device() {
  ir::CostModel cost;
  cost.attend_extent = cost.attend_columns = 16;
  cost.lane_tflops = 1e-4;
  cost.f32_tflops = 0;  // no kernel splits f32 on its way to the tensor cores
  return cost;
}

class WideAttention : public OnTarget {
 protected:
  // The plan's kernels are `kernels`, and right.
  void expect_apart(const std::string& text, std::size_t kernels) const {
    const ir::Graph graph = ir::parse(text);
    Options options = default_options();
    options.cache = false;
    const ir::Plan plan = src::plan(graph, codegen::TargetKind::cuda, options, narrow_device());
    EXPECT_EQ(plan.groups.size(), kernels) << print(plan);
    EXPECT_TRUE(std::none_of(plan.groups.begin(), plan.groups.end(),
                             [](const ir::Group& group) { return group.kernel_class == ir::KernelClass::attend; }));
    Executable run = src::make_executable(plan, backend_of(GetParam()), options);
    const std::vector<ir::HostArray> inputs = data_for(graph, {});
    std::vector<Array> given;
    for (const ir::HostArray& input : inputs) given.push_back(to_array(input));
    std::vector<ir::HostArray> results;
    for (const Array& result : run(given)) results.push_back(to_host(result));
    for (const ir::Comparison& output : ir::compare_with_interpreter(graph, inputs, results, {}, 2))
      EXPECT_TRUE(is_right(output)) << output.mismatches << " of " << output.elements << " elements differ\n" << text;
  }
};

TEST_P(WideAttention, OfSixteenBitsIsThreeKernels) {
  expect_apart(R"(graph g(q: bf16[2, 40, 48], k: bf16[2, 72, 48], v: bf16[2, 72, 40]) {
    y = attention(q, k, v)
    return y
  })",
               3);
}

TEST_P(WideAttention, MaskedRowsAndTheirLogSumExp) {
  expect_apart(R"(graph g(q: f16[2, 40, 48], k: f16[2, 40, 48], v: f16[2, 40, 40]) {
    y, l = attention(q, k, v, causal=true, lse=true)
    return y, l
  })",
               3);
}

TEST_P(WideAttention, OfF32IsOfProductsOfParts) {
  expect_apart(R"(graph g(q: f32[2, 40, 48], k: f32[2, 72, 48], v: f32[2, 72, 40]) {
    y = attention(q, k, v)
    return y
  })",
               12);
}

INSTANTIATE_TEST_SUITE_P(On, WideAttention, ::testing::Values("cpu", "cuda", "cuda_on_host"),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace tenon::test

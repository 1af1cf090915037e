// Rows of pieces that are reduced in two steps (ir/fusion/pieces.h) mean what one reduction means. The
// planner is told of a device that launches kernels in a nanosecond, so that small graphs show it.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ir/text/text.h"
#include "src/driver/pipeline.h"
#include "tests/harness/differential.h"
#include "tests/harness/guarded.h"
#include "tests/harness/targets.h"

namespace tenon::test {
namespace {

class Pieces : public OnTarget {
 protected:
  // That the plan is another than with whole rows, and right.
  void expect_in_steps(const std::string& inputs, const std::string& y) const {
    const ir::Graph graph = ir::parse("graph g(" + inputs + ") {\n  y = " + y + "\n  return y\n}\n");
    Options options = default_options();
    options.cache = false;
    ir::CostModel device;
    device.launch_us = 1e-3;
    const ir::Plan plan = src::plan(graph, codegen::TargetKind::cuda, options, device);
    options.disable = {"split_pieces"};
    const ir::Plan whole = src::plan(graph, codegen::TargetKind::cuda, options, device);
    EXPECT_NE(print(plan), print(whole));
    Executable run = src::make_executable(plan, backend_of(GetParam()), options);
    const std::vector<ir::HostArray> inputs_of_all = data_for(graph, {});
    std::vector<Array> given;
    for (const ir::HostArray& input : inputs_of_all) given.push_back(to_array(input));
    std::vector<ir::HostArray> results;
    for (const Array& result : run(given)) results.push_back(to_host(result));
    for (const ir::Comparison& output : ir::compare_with_interpreter(graph, inputs_of_all, results, {}, 2))
      EXPECT_TRUE(is_right(output)) << output.mismatches << " of " << output.elements << " elements differ\n"
                                    << print(plan);
  }
};

TEST_P(Pieces, ChannelsOfSmallImages) {
  expect_in_steps("x: f32[70, 24, 7, 7]", "sum(x, axis=[0, 2, 3])");
  expect_in_steps("x: bf16[70, 24, 7, 7]", "max(x, axis=[0, 2, 3])");
  expect_in_steps("x: f16[70, 64, 5]", "mean(relu(x), axis=[0, 2], keepdims=true)");
}

TEST_P(Pieces, MeanAndSquaresShareASweep) {
  expect_in_steps("x: bf16[70, 24, 7, 7]", "var(x, axis=[0, 2, 3])");
  expect_in_steps("x: f64[70, 24, 7]", "var(x, axis=[0, 2])");
}

TEST_P(Pieces, BatchNormIsStatisticsAndAMap) {
  expect_in_steps("x: f32[70, 24, 7, 7], w: f32[24, 1, 1]",
                  "mul(mul(sub(x, mean(x, axis=[0, 2, 3], keepdims=true)), "
                  "rsqrt(add(var(x, axis=[0, 2, 3], keepdims=true), 1e-5))), w)");
}

// 3001 rows of 7 elements: 375 of 56, and one beside them.
TEST_P(Pieces, FewColumnsAndWhatIsLeftOfThem) {
  expect_in_steps("x: f32[3000, 7]", "sum(x, axis=0)");
  expect_in_steps("x: f16[3001, 7]", "min(x, axis=0)");
  expect_in_steps("x: i32[2, 3001, 15]", "sum(x, axis=1)");
  expect_in_steps("x: bf16[3001, 15]", "var(x, axis=0)");
}

// Images that no vector divides, each of which is a row first.
TEST_P(Pieces, ChannelsOfOddImages) {
  expect_in_steps("x: f32[5, 3, 25, 25]", "sum(x, axis=[0, 2, 3])");
  expect_in_steps("x: bf16[5, 3, 25, 25]", "max(x, axis=[0, 2, 3])");
  expect_in_steps("x: bf16[40, 3, 25, 25]", "var(x, axis=[0, 2, 3])");
  expect_in_steps("x: f64[5, 3, 25, 25]", "var(x, axis=[0, 2, 3])");
}

TEST_P(Pieces, AnOperandOfOneAxisTellsPiecesApart) {
  expect_in_steps("x: bf16[3, 5, 9, 67], bias: bf16[5, 1, 1]", "sum(mul(x, bias))");
  expect_in_steps("x: f32[3, 2, 5, 301], w: f32[5, 1]", "sum(mul(x, w), axis=[1, 2, 3])");
}

INSTANTIATE_TEST_SUITE_P(On, Pieces, ::testing::Values("cpu", "cuda", "cuda_on_host"),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace tenon::test

// Views that meet again: kernels stay of bounded size however often they do, and lowering ends where it is not so.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <ctime>

#include "codegen/kernel/kernel.h"
#include "ir/fusion/plan.h"
#include "ir/text/text.h"
#include "tests/harness/scheduled_kernel.h"

namespace tenon::ir {
namespace {

struct Chain {
  const char* name;
  const char* shape;
  const char* line;  // of {0}, what the line before made
};

// Each line reads what is before it at two places or more, the last at coordinates that do not divide.
constexpr Chain kChains[] = {
    {"ConcatOfAFlip", "2", "slice(concat({0}, flip({0}, axis=0), axis=0), axis=[0], start=[1], stop=[3])"},
    {"Roll", "1024", "add({0}, concat(slice({0}, axis=[0], start=[1000]), slice({0}, axis=[0], stop=[1000]), axis=0))"},
    {"Difference", "64, 64", "sub({0}, pad(slice({0}, axis=[1], start=[1]), low=[0, 0], high=[0, 1]))"},
    {"UnevenReshape", "6, 10", "reshape(flip(reshape(transpose({0}), shape=[4, 15]), axis=[0]), shape=[6, 10])"},
    {"ExpOfAnUnevenReshape", "6, 10", "exp(reshape(transpose(reshape({0}, shape=[4, 15])), shape=[6, 10]))"},
    {"ReverseOfMergedAxes", "6, 10", "reshape(flip(reshape(transpose({0}), shape=[60]), axis=[0]), shape=[6, 10])"},
};

Graph graph_of(const Chain& chain, int lines) {
  std::string text = fmt::format("graph chain(y0: f32[{}]) {{\n", chain.shape);
  for (int i = 0; i < lines; ++i)
    text += fmt::format("  y{} = {}\n", i + 1, fmt::format(fmt::runtime(chain.line), fmt::format("y{}", i)));
  return parse(fmt::format("{}  return y{}\n}}\n", text, lines));
}

class Places : public testing::TestWithParam<Chain> {};

TEST_P(Places, GrowNoKernelBeyondTheLimit) {
  for (const int lines : {5, 40, 200}) {
    SCOPED_TRACE(lines);
    const std::clock_t start = std::clock();
    const Plan plan = make_plan(graph_of(GetParam(), lines));
    verify(plan);
    std::size_t largest = 0;
    for (std::size_t i = 0; i < plan.groups.size(); ++i) {
      const codegen::Kernel kernel =
          test::scheduled_kernel(plan, static_cast<int>(i), codegen::Specialization{}, codegen::cuda_target("sm_90a"));
      largest = std::max(largest, kernel.body.size());
    }
    EXPECT_LE(largest, 1500U);
    EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, 10);  // a few tenths where it is optimised
    if (lines == 200) {
      EXPECT_NE(explain(plan).find("[too-many-places]"), std::string::npos) << explain(plan);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Chains, Places, testing::ValuesIn(kChains),
                         [](const auto& chain) { return std::string(chain.param.name); });

// With the limit switched off, 30 lines would be 2^30 loads, or coordinates of as many terms: planning and lowering
// end, with kernels of a bounded number of places or with an error that says which.
TEST(PlacesWithoutALimit, EndInAPlanOrAnError) {
  PlanOptions options;
  options.max_places = 0;
  for (const Chain& chain : kChains) {
    try {
      const Plan plan = make_plan(graph_of(chain, 30), options);
      for (std::size_t group = 0; group < plan.groups.size(); ++group)
        test::scheduled_kernel(plan, static_cast<int>(group), codegen::Specialization{},
                               codegen::cuda_target("sm_90a"));
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::resource) << error.what();
      EXPECT_NE(std::string(error.what()).find("at too many places"), std::string::npos) << error.what();
    }
  }
}

TEST(PlacesOfOneView, AreNoReasonToStoreIt) {  // storing the flip would save nothing
  std::string text = "graph tiled(x: f32[100]) {\n  a = flip(x, axis=0)\n  y = exp(concat(a";
  for (int i = 0; i < 300; ++i) text += ", a";
  EXPECT_EQ(make_plan(parse(text + ", axis=0))\n  return y\n}\n")).groups.size(), 1U);
}

}  // namespace
}  // namespace tenon::ir

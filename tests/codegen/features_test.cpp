// What is switched off is neither chosen nor tried by a tuner, and what is left is as it was.
#include "codegen/target/features.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <utility>

#include "codegen/kernel/kernel.h"
#include "ir/fusion/plan.h"
#include "ir/text/text.h"
#include "tests/codegen/compile_everywhere.h"
#include "tests/harness/scheduled_kernel.h"

namespace tenon::codegen {
namespace {

Target cpu_target() {
  Target target;
  target.may = cpu_features();
  target.vector_bytes = 64;
  target.threads = 2;
  return target;
}

std::vector<std::string> candidates(const std::string& graph, const Target& target) {
  const ir::Plan plan = ir::make_plan(ir::parse("graph g(" + graph + "\n  return y\n}"));
  EXPECT_EQ(plan.groups.size(), 1U);
  std::vector<std::string> texts;
  for (const Schedule& schedule :
       candidate_schedules(test::scheduled_kernel(plan, 0, unspecialized(plan), target), target))
    texts.push_back(" " + print(schedule) + " ");
  return texts;
}

constexpr const char* kTanh = "x: f32[8192, 8192]) { y = tanh(x)";
constexpr const char* kGelu = "x: f32[8192, 8192]) { y = gelu(x, approximate=\"tanh\")";
constexpr const char* kSoftmax = "x: bf16[16384, 4096]) { y = softmax(x)";
constexpr const char* kLongSoftmax = "x: f32[32, 131072]) { y = softmax(x)";
constexpr const char* kVariance = "x: f32[16, 4194304]) { y = reshape(var(x, axis=1), shape=[16])";
constexpr const char* kPad = "x: f32[2048, 2048]) { y = pad(x, low=[0, 1], high=[0, 1])";
constexpr const char* kPool =
    "x: f32[2048, 2048]) { p = pad(x, low=[0, 1], high=[0, 1])\n"
    "y = add(slice(p, axis=[1], start=[0], stop=[2048]), slice(p, axis=[1], start=[2], stop=[2050]))";
constexpr const char* kLongRows = "x: f32[64, 1048576]) { y = softmax(x)";
constexpr const char* kLogSumExp = "x: bf16[8192, 50304]) { y = reshape(logsumexp(x, axis=1), shape=[8192])";

constexpr const char* kProduct = "x: f32[1024, 512], w: f32[512, 768]) { y = matmul(x, w)";
constexpr const char* kDeep = "x: bf16[512, 65536], w: bf16[65536, 512]) { y = matmul(x, w)";

struct Case {
  const char* feature;
  bool cuda;
  const char* graph;
  const char* shown;  // in the schedule
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.feature << " of " << c.graph; }

class SwitchedOff : public ::testing::TestWithParam<Case> {};

TEST_P(SwitchedOff, IsNeitherChosenNorTried) {
  const auto& [feature, cuda, graph, shown] = GetParam();
  Target target = cuda ? test::cuda_target_for("sm_90a") : cpu_target();
  EXPECT_NE(candidates(graph, target)[0].find(shown), std::string::npos) << candidates(graph, target)[0];
  target.may = without(target.may, {feature});
  const std::vector<std::string> left = candidates(graph, target);
  EXPECT_GE(left.size(), 2U);
  for (const std::string& schedule : left) EXPECT_EQ(schedule.find(shown), std::string::npos) << schedule;
}

INSTANTIATE_TEST_SUITE_P(
    Features, SwitchedOff,
    ::testing::Values(
        Case{"streaming", true, kTanh, " streaming"}, Case{"streaming", false, kTanh, " streaming"},
        Case{"keep_reads", true, kTanh, " keep_reads "}, Case{"interleave", false, kGelu, " interleave "},
        Case{"interior", false, kPad, " interior "}, Case{"interior", true, kPool, " interior "},
        Case{"overlaps", true, kPool, " overlaps "}, Case{"hold_rows", true, kSoftmax, " keep=registers "},
        Case{"hold_rows", false, kSoftmax, " keep=buffer "}, Case{"late_stores", false, kSoftmax, " late_stores "},
        Case{"clusters", true, kLongSoftmax, " cluster="}, Case{"grid_rows", true, kLongRows, " grid="},
        Case{"split_k", true, kDeep, " split_k="}, Case{"online", true, kLogSumExp, " online "},
        Case{"moments", true, kVariance, " moments "}, Case{"split_f32", true, kProduct, " loop=mma_3xtf32 "},
        Case{"online", false, kLogSumExp, " online "}),
    [](const auto& each) { return std::string(each.param.feature) + (each.param.cuda ? "_cuda" : "_cpu"); });

TEST(Features, OnlyWhatIsNamedIsSwitchedOff) {
  for (const Features& all : {cuda_features(), cpu_features()}) {
    EXPECT_EQ(without(all, {"fuse", "nvtx"}), all);
    for (const Feature& feature : all_features()) {
      Features left = without(all, {feature.name});
      EXPECT_FALSE(left.*feature.member);
      left.*feature.member = all.*feature.member;
      EXPECT_EQ(left, all);
    }
  }
}

TEST(Features, EachIsForAKindOfTarget) {
  for (const Feature& feature : all_features())
    EXPECT_TRUE(cuda_features().*feature.member || cpu_features().*feature.member) << feature.name;
  EXPECT_FALSE(cpu_features().narrow);
  EXPECT_FALSE(cuda_features().late_stores);
}

TEST(Features, FunctionsOfFunctionsAreOneOnACpu) {
  for (const auto& [function, composed] : {std::pair{"mish(x)", "of_softplus tanh("},
                                           {"softplus(x)", "of_share log1p("},
                                           {"add(tanh(x), 1.0)", "one_plus tanh("}}) {
    const ir::Plan plan =
        ir::make_plan(ir::parse(fmt::format("graph g(x: f32[100000]) {{\ny = {}\nreturn y\n}}", function)));
    Target target = cpu_target();
    EXPECT_NE(print(lower(plan, 0, unspecialized(plan), target)).find(composed), std::string::npos) << function;
    target.may = without(target.may, {"compose"});
    EXPECT_EQ(print(lower(plan, 0, unspecialized(plan), target)).find(composed), std::string::npos) << function;
  }
}

// A kernel with fewer features is another one of the same graph: all are legal.
TEST(Features, WithoutAnyOfThemKernelsCompile) {
  for (const char* graph : {kTanh, kSoftmax, kLongSoftmax, kLogSumExp}) {
    const ir::Plan plan = ir::make_plan(ir::parse(std::string("graph g(") + graph + "\n  return y\n}"));
    for (const Feature& feature : all_features()) {
      Target target = test::cuda_target_for("sm_90a");
      target.may = without(target.may, {feature.name});
      test::expect_compiles_for(emit_cuda(test::scheduled_kernel(plan, 0, unspecialized(plan), target), target),
                                {target.arch});
    }
  }
}

}  // namespace
}  // namespace tenon::codegen

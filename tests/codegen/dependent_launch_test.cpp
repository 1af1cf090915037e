// Programmatic dependent launch: every kernel for sm_90 and later waits for the kernels ahead of it before it touches
// memory, so that the runtime may launch it while they still run.
#include <gtest/gtest.h>

#include "codegen/kernel/kernel.h"
#include "ir/fusion/plan.h"
#include "ir/text/text.h"
#include "tests/codegen/compile_everywhere.h"
#include "tests/codegen/text_checks.h"
#include "tests/harness/scheduled_kernel.h"

namespace tenon::codegen {
namespace {

// One kernel of each class.
const char* const kGraph = R"(graph classes(x: bf16[64, 64], w: bf16[64, 64], q: bf16[2, 64, 32]) {
  m = tanh(x)
  r = softmax(x)
  c = matmul(x, w)
  a = attention(q, q, q)
  return m, r, c, a
})";

std::vector<Source> sources(const Target& target) {
  const ir::Plan plan = ir::make_plan(ir::parse(kGraph));
  std::vector<Source> result;
  for (int group = 0; group < static_cast<int>(plan.groups.size()); ++group)
    result.push_back(emit_cuda(test::scheduled_kernel(plan, group, unspecialized(plan), target), target));
  return result;
}

TEST(DependentLaunch, EveryKernelWaitsFirst) {
  const std::vector<Source> all = sources(cuda_target("sm_90a"));
  ASSERT_GE(all.size(), 3U);
  for (const Source& source : all) {
    EXPECT_TRUE(source.launch.dependent);
    const std::string kernel = test::kernel_part(source.text);
    // Behind what asks for tensor maps; a loop of warpgroups begins its barriers first.
    const std::size_t begin =
        kernel.find("map0);") != std::string::npos ? kernel.find("  }\n") + 4 : kernel.find("{\n") + 2;
    const bool later = kernel.find("const auto join = [] { join_stream(); };", begin) == begin + 2;
    EXPECT_TRUE(later || kernel.find("join_stream();") == begin + 2) << kernel;
  }
}

TEST(DependentLaunch, NothingIsReadBeforeInThePtx) {
  const auto nvrtc = test::installed_nvrtc();
  if (!nvrtc) GTEST_SKIP() << "no NVRTC";
  runtime::cuda::CompileOptions options;
  options.want_ptx = true;
  for (const Source& source : sources(cuda_target("sm_90a"))) {
    const std::string ptx = runtime::cuda::compile(*nvrtc, source.text, source.entry, "sm_90a", options).ptx;
    const std::size_t wait = ptx.find("griddepcontrol.wait");
    ASSERT_NE(wait, std::string::npos) << ptx;
    for (const char* touch : {"ld.global", "st.global", "cp.async", "\tatom.", "\tred."})
      EXPECT_GT(ptx.find(touch), wait) << touch << " ahead of the wait in\n" << ptx;
  }
}

// Loads of what is const and __restrict__ are taken for constant, and ptxas moves them ahead of the wait (seen in the
// machine code of an argmin whose first loads are the same for all threads). Fine for what was there before the run.
TEST(DependentLaunch, WhatAKernelAheadWritesIsNotTakenForConstant) {
  const Target target = cuda_target("sm_90a");
  const ir::Plan plan = ir::make_plan(ir::parse(R"(graph g(x: f32[5, 33], w: f32[33, 7]) {
  y = argmin(log_softmax(x))
  z = argmin(matmul(x, w))
  return y, z
})"),
                                      {});
  const auto nvrtc = test::installed_nvrtc();
  int of_run = 0, given = 0;
  for (int group = 0; group < static_cast<int>(plan.groups.size()); ++group) {
    const Kernel kernel = test::scheduled_kernel(plan, group, unspecialized(plan), target);
    const Source source = emit_cuda(kernel, target);
    EXPECT_TRUE(source.launch.constant_inputs);
    bool all_of_run = true;
    for (const Operand& operand : kernel.operands) {
      if (operand.written) continue;
      (operand.of_run ? of_run : given) += 1;
      all_of_run = all_of_run && operand.of_run;
      const std::string parameter = operand.of_run ? "const float* " : "const float* __restrict__ ";
      EXPECT_NE(source.text.find(parameter + operand.name), std::string::npos) << source.text;
    }
    if (!nvrtc || !all_of_run) continue;
    runtime::cuda::CompileOptions options;
    options.want_ptx = true;
    const std::string ptx = runtime::cuda::compile(*nvrtc, source.text, source.entry, "sm_90a", options).ptx;
    EXPECT_EQ(ptx.find("ld.global.nc"), std::string::npos) << ptx;
  }
  EXPECT_EQ(of_run, 3);  // maximum and logarithm of the rows; the product
  EXPECT_EQ(given, 4);   // x for the rows, their argmin and the product; w
  if (!nvrtc) GTEST_SKIP() << "no NVRTC to look at PTX";
}

// So that the first kernel of a run may begin early too.
TEST(DependentLaunch, MapsTakeNothingForConstant) {
  const Target target = cuda_target("sm_90a");
  const ir::Plan plan = ir::make_plan(ir::parse("graph g(x: bf16[256, 256]) { y = tanh(x)\nreturn y }"), {});
  const Source source = emit_cuda(test::scheduled_kernel(plan, 0, unspecialized(plan), target), target);
  EXPECT_FALSE(source.launch.constant_inputs);
  const auto nvrtc = test::installed_nvrtc();
  if (!nvrtc) GTEST_SKIP() << "no NVRTC";
  runtime::cuda::CompileOptions options;
  options.want_ptx = true;
  const std::string ptx = runtime::cuda::compile(*nvrtc, source.text, source.entry, "sm_90a", options).ptx;
  EXPECT_EQ(ptx.find("ld.global.nc"), std::string::npos) << ptx;
}

TEST(DependentLaunch, CanBeSwitchedOffAndIsOffBeforeSm90) {
  Target off = cuda_target("sm_90a");
  off.may.dependent_launch = false;
  for (const Target& target : {off, cuda_target("sm_80"), cuda_target("sm_75")})
    for (const Source& source : sources(target)) {
      EXPECT_FALSE(source.launch.dependent);
      EXPECT_EQ(source.text.find("griddepcontrol"), std::string::npos);
    }
}

}  // namespace
}  // namespace tenon::codegen

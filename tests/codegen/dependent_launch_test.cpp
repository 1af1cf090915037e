// Programmatic dependent launch: every kernel for sm_90 and later waits for the kernels ahead of it before it touches
// memory, so that the runtime may launch it while they still run.
#include <gtest/gtest.h>

#include "codegen/kernel.h"
#include "ir/fusion/plan.h"
#include "ir/text.h"
#include "tests/codegen/compile_everywhere.h"
#include "tests/codegen/text_checks.h"

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
  const ir::Plan plan = ir::make_plan(ir::parse(kGraph), {}, {});
  std::vector<Source> result;
  for (int group = 0; group < static_cast<int>(plan.groups.size()); ++group)
    result.push_back(emit_cuda(lower(plan, group, unspecialized(plan), target), target));
  return result;
}

TEST(DependentLaunch, EveryKernelWaitsFirst) {
  const std::vector<Source> all = sources(cuda_target("sm_90a"));
  ASSERT_GE(all.size(), 3U);
  for (const Source& source : all) {
    EXPECT_TRUE(source.launch.dependent);
    const std::string kernel = test::kernel_part(source.text);
    EXPECT_EQ(kernel.find("join_stream();"), kernel.find("{\n") + 4) << kernel;
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
    for (const char* touch : {"ld.global", "st.global", "cp.async", "atom.", "red."})
      EXPECT_GT(ptx.find(touch), wait) << touch << " ahead of the wait in\n" << ptx;
  }
}

TEST(DependentLaunch, CanBeSwitchedOffAndIsOffBeforeSm90) {
  Target off = cuda_target("sm_90a");
  off.dependent_launch = false;
  for (const Target& target : {off, cuda_target("sm_80"), cuda_target("sm_75")})
    for (const Source& source : sources(target)) {
      EXPECT_FALSE(source.launch.dependent);
      EXPECT_EQ(source.text.find("griddepcontrol"), std::string::npos);
    }
}

}  // namespace
}  // namespace tenon::codegen

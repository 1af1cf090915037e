// NVTX ranges, told to a tool of the test's own (nvtx/tool.cpp) in the way that NVIDIA's profilers are told.
#include <gtest/gtest.h>

#include <filesystem>

#include "ir/text/text.h"
#include "runtime/dynamic_library.h"
#include "runtime/executable.h"
#include "src/driver/pipeline.h"
#include "tests/harness/targets.h"

namespace tenon::test {
namespace {

constexpr const char* kGraph = "graph two(x: f32[8, 8]) {\n  y = mul(x, sum(x))\n  return y\n}\n";

Executable compiled(Options options, const std::string& target) {
  options.fuse = false;
  return src::make_executable(src::plan(ir::parse(kGraph), *backend_of(target), options), backend_of(target), options);
}

class NvtxRanges : public OnTarget {};

TEST_P(NvtxRanges, AreAroundEachRunAndEachKernel) {
  if (!std::filesystem::exists(TENON_NVTX_TOOL)) GTEST_SKIP() << "the programs were copied without " TENON_NVTX_TOOL;
  Options options;
  options.cache = false;
  const Array x = Array::normal({8, 8}, 1);
  const auto tool = runtime::DynamicLibrary::open(TENON_NVTX_TOOL, runtime::DynamicLibrary::Lifetime::process);
  ASSERT_TRUE(tool);
  const auto written = [&] { return std::string(tool->symbol<const char* (*)()>("ranges_written")()); };

  const std::string before = written();
  compiled(options, GetParam())({x});  // no tool
  options.nvtx_tool = TENON_NVTX_TOOL;
  options.disable = {"nvtx"};
  compiled(options, GetParam())({x});
  EXPECT_EQ(written(), before);

  options.disable = {};
  const Executable executable = compiled(options, GetParam());
  executable({x});
  std::string expected = before + "push two\n";
  for (const KernelInfo& kernel : executable.kernels()) expected += "push " + kernel.name + "\npop\n";
  EXPECT_EQ(written(), expected + "pop\n");
  EXPECT_EQ(executable.kernels().size(), 2U);
}

TENON_ON_EACH_TARGET(NvtxRanges);

TEST(Nvtx, IsNothingWithoutATool) { EXPECT_EQ(runtime::Nvtx::attach(""), nullptr); }

}  // namespace
}  // namespace tenon::test

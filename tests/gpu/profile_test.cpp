// Profiles by CUDA events: a kernel that only moves bytes is as fast as a copy of them, and the kernels of a run follow
// one another on the device.
#include "runtime/profile.h"

#include <gtest/gtest.h>

#include "ir/text/text.h"
#include "runtime/executable.h"
#include "runtime/memory.h"
#include "src/driver/pipeline.h"
#include "tests/harness/targets.h"

namespace tenon::test {
namespace {

TEST(GpuProfile, EventsTimeTheKernelsThemselves) {
  require("cuda");
  if (IsSkipped() || HasFatalFailure()) return;
  constexpr std::int64_t kElements = std::int64_t{1} << 26, kBytes = 4 * kElements;
  const runtime::Backend& backend = *backend_of("cuda");
  const runtime::Memory x = runtime::allocate(backend, kBytes), y = runtime::allocate(backend, kBytes);
  backend.fill(x.get(), 0x3f, kBytes, nullptr);
  const runtime::Stopwatch time(backend, 0.05, kBytes);
  const double copy_ms = time([&] { backend.copy(y.get(), x.get(), kBytes, nullptr); }).median;

  Options options = default_options();
  options.fuse = false;
  const ir::Graph graph = ir::parse("graph g(x: f32[n]) { y = neg(abs(x))\n return y }");
  const Executable executable =
      src::make_executable(src::plan(graph, *backend_of("cuda"), options), backend_of("cuda"), options);
  const Buffer input{x.get(), DType::f32, {kElements}}, output{y.get(), DType::f32, {kElements}};
  const auto [kernels, beside] = runtime::profile(executable, {&input, 1}, {&output, 1}, {}, 0.05, kBytes);
  ASSERT_EQ(kernels.size(), 2U);
  for (const runtime::KernelTimes& kernel : kernels) {
    std::printf("%s: mean %.1f us, in one run %.1f us from %.1f us; a copy %.1f us\n", kernel.name.c_str(),
                kernel.mean_us(), kernel.duration_us, kernel.begin_us, 1e3 * copy_ms);
    EXPECT_GT(kernel.times.median, 0.7 * copy_ms);  // a launch alone would take a hundredth
    EXPECT_LT(kernel.times.median, 1.5 * copy_ms);
    EXPECT_GT(kernel.duration_us, 500 * copy_ms);
  }
  EXPECT_EQ(kernels[0].begin_us, 0);
  EXPECT_GE(kernels[1].begin_us, kernels[0].duration_us);
}

}  // namespace
}  // namespace tenon::test

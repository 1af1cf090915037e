// How long kernels take to compile with NVRTC, and to come from a warm disk cache.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "codegen/emit/source.h"
#include "codegen/kernel/kernel.h"
#include "ir/text/text.h"
#include "runtime/executable.h"
#include "src/driver/pipeline.h"
#include "tests/gpu/figures.h"
#include "tests/harness/scheduled_kernel.h"
#include "tests/harness/targets.h"
#include "tests/runtime/installed_nvrtc.h"
#include "tests/runtime/temporary_folder.h"

namespace tenon::test {
namespace {

// A pointwise graph whose constant makes its kernel new to every cache.
ir::Graph pointwise(int number) {
  return ir::parse(fmt::format(R"(graph gelu(x: f32[n, 4096], y: bf16[4096]) {{
    inner = mul(add(x, mul(mul(mul(x, x), x), 0.044715)), {}.5)
    z = add(mul(mul(x, 0.5), add(tanh(inner), 1)), cast(y, dtype=f32))
    return z
  }})",
                               number));
}

Executable prepared(const ir::Graph& graph, const std::shared_ptr<const runtime::Backend>& backend,
                    const Options& options, const Bindings& bindings) {
  Executable executable = src::make_executable(src::plan(graph, *backend, options), backend, options);
  executable.prepare(bindings);
  return executable;
}

TEST(CompileTime, OfAPointwiseKernelByNvrtc) {
  require("cuda");
  if (IsSkipped() || HasFatalFailure()) return;
  Options options = default_options();
  options.cache = false;
  const auto backend = src::open_backend("cuda", options);
  prepared(pointwise(0), backend, options, {{"n", 16}});
  std::vector<double> times;
  for (int i = 1; i <= 15; ++i)
    times.push_back(milliseconds_of([&] { prepared(pointwise(i), backend, options, {{"n", 16}}); }));
  figure("pointwise kernel by NVRTC after the first, median", median(times), "ms", 40);
  figure("pointwise kernel by NVRTC after the first, slowest of 15", *std::max_element(times.begin(), times.end()),
         "ms", 80);
  EXPECT_LT(median(times), 400) << "loose: machines differ; the bar is 40";
}

// Needs no GPU. Machines differ by a factor of three in how long NVRTC takes for nothing at all, which is what to see
// the figure above beside.
TEST(CompileTime, OfAPointwiseKernelBesideAnEmptyOne) {
  const auto nvrtc = installed_nvrtc();
  if (!nvrtc) GTEST_SKIP() << "no NVRTC";
  Options options = default_options();
  options.cache = false;
  options.nvrtc_path = nvrtc->path;
  const auto backend = src::open_backend("sm_90a", options);
  const auto build = [&](int number) {
    const ir::Plan plan = src::plan(pointwise(number), *backend, options);
    const auto kernel = test::scheduled_kernel(plan, 0, codegen::specialize(plan, {{"n", 16}}), backend->target());
    EXPECT_FALSE(backend->build(codegen::emit_cuda(kernel, backend->target())).entry->binary.empty());
  };
  const auto build_empty = [&] {
    const std::string source = "extern \"C\" __global__ void empty() {}\n";
    EXPECT_FALSE(runtime::cuda::compile(*nvrtc, source, "empty", "sm_90a", {}).cubin.empty());
  };
  build(100);
  build_empty();
  std::vector<double> times, empty;
  for (int i = 1; i <= 15; ++i) {
    times.push_back(milliseconds_of([&] { build(100 + i); }));
    empty.push_back(milliseconds_of(build_empty));
  }
  figure("pointwise kernel, graph to machine code without a device, median", median(times), "ms", 40);
  figure("an empty kernel by NVRTC, in turn with it, median", median(empty), "ms");
  EXPECT_LT(median(empty), median(times));
}

// Whoever compiles graph after graph and keeps none of the executables does not make a context for each.
TEST(CompileTime, OpeningTheDeviceAgain) {
  require("cuda");
  if (IsSkipped() || HasFatalFailure()) return;
  Options options = default_options();
  options.cache = false;
  const auto open = [&] { src::open_backend("cuda", options)->synchronize(nullptr); };
  open();
  const double again = milliseconds_of(open);
  figure("opening the device again, with no executable left", again, "ms", 20);
  EXPECT_LT(again, 200);
}

TEST(CompileTime, FromAWarmDiskCache) {
  require("cuda");
  if (IsSkipped() || HasFatalFailure()) return;
  const TemporaryFolder folder;
  Options options = default_options();
  options.cache = true;
  options.cache_dir = (folder.path() / "cache").string();
  const ir::Graph block = ir::read_file(std::string(TENON_SOURCE_DIR) + "/examples/gpt2_block.tn");
  {
    const auto backend = src::open_backend("cuda", options);
    prepared(pointwise(0), backend, options, {{"n", 16}});
    prepared(block, backend, options, {{"batch", 16}});
  }
  std::vector<double> kernel, whole;
  for (int i = 0; i < 11; ++i) {
    const auto backend = src::open_backend("cuda", options);  // nothing in memory
    kernel.push_back(
        milliseconds_of([&] { EXPECT_EQ(prepared(pointwise(0), backend, options, {{"n", 16}}).stats().compiles, 0); }));
    const auto again = src::open_backend("cuda", options);
    whole.push_back(
        milliseconds_of([&] { EXPECT_EQ(prepared(block, again, options, {{"batch", 16}}).stats().compiles, 0); }));
  }
  figure("pointwise graph from a warm disk cache, plan to loaded kernel", median(kernel), "ms", 2);
  figure("gpt2 block from a warm disk cache, plan to loaded kernels", median(whole), "ms", 30);
  EXPECT_LT(median(kernel), 40) << "loose: machines differ; the bar is 2";
  EXPECT_LT(median(whole), 600) << "loose: machines differ; the bar is 30";
}

}  // namespace
}  // namespace tenon::test

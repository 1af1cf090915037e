// The products of bench/cases/matmul as an H100 or H200 gets them: every kernel compiles without a spill or a remark
// about tensor cores (a lost setmaxnreg, a wait that the compiler added), and is small; and so do the kernels of all
// schedules that a tuner tries, for each kind of body. Sizes are large, so nothing runs here.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "ir/text/text.h"
#include "src/driver/cost_model.h"
#include "src/driver/pipeline.h"
#include "tests/codegen/compile_everywhere.h"
#include "tests/harness/scheduled_kernel.h"

namespace tenon::test {
namespace {

namespace fs = std::filesystem;
using codegen::Kernel;

constexpr std::size_t kMostCubinBytes = 40
                                        << 10;  // of a kernel: what a process loads, and a measure of its compilation

const codegen::Target& hopper_device() {
  static const codegen::Target target = codegen::cuda_target("sm_90a");
  return target;
}

std::vector<Kernel> kernels_of(const ir::Graph& graph) {
  const ir::Plan plan =
      src::plan(graph, codegen::TargetKind::cuda, default_options(), src::assumed_cost_model(hopper_device()));
  std::vector<Kernel> kernels;
  for (std::size_t group = 0; group < plan.groups.size(); ++group)
    kernels.push_back(scheduled_kernel(plan, static_cast<int>(group), codegen::unspecialized(plan), hopper_device()));
  return kernels;
}

void expect_clean(const Kernel& kernel, std::size_t most_bytes) {
  SCOPED_TRACE(print(kernel.schedule));
  const codegen::Source source = emit_cuda(kernel, hopper_device());
  EXPECT_LE(source.launch.shared_bytes, hopper_device().shared_memory_per_block);
  const auto compiled = runtime::cuda::compile(*installed_nvrtc(), source.text, source.entry, hopper_device().arch);
  EXPECT_EQ(compiled.resources.spill_store_bytes, 0) << source.text;
  EXPECT_TRUE(compiled.warnings.empty()) << compiled.warnings.front() << "\n" << source.text;
  EXPECT_LE(compiled.cubin.size(), most_bytes) << source.text;
}

std::vector<fs::path> product_files() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(TENON_SOURCE_DIR "/bench/cases/matmul"))
    if (entry.path().extension() == ".tn") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

class ProductCase : public testing::TestWithParam<fs::path> {};

TEST_P(ProductCase, CompilesCleanlyAndSmall) {
  if (!installed_nvrtc()) GTEST_SKIP() << "no NVRTC to compile with";
  std::string before;
  for (const Kernel& kernel : kernels_of(ir::read_file(GetParam()))) {
    if (kernel.kernel_class != ir::KernelClass::contract || print(kernel) == before) continue;  // of sixteen layers one
    before = print(kernel);
    expect_clean(kernel, kMostCubinBytes);
  }
}

INSTANTIATE_TEST_SUITE_P(Files, ProductCase, testing::ValuesIn(product_files()),
                         [](const auto& each) { return each.param.stem().string(); });

// One graph for each kind of body.
struct Body {
  const char* name;
  const char* text;
};

const Body kBodies[] = {
    {"plain", R"(graph g(x: bf16[4096, 4096], w: bf16[4096, 4096]) { y = matmul(x, w); return y })"},
    {"bias_gelu", R"(graph g(x: bf16[4096, 4096], w: bf16[4096, 4096], b: bf16[4096]) {
      y = gelu(linear(x, w, b), approximate="tanh")
      return y
    })"},
    {"residual_in_f32", R"(graph g(x: f16[4096, 4096], w: f16[4096, 4096], r: f32[4096, 4096]) {
      y = add(matmul(x, w, dtype=f32), r)
      return y
    })"},
    {"pair", R"(graph g(x: bf16[4096, 4096], gate: bf16[4096, 4096], up: bf16[4096, 4096]) {
      y = swiglu(matmul(x, gate), matmul(x, up))
      return y
    })"},
    {"computed_operand", R"(graph g(x: bf16[4096, 4096], w: i8[4096, 4096], s: bf16[4096]) {
      y = mul(linear(x, cast(w, dtype=bf16)), s)
      return y
    })"},
    {"odd_rows", R"(graph g(x: bf16[300, 301], w: bf16[301, 299]) { y = matmul(x, w); return y })"},
    {"f8", R"(graph g(x: f8e4m3[4096, 4096], w: f8e4m3[4096, 4096], s: f32[4096]) {
      y = cast(mul(cast(matmul(x, transpose(w), dtype=bf16), dtype=f32), s), dtype=bf16)
      return y
    })"},
    {"lower_result", R"(graph g(x: bf16[4096, 4096], w: bf16[4096, 4096]) {
      lower = greater_equal(iota(shape=[4096, 4096], axis=0), iota(shape=[4096, 4096], axis=1))
      y = where(lower, matmul(x, w), 0)
      return y
    })"},
    {"lower_operand", R"(graph g(x: bf16[4096, 4096], w: bf16[4096, 4096]) {
      lower = greater_equal(iota(shape=[4096, 4096], axis=0), iota(shape=[4096, 4096], axis=1))
      y = matmul(where(lower, x, 0), w)
      return y
    })"},
    {"few_rows",
     R"(graph g(x: bf16[8, 4096], w: bf16[14336, 4096], b: bf16[14336]) { y = linear(x, w, b); return y })"},
};

class ProductBody : public testing::TestWithParam<Body> {};

TEST_P(ProductBody, EveryScheduleOfTheTunerCompilesCleanly) {
  if (!installed_nvrtc()) GTEST_SKIP() << "no NVRTC to compile with";
  int tried = 0;
  for (Kernel& kernel : kernels_of(ir::parse(GetParam().text))) {
    if (kernel.kernel_class != ir::KernelClass::contract) continue;
    for (const codegen::Schedule& schedule : codegen::candidate_schedules(kernel, hopper_device())) {
      kernel.schedule = schedule;
      expect_clean(kernel, std::size_t{64} << 10);
      ++tried;
    }
  }
  EXPECT_GE(tried, 3);
}

INSTANTIATE_TEST_SUITE_P(Bodies, ProductBody, testing::ValuesIn(kBodies),
                         [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace tenon::test

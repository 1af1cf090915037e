// Every benchmark case (bench/cases) parses, plans into as few kernels as its bytes ask for, and compiles for the GPU
// that the results of record come from. Shapes are constant and large, so nothing runs here.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "ir/fusion/plan.h"
#include "ir/text/text.h"
#include "tests/codegen/compile_everywhere.h"
#include "tests/harness/scheduled_kernel.h"

namespace tenon::test {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> case_files() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(TENON_SOURCE_DIR "/bench/cases"))
    if (entry.path().extension() == ".tn") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

// Means of row results may take a second kernel, and so do the elements of few long rows; all else is one.
std::size_t most_kernels(const std::string& name) {
  static const std::set<std::string> two = {"cross_entropy_bf16_8192x50257", "cross_entropy_bf16_8192x50304",
                                            "layernorm_f32_16x64x256x256", "batchnorm_f32_64x64x512x512",
                                            "softmax_f32_16x4194304"};
  return two.count(name) ? 2 : 1;
}

class BenchCase : public testing::TestWithParam<fs::path> {};

TEST_P(BenchCase, IsNamedLikeItsGraphAndFitsItsKernels) {
  const ir::Graph graph = ir::read_file(GetParam());
  EXPECT_EQ(graph.name, GetParam().stem());  // what results are joined by
  EXPECT_TRUE(graph.symbols.empty()) << "a case has one size";
  ir::PlanOptions options;
  options.mixed_order = true;
  const ir::Plan plan = ir::make_plan(graph, options);
  verify(plan);
  EXPECT_LE(plan.groups.size(), most_kernels(graph.name)) << print(plan);
  const codegen::Target target = codegen::cuda_target("sm_90a");
  const auto nvrtc = installed_nvrtc();
  for (std::size_t group = 0; group < plan.groups.size(); ++group) {
    const codegen::Kernel kernel =
        test::scheduled_kernel(plan, static_cast<int>(group), codegen::unspecialized(plan), target);
    const codegen::Source source = emit_cuda(kernel, target);
    EXPECT_LE(source.launch.shared_bytes, target.shared_memory_per_block);
    if (!nvrtc) continue;
    const auto compiled = runtime::cuda::compile(*nvrtc, source.text, source.entry, target.arch);
    EXPECT_EQ(compiled.resources.spill_store_bytes, 0) << print(kernel.schedule) << "\n" << source.text;
    EXPECT_TRUE(compiled.warnings.empty()) << compiled.warnings.front() << "\n" << source.text;
  }
  if (!nvrtc) GTEST_SKIP() << "no NVRTC to compile with";
}

INSTANTIATE_TEST_SUITE_P(Files, BenchCase, testing::ValuesIn(case_files()),
                         [](const auto& each) { return each.param.stem().string(); });

}  // namespace
}  // namespace tenon::test

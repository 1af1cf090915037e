// Every kernel and pack in the plans of the regression suite (tests/fusion) and of the examples compiles for every
// architecture: no error, no remark of the compiler, no spill.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "ir/fusion/plan.h"
#include "ir/text/text.h"
#include "src/driver/cost_model.h"
#include "src/driver/pipeline.h"
#include "src/driver/plan_options.h"
#include "tests/codegen/compile_everywhere.h"

namespace tenon::test {
namespace {

using codegen::Kernel;
using codegen::Launch;
using codegen::Source;
using codegen::Target;

std::vector<std::filesystem::path> graph_files(const std::string& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(TENON_SOURCE_DIR "/" + folder))
    if (entry.path().extension() == ".tn") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

void expect_compiles(const Kernel& kernel, const Source& source, const Target& target) {
  EXPECT_LE(source.launch.shared_bytes, target.shared_memory_per_block);
  try {
    const auto compiled = runtime::cuda::compile(*installed_nvrtc(), source.text, source.entry, target.arch);
    EXPECT_EQ(compiled.resources.spill_store_bytes, 0) << print(kernel.schedule) << "\n" << source.text;
    EXPECT_TRUE(compiled.warnings.empty()) << compiled.warnings.front() << "\n" << source.text;
    EXPECT_LE(compiled.resources.registers * source.launch.block, target.registers_per_multiprocessor) << source.text;
  } catch (const Error& error) {
    ADD_FAILURE() << error.what() << "\n" << source.text;
  }
}

class RegressionSuite : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(RegressionSuite, CompilesWithoutSpillOrWarning) {
  const auto [arch, folder] = GetParam();
  const Target target = codegen::cuda_target(arch);
  const auto nvrtc = installed_nvrtc();
  if (!nvrtc) GTEST_SKIP() << "NVRTC is not installed";
  const auto& known = nvrtc->architectures;
  if (std::find(known.begin(), known.end(), target.sm) == known.end()) GTEST_SKIP() << "NVRTC does not know " << arch;
  std::set<std::string> seen;  // many graphs share a kernel
  const ir::PlanOptions options = src::plan_options(target.kind, {}, src::assumed_cost_model(target));
  const auto files = graph_files(folder);
  ASSERT_GE(files.size(), 10U);
  for (const auto& file : files) {
    SCOPED_TRACE(file.filename());
    const ir::Plan plan = ir::make_plan(ir::read_file(file), options);
    for (const std::vector<int>& set : launched_together(plan))
      for (const Launch& launch : src::make_launches(plan, set, codegen::unspecialized(plan), target)) {
        const Source source = emit_cuda(launch, target);
        if (seen.insert(source.text).second) expect_compiles(launch.members[0], source, target);
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Cuda, RegressionSuite,
                         testing::Combine(testing::ValuesIn(kArchitectures),
                                          testing::Values("tests/fusion", "examples")),
                         [](const auto& each) {
                           const std::string folder = std::get<1>(each.param);
                           return std::string(std::get<0>(each.param)) + "_" + folder.substr(folder.find('/') + 1);
                         });

}  // namespace
}  // namespace tenon::test

// Every kernel and pack in the plans of the regression suite (tests/fusion) and of the examples compiles for every
// architecture: no error, no remark of the compiler, no spill.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "ir/fusion/plan.h"
#include "ir/text.h"
#include "tests/codegen/compile_everywhere.h"

namespace tenon::test {
namespace {

using codegen::Kernel;
using codegen::Source;
using codegen::Target;

std::vector<std::filesystem::path> graph_files(const std::string& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(TENON_SOURCE_DIR "/" + folder))
    if (entry.path().extension() == ".tn") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

// Such a group is neither built nor launched.
bool writes_nothing(const ir::Plan& plan, const ir::Group& group) {
  return std::all_of(group.outputs.begin(), group.outputs.end(), [&](ir::ValueId output) {
    return element_count(plan.graph.type(output).shape).bounds(plan.graph.symbols).max <= 0;
  });
}

void expect_compiles(const Kernel& kernel, const Source& source, const Target& target) {
  EXPECT_LE(source.launch.shared_bytes, target.shared_memory_per_block);
  try {
    const auto compiled = runtime::cuda::compile(*installed_nvrtc(), source.text, source.entry, target.arch);
    EXPECT_EQ(compiled.resources.spill_store_bytes, 0) << print(kernel.schedule) << "\n" << source.text;
    EXPECT_TRUE(compiled.warnings.empty()) << compiled.warnings.front() << "\n" << source.text;
    EXPECT_LE(compiled.resources.registers * source.launch.block, target.registers_per_block) << source.text;
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
  ir::PlanOptions options;
  options.mixed_order = true;
  const auto files = graph_files(folder);
  ASSERT_GE(files.size(), 10U);
  for (const auto& file : files) {
    SCOPED_TRACE(file.filename());
    const ir::Plan plan = ir::make_plan(ir::read_file(file), options);
    for (const std::vector<int>& set : launched_together(plan)) {
      std::vector<Kernel> kernels;
      for (int group : set)
        if (!writes_nothing(plan, plan.groups[static_cast<std::size_t>(group)]))
          kernels.push_back(lower(plan, group, codegen::unspecialized(plan), target));
      for (const std::vector<std::size_t>& launch : deal_launches(kernels, target)) {
        std::vector<Kernel> members;
        for (std::size_t i : launch) members.push_back(kernels[i]);
        const Source source = members.size() > 1 ? emit_cuda_pack(members, target) : emit_cuda(members[0], target);
        if (seen.insert(source.text).second) expect_compiles(members[0], source, target);
      }
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

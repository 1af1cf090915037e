// Contract and Attend kernels as CUDA: what their text holds, and that NVRTC makes code of it for every architecture,
// without spills, local memory or remarks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "tests/codegen/compile_everywhere.h"
#include "tests/codegen/tensor_kernels.h"
#include "tests/codegen/text_checks.h"

namespace tenon::test {
namespace {

using codegen::Source;
using codegen::Target;

void expect_compiles(const std::string& name, const Kernel& kernel, const Target& target) {
  static const auto nvrtc = installed_nvrtc();
  if (!nvrtc) return;
  const auto& known = nvrtc->architectures;
  if (std::find(known.begin(), known.end(), target.sm) == known.end()) return;
  const Source source = emit_cuda(kernel, target);
  if (const char* folder = std::getenv("TENON_TEST_SOURCES"))
    std::ofstream(std::string(folder) + "/" + name + "." + target.arch + ".cu") << source.text;
  EXPECT_LE(source.launch.shared_bytes, target.shared_memory_per_block) << name;
  try {
    const auto compiled = runtime::cuda::compile(*nvrtc, source.text, source.entry, target.arch);
    EXPECT_EQ(compiled.resources.spill_store_bytes, 0) << name << "\n" << compiled.log;
    EXPECT_EQ(compiled.resources.stack_bytes, 0) << name << "\n" << compiled.log;
    EXPECT_TRUE(compiled.warnings.empty()) << name << ": " << compiled.warnings.front();
    EXPECT_LE(compiled.resources.registers * source.launch.block, target.registers_per_block) << name;
    std::printf("%-18s %-8s %3d registers %6d shared  %s\n", name.c_str(), target.arch.c_str(),
                compiled.resources.registers, source.launch.shared_bytes, print(kernel.schedule).c_str());
  } catch (const Error& error) {
    ADD_FAILURE() << name << ": " << error.what();
  }
}

class EveryArchitecture : public testing::TestWithParam<const char*> {};

TEST_P(EveryArchitecture, TakesContractKernels) {
  const Target target = codegen::cuda_target(GetParam());
  for (const MatmulCase& c : matmul_cases()) expect_compiles(c.name, matmul_kernel(c, target), target);
}

TEST_P(EveryArchitecture, TakesAttendKernels) {
  const Target target = codegen::cuda_target(GetParam());
  for (const AttentionCase& c : attention_cases())
    expect_compiles("attend_" + c.name, attention_kernel(c, target), target);
}

INSTANTIATE_TEST_SUITE_P(Cuda, EveryArchitecture, testing::ValuesIn(kArchitectures),
                         [](const auto& arch) { return std::string(arch.param); });

}  // namespace
}  // namespace tenon::test

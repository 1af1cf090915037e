// Every Map and Reduce kernel of the examples' plans compiles for every architecture, and launches what it should.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "codegen/source.h"
#include "ir/fusion/plan.h"
#include "ir/text.h"
#include "tests/codegen/compile_everywhere.h"

namespace tenon::codegen {
namespace {

TEST(CudaExamples, MapAndReduceKernelsCompile) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(TENON_SOURCE_DIR "/examples"))
    if (entry.path().extension() == ".tn") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  ASSERT_FALSE(files.empty());
  const Target target = test::cuda_target_for("sm_90a");
  for (const auto& file : files) {
    SCOPED_TRACE(file.filename());
    const ir::Plan plan = ir::make_plan(ir::read_file(file));
    for (std::size_t group = 0; group < plan.groups.size(); ++group) {
      const ir::KernelClass kind = plan.groups[group].kernel_class;
      if (kind != ir::KernelClass::map && kind != ir::KernelClass::reduce) continue;
      const Kernel kernel = lower(plan, static_cast<int>(group), unspecialized(plan), target);
      test::expect_compiles_everywhere(emit_cuda(kernel, target));
    }
  }
}

}  // namespace
}  // namespace tenon::codegen

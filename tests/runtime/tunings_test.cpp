// Winners are found again by the same kernel, in this process and the next, and only where they are candidates.
#include "runtime/tunings.h"

#include <gtest/gtest.h>

#include "codegen/schedule/schedule.h"
#include "ir/text/text.h"
#include "src/driver/pipeline.h"
#include "tests/harness/scheduled_kernel.h"
#include "tests/runtime/temporary_folder.h"

#ifdef TENON_WITH_CPU
namespace tenon::test {
namespace {

class Winners : public testing::Test {
 protected:
  codegen::Kernel kernel_of(const std::string& op) const {
    const ir::Plan plan = src::plan(ir::parse("graph g(x: f32[1000, 64]) {\n  y = " + op + "(x)\n  return y\n}\n"),
                                    *backend, default_options());
    return test::scheduled_kernel(plan, 0, codegen::unspecialized(plan), backend->target());
  }
  std::shared_ptr<runtime::DiskCache> disk() const {
    runtime::DiskCacheOptions options;
    options.folder = (folder.path() / "cache").string();
    return std::make_shared<runtime::DiskCache>(options);
  }

  const TemporaryFolder folder;
  const std::shared_ptr<const runtime::Backend> backend = src::open_backend("cpu", default_options());
};

TEST_F(Winners, AreFoundByTheNextProcess) {
  const codegen::Kernel kernel = kernel_of("exp");
  const auto candidates = codegen::candidate_schedules(kernel, backend->target());
  ASSERT_GE(candidates.size(), 2u);
  runtime::Tunings first(disk(), "tenon 1");
  EXPECT_FALSE(first.find(*backend, kernel));
  first.keep(*backend, kernel, candidates[1]);
  for (const auto& tunings : {runtime::Tunings(nullptr, "x"), runtime::Tunings(nullptr, "y")})
    EXPECT_FALSE(tunings.find(*backend, kernel)) << "without a disk nothing outlives the process";
  const runtime::Tunings next(disk(), "tenon 1");
  const auto found = next.find(*backend, kernel);
  ASSERT_TRUE(found);
  EXPECT_EQ(codegen::print(*found), codegen::print(candidates[1]));
}

TEST_F(Winners, AreThoseOfOneKernelAndOneVersion) {
  const codegen::Kernel kernel = kernel_of("exp");
  runtime::Tunings(disk(), "tenon 1")
      .keep(*backend, kernel, codegen::candidate_schedules(kernel, backend->target())[1]);
  EXPECT_FALSE(runtime::Tunings(disk(), "tenon 2").find(*backend, kernel));
  EXPECT_FALSE(runtime::Tunings(disk(), "tenon 1").find(*backend, kernel_of("log")));
  EXPECT_FALSE(runtime::Tunings(disk(), "tenon 1", true).find(*backend, kernel)) << "anew";
}

TEST_F(Winners, ThatAreNotLegalAreIgnored) {
  const codegen::Kernel kernel = kernel_of("exp");
  runtime::Tunings(disk(), "tenon 1").keep(*backend, kernel, codegen::MapSchedule{.vector = 0});
  EXPECT_FALSE(runtime::Tunings(disk(), "tenon 1").find(*backend, kernel));
}

}  // namespace
}  // namespace tenon::test
#endif

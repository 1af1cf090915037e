// Memory that runs out is no defect of Tenon: out_of_memory, with what was being done and what to do.
#include "ir/graph/host_memory.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "ir/text/text.h"
#include "runtime/executable.h"
#include "src/driver/pipeline.h"
#include "tenon/tenon.h"

namespace tenon {
namespace {

template <typename Work>
Error error_of(const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorKind::internal, "no error");
}

TEST(HostMemory, RunningOutIsAnErrorWithARemedy) {
  const auto take = [](std::size_t bytes) {
    return ir::with_host_memory("a test", [&] { return std::vector<char>(bytes).size(); });
  };
  EXPECT_EQ(take(3), 3U);
  for (const std::size_t bytes : {std::numeric_limits<std::size_t>::max() / 4, std::numeric_limits<std::size_t>::max()})
    EXPECT_STREQ(error_of([&] { take(bytes); }).what(),
                 "out of memory error: no host memory is left for a test\n"
                 "  help: use a smaller graph or smaller sizes, or free memory");
}

TEST(HostMemory, OtherErrorsPassThrough) {
  const auto fail = [] { ir::with_host_memory("a test", []() -> int { throw Error(ErrorKind::io, "no file"); }); };
  EXPECT_EQ(error_of(fail).kind(), ErrorKind::io);
}

#ifdef TENON_WITH_CPU
TEST(HostMemory, RunningOutWhileKernelsAreBuiltIsSaidByTheExecutable) {
  const ir::Graph graph = ir::parse("graph g(x: f32[n]) {\n  y = neg(x)\n  return y\n}\n");
  Options options = default_options();
  options.cache = false;
  const auto backend = src::open_backend("cpu", options);
  const auto exhausted = [](const std::vector<int>&, const codegen::Specialization&)
      -> std::vector<std::shared_ptr<const runtime::BuiltLaunch>> { throw std::bad_alloc(); };
  const Executable run(std::make_shared<Executable::Impl>(src::plan(graph, *backend, options), backend, exhausted));
  const Error error = error_of([&] { run.prepare({{"n", 4}}); });
  EXPECT_EQ(error.kind(), ErrorKind::out_of_memory);
  EXPECT_EQ(error.message(), "no host memory is left for the kernels of 'g'");
}
#endif

}  // namespace
}  // namespace tenon

// Rows that all blocks of a grid share, on a GPU: blocks that meet in memory find each other's parts, run after run,
// beside other kernels of their kind, and in a recording.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "ir/text/text.h"
#include "runtime/executable.h"
#include "src/driver/pipeline.h"
#include "tests/harness/scheduled_kernel.h"
#include "tests/harness/targets.h"

namespace tenon::test {
namespace {

// Rows of 5 MB, more than a cluster holds: whole vectors, and peeled ones; two reductions, an index among them.
const char* const kNorm = "graph g(x: f32[rows, 1310720]) {\n  y = layer_norm(x)\n  return y\n}";
const char* const kWeights =
    "graph g(x: f32[rows, 1310721]) {\n  y = softmax(x)\n  a = argmax(x, axis=1)\n  return y, a\n}";

Executable compiled(const std::string& text, bool grid_rows, bool replay = false) {
  Options options = default_options();
  options.replay = replay;
  if (!grid_rows) options.disable.insert("grid_rows");
  const auto backend = src::open_backend("cuda", options);
  return src::make_executable(src::plan(ir::parse(text), *backend, options), backend, options);
}

bool is_of_the_grid(const std::string& text) {
  const Options options = default_options();
  const auto backend = src::open_backend("cuda", options);
  const ir::Plan plan = src::plan(ir::parse(text), *backend, options);
  if (plan.groups.size() != 1) return false;
  const codegen::Kernel kernel = scheduled_kernel(plan, 0, codegen::unspecialized(plan), backend->target());
  return codegen::print(kernel.schedule).find(" grid=") != std::string::npos;
}

float farthest(const Array& a, const Array& b) {
  const auto* left = reinterpret_cast<const float*>(a.bytes.data());
  const auto* right = reinterpret_cast<const float*>(b.bytes.data());
  float most = 0;
  for (std::size_t i = 0; i < a.bytes.size() / 4; ++i) most = std::max(most, std::fabs(left[i] - right[i]));
  return most;
}

TEST(GridRows, AreWhatRowsAreThatAreReadAgain) {
  require("cuda");
  if (IsSkipped() || HasFatalFailure()) return;
  if (backend_of("cuda")->target().sm != 90) GTEST_SKIP() << "rows are of a length for one device";
  for (const char* text : {kNorm, kWeights}) {
    ASSERT_TRUE(is_of_the_grid(text)) << text;
    const std::int64_t length = text == kNorm ? 1310720 : 1310721;
    const Executable held = compiled(text, true), again = compiled(text, false), replayed = compiled(text, true, true);
    for (const std::int64_t rows : {1, 2, 13}) {  // one team and several
      const Array x = Array::normal({rows, length}, static_cast<std::uint64_t>(rows));
      const std::vector<Array> first = held({x}), other = again({x});
      EXPECT_LE(farthest(first[0], other[0]), text == kNorm ? 1e-4F : 1e-8F) << rows << " rows";
      for (std::size_t i = 1; i < first.size(); ++i) EXPECT_EQ(first[i].bytes, other[i].bytes) << rows << " rows";
      for (int run = 0; run < 3; ++run) {  // results depend on the data alone
        EXPECT_EQ(held({x})[0].bytes, first[0].bytes) << rows << " rows, run " << run;
        EXPECT_EQ(replayed({x})[0].bytes, first[0].bytes) << rows << " rows, replayed " << run;
      }
    }
  }
}

// Two kernels, each of as many blocks as the device runs, on streams of their own: if each had some of its blocks
// there, they would wait for the others for ever.
TEST(GridRows, OfTwoStreamsDoNotWaitForEachOther) {
  require("cuda");
  if (IsSkipped() || HasFatalFailure()) return;
  if (backend_of("cuda")->target().sm != 90) GTEST_SKIP() << "rows are of a length for one device";
  ASSERT_TRUE(is_of_the_grid(kNorm));
  constexpr std::int64_t kRows = 7, kLength = 1310720;
  constexpr std::size_t kBytes = kRows * kLength * 4;
  const auto backend = backend_of("cuda");
  const Executable executable = compiled(kNorm, true);
  const Array x = Array::normal({kRows, kLength}, 5);
  const std::vector<Array> expected = executable({x});
  const Buffer in{backend->allocate(kBytes), DType::f32, {kRows, kLength}};
  backend->copy_in(in.data, x.bytes.data(), kBytes, nullptr);
  backend->synchronize(nullptr);
  const std::shared_ptr<void> streams[] = {backend->make_stream(), backend->make_stream(), backend->make_stream()};
  std::vector<Buffer> out;
  for (std::size_t i = 0; i < 3; ++i) out.push_back({backend->allocate(kBytes), DType::f32, {kRows, kLength}});
  for (int run = 0; run < 100; ++run)
    for (std::size_t i = 0; i < 3; ++i)
      executable.run_async(std::span(&in, 1), std::span(&out[i], 1), streams[i].get());
  for (std::size_t i = 0; i < 3; ++i) {
    backend->synchronize(streams[i].get());
    Array result{DType::f32, {kRows, kLength}, std::vector<std::byte>(kBytes)};
    backend->copy_out(result.bytes.data(), out[i].data, kBytes, nullptr);
    backend->synchronize(nullptr);
    EXPECT_EQ(result.bytes, expected[0].bytes) << "stream " << i;
    backend->release(out[i].data);
  }
  backend->release(in.data);
}

}  // namespace
}  // namespace tenon::test

// Runs repeated as CUDA graphs: the same results on the same and on other buffers and sizes, and what a chain of small
// kernels costs.
#include <gtest/gtest.h>

#include "ir/text/text.h"
#include "runtime/executable.h"
#include "src/driver/pipeline.h"
#include "tests/gpu/figures.h"
#include "tests/harness/targets.h"

namespace tenon::test {
namespace {

// Three kernels, one of them after the other.
const char* const kChain = R"(graph chain(x: f32[rows, 64]) {
  a = mul(x, sum(x, axis=0, keepdims=true))
  b = mul(a, sum(a, axis=1, keepdims=true))
  c = mul(b, sum(b, axis=0, keepdims=true))
  return c
})";

Executable compiled(const std::string& text, const std::string& target, bool replay) {
  Options options = default_options();
  options.replay = replay;
  return src::make_executable(src::plan(ir::parse(text), *backend_of(target), options), backend_of(target), options);
}

TEST(Replay, GivesTheSameOnTheSameAndOnOtherBuffers) {
  require("cuda");
  if (IsSkipped() || HasFatalFailure()) return;
  const Executable plain = compiled(kChain, "cuda", false), replayed = compiled(kChain, "cuda", true);
  ASSERT_GT(plain.stats().kernels, 1);
  for (int round = 0; round < 8; ++round)  // more sets of buffers than are kept, and sizes that come back
    for (const std::int64_t rows : {3, 100, 3}) {
      const Array x = Array::normal({rows, 64}, round);
      EXPECT_EQ(replayed({x})[0].bytes, plain({x})[0].bytes) << "round " << round << ", " << rows << " rows";
    }
}

// On the CPU target there is nothing to record: runs go on as ever.
TEST(Replay, IsNothingToTheCpu) {
  require("cpu");
  if (IsSkipped() || HasFatalFailure()) return;
  const Array x = Array::normal({5, 64}, 1);
  EXPECT_EQ(compiled(kChain, "cpu", true)({x})[0].bytes, compiled(kChain, "cpu", false)({x})[0].bytes);
}

// 100 runs of a kernel of 256 x 256 bf16, each on the result of the one before, put on a stream one by one and as one
// recording, with and without dependent launch.
TEST(Replay, CostsLessThanLaunching) {
  require("cuda");
  if (IsSkipped() || HasFatalFailure()) return;
  constexpr int kKernels = 100;
  constexpr std::size_t kBytes = 256 * 256 * 2;
  const ir::Graph graph = ir::parse("graph g(x: bf16[256, 256]) { y = gelu(x, approximate=\"tanh\")\n return y }");
  const auto measure = [&](bool dependent) {
    Options options = default_options();
    if (!dependent) options.disable.insert("dependent_launch");
    const auto backend = src::open_backend("cuda", options);
    const Executable executable = src::make_executable(src::plan(graph, *backend, options), backend, options);
    const Buffer a{backend->allocate(kBytes), DType::bf16, {256, 256}};
    const Buffer b{backend->allocate(kBytes), DType::bf16, {256, 256}};
    const std::vector<std::byte> zeros(kBytes);
    backend->copy_in(a.data, zeros.data(), kBytes, nullptr);
    const auto chain = [&](void* stream) {
      for (int i = 0; i < kKernels; ++i)
        executable.run_async(std::span(i % 2 == 0 ? &a : &b, 1), std::span(i % 2 == 0 ? &b : &a, 1), stream);
    };
    const auto recording = backend->record(chain);
    std::vector<double> launched, replayed;
    for (int i = 0; i < 50; ++i) {
      launched.push_back(milliseconds_of([&] { chain(nullptr), backend->synchronize(nullptr); }) * 1e3);
      replayed.push_back(milliseconds_of([&] { recording->launch(nullptr), backend->synchronize(nullptr); }) * 1e3);
    }
    backend->release(a.data);
    backend->release(b.data);
    std::printf("100 kernels%s: launched %.1f us, replayed %.1f us\n", dependent ? ", dependent launch" : "",
                median(launched), median(replayed));
    return std::pair(median(launched), median(replayed));
  };
  measure(false);
  const auto [launched, replayed] = measure(true);
  figure("100 dependent kernels of 256 x 256 bf16, replayed", replayed, "us", launched);
  EXPECT_LT(replayed, launched);
}

}  // namespace
}  // namespace tenon::test

// Products whose depth blocks split, and attention whose keys they split; these meet in memory: results depend on the
// data alone, run after run, replayed, and beside each other on several streams.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>

#include "codegen/schedule/schedule.h"
#include "ir/text/text.h"
#include "runtime/executable.h"
#include "src/driver/pipeline.h"
#include "tests/harness/scheduled_kernel.h"
#include "tests/harness/targets.h"

namespace tenon::test {
namespace {

struct SplitCase {
  const char *name, *text, *field;  // of the schedule, that says so
  std::vector<std::vector<std::int64_t>> inputs;
  float tolerance;  // beside 1/128 of a result
};

const SplitCase kCases[] = {{"Product",
                             R"(graph g(x: bf16[200, 40008], w: bf16[40008, 264], bias: bf16[264]) {
          y = relu(add(matmul(x, w), bias))
          return y
        })",
                             " split_k=",
                             {{200, 40008}, {40008, 264}, {264}},
                             0.1F},  // of sums some 200 large
                            {"Attention",
                             R"(graph g(q: bf16[2, 8, 1, 64], k: bf16[2, 2, 20000, 64], v: bf16[2, 2, 20000, 64]) {
          y = attention(q, k, v)
          return y
        })",
                             " split_kv=",
                             {{2, 8, 1, 64}, {2, 2, 20000, 64}, {2, 2, 20000, 64}},
                             2e-4F}};  // of means some 0.01 large

class SplitK : public testing::TestWithParam<SplitCase> {
 protected:
  void SetUp() override {
    require("cuda");
    if (IsSkipped() || HasFatalFailure()) return;
    if (backend_of("cuda")->target().sm != 90) GTEST_SKIP() << "blocks meet in memory on sm_90a";
  }

  static Executable compiled(bool split_k, bool replay = false) {
    Options options = default_options();
    options.replay = replay;
    if (!split_k) options.disable.insert("split_k");
    const auto backend = src::open_backend("cuda", options);
    return src::make_executable(src::plan(ir::parse(GetParam().text), *backend, options), backend, options);
  }

  static bool is_split() {
    const Options options = default_options();
    const auto backend = src::open_backend("cuda", options);
    const ir::Plan plan = src::plan(ir::parse(GetParam().text), *backend, options);
    if (plan.groups.size() != 1) return false;
    const codegen::Kernel kernel = scheduled_kernel(plan, 0, codegen::unspecialized(plan), backend->target());
    return codegen::print(kernel.schedule).find(GetParam().field) != std::string::npos;
  }

  static std::vector<Array> inputs() {
    std::vector<Array> arrays;
    for (const std::vector<std::int64_t>& shape : GetParam().inputs)
      arrays.push_back(Array::normal(shape, static_cast<std::int64_t>(arrays.size()) + 1, DType::bf16));
    return arrays;
  }
};

float value(const Array& array, std::size_t i) {
  const auto bits = static_cast<std::uint32_t>(reinterpret_cast<const std::uint16_t*>(array.bytes.data())[i]) << 16;
  float x;
  std::memcpy(&x, &bits, sizeof(x));
  return x;
}

TEST_P(SplitK, IsWhatTheResultIsOtherwise) {
  ASSERT_TRUE(is_split());
  const std::vector<Array> in = inputs();
  const Executable split = compiled(true), otherwise = compiled(false), replayed = compiled(true, true);
  const Array first = split(in)[0], other = otherwise(in)[0];
  for (std::size_t i = 0; i < first.bytes.size() / 2; ++i)
    ASSERT_LE(std::fabs(value(first, i) - value(other, i)), GetParam().tolerance + std::fabs(value(other, i)) / 128)
        << i;
  for (int run = 0; run < 20; ++run) {
    EXPECT_EQ(split(in)[0].bytes, first.bytes) << "run " << run;
    EXPECT_EQ(replayed(in)[0].bytes, first.bytes) << "replayed " << run;
  }
}

// If each kernel had some of its blocks on the device, they would wait for the others for ever.
TEST_P(SplitK, BlocksOfTwoStreamsDoNotWaitForEachOther) {
  const auto backend = backend_of("cuda");
  const std::vector<Array> in = inputs();
  const Executable executable = compiled(true);
  const Array expected = executable(in)[0];
  std::vector<Buffer> buffers;
  for (const Array& array : in) {
    buffers.push_back({backend->allocate(array.bytes.size()), DType::bf16, array.shape});
    backend->copy_in(buffers.back().data, array.bytes.data(), array.bytes.size(), nullptr);
  }
  backend->synchronize(nullptr);
  const std::shared_ptr<void> streams[] = {backend->make_stream(), backend->make_stream(), backend->make_stream()};
  std::vector<Buffer> out;
  for (std::size_t i = 0; i < 3; ++i)
    out.push_back({backend->allocate(expected.bytes.size()), DType::bf16, expected.shape});
  for (int run = 0; run < 100; ++run)
    for (std::size_t i = 0; i < 3; ++i) executable.run_async(buffers, std::span(&out[i], 1), streams[i].get());
  for (std::size_t i = 0; i < 3; ++i) {
    backend->synchronize(streams[i].get());
    Array result = expected;
    backend->copy_out(result.bytes.data(), out[i].data, result.bytes.size(), nullptr);
    backend->synchronize(nullptr);
    EXPECT_EQ(result.bytes, expected.bytes) << "stream " << i;
    backend->release(out[i].data);
  }
  for (const Buffer& buffer : buffers) backend->release(buffer.data);
}

INSTANTIATE_TEST_SUITE_P(Blocks, SplitK, testing::ValuesIn(kCases),
                         [](const testing::TestParamInfo<SplitCase>& param) { return param.param.name; });

}  // namespace
}  // namespace tenon::test

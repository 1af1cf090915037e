// What `tenon bench` stands on: the check that every output element was written, and the clock.
#include "tools/bench_data.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "ir/text/text.h"
#include "runtime/stopwatch.h"
#include "src/driver/pipeline.h"

#ifdef TENON_WITH_CPU
namespace tenon::tools {
namespace {

using runtime::Stopwatch;

std::shared_ptr<const runtime::Backend> cpu() { return src::open_backend("cpu", default_options()); }

TEST(BenchData, CountsElementsThatAreNeverWritten) {
  const auto backend = cpu();
  const Memory memory = allocate(*backend, 100 * 4);
  const Buffer output{memory.get(), DType::f32, {100}};
  const auto write = [&](std::size_t elements, unsigned char byte) {
    return unwritten_elements(*backend, {&output, 1},
                              [&] { backend->fill(memory.get(), byte, 4 * elements, nullptr); });
  };
  EXPECT_EQ(write(100, 0x01), 0);
  EXPECT_EQ(write(93, 0x01), 7);
  EXPECT_EQ(write(0, 0x01), 100);
  EXPECT_EQ(write(93, 0xff), 7);  // results that look like the first pattern are none of it
}

TEST(BenchData, IndicesComeFromTheWholeAxis) {
  const ir::Graph graph = ir::parse(
      "graph g(table: f32[5000, 4], ids: i32[2000], logits: f32[2000, 3000], targets: i64[2000], count: i32[2000],\n"
      "        x: bf16[2000]) {\n"
      "  y = take(table, ids, axis=0)\n  z = cross_entropy(logits, targets)\n"
      "  w = add(cast(count, dtype=f32), cast(x, dtype=f32))\n  return y, z, w\n}\n");
  const auto backend = cpu();  // outlives its memory
  const BenchData data = random_data(graph, {}, backend, default_options());
  const auto range = [&]<typename T>(int input, T) {
    const auto* values = static_cast<const T*>(data.inputs[static_cast<std::size_t>(input)].data);
    const auto [low, high] = std::minmax_element(values, values + 2000);
    return std::pair<std::int64_t, std::int64_t>(*low, *high);
  };
  const auto expect_fills = [](std::pair<std::int64_t, std::int64_t> found, std::int64_t limit) {
    EXPECT_GE(found.first, 0);
    EXPECT_LT(found.first, limit / 10 + 1);
    EXPECT_LT(found.second, limit);
    EXPECT_GE(found.second, limit * 9 / 10);
  };
  expect_fills(range(1, std::int32_t{}), 5000);
  expect_fills(range(3, std::int64_t{}), 3000);
  expect_fills(range(4, std::int32_t{}), 10);
  const float* logits = static_cast<const float*>(data.inputs[2].data);
  double sum = 0, squares = 0;
  for (int i = 0; i < 2000 * 3000; ++i) {
    sum += logits[i];
    squares += double{logits[i]} * logits[i];
  }
  EXPECT_NEAR(sum / (2000 * 3000), 0, 0.01);
  EXPECT_NEAR(squares / (2000 * 3000), 1, 0.01);
}

TEST(Stopwatch, LeavesOutTheFlushAndSortsItsSamples) {
  const auto backend = cpu();
  const Memory memory = allocate(*backend, 1 << 20);
  const Stopwatch time(*backend, 0.05, std::int64_t{64} << 20);
  int runs = 0;
  const Times times = time([&] {
    ++runs;
    backend->fill(memory.get(), 0, 1 << 20, nullptr);
  });
  EXPECT_GE(times.samples, 5);
  EXPECT_GT(runs, times.samples);
  EXPECT_GT(times.p10, 0);
  EXPECT_LE(times.p10, times.median);
  EXPECT_LE(times.median, times.p90);
  const Times flush = Stopwatch(*backend, 0.05, 0)([&] {
    for (int i = 0; i < 64; ++i) backend->fill(memory.get(), 0, 1 << 20, nullptr);
  });
  EXPECT_LT(times.median, flush.median);  // a 64th of it, but for the caches
}

}  // namespace
}  // namespace tenon::tools
#endif

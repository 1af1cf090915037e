// Kernels that begin before the one ahead of them has ended, on a GPU: what that one writes is read when it is there.
#include <gtest/gtest.h>

#include "ir/text/text.h"
#include "runtime/executable.h"
#include "src/driver/pipeline.h"
#include "tests/harness/targets.h"

namespace tenon::test {
namespace {

// The argmin's first loads are of what the softmax's kernel writes last, at one address for all threads. Runs follow
// each other without a pause, on inputs that take turns, so that what the run before left is wrong.
TEST(DependentLaunch, WhatTheKernelAheadWritesIsReadBehindIt) {
  require("cuda");
  if (IsSkipped() || HasFatalFailure()) return;
  constexpr int kRuns = 4000;
  const auto backend = backend_of("cuda");
  const Options options = default_options();
  const ir::Graph graph = ir::parse(
      "graph g(x: f32[5, 33], w: f32[5]) {\n  y = argmin(log_softmax(x))\n  z = matmul(w, x)\n  return y, z\n}");
  const Executable executable = src::make_executable(src::plan(graph, *backend, options), backend, options);
  const Array w = Array::normal({5}, 9);
  std::vector<std::int64_t> expected;
  std::vector<Buffer> x;
  const auto on_device = [&](const Array& array) {
    Buffer buffer{backend->allocate(array.bytes.size()), array.dtype, array.shape};
    backend->copy_in(buffer.data, array.bytes.data(), array.bytes.size(), nullptr);
    return buffer;
  };
  for (const double shift : {0.0, 30.0}) {
    Array rows = Array::normal({5, 33}, 3);
    auto* values = reinterpret_cast<float*>(rows.bytes.data());
    for (int i = 0; i < 33; ++i) values[i] += static_cast<float>(shift);  // of the first row, whose logarithm it leaves
    values[(shift > 0 ? 0 : 4) * 33 + 10] -= 20;
    x.push_back(on_device(rows));
    expected.push_back((shift > 0 ? 0 : 4) * 33 + 10);
  }
  const Buffer weights = on_device(w), z{backend->allocate(33 * 4), DType::f32, {33}};
  auto* out = static_cast<std::byte*>(backend->allocate(kRuns * 16));
  for (int run = 0; run < kRuns; ++run) {
    const Buffer inputs[] = {x[static_cast<std::size_t>(run % 2)], weights};
    const Buffer outputs[] = {{out + 16 * run, DType::i64, {}}, z};
    executable.run_async(inputs, outputs, nullptr);
  }
  std::vector<std::int64_t> all(2 * kRuns);
  backend->copy_out(all.data(), out, kRuns * 16, nullptr);
  backend->synchronize(nullptr);
  int wrong = 0;
  for (int run = 0; run < kRuns; ++run)
    wrong += all[static_cast<std::size_t>(2 * run)] != expected[static_cast<std::size_t>(run % 2)];
  EXPECT_EQ(wrong, 0) << "of " << kRuns;
  for (void* memory : {x[0].data, x[1].data, weights.data, z.data, static_cast<void*>(out)}) backend->release(memory);
}

}  // namespace
}  // namespace tenon::test

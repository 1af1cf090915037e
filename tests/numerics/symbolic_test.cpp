// One compile serves every size: a graph with a symbolic batch is right at each, and its kernels are built once for
// each class of sizes.
#include <gtest/gtest.h>

#include "ir/text/text.h"
#include "tests/harness/guarded.h"
#include "tests/harness/targets.h"

namespace tenon::test {
namespace {

constexpr const char* kBlock = R"(graph block(x: f32[batch, 5, 48], w: f32[48, 144], b: f32[144], g: f32[48]) {
  h = layer_norm(x)
  q, k, v = split(add(matmul(h, w), b), sections=[48, 48, 48], axis=-1)
  qh = transpose(reshape(q, shape=[batch, 5, 3, 16]), perm=[0, 2, 1, 3])
  kh = transpose(reshape(k, shape=[batch, 5, 3, 16]), perm=[0, 2, 1, 3])
  vh = transpose(reshape(v, shape=[batch, 5, 3, 16]), perm=[0, 2, 1, 3])
  mixed = reshape(transpose(attention(qh, kh, vh, causal=true), perm=[0, 2, 1, 3]), shape=[batch, 5, 48])
  y = rms_norm(add(mixed, x), g)
  s = softmax(sum(y, axis=1))
  return y, s
})";

class SymbolicBatch : public OnTarget {};

TEST_P(SymbolicBatch, IsRightAtEverySizeAndBuildsEachClassOnce) {
  const ir::Graph graph = ir::parse(kBlock);
  GuardedProgram program(graph, GetParam(), true);
  const auto run = [&](std::int64_t batch) {
    const Bindings bindings{{"batch", batch}};
    const auto inputs = data_for(graph, bindings, 1, 0.25);  // scores that leave softmax well-conditioned
    const auto outputs = program(inputs, bindings);
    for (const ir::Comparison& one : ir::compare_with_interpreter(graph, inputs, outputs, bindings, 2))
      EXPECT_TRUE(one.equal) << "batch " << batch << ": " << one.mismatches << " of " << one.elements << " differ, "
                             << one.max_tolerance_ratio << " times the tolerance";
  };
  // Classes: 1, odd and up to 16, a multiple of 16 up to 64, a multiple of 8 above 512.
  for (const std::int64_t batch : {1, 7, 64, 1000}) run(batch);
  EXPECT_EQ(program.stats().specializations, 4);
  EXPECT_EQ(program.stats().builds, 4 * program.stats().kernels);
  const ExecutableStats before = program.stats();
  for (const std::int64_t batch : {7, 64, 9, 48, 520, 1}) run(batch);  // of classes met before
  EXPECT_EQ(program.stats().specializations, before.specializations);
  EXPECT_EQ(program.stats().builds, before.builds) << "a kernel was built twice for one class";
}

TEST_P(SymbolicBatch, EverySizeOfARange) {
  const ir::Graph graph = ir::parse(R"(graph tails(x: f32[n], y: bf16[n, 3]) {
    a = exp(neg(abs(x)))
    b = sum(y, axis=0)
    c = concat(x, a)
    return a, b, c
  })");
  std::vector<Bindings> sizes;
  for (std::int64_t n = 0; n <= 70; ++n) sizes.push_back({{"n", n}});
  for (const std::int64_t n : {255, 256, 257, 1023, 1025, 4095}) sizes.push_back({{"n", n}});
  expect_right(graph, GetParam(), sizes);
}
TENON_ON_EACH_TARGET(SymbolicBatch);

}  // namespace
}  // namespace tenon::test

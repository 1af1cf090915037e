// Random numbers are the same on every target: bits and uniforms exactly, normals within 4 units in the last place; and
// do not depend on what they are fused with.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ir/ops/formats.h"
#include "ir/text/text.h"
#include "tests/harness/guarded.h"
#include "tests/harness/targets.h"

namespace tenon::test {
namespace {

constexpr const char* kReals[] = {"f16", "bf16", "f32", "f64"};

ir::HostArray seed_of(std::int64_t seed) {
  ir::HostArray array = ir::make_array(DType::i64, {});
  ir::set_integer(array, 0, seed);
  return array;
}

// One output for each real dtype: `call` with DTYPE replaced.
ir::Graph of_every_real(const std::string& op) {
  std::string calls, results;
  for (const char* dtype : kReals) {
    calls += fmt::format("  {} = {}(seed, shape=[n, 33], dtype={}, stream=5)\n",
                         dtype[0] == 'b' ? "brain" : std::string("real") + (dtype + 1), op, dtype);
    results +=
        fmt::format("{}{}", results.empty() ? "" : ", ", dtype[0] == 'b' ? "brain" : std::string("real") + (dtype + 1));
  }
  return ir::parse(fmt::format("graph random(seed: i64[]) where n >= 0 {{\n{}  return {}\n}}\n", calls, results));
}

class RandomOps : public OnTarget {
 protected:
  // Runs fused and unfused for several seeds and sizes; `judge(expected, actual)` for each output.
  template <typename Judge>
  void for_each_output(const ir::Graph& graph, const Judge& judge) {
    for (const bool fuse : {true, false}) {
      GuardedProgram program(graph, GetParam(), fuse);
      for (const auto& [seed, n] :
           {std::pair<std::int64_t, std::int64_t>(0, 1), {-1, 64}, {std::int64_t{1} << 62, 31}}) {
        const Bindings bindings = graph.symbols.empty() ? Bindings{} : Bindings{{"n", n}};
        const auto actual = program({seed_of(seed)}, bindings);
        const auto expected = ir::interpret(graph, {seed_of(seed)}, bindings);
        for (std::size_t i = 0; i < actual.size(); ++i) judge(expected[i], actual[i]);
      }
    }
  }
};

TEST_P(RandomOps, BitsAndUniformsAreIdentical) {
  const auto identical = [](const ir::HostArray& expected, const ir::HostArray& actual) {
    EXPECT_TRUE(expected.bytes == actual.bytes) << name_of(expected.dtype);
  };
  for_each_output(of_every_real("random_uniform"), identical);
  for_each_output(ir::parse("graph bits(seed: i64[]) {\n  a = random_bits(seed, shape=[77, 5])\n"
                            "  b = random_bits(seed, shape=[1001], stream=3, word=2)\n  return a, b\n}\n"),
                  identical);
}

TEST_P(RandomOps, NormalsAreWithinFourUnits) {
  for_each_output(of_every_real("random_normal"), [](const ir::HostArray& expected, const ir::HostArray& actual) {
    double worst = 0;
    for (std::int64_t i = 0; i < ir::element_count(expected); ++i) {
      const double wanted = ir::get_real(expected, i);
      worst = std::max(worst, std::fabs(ir::get_real(actual, i) - wanted) / ir::ulp(expected.dtype, wanted));
    }
    EXPECT_LE(worst, 4) << name_of(expected.dtype);
  });
}

TEST_P(RandomOps, DropoutDropsTheSameElementsWhereverItIsFused) {
  expect_right(ir::parse(R"(graph dropped(x: f32[n, 33], seed: i64[]) {
    y = dropout(x, seed, p=0.25)
    z = sum(dropout(mul(x, 2), seed, p=0.25), axis=1)
    t = transpose(dropout(x, seed, p=0.25, stream=1))
    return y, z, t
  })"),
               GetParam(), {{{"n", 1}}, {{"n", 100}}});
}

TENON_ON_EACH_TARGET(RandomOps);

}  // namespace
}  // namespace tenon::test

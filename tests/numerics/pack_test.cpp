// Small kernels in one launch (CUDA; a CPU runs them one after another): right at every size, and counted as one.
#include <gtest/gtest.h>

#include "ir/text/text.h"
#include "runtime/executable.h"
#include "src/driver/pipeline.h"
#include "tests/harness/differential.h"
#include "tests/harness/guarded.h"
#include "tests/harness/targets.h"

namespace tenon::test {
namespace {

class Packs : public OnTarget {
 protected:
  // Fused and unfused; the host takes its time, and its unfused kernels are the cpu's affair.
  static void expect_right_here(const std::string& text, const std::vector<Bindings>& sizes = {{}}) {
    const ir::Graph graph = ir::parse(text);
    if (GetParam() != "cuda_on_host") return expect_right(graph, GetParam(), sizes);
    GuardedProgram program(graph, GetParam(), true);
    for (const Bindings& bindings : sizes) {
      const auto inputs = data_for(graph, bindings);
      const auto comparisons = ir::compare_with_interpreter(graph, inputs, program(inputs, bindings), bindings);
      for (std::size_t i = 0; i < comparisons.size(); ++i)
        EXPECT_TRUE(is_right(comparisons[i]))
            << "output " << i << ": " << comparisons[i].mismatches << " of " << comparisons[i].elements << " differ";
    }
  }
};

// Like AdamW over parameters of different shapes, without differences, whose rounding errors may be of any size.
std::string adamw(int parameters) {
  std::string inputs, steps, results;
  for (int i = 0; i < parameters; ++i) {
    const std::string n = std::to_string(i),
                      shape = "f32[" + std::to_string(3 + 17 * i % 29) + ", " + std::to_string(1 + 31 * i) + "]";
    inputs += (i == 0 ? "" : ", ");
    for (const char* what : {"p", "g", "m", "v"}) inputs += (*what == 'p' ? "" : ", ") + (what + n) + ": " + shape;
    steps += "  m_next" + n + " = add(mul(abs(m" + n + "), 0.9), mul(abs(g" + n + "), 0.1))\n";
    steps += "  v_next" + n + " = add(mul(abs(v" + n + "), 0.999), mul(mul(g" + n + ", g" + n + "), 0.001))\n";
    steps += "  p_next" + n + " = add(abs(p" + n + "), div(m_next" + n + ", add(sqrt(v_next" + n + "), 0.01)))\n";
    results += (i == 0 ? "p_next" : ", p_next") + n + ", m_next" + n + ", v_next" + n;
  }
  return "graph adamw(" + inputs + ") {\n" + steps + "  return " + results + "\n}";
}

TEST_P(Packs, OfAnOptimisersStepAreRight) {
  expect_right_here(adamw(11));
  const ir::Graph graph = ir::parse(adamw(11));
  Options options = default_options();
  options.cache = false;
  const auto backend = backend_of(GetParam());
  const auto kernels = [&] {
    return src::make_executable(src::plan(graph, *backend, options), backend, options).stats().kernels;
  };
  EXPECT_EQ(kernels(), GetParam() == "cpu" ? 11 : 2);
  options.disable.insert("packing");
  EXPECT_EQ(kernels(), 11);
}

// Members by threads, warps, blocks and columns; a chain behind them that reads what two of them write.
const char* const kMixed =
    R"(graph mixed(a: f32[n], b: bf16[rows, 64], c: f32[33, 7], d: f32[rows], e: f32[2, 5000], g: f32[70, 2], k: i64[n, 3]) {
  p = tanh(a)
  q = softmax(b)
  r = sum(c, axis=0)
  s = exp(d)
  t = argmax(e, axis=1)
  u = max(g, axis=1)
  w = sum(k, axis=0)
  z = add(sum(r), cast(sum(q), dtype=f32))
  y = mul(softmax(a), sum(u))
  return p, q, s, t, u, w, z, y
})";

TEST_P(Packs, OfMapsAndReductionsAreRightAtEverySize) {
  std::vector<Bindings> sizes = {{{"n", 5}, {"rows", 19}}, {{"n", 0}, {"rows", 1}}};
  if (GetParam() != "cuda_on_host")
    for (const std::int64_t n : {0, 1, 1000})
      for (const std::int64_t rows : {0, 16, 333}) sizes.push_back({{"n", n}, {"rows", rows}});
  expect_right_here(kMixed, sizes);
}

// Two of the projections are one kernel but for their operands, the third is another; products of vectors beside them.
TEST_P(Packs, OfProductsAreRightAtEverySize) {
  std::vector<Bindings> sizes = {{{"rows", 5}}, {{"rows", 0}}};
  if (GetParam() != "cuda_on_host")
    for (const std::int64_t rows : {1, 8, 16, 200}) sizes.push_back({{"rows", rows}});
  expect_right_here(
      R"(graph products(x: bf16[rows, 256], wq: bf16[256, 128], wk: bf16[256, 64], wv: bf16[256, 64], u: f32[1, 600], a: f32[70, 600], b: f32[35, 600]) {
    q = matmul(x, wq)
    k = matmul(x, wk)
    v = gelu(matmul(neg(x), wv))
    c = linear(u, a)
    d = linear(u, b)
    return q, k, v, c, d
  })",
      sizes);
}

// An extent that is 0 at sizes whose class does not say so.
TEST_P(Packs, WithAMemberThatHasNothingToDo) {
  expect_right_here(R"(graph part(x: f32[n], y: f32[m, 40]) where n >= 5 {
    a = exp(slice(x, axis=0, start=5))
    b = softmax(y)
    c = sum(slice(x, axis=0, start=5))
    d = sin(y)
    return a, b, c, d
  })",
                    {{{"n", 5}, {"m", 3}}, {{"n", 7}, {"m", 3}}, {{"n", 7}, {"m", 0}}, {{"n", 5}, {"m", 0}}});
}

// Members run at once: what one reads, for the last time, must not lie where another writes.
TEST_P(Packs, KeepTheirMembersMemoryApart) {
  const ir::Graph graph = ir::parse(R"(graph chains(x: f32[32, 48], y: f32[32, 48], w: f32[48, 48]) {
    a = softmax(matmul(x, w))
    b = softmax(matmul(y, w))
    return matmul(a, w) as c, matmul(b, w) as d
  })");
  Options options = default_options();
  options.cache = false;
  options.disable.insert("attention");
  const auto backend = backend_of(GetParam());
  const Executable executable = src::make_executable(src::plan(graph, *backend, options), backend, options);
  EXPECT_EQ(executable.stats().kernels, GetParam() == "cpu" ? 6 : 3);
  const auto inputs = data_for(graph, {});
  std::vector<Array> arrays;
  for (const ir::HostArray& input : inputs) arrays.push_back(to_array(input));
  std::vector<ir::HostArray> outputs;
  for (const Array& output : executable(arrays)) outputs.push_back(to_host(output));
  for (const ir::Comparison& output : ir::compare_with_interpreter(graph, inputs, outputs))
    EXPECT_TRUE(is_right(output));
}

// Products of warpgroups in one launch: each block has a tile of one of them, and the maps of its operands. Neighbours
// that are one but for their operands are one function; the last lies across the depth.
TEST(PackedWarpgroups, HaveTheTilesOfAll) {
  const auto products = [](const std::string& rows) {
    return ir::parse("graph products(x: bf16[" + rows + ", 64], y: bf16[" + rows +
                     ", 64], a: bf16[64, 128], b: bf16[64, 128], t: bf16[64, 64]) {\n"
                     "  return matmul(x, a) as first, matmul(y, b) as second, relu(linear(x, t)) as third\n}");
  };
  const ir::Graph graph = products("rows");
  GuardedProgram program(graph, "hopper_on_host", true);
  for (const std::int64_t rows : {100, 0}) {
    const Bindings bindings{{"rows", rows}};
    const auto inputs = data_for(graph, bindings);
    for (const ir::Comparison& output :
         ir::compare_with_interpreter(graph, inputs, program(inputs, bindings), bindings))
      EXPECT_TRUE(is_right(output)) << rows << " rows";
  }
  Options options = default_options();
  options.cache = false;
  const auto backend = backend_of("hopper_on_host");
  const ir::Plan plan = src::plan(products("100"), *backend, options);
  EXPECT_EQ(src::make_executable(plan, backend, options).stats().kernels, 1);
}

// The text for a GPU is run on the host where there is none.
INSTANTIATE_TEST_SUITE_P(On, Packs, ::testing::Values("cpu", "cuda", "cuda_on_host"),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace tenon::test

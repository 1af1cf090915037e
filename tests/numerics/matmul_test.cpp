// matmul on every dtype it takes, in every shape and layout, with what is fused around it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/text/text.h"
#include "tests/harness/guarded.h"
#include "tests/harness/targets.h"

namespace tenon::test {
namespace {

std::string replaced(std::string text, const std::string& from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

class Matmul : public ::testing::TestWithParam<std::tuple<std::string, DType>> {
 protected:
  void SetUp() override { require(target()); }
  const std::string& target() const { return std::get<0>(GetParam()); }
  DType dtype() const { return std::get<1>(GetParam()); }
  /// The graph, with T standing for the dtype.
  void check(const std::string& text, const std::vector<Bindings>& sizes = {{}}) const {
    expect_right(ir::parse(replaced(text, "T[", std::string(name_of(dtype())) + "[")), target(), sizes);
  }
};

TEST_P(Matmul, ShapesFromOneToTails) {
  const std::pair<const char*, const char*> shapes[] = {
      {"1, 1", "1, 1"},             // the smallest
      {"1, 64", "64, 1"},           // a dot product
      {"17, 33", "33, 65"},         // nothing divides
      {"64, 64", "64, 64"},         // everything divides
      {"130, 70", "70, 258"},       // whole tiles and tails
      {"5, 0", "0, 7"},             // no terms: zeros
      {"0, 4", "4, 3"},             // no elements
      {"1, 300", "300, 200"},       // skinny: decoding one token
      {"128, 257", "257, 16"},      // long and narrow
      {"3, 1, 17, 9", "4, 9, 13"},  // batches broadcast
      {"2, 0, 3, 4", "4, 5"},       // no batches
      {"9", "9"},                   // 1-D operands
      {"9", "2, 9, 5"},
      {"2, 7, 9", "9"},
  };
  std::string inputs, calls, results;
  int i = 0;
  for (const auto& [a, b] : shapes) {
    inputs += fmt::format("{}a{}: T[{}], b{}: T[{}]", i ? ", " : "", i, a, i, b);
    calls += fmt::format("  y{} = matmul(a{}, b{})\n", i, i, i);
    results += fmt::format("{}y{}", i ? ", " : "", i);
    ++i;
  }
  check(fmt::format("graph shapes({}) {{\n{}  return {}\n}}\n", inputs, calls, results));
}

TEST_P(Matmul, OperandsThatAreViews) {
  check(
      R"(graph views(a: T[33, 70], b: T[70, 40], at: T[70, 33], bt: T[40, 70], wide: T[66, 141], heads: T[3, 33, 2, 35]) {
    tn = matmul(transpose(at), b)
    nt = matmul(a, transpose(bt))
    tt = matmul(transpose(at), transpose(bt))
    strided = matmul(slice(wide, start=[0, 1], step=[2, 2]), b)
    backwards = matmul(flip(a), flip(b, axis=0))
    one_buffer = matmul(slice(wide, axis=1, start=[0], stop=[70]), transpose(slice(wide, axis=1, start=[71])))
    by_heads = matmul(transpose(heads, perm=[0, 2, 1, 3]), transpose(heads, perm=[0, 2, 3, 1]))
    spread = matmul(broadcast_to(a, shape=[2, 33, 70]), b)
    padded = matmul(pad(a, low=[1, 0], high=[2, 5]), concat(b, slice(b, stop=[5])))
    return tn, nt, tt, strided, backwards, one_buffer, by_heads, spread, padded
  })");
}

TEST_P(Matmul, WithWhatIsFusedAround) {
  check(R"(graph fused(a: T[41, 72], b: T[72, 50], bias: f32[50], row: f32[41, 1], residual: f32[41, 50]) {
    product = matmul(a, b, dtype=f32)
    activated = add(gelu(add(product, bias), approximate="tanh"), residual)
    scaled = matmul(mul(cast(a, dtype=f32), row), cast(b, dtype=f32))
    sums = sum(mul(product, product), axis=1)
    half = matmul(a, b, dtype=bf16)
    turned = transpose(matmul(a, b, dtype=f32))
    return product, activated, scaled, sums, half, turned
  })");
}

TEST_P(Matmul, AtSymbolicSizes) {
  std::vector<Bindings> sizes;
  for (const auto& [m, n, k] : {std::tuple(1, 1, 1), std::tuple(7, 64, 33), std::tuple(64, 7, 128), std::tuple(0, 5, 5),
                                std::tuple(5, 5, 0), std::tuple(100, 129, 48)})
    sizes.push_back({{"m", m}, {"n", n}, {"k", k}});
  check("graph symbolic(a: T[m, k], b: T[k, n]) {\n  y = matmul(a, b)\n  return y\n}\n", sizes);
}

const DType kFactors[] = {DType::f16, DType::bf16, DType::f32, DType::f64, DType::f8e4m3, DType::f8e5m2};
// What is gathered beside a product with a vector comes from where its index says.
TEST_P(Matmul, VectorsBesideWhatIsGathered) {
  check(R"(graph g(x: T[64], w: T[64, 8], t: T[64], i: i64[8]) {
  y = cast(matmul(x, w), dtype=f32)
  return less(y, 1) as low, add(cast(take(t, i), dtype=f32), y) as z
})");
}

INSTANTIATE_TEST_SUITE_P(On, Matmul,
                         ::testing::Combine(::testing::ValuesIn(all_targets()), ::testing::ValuesIn(kFactors)),
                         [](const auto& each) {
                           return std::get<0>(each.param) + "_" + std::string(name_of(std::get<1>(each.param)));
                         });

class MixedMatmul : public OnTarget {};

TEST_P(MixedMatmul, ResultDTypesMixesAndTf32) {
  expect_right(ir::parse(R"(graph mixed(e4: f8e4m3[35, 64], e5: f8e5m2[64, 24], h: f16[35, 64], hb: f16[64, 24],
                                        b: bf16[35, 64], bb: bf16[64, 24], f: f32[35, 64], fb: f32[64, 24]) {
    tf32 = matmul(f, fb, tf32=true)
    half_of_f8 = matmul(e4, cast(e5, dtype=f8e4m3), dtype=f16)
    wide = matmul(h, hb, dtype=f32)
    double = matmul(b, bb, dtype=f64)
    narrow = matmul(f, fb, dtype=f16)
    dequantised = matmul(b, cast(e5, dtype=bf16))
    return tf32, half_of_f8, wide, double, narrow, dequantised
  })"),
               GetParam());
}

TEST_P(MixedMatmul, TwoKindsOfF8) {
  expect_right(ir::parse(R"(graph f8(a: f8e4m3[35, 64], b: f8e5m2[64, 24]) {
    y = matmul(a, b)
    z = matmul(transpose(b), transpose(a), dtype=bf16)
    return y, z
  })"),
               GetParam());
}
TENON_ON_EACH_TARGET(MixedMatmul);

}  // namespace
}  // namespace tenon::test

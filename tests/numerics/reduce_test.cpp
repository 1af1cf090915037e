// Reductions over every set of axes, and the row kernels (softmax, norms) at lengths around every block size.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/text/text.h"
#include "tests/harness/guarded.h"
#include "tests/harness/targets.h"

namespace tenon::test {
namespace {

class Reductions : public ::testing::TestWithParam<std::tuple<std::string, DType>> {
 protected:
  void SetUp() override { require(std::get<0>(GetParam())); }
};

// The axes in the set of bits.
std::string axes_of(int set) {
  std::string text;
  for (int axis = 0; axis < 4; ++axis)
    if (set >> axis & 1) text += fmt::format("{}{}", text.empty() ? "" : ", ", axis);
  return text;
}

TEST_P(Reductions, OverEverySetOfAxes) {
  const auto& [target, dtype] = GetParam();
  for (const char* shape : {"3, 5, 7, 9", "2, 33, 1, 130"}) {
    std::string calls, results;
    for (int set = 1; set < 16; ++set)
      for (const char* op : {"sum", "max", "argmin"}) {
        calls += fmt::format("  {}{} = {}(x, axis=[{}], keepdims={})\n", op, set, op, axes_of(set), set % 2 == 0);
        results += fmt::format("{}{}{}", results.empty() ? "" : ", ", op, set);
      }
    expect_right(ir::parse(fmt::format("graph reductions(x: {}[{}]) {{\n{}  return {}\n}}\n", name_of(dtype), shape,
                                       calls, results)),
                 target);
  }
}

TEST_P(Reductions, OfViewsAndWithWhatFollows) {
  const auto& [target, dtype] = GetParam();
  expect_right(ir::parse(fmt::format(R"(graph views(x: {}[m, 37], y: {}[37, m]) {{
    turned = sum(transpose(x), axis=0)
    strided = max(slice(x, axis=1, start=[36], stop=[1], step=[-5]), axis=1)
    padded = prod(pad(x, low=[1, 0], high=[0, 3], value=1), axis=1)
    centred = sub(x, max(x, axis=1, keepdims=true))
    both = sum(mul(x, transpose(y)), axis=1)
    twice = sum(sum(x, axis=1))
    return turned, strided, padded, centred, both, twice
  }})",
                                     name_of(dtype), name_of(dtype))),
               target, {{{"m", 5}}, {{"m", 0}}, {{"m", 1}}, {{"m", 128}}});
}

const DType kSummed[] = {DType::f32, DType::bf16, DType::f64, DType::i32, DType::u8};
INSTANTIATE_TEST_SUITE_P(On, Reductions,
                         ::testing::Combine(::testing::ValuesIn(all_targets()), ::testing::ValuesIn(kSummed)),
                         [](const auto& each) {
                           return std::get<0>(each.param) + "_" + std::string(name_of(std::get<1>(each.param)));
                         });

class RowKernels : public ::testing::TestWithParam<std::tuple<std::string, int>> {
 protected:
  void SetUp() override { require(std::get<0>(GetParam())); }
};

TEST_P(RowKernels, AtLengthsAroundEveryBlockSize) {
  const auto& [target, columns] = GetParam();
  for (const char* dtype : {"f32", "bf16"}) {
    expect_right(
        ir::parse(fmt::format(R"(graph rows(x: {0}[rows, {1}], weight: {0}[{1}], bias: {0}[{1}], t: i64[rows]) {{
      s = softmax(x)
      l = log_softmax(x)
      n = layer_norm(x, weight, bias)
      r = rms_norm(x, weight)
      e = logsumexp(x, axis=-1)
      c = cross_entropy(x, t)
      v = var(x, axis=1, ddof=1)
      a = argmax(x, axis=1)
      return s, l, n, r, e, c, v, a
    }})",
                              dtype, columns)),
        target,
        columns > 10000 ? std::vector<Bindings>{{{"rows", 3}}} : std::vector<Bindings>{{{"rows", 3}}, {{"rows", 1}}});
  }
}
// The statistics of the rows are stored for the column kernel, where the rows are long enough for that to pay.
TEST_P(RowKernels, AndColumnKernelsOfNormBackward) {
  const auto& [target, columns] = GetParam();
  for (const char* dtype : {"f32", "bf16"}) {
    expect_right(ir::parse(fmt::format(R"(graph backward(x: {0}[rows, {1}], dy: {0}[rows, {1}], weight: {0}[{1}]) {{
      real = cast(x, dtype=f32)
      g = cast(dy, dtype=f32)
      centred = sub(real, mean(real, axis=1, keepdims=true))
      rstd = rsqrt(add(mean(mul(centred, centred), axis=1, keepdims=true), 0.01))
      normal = mul(centred, rstd)
      scaled = mul(g, cast(weight, dtype=f32))
      along = mean(scaled, axis=1, keepdims=true)
      across = mean(mul(scaled, normal), axis=1, keepdims=true)
      dx = cast(mul(rstd, sub(sub(scaled, along), mul(normal, across))), dtype={0})
      dw = sum(mul(g, normal), axis=0)
      db = sum(g, axis=0)
      return dx, dw, db
    }})",
                                       dtype, columns)),
                 target, {{{"rows", 3}}, {{"rows", columns > 10000 ? 1 : 70}}});
  }
}

INSTANTIATE_TEST_SUITE_P(On, RowKernels,
                         ::testing::Combine(::testing::ValuesIn(all_targets()),
                                            ::testing::Values(1, 7, 1023, 1024, 1025, 4097, 50257)),
                         [](const auto& each) {
                           return fmt::format("{}_{}", std::get<0>(each.param), std::get<1>(each.param));
                         });

class DeviceWide : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { require(GetParam()); }
};

// Few rows, or few columns: parts of them are reduced apart and then combined.
TEST_P(DeviceWide, ReductionsOfFewLongRowsAndColumns) {
  for (const char* dtype : {"f32", "bf16", "i64"}) {
    expect_right(ir::parse(fmt::format(
                     "graph all(x: {}[n]) {{ s = sum(x); m = max(x); a = argmin(x); return s, m, a }}", dtype)),
                 GetParam(), {{{"n", 70001}}, {{"n", 65536}}, {{"n", 5}}, {{"n", 0}}});
    expect_right(ir::parse(fmt::format("graph few(x: {}[3, 40002]) {{ s = sum(x, axis=1); a = argmax(x, axis=1); "
                                       "return s, a }}",
                                       dtype)),
                 GetParam());
    for (const int columns : {3, 40, 1000})
      expect_right(ir::parse(fmt::format("graph columns(x: {0}[rows, {1}], w: {0}[{1}]) {{ y = mul(x, w); "
                                         "s = sum(y, axis=0); a = argmax(x, axis=0); return y, s, a }}",
                                         dtype, columns)),
                   GetParam(), {{{"rows", 130}}, {{"rows", 33}}, {{"rows", 0}}});
  }
}

// A sum of exponentials beside its maximum, in rows that are -inf in part or throughout.
TEST_P(DeviceWide, LongMaskedRows) {
  expect_right(ir::parse(R"(graph masked(x: f32[rows, 40003], from: i32[rows, 1], t: i64[rows]) {
    position = iota(shape=[rows, 40003], axis=1, dtype=i32)
    m = where(greater_equal(position, mul(from, 10000)), x, -inf)
    s = softmax(m)
    l = logsumexp(m, axis=1)
    c = cross_entropy(x, t)
    return s, l, c
  })"),
               GetParam(), {{{"rows", 2}}, {{"rows", 7}}});
}
INSTANTIATE_TEST_SUITE_P(On, DeviceWide, ::testing::ValuesIn(all_targets()),
                         [](const auto& each) { return each.param; });

class OddColumns : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { require(GetParam()); }
};

// Columns at both ends of the rows are not in vectors of theirs, however a row is aligned.
TEST_P(OddColumns, OfManyRows) {
  const auto columns_of = [](int columns, const char* dtype) {
    return ir::parse(fmt::format(
        "graph columns(x: {0}[6400, {1}], w: {0}[{1}]) {{ s = sum(mul(x, w), axis=0); return s }}", dtype, columns));
  };
  expect_right(columns_of(263, "bf16"), GetParam());
  if (GetParam() == "cuda_on_host") return;  // slow
  expect_right(columns_of(257, "bf16"), GetParam());
  expect_right(columns_of(257, "f32"), GetParam());
  expect_right(ir::parse("graph columns(x: f32[6400, 129]) { m = max(x, axis=0); a = argmin(x, axis=0); return m, a }"),
               GetParam());
}

INSTANTIATE_TEST_SUITE_P(On, OddColumns, ::testing::Values("cpu", "cuda", "cuda_on_host"),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace tenon::test

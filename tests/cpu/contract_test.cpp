// Contract and attend kernels on the CPU, against scalar loops in double.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/cpu/kernels.h"

namespace tenon::test {
namespace {

using codegen::Index;
using codegen::InstrId;
using ir::Op;

struct Sizes {
  std::int64_t batch, m, n, k;
};

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// out[b, i, j] = relu(sum over r of a[b, i, r] * w + bias[j]), w = [r, j] or [j, r].
void check_product(const Sizes& s, bool transposed, const RunOptions& options = {}) {
  KernelBuilder k(ir::KernelClass::contract);
  const Index b = k.axis(s.batch), i = k.axis(s.m), j = k.axis(s.n), r = k.axis(s.k, true);
  const InstrId a = k.load(k.operand(DType::f32, {s.batch, s.m, s.k}), b * (s.m * s.k) + i * s.k + r);
  const InstrId w = k.load(k.operand(DType::f32, {s.k, s.n}), transposed ? j * s.k + r : r * s.n + j);
  const InstrId bias = k.load(k.operand(DType::f32, {s.n}), j);
  const InstrId sum = k.map(Op::add, {k.contract(a, w, {3}, DType::f32), bias}, DType::f32);
  k.store(k.map(Op::maximum, {sum, k.literal(0.0, DType::f32)}, DType::f32), b * (s.m * s.n) + i * s.n + j, DType::f32,
          {s.batch, s.m, s.n});
  const auto x = numbers(at(s.batch * s.m * s.k), -1, 1), y = numbers(at(s.k * s.n), -1, 1, 2),
             z = numbers(at(s.n), -1, 1, 3);
  const auto out =
      to_floats(run(k.kernel, {floats({s.batch, s.m, s.k}, x), floats({s.k, s.n}, y), floats({s.n}, z)}, options)[0]);
  for (std::int64_t row = 0; row < s.batch * s.m; ++row)
    for (std::int64_t c = 0; c < s.n; ++c) {
      double total = static_cast<double>(z[at(c)]);
      for (std::int64_t d = 0; d < s.k; ++d)
        total += static_cast<double>(x[at(row * s.k + d)]) *
                 static_cast<double>(y[at(transposed ? c * s.k + d : d * s.n + c)]);
      ASSERT_NEAR(out[at(row * s.n + c)], std::max(total, 0.0), 1e-4)
          << row << "," << c << " of " << s.m << "x" << s.n << "x" << s.k;
    }
}

TEST(CpuContract, SizesAroundEveryTileEdge) {
  for (const Sizes& s : {Sizes{1, 1, 1, 1}, {1, 7, 31, 5}, {2, 9, 33, 257}, {1, 200, 300, 64}, {1, 193, 257, 600}}) {
    check_product(s, false);
    check_product(s, true);
  }
}

TEST(CpuContract, AnEmptyDepthGivesTheBiasAlone) { check_product({1, 5, 20, 0}, false); }
TEST(CpuContract, EmptyResultsAreNotTouched) { check_product({1, 0, 20, 3}, false); }

TEST(CpuContract, NarrowRegistersAndThreads) {
  for (const int bytes : {16, 32})
    if (bytes <= test_target().vector_bytes)
      check_product({3, 50, 70, 90}, false, {.bindings = {}, .vector_bytes = bytes, .threads = 2});
}

TEST(CpuContract, DoublesAreSummedInDouble) {
  KernelBuilder k(ir::KernelClass::contract);
  const Index i = k.axis(20), j = k.axis(30), r = k.axis(300, true);
  const InstrId a = k.load(k.operand(DType::f64, {20, 300}), i * 300 + r);
  const InstrId b = k.load(k.operand(DType::f64, {300, 30}), r * 30 + j);
  k.store(k.contract(a, b, {2}, DType::f64), i * 30 + j, DType::f64, {20, 30});
  std::vector<double> x(6000), y(9000);
  for (std::size_t n = 0; n < x.size(); ++n) x[n] = std::sin(static_cast<double>(n));
  for (std::size_t n = 0; n < y.size(); ++n) y[n] = std::cos(static_cast<double>(n));
  const auto out =
      values_of<double>(run(k.kernel, {array_of(DType::f64, {20, 300}, x), array_of(DType::f64, {300, 30}, y)})[0]);
  for (std::size_t row = 0; row < 20; ++row)
    for (std::size_t c = 0; c < 30; ++c) {
      double total = 0;
      for (std::size_t d = 0; d < 300; ++d) total += x[row * 300 + d] * y[d * 30 + c];
      EXPECT_NEAR(out[row * 30 + c], total, 1e-12);
    }
}

TEST(CpuContract, OperandsAreConvertedAndComputedWhilePacking) {
  KernelBuilder k(ir::KernelClass::contract);
  const Index i = k.axis(10), j = k.axis(40), r = k.axis(50, true);
  const InstrId a = k.load(k.operand(DType::bf16, {10, 50}), i * 50 + r);
  const InstrId squared = k.map(Op::mul, {a, a}, DType::f32);
  const InstrId b = k.load(k.operand(DType::f8e5m2, {50, 40}), r * 40 + j);
  k.store(k.contract(squared, b, {2}, DType::f32), i * 40 + j, DType::f32, {10, 40});
  ir::HostArray x = ir::make_array(DType::bf16, {10, 50}), y = ir::make_array(DType::f8e5m2, {50, 40});
  for (std::int64_t n = 0; n < 500; ++n) ir::set_real(x, n, std::sin(static_cast<double>(n)));
  for (std::int64_t n = 0; n < 2000; ++n) ir::set_real(y, n, std::cos(static_cast<double>(n)));
  const auto out = to_floats(run(k.kernel, {x, y})[0]);
  for (std::int64_t row = 0; row < 10; ++row)
    for (std::int64_t c = 0; c < 40; ++c) {
      double total = 0;
      for (std::int64_t d = 0; d < 50; ++d)
        total += std::pow(ir::get_real(x, row * 50 + d), 2) * ir::get_real(y, d * 40 + c);
      EXPECT_NEAR(out[at(row * 40 + c)], total, 1e-4);
    }
}

// ---- attend -------------------------------------------------------------------------------------------------------

struct Heads {
  std::int64_t heads, queries, keys, depth, width;
  bool causal;
};

double score_of(const Heads& s, const std::vector<float>& q, const std::vector<float>& k, std::int64_t h,
                std::int64_t i, std::int64_t j) {
  if (s.causal && j > i) return -std::numeric_limits<double>::infinity();
  double total = 0;
  for (std::int64_t d = 0; d < s.depth; ++d)
    total += static_cast<double>(q[at((h * s.queries + i) * s.depth + d)]) *
             static_cast<double>(k[at((h * s.keys + j) * s.depth + d)]);
  return total * 0.25;
}

// softmax(0.25 q k', causal) v and the log-sum-exp of each row.
KernelBuilder attention(const Heads& s) {
  KernelBuilder k(ir::KernelClass::attend);
  const DType f = DType::f32;
  const Index h = k.axis(s.heads), i = k.axis(s.queries), e = k.axis(s.width), j = k.axis(s.keys, true),
              d = k.axis(s.depth, true);
  const InstrId q = k.load(k.operand(f, {s.heads, s.queries, s.depth}), h * (s.queries * s.depth) + i * s.depth + d);
  const InstrId keys = k.load(k.operand(f, {s.heads, s.keys, s.depth}), h * (s.keys * s.depth) + j * s.depth + d);
  const InstrId values = k.load(k.operand(f, {s.heads, s.keys, s.width}), h * (s.keys * s.width) + j * s.width + e);
  codegen::Attention& parts = k.kernel.attention;
  parts.scores = k.contract(q, keys, {4}, f);
  InstrId score = k.map(Op::mul, {parts.scores, k.literal(0.25, f)}, f);
  const InstrId lowest = k.literal(-std::numeric_limits<double>::infinity(), f);
  if (s.causal) {
    const InstrId seen = k.map(Op::less_equal, {k.index(j, DType::i64), k.index(i, DType::i64)}, DType::bool_);
    score = k.map(Op::where, {seen, score, lowest}, f);
  }
  parts.score = score;
  const InstrId most = parts.maximum = k.reduce(Op::max, score, {3}, f);
  const InstrId shift = k.map(Op::where, {k.map(Op::equal, {most, lowest}, DType::bool_), k.literal(0.0, f), most}, f);
  parts.shift = shift;
  const InstrId weight = parts.weight = k.map(Op::exp, {k.map(Op::sub, {score, shift}, f)}, f);
  const InstrId sum = parts.sum = k.reduce(Op::sum, weight, {3}, f);
  parts.scaling = {k.map(Op::div, {weight, sum}, f)};
  const InstrId mix = parts.mix = k.contract(parts.scaling[0], values, {3}, f);
  k.store(mix, h * (s.queries * s.width) + i * s.width + e, f, {s.heads, s.queries, s.width});
  k.store(k.map(Op::add, {k.map(Op::log, {sum}, f), shift}, f), h * s.queries + i, f, {s.heads, s.queries});
  return k;
}

void check_attention(const Heads& s, const RunOptions& options = {}) {
  const auto q = numbers(at(s.heads * s.queries * s.depth), -2, 2),
             k = numbers(at(s.heads * s.keys * s.depth), -2, 2, 2),
             v = numbers(at(s.heads * s.keys * s.width), -1, 1, 3);
  const auto outs = run(attention(s).kernel,
                        {floats({s.heads, s.queries, s.depth}, q), floats({s.heads, s.keys, s.depth}, k),
                         floats({s.heads, s.keys, s.width}, v)},
                        options);
  const auto out = to_floats(outs[0]), lse = to_floats(outs[1]);
  for (std::int64_t h = 0; h < s.heads; ++h)
    for (std::int64_t i = 0; i < s.queries; ++i) {
      double total = 0;
      std::vector<double> mix(at(s.width), 0);
      for (std::int64_t j = 0; j < s.keys; ++j) {
        const double weight = std::exp(score_of(s, q, k, h, i, j));
        total += weight;
        for (std::int64_t e = 0; e < s.width; ++e)
          mix[at(e)] += weight * static_cast<double>(v[at((h * s.keys + j) * s.width + e)]);
      }
      EXPECT_NEAR(lse[at(h * s.queries + i)], std::log(total), 1e-4);
      for (std::int64_t e = 0; e < s.width; ++e)
        ASSERT_NEAR(out[at((h * s.queries + i) * s.width + e)], mix[at(e)] / total, 1e-4) << h << "," << i << "," << e;
    }
}

TEST(CpuAttend, RowsKeysAndWidthsOfAllSizes) {
  check_attention({2, 40, 70, 16, 24, false});
  check_attention({1, 1, 1, 1, 1, false});
  check_attention({1, 33, 200, 300, 100, false});
}

TEST(CpuAttend, CausalMasksBoundTheKeys) {
  check_attention({2, 100, 100, 16, 16, true});
  check_attention({1, 7, 300, 8, 70, true});
}

// Values wider than a packed block, mixed with several blocks of keys: rows of six do not divide 64 columns.
TEST(CpuAttend, NarrowRegistersAndThreads) {
  for (const int bytes : {16, 32})
    if (bytes <= test_target().vector_bytes) {
      check_attention({2, 21, 50, 10, 12, true}, {.bindings = {}, .vector_bytes = bytes, .threads = 2});
      for (const int width : {128, 130})
        check_attention({1, 9, 200, 8, width, false}, {.bindings = {}, .vector_bytes = bytes, .threads = 1});
    }
}

TEST(CpuAttend, NoKeysGiveWhatTheBodyMakesOfAnEmptyRow) {
  const auto outs = run(attention({1, 3, 0, 4, 5, false}).kernel,
                        {floats({1, 3, 4}, numbers(12, -1, 1)), floats({1, 0, 4}, {}), floats({1, 0, 5}, {})});
  for (const float value : to_floats(outs[0])) EXPECT_EQ(value, 0);
  for (const float value : to_floats(outs[1])) EXPECT_EQ(value, -std::numeric_limits<float>::infinity());
}

}  // namespace
}  // namespace tenon::test

// Reduce kernels on the CPU, against scalar arithmetic.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "tests/cpu/kernels.h"

namespace tenon::test {
namespace {

using codegen::Index;
using codegen::InstrId;
using ir::Op;

// out[i] = op over r of in[i, r].
KernelBuilder rows(Op op, std::int64_t m, std::int64_t n, DType from, DType to) {
  KernelBuilder k(ir::KernelClass::reduce);
  const Index i = k.axis(m), r = k.axis(n, true);
  const InstrId x = k.load(k.operand(from, {m, n}), i * n + r);
  k.store(k.reduce(op, x, {1}, to), i, to, {m});
  return k;
}

// out[j] = op over r of in[r, j].
KernelBuilder columns(Op op, std::int64_t m, std::int64_t n, DType from, DType to) {
  KernelBuilder k(ir::KernelClass::reduce);
  const Index j = k.axis(n), r = k.axis(m, true);
  const InstrId x = k.load(k.operand(from, {m, n}), r * n + j);
  k.store(k.reduce(op, x, {1}, to), j, to, {n});
  return k;
}

double sum_of(const std::vector<float>& x, std::size_t start, std::size_t count, std::size_t stride) {
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += static_cast<double>(x[start + i * stride]);
  return sum;
}

TEST(CpuReduce, RowsOfEveryLengthAreSummed) {
  for (const std::int64_t n : {0, 1, 5, 16, 17, 100, 1000}) {
    const std::vector<float> x = numbers(static_cast<std::size_t>(3 * n), -1, 1);
    const auto out = to_floats(run(rows(Op::sum, 3, n, DType::f32, DType::f32).kernel, {floats({3, n}, x)})[0]);
    for (std::size_t i = 0; i < 3; ++i)
      EXPECT_NEAR(out[i], sum_of(x, i * static_cast<std::size_t>(n), static_cast<std::size_t>(n), 1), 1e-4) << n;
  }
}

TEST(CpuReduce, ColumnsOfEveryCountAreSummed) {
  for (const std::int64_t n : {1, 5, 16, 17, 64, 150}) {
    const std::vector<float> x = numbers(static_cast<std::size_t>(33 * n), -1, 1);
    const auto out = to_floats(run(columns(Op::sum, 33, n, DType::f32, DType::f32).kernel, {floats({33, n}, x)})[0]);
    for (std::size_t j = 0; j < static_cast<std::size_t>(n); ++j)
      EXPECT_NEAR(out[j], sum_of(x, j, 33, static_cast<std::size_t>(n)), 1e-4) << n;
  }
}

TEST(CpuReduce, AFewLongRowsAreSplitTheSameWayForAnyNumberOfThreads) {
  const std::int64_t n = 1 << 20;
  const std::vector<float> x = numbers(static_cast<std::size_t>(n), 0, 1);
  KernelBuilder k = rows(Op::sum, 1, n, DType::f32, DType::f32);
  const auto one = run(k.kernel, {floats({1, n}, x)}, {.bindings = {}, .threads = 1})[0];
  const auto two = run(k.kernel, {floats({1, n}, x)}, {.bindings = {}, .threads = 2})[0];
  EXPECT_EQ(one.bytes, two.bytes);
  EXPECT_NEAR(to_floats(one)[0], sum_of(x, 0, x.size(), 1), 2);
}

TEST(CpuReduce, MaximumPropagatesNaNAndAnEmptyOneIsMinusInfinity) {
  std::vector<float> x = numbers(200, -1, 1);
  x[150] = NAN;
  x[20] = 7;
  const auto out = to_floats(run(rows(Op::max, 2, 100, DType::f32, DType::f32).kernel, {floats({2, 100}, x)})[0]);
  EXPECT_EQ(out[0], 7);
  EXPECT_TRUE(std::isnan(out[1]));
  const auto empty = to_floats(run(rows(Op::max, 2, 0, DType::f32, DType::f32).kernel, {floats({2, 0}, {})})[0]);
  EXPECT_EQ(empty[0], -std::numeric_limits<float>::infinity());
}

// In whichever lane, and in whichever order of lanes and vectors.
TEST(CpuReduce, ExtremaKnowTheSignOfZeroAndAnyNaN) {
  for (const int vector_bytes : {0, 16, 32})
    for (std::size_t at = 0; at < 300; at += 7) {
      std::vector<float> x(300, -0.0F), y(300, 0.0F), z(300, 1.0F);
      x[at] = 0.0F;
      y[at] = -0.0F;
      z[at] = -NAN;
      const auto extreme = [&](Op op, const std::vector<float>& row) {
        const KernelBuilder k = rows(op, 1, 300, DType::f32, DType::f32);
        return to_floats(run(k.kernel, {floats({1, 300}, row)}, {.bindings = {}, .vector_bytes = vector_bytes})[0])[0];
      };
      EXPECT_FALSE(std::signbit(extreme(Op::max, x))) << at;
      EXPECT_TRUE(std::signbit(extreme(Op::min, y))) << at;
      EXPECT_TRUE(std::isnan(extreme(Op::max, z)) && std::isnan(extreme(Op::min, z))) << at;
    }
}

std::vector<std::int64_t> argmax_of(const std::vector<float>& x) {
  const auto n = static_cast<std::int64_t>(x.size());
  return values_of<std::int64_t>(run(rows(Op::argmax, 1, n, DType::f32, DType::i64).kernel, {floats({1, n}, x)})[0]);
}

TEST(CpuReduce, ArgmaxIsTheFirstLargestOrTheFirstNaN) {
  std::vector<float> x(333, 1.0F);
  x[40] = x[77] = x[300] = 5;
  EXPECT_EQ(argmax_of(x)[0], 40);
  x[290] = x[123] = NAN;
  EXPECT_EQ(argmax_of(x)[0], 123);
  EXPECT_EQ(argmax_of(std::vector<float>(50, -std::numeric_limits<float>::infinity()))[0], 0);
  EXPECT_EQ(argmax_of({})[0], 0);
}

TEST(CpuReduce, SplitArgmaxStillFindsTheFirst) {
  std::vector<float> x(1 << 20, 1.0F);
  x[700000] = x[900000] = x[650001] = 3;
  EXPECT_EQ(argmax_of(x)[0], 650001);
}

// What is ahead of the first aligned vector is stored last, and seen last.
TEST(CpuReduce, TheFirstOfEqualExtremesIsFoundBesideStreamedResults) {
  for (const std::int64_t n : {40, 129, 1000}) {
    KernelBuilder k(ir::KernelClass::reduce);
    const Index i = k.axis(3), r = k.axis(n, true);
    const InstrId x = k.load(k.operand(DType::f32, {3, n}), i * n + r);
    k.store(k.map(Op::neg, {x}, DType::f32), i * n + r, DType::f32, {3, n});
    k.store(k.reduce(Op::argmax, x, {1}, DType::i64), i, DType::i64, {3});
    std::vector<float> in(static_cast<std::size_t>(3 * n), 1.0F);
    for (std::int64_t at = n + 2; at < 3 * n; at += 5) in[static_cast<std::size_t>(at)] = 2;  // row 0 has none
    for (const std::size_t misalign : {0, 4, 36}) {
      const auto outs = run(k.kernel, {floats({3, n}, in)}, {.l3_bytes = 1, .misalign = misalign});
      for (std::int64_t row = 0; row < 3; ++row) {
        const auto begin = in.begin() + row * n;
        EXPECT_EQ(values_of<std::int64_t>(outs[1])[static_cast<std::size_t>(row)],
                  std::max_element(begin, begin + n) - begin)
            << n << " " << misalign;
      }
    }
  }
}

TEST(CpuReduce, ArgminOfIntegersInColumns) {
  std::vector<std::int32_t> x(7 * 20, 9);
  x[3 * 20 + 4] = x[5 * 20 + 4] = -2;
  x[6 * 20 + 19] = -5;
  const auto out = values_of<std::int64_t>(
      run(columns(Op::argmin, 7, 20, DType::i32, DType::i64).kernel, {array_of(DType::i32, {7, 20}, x)})[0]);
  EXPECT_EQ(out[4], 3);
  EXPECT_EQ(out[19], 6);
  EXPECT_EQ(out[0], 0);
}

TEST(CpuReduce, AnyAndAllOfBools) {
  std::vector<std::uint8_t> x(3 * 50, 0);
  for (std::size_t i = 50; i < 100; ++i) x[i] = 1;
  x[149] = 1;
  const auto input = array_of(DType::bool_, {3, 50}, x);
  EXPECT_EQ(values_of<std::uint8_t>(run(rows(Op::any, 3, 50, DType::bool_, DType::bool_).kernel, {input})[0]),
            (std::vector<std::uint8_t>{0, 1, 1}));
  EXPECT_EQ(values_of<std::uint8_t>(run(rows(Op::all, 3, 50, DType::bool_, DType::bool_).kernel, {input})[0]),
            (std::vector<std::uint8_t>{0, 1, 0}));
}

// softmax: three rounds over the same row, with a store for each element.
TEST(CpuReduce, SoftmaxTakesThreeRounds) {
  for (const std::int64_t n : {1, 16, 100, 777}) {
    KernelBuilder k(ir::KernelClass::reduce);
    const Index i = k.axis(5), r = k.axis(n, true);
    const InstrId x = k.load(k.operand(DType::f32, {5, n}), i * n + r);
    const InstrId most = k.reduce(Op::max, x, {1}, DType::f32);
    const InstrId e = k.map(Op::exp, {k.map(Op::sub, {x, most}, DType::f32)}, DType::f32);
    const InstrId sum = k.reduce(Op::sum, e, {1}, DType::f32);
    k.store(k.map(Op::div, {e, sum}, DType::f32), i * n + r, DType::f32, {5, n});
    k.store(k.map(Op::log, {sum}, DType::f32), i, DType::f32, {5});
    const auto size = static_cast<std::size_t>(n);
    const std::vector<float> in = numbers(5 * size, -5, 5);
    const auto outs = run(k.kernel, {floats({5, n}, in)});
    const auto out = to_floats(outs[0]);
    for (std::size_t row = 0; row < 5; ++row) {
      double largest = -1e30, total = 0;
      for (std::size_t c = 0; c < size; ++c) largest = std::max(largest, static_cast<double>(in[row * size + c]));
      for (std::size_t c = 0; c < size; ++c) total += std::exp(static_cast<double>(in[row * size + c]) - largest);
      for (std::size_t c = 0; c < size; ++c) {
        const double expected = std::exp(static_cast<double>(in[row * size + c]) - largest) / total;
        EXPECT_NEAR(out[row * size + c], expected, 1e-6 * expected + 1e-9) << n;
      }
      EXPECT_NEAR(to_floats(outs[1])[row], std::log(total), 1e-5);
    }
  }
}

TEST(CpuReduce, TwoReducedAxesInRowMajorOrder) {
  KernelBuilder k(ir::KernelClass::reduce);
  const Index i = k.axis(3), r = k.axis(4, true), s = k.axis(21, true);
  const InstrId x = k.load(k.operand(DType::f32, {4, 3, 21}), r * 63 + i * 21 + s);
  k.store(k.reduce(Op::sum, x, {1, 2}, DType::f32), i, DType::f32, {3});
  k.store(k.reduce(Op::argmax, x, {1, 2}, DType::i64), i, DType::i64, {3});
  std::vector<float> in(4 * 63, 0.5F);
  in[2 * 63 + 1 * 21 + 17] = 4;
  const auto outs = run(k.kernel, {floats({4, 3, 21}, in)});
  EXPECT_EQ(to_floats(outs[0]), (std::vector<float>{42, 45.5F, 42}));
  EXPECT_EQ(values_of<std::int64_t>(outs[1]), (std::vector<std::int64_t>{0, 2 * 21 + 17, 0}));
}

// Where a row has fewer elements than it costs to fold, lanes have a row each; sums are folded in no time.
TEST(CpuReduce, LanesHaveShortRowsOfTheirOwn) {
  const auto mapping = [](Op op, std::int64_t row, std::int64_t rows) {
    KernelBuilder k(ir::KernelClass::reduce);
    const Index i = k.axis(rows), r = k.axis(row, true);
    const InstrId x = k.load(k.operand(DType::f32, {rows, row}), i * row + r);
    k.store(k.reduce(op, x, {1}, op == Op::argmax ? DType::i64 : DType::f32), i,
            op == Op::argmax ? DType::i64 : DType::f32, {rows});
    codegen::Target target = test_target();
    target.vector_bytes = 64;
    return std::get<codegen::ReduceSchedule>(choose_schedule(k.kernel, target)).team.mapping;
  };
  EXPECT_EQ(mapping(Op::max, 8, 1000), codegen::RowMapping::column);
  EXPECT_EQ(mapping(Op::argmax, 16, 1000), codegen::RowMapping::column);
  EXPECT_EQ(mapping(Op::sum, 8, 1000), codegen::RowMapping::thread);
  EXPECT_EQ(mapping(Op::max, 16, 1000), codegen::RowMapping::thread);
  EXPECT_EQ(mapping(Op::max, 8, 10), codegen::RowMapping::thread);
}

// The exponentials are computed in one sweep and divided in the next, which streams what exceeds the cache.
TEST(CpuReduce, SoftmaxKeepsItsExponentialsAndStreamsItsResults) {
  for (const std::int64_t n : {1, 5, 16, 77, 1000}) {
    KernelBuilder k(ir::KernelClass::reduce);
    const Index i = k.axis(3), r = k.axis(n, true);
    const InstrId x = k.load(k.operand(DType::f32, {3, n}), i * n + r);
    const InstrId e =
        k.map(Op::exp, {k.map(Op::sub, {x, k.reduce(Op::max, x, {1}, DType::f32)}, DType::f32)}, DType::f32);
    k.store(k.map(Op::div, {e, k.reduce(Op::sum, e, {1}, DType::f32)}, DType::f32), i * n + r, DType::f32, {3, n});
    const std::vector<float> in = numbers(static_cast<std::size_t>(3 * n), -9, 9);
    for (const int vector_bytes : {0, 16})
      for (const std::size_t misalign : {0, 4, 60}) {
        const RunOptions options{.vector_bytes = vector_bytes, .l3_bytes = 1, .misalign = misalign};
        const auto schedule = std::get<codegen::ReduceSchedule>(choose_schedule(k.kernel, test_target(options)));
        EXPECT_TRUE(std::holds_alternative<codegen::InBuffer>(schedule.keep));
        EXPECT_TRUE(schedule.cache.streaming);
        const auto out = to_floats(run(k.kernel, {floats({3, n}, in)}, options)[0]);
        for (std::size_t row = 0; row < 3; ++row) {
          const std::size_t first = row * static_cast<std::size_t>(n);
          double sum = 0;
          for (std::size_t c = first; c < first + static_cast<std::size_t>(n); ++c)
            sum += std::exp(static_cast<double>(in[c]));
          for (std::size_t c = first; c < first + static_cast<std::size_t>(n); ++c)
            ASSERT_NEAR(out[c], std::exp(static_cast<double>(in[c])) / sum, 2e-6) << n << " " << c;
        }
      }
  }
}

// Where a sweep both streams and keeps, the ends of the row come last: the first of them, which is no whole vector,
// must leave what is kept of the elements behind it.
TEST(CpuReduce, TheEndsOfARowThatIsStreamedLeaveWhatIsKept) {
  for (const std::int64_t n : {40, 129, 1000}) {
    KernelBuilder k(ir::KernelClass::reduce);
    const Index i = k.axis(3), r = k.axis(n, true);
    const InstrId x = k.load(k.operand(DType::f32, {3, n}), i * n + r);
    const InstrId e = k.map(Op::exp, {x}, DType::f32);
    k.store(e, i * n + r, DType::f32, {3, n});
    k.store(k.map(Op::mul, {e, k.reduce(Op::sum, e, {1}, DType::f32)}, DType::f32), i * n + r, DType::f32, {3, n});
    const std::vector<float> in = numbers(static_cast<std::size_t>(3 * n), -2, 2);
    for (const int vector_bytes : {0, 32})
      for (const std::size_t misalign : {0, 4, 36}) {
        const RunOptions options{.vector_bytes = vector_bytes, .l3_bytes = 1, .misalign = misalign};
        const auto outs = run(k.kernel, {floats({3, n}, in)}, options);
        const std::vector<float> kept = to_floats(outs[0]), scaled = to_floats(outs[1]);
        for (std::size_t row = 0; row < 3; ++row) {
          const auto begin = kept.begin() + static_cast<std::ptrdiff_t>(row) * n;
          const double sum = std::accumulate(begin, begin + n, 0.0);
          for (std::size_t c = row * static_cast<std::size_t>(n); c < (row + 1) * static_cast<std::size_t>(n); ++c) {
            ASSERT_NEAR(kept[c], std::exp(static_cast<double>(in[c])), 1e-5 * kept[c]) << n << " " << c;
            ASSERT_NEAR(scaled[c], kept[c] * sum, 1e-5 * scaled[c]) << n << " " << c;
          }
        }
      }
  }
}

// out[i] = log(sum over r of exp(in[i, r])), shifted by the maximum; `returned`: which is stored too.
KernelBuilder logsumexp(std::int64_t m, std::int64_t n, DType dtype, bool returned = false) {
  KernelBuilder k(ir::KernelClass::reduce);
  const Index i = k.axis(m), r = k.axis(n, true);
  const InstrId x = k.load(k.operand(dtype, {m, n}), i * n + r);
  const InstrId most = k.reduce(Op::max, x, {1}, dtype);
  const InstrId shift = k.map(Op::where, {k.map(Op::isinf, {most}, DType::bool_), k.literal(0.0, dtype), most}, dtype);
  const InstrId sum = k.reduce(Op::sum, k.map(Op::exp, {k.map(Op::sub, {x, shift}, dtype)}, dtype), {1}, dtype);
  k.store(k.map(Op::add, {k.map(Op::log, {sum}, dtype), shift}, dtype), i, dtype, {m});
  if (returned) k.store(most, i, dtype, {m});
  return k;
}

bool is_online(const KernelBuilder& k, const RunOptions& options = {}) {
  return codegen::is_online(std::get<codegen::ReduceSchedule>(choose_schedule(k.kernel, test_target(options))));
}

TEST(CpuReduce, AMaximumAndTheExponentialsShiftedByItShareASweep) {
  for (const std::int64_t n : {1, 16, 63, 100, 1777})
    for (const int vector_bytes : {0, 16}) {
      const KernelBuilder k = logsumexp(3, n, DType::f32);
      ASSERT_TRUE(is_online(k, {.vector_bytes = vector_bytes}));
      std::vector<float> in = numbers(static_cast<std::size_t>(3 * n), -9, 9);
      for (std::size_t c = 0; c < static_cast<std::size_t>(n); ++c) {
        in[c] = 3 * static_cast<float>(c);                                    // the maximum grows to the end
        in[static_cast<std::size_t>(n) + c] = -1000 - static_cast<float>(c);  // all far below a shift of 0
      }
      const auto out = to_floats(run(k.kernel, {floats({3, n}, in)}, {.vector_bytes = vector_bytes})[0]);
      for (std::size_t row = 0; row < 3; ++row) {
        const auto begin = in.begin() + static_cast<std::ptrdiff_t>(row) * n;
        const double top = *std::max_element(begin, begin + n);
        double sum = 0;
        for (auto x = begin; x != begin + n; ++x) sum += std::exp(static_cast<double>(*x) - top);
        EXPECT_NEAR(out[row], top + std::log(sum), 1e-6 * std::abs(top) + 1e-6) << n << " " << row;
      }
    }
}

TEST(CpuReduce, ASharedSweepMeetsInfinitiesAndNaN) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr std::size_t kColumns = 300;
  std::vector<float> in(5 * kColumns, -kInfinity);  // row 0: nothing
  in[kColumns + 299] = -2000;                       // after nothing but -inf
  std::fill_n(in.begin() + 2 * kColumns, 3 * kColumns, 50.0F);
  in[2 * kColumns + 150] = kInfinity;
  in[3 * kColumns + 7] = NAN;
  in[4 * kColumns + 299] = NAN;
  const auto out = to_floats(run(logsumexp(5, kColumns, DType::f32).kernel, {floats({5, kColumns}, in)})[0]);
  EXPECT_EQ(out[0], -kInfinity);
  EXPECT_EQ(out[1], -2000);
  EXPECT_EQ(out[2], kInfinity);
  EXPECT_TRUE(std::isnan(out[3]));
  EXPECT_TRUE(std::isnan(out[4]));
  EXPECT_EQ(to_floats(run(logsumexp(2, 0, DType::f32).kernel, {floats({2, 0}, {})})[0])[0], -kInfinity);
}

// softmax over r of in[i, r]; `returned`: the exponentials are stored too.
KernelBuilder softmax(std::int64_t m, std::int64_t n, bool returned = false) {
  KernelBuilder k(ir::KernelClass::reduce);
  const Index i = k.axis(m), r = k.axis(n, true);
  const InstrId x = k.load(k.operand(DType::f32, {m, n}), i * n + r), zero = k.literal(0.0, DType::f32);
  const InstrId most = k.reduce(Op::max, x, {1}, DType::f32);
  const InstrId none = k.map(Op::equal, {most, k.literal(-HUGE_VAL, DType::f32)}, DType::bool_);
  const InstrId shift = k.map(Op::where, {none, zero, most}, DType::f32);
  const InstrId weight = k.map(Op::exp, {k.map(Op::sub, {x, shift}, DType::f32)}, DType::f32);
  const InstrId sum = k.reduce(Op::sum, weight, {1}, DType::f32);
  const InstrId by =
      k.map(Op::where, {k.map(Op::equal, {sum, zero}, DType::bool_), k.literal(1.0, DType::f32), sum}, DType::f32);
  k.store(k.map(Op::div, {weight, by}, DType::f32), i * n + r, DType::f32, {m, n});
  if (returned) k.store(weight, i * n + r, DType::f32, {m, n});
  return k;
}

// Its maximum need not see NaN, since the sum does; the exponentials alone would show it.
TEST(CpuReduce, ASoftmaxWithNaNIsNaNAndSoAreItsExponentials) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr std::size_t kColumns = 300;
  for (const std::size_t at : {0, 17, 150, 299}) {
    std::vector<float> in = numbers(4 * kColumns, -5, 5);
    in[at] = NAN;
    std::fill_n(in.begin() + kColumns, kColumns, NAN);
    std::fill_n(in.begin() + 2 * kColumns, kColumns, -kInfinity);
    const auto columns_of = [&](const std::vector<float>& out, std::size_t row, auto holds) {
      const auto begin = out.begin() + static_cast<std::ptrdiff_t>(row * kColumns);
      return std::all_of(begin, begin + kColumns, holds);
    };
    const auto is_nan = [](float y) { return std::isnan(y); };
    for (const int vector_bytes : {0, 16, 32})
      for (const bool returned : {false, true}) {
        const KernelBuilder k = softmax(4, kColumns, returned);
        const auto outs = run(k.kernel, {floats({4, kColumns}, in)}, {.vector_bytes = vector_bytes});
        for (const auto& out : outs) {
          EXPECT_TRUE(columns_of(to_floats(out), 0, is_nan)) << at;
          EXPECT_TRUE(columns_of(to_floats(out), 1, is_nan));
          EXPECT_TRUE(columns_of(to_floats(out), 2, [](float y) { return y == 0; }));
          EXPECT_TRUE(columns_of(to_floats(out), 3, [](float y) { return y > 0 && y <= 1; }));
        }
      }
  }
}

// The shift does not tell which zero it is; a maximum does.
TEST(CpuReduce, AMaximumThatIsReturnedHasASweepOfItsOwn) {
  const KernelBuilder k = logsumexp(1, 64, DType::f32, true);
  EXPECT_FALSE(is_online(k));
  std::vector<float> in(64, -0.0F);
  in[40] = 0;
  const auto outs = run(k.kernel, {floats({1, 64}, in)});
  EXPECT_NEAR(to_floats(outs[0])[0], std::log(64.0), 1e-6);
  EXPECT_FALSE(std::signbit(to_floats(outs[1])[0]));
}

}  // namespace
}  // namespace tenon::test

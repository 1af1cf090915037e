// Map kernels on the CPU, against scalar arithmetic.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "codegen/analysis/narrow.h"
#include "tests/cpu/kernels.h"

namespace tenon::test {
namespace {

using codegen::Index;
using codegen::InstrId;
using ir::Op;

// out[i] = op(in[i]) over n elements.
KernelBuilder unary(Op op, std::int64_t n, DType from = DType::f32, DType to = DType::f32) {
  KernelBuilder k(ir::KernelClass::map);
  const Index i = k.axis(n);
  const InstrId x = k.load(k.operand(from, {n}), i);
  k.store(k.map(op, {x}, to), i, to, {n});
  return k;
}

double ulps(float actual, double expected) {
  if (std::isnan(expected)) return std::isnan(actual) ? 0 : INFINITY;
  if (actual == static_cast<float>(expected)) return 0;
  int exponent = 0;
  std::frexp(expected, &exponent);
  const double unit = std::ldexp(1.0, std::max(exponent - 24, -149));
  return std::fabs(static_cast<double>(actual) - expected) / unit;
}

double worst_ulps(Op op, const std::vector<float>& inputs, double (*expected)(double)) {
  const auto n = static_cast<std::int64_t>(inputs.size());
  double worst = 0;
  for (const int vector_bytes : {0, 16, 32}) {
    const auto out = to_floats(run(unary(op, n).kernel, {floats({n}, inputs)}, {.vector_bytes = vector_bytes})[0]);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const double error = ulps(out[i], expected(static_cast<double>(inputs[i])));
      EXPECT_LE(error, 4) << name_of(op) << "(" << inputs[i] << ") = " << out[i] << ", " << vector_bytes;
      worst = std::max(worst, error);
    }
  }
  return worst;
}

std::vector<float> spread_of_magnitudes() {
  std::vector<float> values{0.0F,   -0.0F, INFINITY, -INFINITY, NAN,   1e-45F, -1e-45F,
                            1e-38F, 88.8F, -87.4F,   -103.9F,   9.01F, 200.F,  -200.F};
  for (const float scale : {1e-30F, 1e-6F, 0.1F, 1.F, 10.F, 100.F})
    for (const float value : numbers(2000, -scale, scale)) values.push_back(value);
  return values;
}

TEST(CpuMap, EveryLengthIsComputedAndNothingBeyond) {
  for (const std::int64_t n : {0, 1, 3, 15, 16, 17, 31, 33, 64, 100, 1000}) {
    const std::vector<float> x = numbers(static_cast<std::size_t>(n), -10, 10);
    const std::vector<float> out = to_floats(run(unary(Op::neg, n).kernel, {floats({n}, x)})[0]);
    for (std::size_t i = 0; i < x.size(); ++i) EXPECT_EQ(out[i], -x[i]) << n;
  }
}

// But for processors that round products before they are added.
TEST(CpuMap, EveryRegisterWidthAgrees) {
  const std::vector<float> x = numbers(1001, -3, 3);
  const auto native = run(unary(Op::tanh, 1001).kernel, {floats({1001}, x)})[0];
  EXPECT_EQ(run(unary(Op::tanh, 1001).kernel, {floats({1001}, x)}, {.vector_bytes = 32})[0].bytes, native.bytes);
}

TEST(CpuMap, FunctionsWrittenOutStayWithinFourUlps) {
  EXPECT_LE(worst_ulps(Op::tanh, spread_of_magnitudes(), [](double x) { return std::tanh(x); }), 4);
  EXPECT_LE(worst_ulps(Op::exp, spread_of_magnitudes(), [](double x) { return std::exp(x); }), 2);
  EXPECT_LE(worst_ulps(Op::erf, spread_of_magnitudes(), [](double x) { return std::erf(x); }), 3);
  EXPECT_LE(worst_ulps(Op::expm1, spread_of_magnitudes(), [](double x) { return std::expm1(x); }), 2);
}

// From subnormal numbers to the largest, densely around 1, where a logarithm changes its sign.
std::vector<float> arguments_of_logarithms() {
  std::vector<float> values = spread_of_magnitudes();
  for (int exponent = -149; exponent < 128; ++exponent)
    for (const float mantissa : numbers(20, 1, 2)) values.push_back(std::ldexp(mantissa, exponent));
  for (const float width : {1e-6F, 1e-3F, 0.1F, 0.5F})
    for (const float value : numbers(2000, -width, width)) values.push_back(1 + value);
  for (const float value : numbers(2000, -1, -0.99F)) values.push_back(value);
  values.insert(values.end(), {1.0F, -1.0F, 2.0F, 3.4e38F, 1.1754944e-38F});
  return values;
}

TEST(CpuMap, LogarithmsStayWithinTwoUlps) {
  const std::vector<float> x = arguments_of_logarithms();
  EXPECT_LE(worst_ulps(Op::log, x, [](double v) { return std::log(v); }), 2);
  EXPECT_LE(worst_ulps(Op::log2, x, [](double v) { return std::log2(v); }), 2);
  EXPECT_LE(worst_ulps(Op::log1p, x, [](double v) { return std::log1p(v); }), 2);
}

TEST(CpuMap, FunctionsThatPassThroughZeroKeepItsSign) {
  for (const Op op : {Op::log1p, Op::expm1, Op::tanh, Op::erf})
    for (const int vector_bytes : {0, 16, 32}) {
      const auto out =
          to_floats(run(unary(op, 2).kernel, {floats({2}, {-0.0F, 0.0F})}, {.vector_bytes = vector_bytes})[0]);
      EXPECT_TRUE(std::signbit(out[0])) << name_of(op);
      EXPECT_FALSE(std::signbit(out[1])) << name_of(op);
    }
}

TEST(CpuMap, MathRoutinesStayWithinFourUlps) {
  const std::vector<float> x = spread_of_magnitudes();
  worst_ulps(Op::sin, x, [](double v) { return std::sin(v); });
  worst_ulps(Op::exp2, x, [](double v) { return std::exp2(v); });
  worst_ulps(Op::atan, x, [](double v) { return std::atan(v); });
  worst_ulps(Op::cosh, x, [](double v) { return std::cosh(v); });
  worst_ulps(Op::sinh, x, [](double v) { return std::sinh(v); });
}

// out[i] = 1 + tanh(in[i]); `returned`: the tanh too.
codegen::Kernel one_plus_tanh(std::int64_t n, bool returned = false) {
  KernelBuilder k(ir::KernelClass::map);
  const Index i = k.axis(n);
  const InstrId tanh = k.map(Op::tanh, {k.load(k.operand(DType::f32, {n}), i)}, DType::f32);
  k.store(k.map(Op::add, {k.literal(1.0, DType::f32), tanh}, DType::f32), i, DType::f32, {n});
  if (returned) k.store(tanh, i, DType::f32, {n});
  k.kernel.body[static_cast<std::size_t>(tanh)].reused = returned;
  mark_composed(k.kernel);
  return k.kernel;
}

// A quotient, which does not lose what a tanh near -1 leaves, unless the tanh is there anyway.
TEST(CpuMap, OnePlusTanhKeepsWhatIsLeft) {
  const std::vector<float> x = spread_of_magnitudes();
  const auto n = static_cast<std::int64_t>(x.size());
  for (const int vector_bytes : {0, 16, 32}) {
    const auto out = to_floats(run(one_plus_tanh(n), {floats({n}, x)}, {.vector_bytes = vector_bytes})[0]);
    const auto both = run(one_plus_tanh(n, true), {floats({n}, x)}, {.vector_bytes = vector_bytes});
    const std::vector<float> sum = to_floats(both[0]), tanh = to_floats(both[1]);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double expected = 2 / (1 + std::exp(-2 * static_cast<double>(x[i])));
      if (x[i] < -20) {
        EXPECT_LE(std::fabs(out[i]), 1e-17);
      } else {
        EXPECT_LE(ulps(out[i], expected), x[i] < -1 ? 4 : 2) << x[i];
      }
      EXPECT_LE(ulps(sum[i], 1 + static_cast<double>(tanh[i])), 0.5);
    }
  }
}

// tanh(log(1 + exp(x))) of f32 within 2^-21, and of f64 within 2^-50.
TEST(CpuMap, TanhOfSoftplusIsOneFunction) {
  const std::vector<float> x = spread_of_magnitudes();
  const auto n = static_cast<std::int64_t>(x.size());
  for (const DType dtype : {DType::f32, DType::f64}) {
    KernelBuilder k(ir::KernelClass::map);
    const Index i = k.axis(n);
    const InstrId in = k.load(k.operand(DType::f32, {n}), i), wide = k.map(Op::cast, {in}, dtype);
    const InstrId share = k.map(Op::exp, {k.map(Op::neg, {k.map(Op::abs, {wide}, dtype)}, dtype)}, dtype);
    const InstrId softplus = k.map(
        Op::add, {k.map(Op::maximum, {wide, k.literal(0.0, dtype)}, dtype), k.map(Op::log1p, {share}, dtype)}, dtype);
    k.store(k.map(Op::tanh, {softplus}, dtype), i, dtype, {n});
    mark_composed(k.kernel);
    EXPECT_NE(print(k.kernel).find("of_softplus tanh"), std::string::npos) << print(k.kernel);
    for (const int vector_bytes : {0, 16, 32}) {
      const ir::HostArray out = run(k.kernel, {floats({n}, x)}, {.vector_bytes = vector_bytes})[0];
      for (std::int64_t element = 0; element < n; ++element) {
        const double v = static_cast<double>(x[static_cast<std::size_t>(element)]);
        const double expected = std::tanh(std::max(v, 0.0) + std::log1p(std::exp(-std::fabs(v))));
        const double actual = ir::get_real(out, element);
        if (std::isnan(v)) {
          EXPECT_TRUE(std::isnan(actual));
        } else {
          const double bound =
              std::ldexp(expected, dtype == DType::f32 ? -21 : -50) + (dtype == DType::f32 ? 1e-45 : 0);
          EXPECT_NEAR(actual, expected, bound) << v;
        }
      }
    }
  }
}

TEST(CpuMap, ATransposedOperandIsGathered) {
  KernelBuilder k(ir::KernelClass::map);
  const Index i = k.axis(5), j = k.axis(37);
  const InstrId x = k.load(k.operand(DType::f32, {37, 5}), j * 5 + i);
  k.store(k.map(Op::add, {x, k.literal(1.0, DType::f32)}, DType::f32), i * 37 + j, DType::f32, {5, 37});
  const std::vector<float> in = numbers(185, -1, 1);
  const std::vector<float> out = to_floats(run(k.kernel, {floats({37, 5}, in)})[0]);
  for (std::size_t a = 0; a < 5; ++a)
    for (std::size_t b = 0; b < 37; ++b) EXPECT_EQ(out[a * 37 + b], in[b * 5 + a] + 1);
}

TEST(CpuMap, ARowIsBroadcastAndSymbolicExtentsAreArguments) {
  KernelBuilder k(ir::KernelClass::map);
  k.symbol("rows");
  const Dim rows = Dim::symbol("rows");
  const Index i = k.axis(rows), j = k.axis(2 * rows + 1);
  const InstrId x = k.load(k.operand(DType::f32, {rows, 2 * rows + 1}), i * (2 * rows + 1) + j);
  const InstrId w = k.load(k.operand(DType::f32, {2 * rows + 1}), j);
  const InstrId s = k.load(k.operand(DType::f32, {rows}), i);
  const InstrId y = k.map(Op::mul, {k.map(Op::add, {x, w}, DType::f32), s}, DType::f32);
  k.store(y, i * (2 * rows + 1) + j, DType::f32, {rows, 2 * rows + 1});
  for (const std::int64_t n : {0, 1, 7, 40}) {
    const auto size = static_cast<std::size_t>(n), width = 2 * size + 1;
    const auto a = numbers(size * width, -1, 1), b = numbers(width, -1, 1, 2), c = numbers(size, -1, 1, 3);
    const auto out = to_floats(run(k.kernel, {floats({n, 2 * n + 1}, a), floats({2 * n + 1}, b), floats({n}, c)},
                                   {.bindings = {{"rows", n}}})[0]);
    for (std::size_t r = 0; r < size; ++r)
      for (std::size_t q = 0; q < width; ++q) EXPECT_EQ(out[r * width + q], (a[r * width + q] + b[q]) * c[r]);
  }
}

TEST(CpuMap, GuardedLoadsGiveZeroOutside) {
  KernelBuilder k(ir::KernelClass::map);
  const Index i = k.axis(50);
  const Index shifted = i - Index(7);
  const InstrId x = k.load(k.operand(DType::f32, {20}), shifted, {{shifted, 20}});
  k.store(x, i, DType::f32, {50});
  const std::vector<float> in = numbers(20, 1, 2);
  const std::vector<float> out = to_floats(run(k.kernel, {floats({20}, in)})[0]);
  for (std::size_t a = 0; a < 50; ++a) EXPECT_EQ(out[a], a >= 7 && a < 27 ? in[a - 7] : 0.0F);
}

TEST(CpuMap, DivisionsInIndicesFollowFloorSemantics) {
  KernelBuilder k(ir::KernelClass::map);
  const Index i = k.axis(100);
  const Index offset = codegen::floor_div(i, 3, k.kernel.context()) + codegen::mod(i, 7, k.kernel.context()) * 40;
  const InstrId x = k.load(k.operand(DType::i32, {300}), offset);
  k.store(x, i, DType::i32, {100});
  std::vector<std::int32_t> in(300);
  for (std::size_t a = 0; a < in.size(); ++a) in[a] = static_cast<std::int32_t>(a);
  const auto out = values_of<std::int32_t>(run(k.kernel, {array_of(DType::i32, {300}, in)})[0]);
  for (std::int32_t a = 0; a < 100; ++a) EXPECT_EQ(out[static_cast<std::size_t>(a)], a / 3 + a % 7 * 40);
}

TEST(CpuMap, StreamedStoresReachEveryElementWhateverTheAlignment) {
  KernelBuilder k = unary(Op::neg, 100001);
  codegen::Target target = test_target();
  codegen::MapSchedule schedule;
  schedule.vector = target.vector_bytes / 4;
  schedule.unroll = 4;
  schedule.grain = 30000;
  schedule.cache.streaming = true;
  k.kernel.schedule = schedule;
  const std::vector<float> x = numbers(100001, -1, 1);
  for (const std::size_t misalign : {0, 4, 60}) {
    const auto out = to_floats(
        run(k.kernel, {floats({100001}, x)},
            {.bindings = {}, .keep_schedule = true, .threads = 2, .l3_bytes = 4096, .misalign = misalign})[0]);
    for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(out[i], -x[i]) << misalign << " " << i;
  }
}

// tanh(exp(x y)) and, `with_call`, the sine of x beside it, which is a call of a function; y is not contiguous.
KernelBuilder long_expression(bool with_call) {
  KernelBuilder k(ir::KernelClass::map);
  const Index i = k.axis(1003);
  const InstrId x = k.load(k.operand(DType::f32, {1003}), i);
  const InstrId y = k.load(k.operand(DType::f32, {1003}), Index(1002) - i);
  const InstrId wave = k.map(Op::tanh, {k.map(Op::exp, {k.map(Op::mul, {x, y}, DType::f32)}, DType::f32)}, DType::f32);
  const InstrId other = k.map(with_call ? Op::sin : Op::exp, {x}, DType::f32);
  k.store(k.map(Op::add, {wave, other}, DType::f32), i, DType::f32, {1003});
  k.store(wave, i, DType::f32, {1003});
  return k;
}

// What is cut to fewer bits and then goes around the caches may be more registers than one: LLVM had no register for
// it.
TEST(CpuMap, WideVectorsOfShortenedIntegersAreStreamed) {
  constexpr int kCount = 1000;
  std::vector<std::int64_t> in(kCount);
  for (int i = 0; i < kCount; ++i) in[static_cast<std::size_t>(i)] = (std::int64_t{i} << 33) + 7 * i;
  for (const int vector : {4, 16, 64}) {
    KernelBuilder k(ir::KernelClass::map);
    const Index i = k.axis(kCount);
    const InstrId x = k.load(k.operand(DType::i64, {kCount}), i);
    k.store(k.map(Op::cast, {x}, DType::i32), i, DType::i32, {kCount});
    codegen::MapSchedule schedule;
    schedule.vector = vector;
    schedule.grain = 500;
    schedule.cache.streaming = true;
    k.kernel.schedule = schedule;
    const auto out = values_of<std::int32_t>(
        run(k.kernel, {array_of(DType::i64, {kCount}, in)}, {.bindings = {}, .keep_schedule = true, .l3_bytes = 1})[0]);
    for (int at = 0; at < kCount; ++at) ASSERT_EQ(out[static_cast<std::size_t>(at)], 7 * at) << vector;
  }
}

// Vectors take turns, and give what one after the other gives, bit by bit; but not around calls.
TEST(CpuMap, VectorsThatTakeTurnsGiveTheSame) {
  const std::vector<ir::HostArray> in = {floats({1003}, numbers(1003, -2, 2)), floats({1003}, numbers(1003, -2, 2, 7))};
  for (const bool with_call : {false, true})
    for (const std::int64_t l3_bytes : {1, 1 << 30}) {
      KernelBuilder k = long_expression(with_call);
      const RunOptions options{.keep_schedule = true, .l3_bytes = l3_bytes};
      auto schedule = std::get<codegen::MapSchedule>(choose_schedule(k.kernel, test_target(options)));
      schedule.unroll = 4;
      schedule.cache.streaming = l3_bytes == 1;
      const auto text_and_results = [&](bool interleave) {
        schedule.interleave = interleave;
        k.kernel.schedule = schedule;
        return std::pair(codegen::emit_llvm(k.kernel, test_target(options)).text, run(k.kernel, in, options));
      };
      const auto [text, turns] = text_and_results(true);
      const auto [plain, one] = text_and_results(false);
      // Around the caches what is fetched ahead differs as well.
      EXPECT_EQ(text == plain, with_call && !schedule.cache.streaming);
      EXPECT_EQ(turns[0].bytes, one[0].bytes);
      EXPECT_EQ(turns[1].bytes, one[1].bytes);
    }
}

// What memory takes longer for than the core is computed one vector after the other.
TEST(CpuMap, LongExpressionsTakeTurnsAndShortOnesDoNot) {
  const auto takes_turns = [](const KernelBuilder& k) {
    return std::get<codegen::MapSchedule>(choose_schedule(k.kernel, test_target())).interleave;
  };
  EXPECT_FALSE(takes_turns(unary(Op::exp, 1 << 20)));
  KernelBuilder k(ir::KernelClass::map);
  const Index i = k.axis(1 << 20);
  InstrId value = k.load(k.operand(DType::f32, {1 << 20}), i);
  for (int repeat = 0; repeat < 3; ++repeat) value = k.map(Op::tanh, {value}, DType::f32);
  k.store(value, i, DType::f32, {1 << 20});
  EXPECT_TRUE(takes_turns(k));
}

// out[b, i, j] = in[b, j, i] + w[j]: squares of vectors, whole and cut off on either side, around the caches and not.
TEST(CpuMap, TransposesGoThroughSquaresOfRegisters) {
  for (const DType dtype : {DType::f32, DType::f64, DType::i8, DType::bf16})
    for (const auto& [m, n] :
         {std::pair<std::int64_t, std::int64_t>{16, 16}, {64, 32}, {33, 70}, {200, 1025}, {9, 1600}})
      for (const int vector_bytes : {0, 16})
        for (const std::int64_t l3_bytes : {1, 1 << 30}) {
          KernelBuilder k(ir::KernelClass::map);
          const Index b = k.axis(2), i = k.axis(m), j = k.axis(n);
          const InstrId x = k.load(k.operand(dtype, {2, n, m}), b * (m * n) + j * m + i);
          const InstrId w = k.load(k.operand(dtype, {n}), j);
          k.store(k.map(Op::add, {x, w}, dtype), b * (m * n) + i * n + j, dtype, {2, m, n});
          const RunOptions options{.vector_bytes = vector_bytes, .threads = 2, .l3_bytes = l3_bytes};
          EXPECT_EQ(std::get<codegen::MapSchedule>(choose_schedule(k.kernel, test_target(options))).tile->axis, 1);
          ir::HostArray in = ir::make_array(dtype, {2, n, m}), bias = ir::make_array(dtype, {n});
          for (ir::HostArray* array : {&in, &bias})
            for (std::int64_t e = 0; e < ir::element_count(*array); ++e) {
              if (is_real(dtype)) ir::set_real(*array, e, static_cast<double>(e * 7 % 61 - 30));
              if (!is_real(dtype)) ir::set_integer(*array, e, e * 7 % 61 - 30);
            }
          const ir::HostArray out = run(k.kernel, {in, bias}, options)[0];
          for (std::int64_t e = 0; e < 2 * m * n; ++e) {
            const std::int64_t batch = e / (m * n), row = e / n % m, column = e % n;
            const std::int64_t from = batch * m * n + column * m + row;
            ASSERT_EQ(ir::get_real(out, e), ir::get_real(in, from) + ir::get_real(bias, column))
                << name_of(dtype) << " " << m << "x" << n << " at " << e;
          }
        }
}

// out0[i, j] = x[j, i] and out1[i, j] = x[j, i] + y[j, i], elements of all widths side by side: rows of results that
// begin anywhere in a line, cut where lines end, so that tasks write what lies in columns of others.
TEST(CpuMap, RowsOfTransposesThatAreNotLinesAreCutAtLines) {
  const auto value = [](std::int64_t e) { return static_cast<double>(e * 7 % 61 - 30); };
  for (const auto& [narrow, wide] : {std::pair{DType::i8, DType::i32},
                                     {DType::bf16, DType::f32},
                                     {DType::f32, DType::bf16},
                                     {DType::f64, DType::f32},
                                     {DType::u8, DType::i16}})
    for (const auto& [m, n] : {std::pair<std::int64_t, std::int64_t>{70, 333}, {129, 97}, {40, 256}})
      for (const int vector_bytes : {0, 16, 32})
        for (const int columns : {32, 128})
          for (const std::size_t misalign : {0, 24}) {
            KernelBuilder k(ir::KernelClass::map);
            const Index i = k.axis(m), j = k.axis(n);
            const InstrId x = k.load(k.operand(narrow, {n, m}), j * m + i);
            const InstrId y = k.load(k.operand(wide, {n, m}), j * m + i);
            k.store(x, i * n + j, narrow, {m, n});
            k.store(k.map(Op::add, {k.map(Op::cast, {x}, wide), y}, wide), i * n + j, wide, {m, n});
            const RunOptions options{
                .keep_schedule = true, .vector_bytes = vector_bytes, .threads = 2, .l3_bytes = 1, .misalign = misalign};
            auto schedule = std::get<codegen::MapSchedule>(choose_schedule(k.kernel, test_target(options)));
            ASSERT_EQ(schedule.tile->axis, 0);
            schedule.tile->columns = columns;
            schedule.cache.streaming = true;
            k.kernel.schedule = schedule;
            ir::HostArray a = ir::make_array(narrow, {n, m}), b = ir::make_array(wide, {n, m});
            for (std::int64_t e = 0; e < m * n; ++e) {
              const double v = narrow == DType::u8 ? value(e) + 30 : value(e);
              is_real(narrow) ? ir::set_real(a, e, v) : ir::set_integer(a, e, static_cast<std::int64_t>(v));
              is_real(wide) ? ir::set_real(b, e, 2 * v) : ir::set_integer(b, e, static_cast<std::int64_t>(2 * v));
            }
            const std::vector<ir::HostArray> out = run(k.kernel, {a, b}, options);
            for (std::int64_t e = 0; e < m * n; ++e) {
              const std::int64_t from = e % n * m + e / n;
              ASSERT_EQ(ir::get_real(out[0], e), ir::get_real(a, from)) << name_of(narrow) << " " << m << " at " << e;
              ASSERT_EQ(ir::get_real(out[1], e), 3 * ir::get_real(a, from)) << name_of(wide) << " " << m << " at " << e;
            }
          }
}

// Rows of a power of two bytes share few places in a core's cache; of others a line of many rows stays at hand.
TEST(CpuMap, TransposesReadAsManyRowsAtOnceAsTheCacheHasPlacesFor) {
  const auto rows_at_once = [](DType dtype, std::int64_t m) {
    KernelBuilder k(ir::KernelClass::map);
    const Index i = k.axis(m), j = k.axis(4096);
    k.store(k.load(k.operand(dtype, {4096, m}), j * m + i), i * 4096 + j, dtype, {m, 4096});
    codegen::Target target = test_target();
    target.l2_bytes = 1 << 20;
    return std::get<codegen::MapSchedule>(choose_schedule(k.kernel, target)).tile->columns;
  };
  EXPECT_EQ(rows_at_once(DType::f32, 8192), 32);
  EXPECT_EQ(rows_at_once(DType::bf16, 8192), 64);
  EXPECT_EQ(rows_at_once(DType::f32, 4097), 256);
  EXPECT_EQ(rows_at_once(DType::f64, 65536), 32);
}

// Rows of 222 bytes share lines, each part of which would wait for memory; those of 256 do not, and of 9000 few do.
TEST(CpuMap, ShortRowsThatShareLinesGoThroughTheCaches) {
  const auto streams = [](std::int64_t row) {
    KernelBuilder k(ir::KernelClass::map);
    const std::int64_t rows = (64 << 20) / row;
    const Index i = k.axis(rows), j = k.axis(row);
    const InstrId bias = k.load(k.operand(DType::bf16, {row}), j);
    const InstrId x = k.load(k.operand(DType::bf16, {rows, row}), i * row + j);
    k.store(k.map(Op::add, {x, bias}, DType::bf16), i * row + j, DType::bf16, {rows, row});
    codegen::Target target = test_target({.vector_bytes = 32});
    target.l3_bytes = 32 << 20;
    return std::get<codegen::MapSchedule>(choose_schedule(k.kernel, target)).cache.streaming;
  };
  EXPECT_FALSE(streams(111));
  EXPECT_TRUE(streams(128));
  EXPECT_TRUE(streams(4501));
}

}  // namespace
}  // namespace tenon::test

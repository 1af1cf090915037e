// What each operator means at the edges of its domain, as tables: signed zeros, infinities, NaN, subnormals, division
// by zero, the least integers. Expected values are IEEE 754-2019's, C's, Python's or NumPy's, not the code's.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "ir/ops/evaluate.h"

namespace tenon::ir {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kTiny = std::numeric_limits<double>::denorm_min();
constexpr double kMax = std::numeric_limits<double>::max();
constexpr std::int64_t kMin8 = -128, kMin64 = std::numeric_limits<std::int64_t>::min();

struct RealRow {
  Op op;
  std::vector<double> operands;
  double expected;
};

double real(const RealRow& row) {
  std::vector<double> args = row.operands;
  args.resize(3);
  return real_function(row.op)(args[0], args[1], args[2]);
}

void expect(const std::vector<RealRow>& rows) {
  for (const RealRow& row : rows) {
    const double actual = real(row);
    std::string text(name_of(row.op));
    for (const double x : row.operands) text += " " + std::to_string(x);
    if (std::isnan(row.expected)) {
      EXPECT_TRUE(std::isnan(actual)) << text << " gives " << actual;
    } else {
      EXPECT_EQ(actual, row.expected) << text;
      EXPECT_EQ(std::signbit(actual), std::signbit(row.expected)) << text << ": the sign";
    }
  }
}

TEST(RealMeaning, FloorDivisionIsPythons) {
  expect({{Op::floor_div, {7, 2}, 3},
          {Op::floor_div, {-7, 2}, -4},
          {Op::floor_div, {7, -2}, -4},
          {Op::floor_div, {-7, -2}, 3},
          {Op::floor_div, {1, 0.1}, 9},  // 0.1 is a little more than a tenth; floor(1 / 0.1) would be 10
          {Op::floor_div, {-1, 0.1}, -10},
          {Op::floor_div, {6, 3}, 2},
          {Op::floor_div, {0.0, 3}, 0.0},
          {Op::floor_div, {-0.0, 3}, -0.0},
          {Op::floor_div, {1, kInf}, 0.0},
          {Op::floor_div, {-1, kInf}, -1},
          {Op::floor_div, {1, -kInf}, -1},
          {Op::floor_div, {1, 0.0}, kInf},
          {Op::floor_div, {-1, 0.0}, -kInf},
          {Op::floor_div, {0.0, 0.0}, kNaN},
          {Op::floor_div, {kInf, 1}, kNaN},
          {Op::floor_div, {kNaN, 1}, kNaN}});
}

TEST(RealMeaning, ModHasTheSignOfTheDivisor) {
  expect({{Op::mod, {7, 3}, 1},
          {Op::mod, {-7, 3}, 2},
          {Op::mod, {7, -3}, -2},
          {Op::mod, {-7, -3}, -1},
          {Op::mod, {6, 3}, 0.0},
          {Op::mod, {-6, 3}, 0.0},
          {Op::mod, {6, -3}, -0.0},
          {Op::mod, {5.5, 2}, 1.5},
          {Op::mod, {1, kInf}, 1},
          {Op::mod, {-1, kInf}, kInf},
          {Op::mod, {1, 0.0}, kNaN},
          {Op::mod, {kInf, 2}, kNaN},
          {Op::mod, {kNaN, 2}, kNaN}});
}

TEST(RealMeaning, PowerIsCs) {
  expect({{Op::pow, {2, 10}, 1024},
          {Op::pow, {2, -1}, 0.5},
          {Op::pow, {kNaN, 0}, 1},
          {Op::pow, {std::numeric_limits<double>::signaling_NaN(), -0.0}, 1},
          {Op::pow, {1, kNaN}, 1},
          {Op::pow, {0.0, -1}, kInf},
          {Op::pow, {-0.0, -1}, -kInf},
          {Op::pow, {-0.0, 3}, -0.0},
          {Op::pow, {-0.0, 2}, 0.0},
          {Op::pow, {-8, 1.0 / 3}, kNaN},
          {Op::pow, {-2, 3}, -8},
          {Op::pow, {-1, kInf}, 1},
          {Op::pow, {0.5, kInf}, 0.0}});
}

TEST(RealMeaning, ExtremaPropagateNaNAndOrderZeros) {
  expect({{Op::minimum, {1, 2}, 1},
          {Op::maximum, {1, 2}, 2},
          {Op::minimum, {kNaN, 1}, kNaN},
          {Op::minimum, {1, kNaN}, kNaN},
          {Op::maximum, {kNaN, kInf}, kNaN},
          {Op::maximum, {-kInf, kNaN}, kNaN},
          {Op::minimum, {0.0, -0.0}, -0.0},
          {Op::minimum, {-0.0, 0.0}, -0.0},
          {Op::maximum, {0.0, -0.0}, 0.0},
          {Op::maximum, {-0.0, 0.0}, 0.0},
          {Op::maximum, {-0.0, -0.0}, -0.0},
          {Op::minimum, {kInf, -kInf}, -kInf},
          {Op::max, {kNaN, 1}, kNaN},
          {Op::min, {1, kNaN}, kNaN},
          {Op::clamp, {5, 0, 3}, 3},
          {Op::clamp, {-5, 0, 3}, 0},
          {Op::clamp, {2, 3, 1}, 1},
          {Op::clamp, {kNaN, 0, 1}, kNaN},
          {Op::clamp, {1, 0, kNaN}, kNaN}});
}

TEST(RealMeaning, SignAndAbsKeepZerosAndNaN) {
  expect({{Op::sign, {-3}, -1},
          {Op::sign, {kTiny}, 1},
          {Op::sign, {0.0}, 0.0},
          {Op::sign, {-0.0}, -0.0},
          {Op::sign, {kNaN}, kNaN},
          {Op::sign, {-kInf}, -1},
          {Op::abs, {-0.0}, 0.0},
          {Op::abs, {-kInf}, kInf},
          {Op::neg, {0.0}, -0.0},
          {Op::neg, {kInf}, -kInf}});
}

TEST(RealMeaning, RoundingGoesToEvenAndKeepsTheSignOfZero) {
  expect({{Op::round, {0.5}, 0.0},
          {Op::round, {1.5}, 2},
          {Op::round, {2.5}, 2},
          {Op::round, {-0.5}, -0.0},
          {Op::round, {-1.5}, -2},
          {Op::floor, {-0.5}, -1},
          {Op::floor, {-0.0}, -0.0},
          {Op::ceil, {-0.5}, -0.0},
          {Op::ceil, {0.2}, 1},
          {Op::trunc, {-1.7}, -1},
          {Op::trunc, {-0.7}, -0.0},
          {Op::floor, {kInf}, kInf},
          {Op::round, {kNaN}, kNaN}});
}

TEST(RealMeaning, ArithmeticIsIeees) {
  expect({{Op::add, {-0.0, 0.0}, 0.0},
          {Op::sub, {0.0, 0.0}, 0.0},
          {Op::add, {kInf, -kInf}, kNaN},
          {Op::mul, {0.0, kInf}, kNaN},
          {Op::mul, {-0.0, 5}, -0.0},
          {Op::div, {1, -0.0}, -kInf},
          {Op::div, {0.0, 0.0}, kNaN},
          {Op::reciprocal, {-0.0}, -kInf},
          {Op::reciprocal, {-kInf}, -0.0},
          {Op::sqrt, {-0.0}, -0.0},
          {Op::sqrt, {-1}, kNaN},
          {Op::rsqrt, {0.0}, kInf},
          {Op::rsqrt, {4}, 0.5},
          {Op::rsqrt, {kInf}, 0.0},
          {Op::fma, {2, 3, 4}, 10},
          {Op::fma, {0.0, kInf, 1}, kNaN},
          {Op::add, {kMax, kMax}, kInf},
          {Op::mul, {kTiny, 0.5}, 0.0},
          {Op::add, {kTiny, kTiny}, 2 * kTiny}});
}

TEST(RealMeaning, FunctionsAtTheirEdges) {
  expect({{Op::exp, {-kInf}, 0.0},   {Op::exp, {kInf}, kInf},  {Op::exp, {0.0}, 1},      {Op::exp2, {-1}, 0.5},
          {Op::expm1, {-0.0}, -0.0}, {Op::expm1, {-kInf}, -1}, {Op::log, {0.0}, -kInf},  {Op::log, {-1}, kNaN},
          {Op::log, {1}, 0.0},       {Op::log2, {8}, 3},       {Op::log1p, {-1}, -kInf}, {Op::log1p, {-0.0}, -0.0},
          {Op::sin, {-0.0}, -0.0},   {Op::sin, {kInf}, kNaN},  {Op::cos, {kInf}, kNaN},  {Op::tan, {0.0}, 0.0},
          {Op::asin, {2}, kNaN},     {Op::acos, {1}, 0.0},     {Op::atan, {-0.0}, -0.0}, {Op::sinh, {-kInf}, -kInf},
          {Op::cosh, {-kInf}, kInf}, {Op::tanh, {kInf}, 1},    {Op::tanh, {-0.0}, -0.0}, {Op::erf, {-kInf}, -1},
          {Op::erf, {0.0}, 0.0}});
}

TEST(RealMeaning, ComparisonsWithNaNAreFalseExceptNotEqual) {
  expect({{Op::equal, {kNaN, kNaN}, 0},
          {Op::not_equal, {kNaN, 1}, 1},
          {Op::less, {kNaN, 1}, 0},
          {Op::less_equal, {1, kNaN}, 0},
          {Op::greater, {kNaN, 1}, 0},
          {Op::greater_equal, {1, kNaN}, 0},
          {Op::equal, {0.0, -0.0}, 1},
          {Op::less, {-0.0, 0.0}, 0},
          {Op::isnan, {kNaN}, 1},
          {Op::isnan, {kInf}, 0},
          {Op::isinf, {-kInf}, 1},
          {Op::isinf, {kNaN}, 0},
          {Op::isfinite, {kMax}, 1},
          {Op::isfinite, {kInf}, 0},
          {Op::where, {1, 2, 3}, 2},
          {Op::where, {0, 2, kNaN}, kNaN}});
}

// ---- integers ---------------------------------------------------------------------------------------------------

struct IntegerRow {
  Op op;
  DType dtype;
  std::vector<std::int64_t> operands;
  std::int64_t expected;
};

void expect(const std::vector<IntegerRow>& rows) {
  for (const IntegerRow& row : rows) {
    std::vector<Scalar> scalars;
    std::string text(name_of(row.op));
    for (const std::int64_t x : row.operands) {
      scalars.push_back(row.dtype == DType::bool_ ? Scalar(x != 0) : Scalar(x));
      text += " " + std::to_string(x);
    }
    const Scalar result = evaluate(row.op, row.dtype, row.dtype, scalars);
    const std::int64_t actual = std::visit([](auto x) { return static_cast<std::int64_t>(x); }, result);
    EXPECT_EQ(actual, row.expected) << text << " of " << name_of(row.dtype);
  }
}

TEST(IntegerMeaning, ArithmeticWraps) {
  expect({{Op::add, DType::i8, {127, 1}, -128},
          {Op::sub, DType::u8, {0, 1}, 255},
          {Op::mul, DType::i32, {65536, 65536}, 0},
          {Op::mul, DType::i64, {kMin64, -1}, kMin64},
          {Op::add, DType::i64, {std::numeric_limits<std::int64_t>::max(), 1}, kMin64},
          {Op::neg, DType::i8, {kMin8}, kMin8},
          {Op::neg, DType::u8, {1}, 255},
          {Op::abs, DType::i8, {kMin8}, kMin8},
          {Op::abs, DType::i64, {kMin64}, kMin64},
          {Op::sign, DType::i32, {-5}, -1},
          {Op::sign, DType::i32, {0}, 0}});
}

TEST(IntegerMeaning, DivisionRoundsDownAndByZeroGivesZero) {
  expect({{Op::floor_div, DType::i32, {7, 2}, 3},
          {Op::floor_div, DType::i32, {-7, 2}, -4},
          {Op::floor_div, DType::i32, {7, -2}, -4},
          {Op::floor_div, DType::i32, {-7, -2}, 3},
          {Op::floor_div, DType::i32, {5, 0}, 0},
          {Op::floor_div, DType::i64, {kMin64, -1}, kMin64},
          {Op::floor_div, DType::i8, {kMin8, -1}, kMin8},
          {Op::mod, DType::i32, {-7, 3}, 2},
          {Op::mod, DType::i32, {7, -3}, -2},
          {Op::mod, DType::i32, {-6, 3}, 0},
          {Op::mod, DType::i32, {5, 0}, 0},
          {Op::mod, DType::i64, {kMin64, -1}, 0},
          {Op::floor_div, DType::u8, {200, 3}, 66}});
}

TEST(IntegerMeaning, PowersWrapAndNegativeExponentsTruncate) {
  expect({{Op::pow, DType::i32, {2, 10}, 1024},
          {Op::pow, DType::i32, {2, 32}, 0},
          {Op::pow, DType::i32, {3, 0}, 1},
          {Op::pow, DType::i32, {0, 0}, 1},
          {Op::pow, DType::i32, {2, -1}, 0},
          {Op::pow, DType::i32, {1, -7}, 1},
          {Op::pow, DType::i32, {-1, -7}, -1},
          {Op::pow, DType::i32, {-1, -8}, 1},
          {Op::pow, DType::i32, {0, -1}, 0},
          {Op::pow, DType::i64, {-3, 3}, -27},
          {Op::pow, DType::u8, {2, 8}, 0}});
}

TEST(IntegerMeaning, ShiftsBeyondTheWidth) {
  expect({{Op::left_shift, DType::i8, {1, 7}, -128},
          {Op::left_shift, DType::i8, {1, 8}, 0},
          {Op::left_shift, DType::i32, {1, -1}, 0},
          {Op::left_shift, DType::i64, {1, 64}, 0},
          {Op::left_shift, DType::i64, {-1, 63}, kMin64},
          {Op::right_shift, DType::i8, {-128, 7}, -1},
          {Op::right_shift, DType::i8, {-128, 100}, -1},
          {Op::right_shift, DType::i32, {-8, 1}, -4},
          {Op::right_shift, DType::i32, {8, -1}, 0},
          {Op::right_shift, DType::i32, {-8, -1}, -1},
          {Op::right_shift, DType::u8, {255, 8}, 0},
          {Op::right_shift, DType::u8, {255, 1}, 127}});
}

TEST(IntegerMeaning, BitsAndBools) {
  expect({{Op::bitwise_not, DType::bool_, {0}, 1},
          {Op::bitwise_not, DType::bool_, {1}, 0},
          {Op::bitwise_not, DType::u8, {1}, 254},
          {Op::bitwise_not, DType::i32, {0}, -1},
          {Op::bitwise_xor, DType::i8, {-1, 1}, -2},
          {Op::logical_not, DType::bool_, {1}, 0},
          {Op::logical_xor, DType::bool_, {1, 1}, 0},
          {Op::logical_and, DType::bool_, {1, 0}, 0},
          {Op::logical_or, DType::bool_, {1, 0}, 1},
          {Op::minimum, DType::i8, {-128, 127}, -128},
          {Op::clamp, DType::i32, {9, 0, 5}, 5},
          {Op::floor, DType::i32, {-3}, -3}});
}

// ---- the table as a whole ---------------------------------------------------------------------------------------

TEST(Evaluate, EveryMapOpHasAMeaningWhereItIsAccepted) {
  for (const OpInfo& op : all_ops()) {
    if (op.kind != Kind::map || op.op == Op::cast || op.op == Op::bitcast) continue;
    const bool integers = accepts(op.accepts, DType::bool_) || accepts(op.accepts, DType::i32);
    EXPECT_EQ(real_function(op.op) != nullptr, accepts(op.accepts, DType::f32)) << op.name;
    EXPECT_EQ(integer_function(op.op) != nullptr, integers) << op.name;
  }
}

TEST(Evaluate, RoundsToTheResultsDtype) {
  const Scalar third = evaluate(Op::div, DType::f32, DType::f32, std::vector<Scalar>{1.0, 3.0});
  EXPECT_EQ(std::get<double>(third), static_cast<double>(1.0f / 3.0f));
  EXPECT_EQ(std::get<double>(evaluate(Op::mul, DType::f16, DType::f16, std::vector<Scalar>{256.0, 256.0})), kInf);
  EXPECT_EQ(std::get<bool>(evaluate(Op::less, DType::f32, DType::bool_, std::vector<Scalar>{1.0, 2.0})), true);
}

TEST(Evaluate, CastsAndBitcasts) {
  const auto one = [](Op op, DType from, DType to, Scalar x) { return evaluate(op, from, to, std::vector<Scalar>{x}); };
  EXPECT_EQ(std::get<std::int64_t>(one(Op::cast, DType::f32, DType::i8, 300.0)), 127);
  EXPECT_EQ(std::get<std::int64_t>(one(Op::cast, DType::i32, DType::u8, std::int64_t{300})), 44);
  EXPECT_EQ(std::get<bool>(one(Op::cast, DType::f32, DType::bool_, kNaN)), true);
  EXPECT_EQ(std::get<double>(one(Op::cast, DType::f32, DType::bf16, 1.00390625)), 1.0);
  EXPECT_EQ(std::get<std::int64_t>(one(Op::bitcast, DType::f32, DType::i32, -0.0)), std::int64_t{-2147483648});
  EXPECT_EQ(std::get<double>(one(Op::bitcast, DType::i32, DType::f32, std::int64_t{0x3fc00000})), 1.5);
  EXPECT_EQ(std::get<double>(one(Op::bitcast, DType::u8, DType::f8e4m3, std::int64_t{0x7e})), 448.0);
}

TEST(Evaluate, EmptyReductions) {
  EXPECT_EQ(real_identity(Op::max), -kInf);
  EXPECT_EQ(real_identity(Op::prod), 1);
  EXPECT_EQ(integer_identity(Op::max, DType::i8), -128);
  EXPECT_EQ(integer_identity(Op::min, DType::u8), 255);
  EXPECT_EQ(integer_identity(Op::all, DType::bool_), 1);
}

}  // namespace
}  // namespace tenon::ir

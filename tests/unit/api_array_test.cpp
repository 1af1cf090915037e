// Host arrays: made from and turned into C++ numbers, converted, printed.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tenon/tenon.h"

namespace tenon {
namespace {

TEST(ApiArray, TakesTheDTypeOfItsElements) {
  EXPECT_EQ(Array::from({1, 2, 3}, {3}).dtype, DType::f32);
  EXPECT_EQ(Array::from(std::vector<double>{1}, {1}).dtype, DType::f64);
  EXPECT_EQ(Array::from(std::vector<std::int8_t>{1}, {1}).dtype, DType::i8);
  EXPECT_EQ(Array::from(std::vector<std::int16_t>{1}, {1}).dtype, DType::i16);
  EXPECT_EQ(Array::from(std::vector<std::int32_t>{1}, {1}).dtype, DType::i32);
  EXPECT_EQ(Array::from(std::vector<std::int64_t>{1}, {1}).dtype, DType::i64);
  EXPECT_EQ(Array::from(std::vector<std::uint8_t>{1}, {1}).dtype, DType::u8);
  EXPECT_EQ(Array::from(std::vector<bool>{true}, {1}).dtype, DType::bool_);
}

TEST(ApiArray, GivesBackWhatItWasMadeFrom) {
  const std::vector<std::int64_t> integers{-1, std::int64_t{1} << 60};
  EXPECT_EQ(Array::from(integers, {2, 1}).to<std::int64_t>(), integers);
  const std::vector<bool> flags{true, false, true};
  EXPECT_EQ(Array::from(flags, {3}).to<bool>(), flags);
  EXPECT_EQ(Array::from({2.5F}, {}).to<float>(), std::vector<float>{2.5F});
  EXPECT_TRUE(Array::from({}, {0, 4}).to<float>().empty());
}

TEST(ApiArray, CastsAsTheOperatorDoes) {
  const Array x = Array::from({1.00390625F, -300.7F, NAN}, {3});
  EXPECT_EQ(x.cast(DType::bf16).to_doubles()[0], 1.0);
  EXPECT_EQ(x.cast(DType::i8).to<std::int8_t>(), (std::vector<std::int8_t>{1, -128, 0}));
  EXPECT_EQ(Array::from(std::vector<std::int32_t>{257}, {1}).cast(DType::u8).to<std::uint8_t>()[0], 1);
}

TEST(ApiArray, NormalIsReproducibleAndStandard) {
  const Array x = Array::normal({64, 64}, 7);
  EXPECT_EQ(x.bytes, Array::normal({64, 64}, 7).bytes);
  EXPECT_NE(x.bytes, Array::normal({64, 64}, 8).bytes);
  double sum = 0, squares = 0;
  for (double value : x.to_doubles()) {
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(sum / 4096, 0, 0.08);
  EXPECT_NEAR(squares / 4096, 1, 0.1);
}

TEST(ApiArray, PrintsNestedBracketsAndTheEndsOfLongAxes) {
  EXPECT_EQ(str(Array::from({1, 2.5, -3, 4, 5, 1e-7F}, {2, 3})), "f32[2, 3]\n[[1, 2.5, -3],\n [4, 5, 1e-07]]");
  EXPECT_EQ(str(Array::from(std::vector<bool>{true, false}, {2})), "bool[2]\n[true, false]");
  EXPECT_EQ(str(Array::zeros({100}, DType::i32)), "i32[100]\n[0, 0, 0, …, 0, 0, 0]");
  EXPECT_EQ(str(Array::zeros({0, 3})), "f32[0, 3]\n[]");
  EXPECT_EQ(str(Array::from({7}, {})), "f32[]\n7");
}

// Plain data may say anything: 2^32 times 2^32 elements are not 0.
TEST(ApiArray, AShapeThatNoArrayHasIsRefused) {
  const Array x{DType::f32, {std::int64_t{1} << 32, std::int64_t{1} << 32}, {}};
  for (const std::function<void()>& use : std::vector<std::function<void()>>{
           [&] { x.size(); }, [&] { x.to_doubles(); }, [&] { str(x); }, [&] { x.cast(DType::f64); }})
    try {
      use();
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(),
                   "argument error: no array has the shape f32[4294967296, 4294967296]\n"
                   "  help: extents are 0 or more, and their product a number of bytes that there can be");
    }
  EXPECT_EQ((Array{DType::f32, {std::int64_t{1} << 32, std::int64_t{1} << 32, 0}, {}}).size(), 0);
  EXPECT_THROW((Array{DType::f32, {-1}, {}}).size(), Error);
}

}  // namespace
}  // namespace tenon

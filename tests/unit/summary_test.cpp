// What summarize() counts, in every dtype.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tenon/tenon.h"

namespace tenon {
namespace {

TEST(Summarize, CountsWhatIsFinite) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const Summary s = summarize(Array::from({1, NAN, -kInfinity, 4, 0, kInfinity, -0.0F, 3}, {2, 4}));
  EXPECT_EQ(s.elements, 8);
  EXPECT_EQ(s.nans, 1);
  EXPECT_EQ(s.infinities, 2);
  EXPECT_EQ(s.zeros, 2);
  EXPECT_EQ(s.min, 0);
  EXPECT_EQ(s.max, 4);
  EXPECT_DOUBLE_EQ(s.mean, 1.6);
  EXPECT_DOUBLE_EQ(s.standard_deviation, std::sqrt(2.64));  // np.std([1, 4, 0, 0, 3])
}

TEST(Summarize, TakesEveryDType) {
  for (const DType dtype : {DType::bool_, DType::i8, DType::i16, DType::i32, DType::i64, DType::u8, DType::f8e4m3,
                            DType::f8e5m2, DType::f16, DType::bf16, DType::f32, DType::f64}) {
    const Summary s = summarize(Array::from({0, 1, 1, 0}, {4}).cast(dtype));
    EXPECT_EQ(s.min, 0) << name_of(dtype);
    EXPECT_EQ(s.max, 1) << name_of(dtype);
    EXPECT_EQ(s.mean, 0.5) << name_of(dtype);
    EXPECT_EQ(s.standard_deviation, 0.5) << name_of(dtype);
    EXPECT_EQ(s.zeros, 2) << name_of(dtype);
  }
  const Array halves = Array::from({65504, NAN, std::numeric_limits<float>::infinity()}, {3}).cast(DType::f16);
  EXPECT_EQ(summarize(halves).max, 65504);
  EXPECT_EQ(summarize(halves).nans, 1);
  EXPECT_EQ(summarize(halves).infinities, 1);
  EXPECT_EQ(summarize(Array::from(std::vector<std::int64_t>{-5, 7}, {2})).min, -5);
}

TEST(Summarize, HasNoNumbersWhereNothingIsFinite) {
  const Summary none = summarize(Array::zeros({0, 3}));
  EXPECT_EQ(none.elements, 0);
  EXPECT_TRUE(std::isnan(none.min) && std::isnan(none.max) && std::isnan(none.mean));
  EXPECT_TRUE(std::isnan(none.standard_deviation));
  const Summary nan = summarize(Array::from({NAN}, {}));
  EXPECT_EQ(nan.elements, 1);
  EXPECT_EQ(nan.nans, 1);
  EXPECT_TRUE(std::isnan(nan.mean));
}

// The squares of a million elements near 1000 do not drown their deviation.
TEST(Summarize, KeepsADeviationThatIsSmallBesideTheMean) {
  const Array noise = Array::normal({1000, 1000}, 3);
  std::vector<double> values = noise.to_doubles();
  for (double& value : values) value = 1e9 + value;
  const Summary s = summarize(Array::from(values, {1000, 1000}));
  EXPECT_NEAR(s.mean, 1e9, 0.01);
  EXPECT_NEAR(s.standard_deviation, 1, 0.01);
}

}  // namespace
}  // namespace tenon

// Quotients and remainders of small integers by literals (codegen/analysis/small_quotient.h), with the prelude's text.
#include "codegen/analysis/small_quotient.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/ops/meaning.h"
#include "tests/codegen/cuda_numerics.h"
#include "tests/codegen/text_checks.h"

namespace tenon::codegen {
namespace {

std::int64_t quotient_by(const SmallQuotient& by, std::int64_t x) {
  const auto sum = static_cast<std::uint32_t>(x + by.plus);
  return static_cast<std::int64_t>(sum * static_cast<std::uint32_t>(by.multiple) >> by.shift) - by.plus / by.divisor;
}

void expect_exact(std::int64_t low, std::int64_t high, std::int64_t divisor) {
  const auto by = small_quotient(low, high, divisor);
  ASSERT_TRUE(by) << divisor;
  EXPECT_EQ(by->plus % divisor, 0);
  for (std::int64_t x = low; x <= high; ++x)
    ASSERT_EQ(quotient_by(*by, x), ir::meaning::floor_div(x, divisor)) << x << " by " << divisor;
}

TEST(SmallQuotient, EveryByteByEveryPositiveByte) {
  for (std::int64_t divisor = 1; divisor < 256; ++divisor) {
    expect_exact(0, 255, divisor);
    expect_exact(-128, 127, divisor);
  }
}

TEST(SmallQuotient, SixteenBitsWhereAProductOf32IsExact) {
  for (const std::int64_t divisor : {1, 2, 3, 5, 10, 16, 37}) expect_exact(-32768, 32767, divisor);
  EXPECT_FALSE(small_quotient(-32768, 32767, 7));
  EXPECT_FALSE(small_quotient(0, std::int64_t{1} << 32, 3));
}

int quotients_in(const std::string& text) {
  const std::string kernel = test::kernel_part(text), wanted = "= small_floor_";
  int count = 0;
  for (std::size_t at = kernel.find(wanted); at != std::string::npos; at = kernel.find(wanted, at + 1)) ++count;
  return count;
}

std::string text_of(const std::string& body, const std::string& dtype) {
  return expect_right("graph g(x: " + dtype + "[4096]) {\n  y = " + body + "\n  return y\n}").source.text;
}

TEST(SmallQuotient, KernelsComputeWhatTheTableSays) {
  for (const char* dtype : {"u8", "i8", "i16"})
    for (const char* op : {"floor_div", "mod"})
      for (const int divisor : {1, 3, 7, 10, 127}) {
        const std::string text = text_of(fmt::format("{}(x, {})", op, divisor), dtype);
        if (dtype != std::string("i16")) {
          EXPECT_EQ(quotients_in(text), 1) << text;
        }
      }
  text_of("mod(x, -7)", "i8");
  text_of("mod(x, 0)", "u8");
  text_of("floor_div(x, -1)", "i8");
}

TEST(SmallQuotient, ARemainderOfWhatIsSmallerIsItself) {
  const std::string text = text_of("mod(mod(floor_div(mod(x, 7), 3), 7), 3)", "i8");
  EXPECT_EQ(quotients_in(text), 2) << text;
}

}  // namespace
}  // namespace tenon::codegen

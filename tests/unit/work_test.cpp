// The bytes that no implementation avoids, of graphs of which they are known.
#include "src/measure/work.h"

#include <gtest/gtest.h>

#include "ir/text/text.h"

namespace tenon::src {
namespace {

std::int64_t bytes_of(const std::string& inputs, const std::string& body) {
  return unavoidable_bytes(ir::parse("graph g(" + inputs + ") {\n" + body + "\n}\n"), {});
}

TEST(Work, InputsAndDistinctOutputsCountOnce) {
  EXPECT_EQ(bytes_of("x: f32[10, 8], b: bf16[8]", "y = add(x, cast(b, dtype=f32))\n return y, y as z"),
            4 * 80 + 2 * 8 + 4 * 80);
  EXPECT_EQ(bytes_of("x: f32[10], unused: f32[100]", "y = mul(x, x)\n return y"), 4 * 10 + 4 * 10);
}

TEST(Work, OfASlicedInputItsPartCounts) {
  EXPECT_EQ(bytes_of("x: f32[100]", "y = slice(x, axis=0, start=[10], stop=[20])\n return y"), 4 * 10 + 4 * 10);
  EXPECT_EQ(bytes_of("x: u8[100, 8]", "y = slice(exp(cast(transpose(x), dtype=f32)), axis=1, stop=[20])\n return y"),
            1 * 160 + 4 * 160);
}

TEST(Work, PartsThatSeveralTakeAddUpToTheWhole) {
  const std::string windows =
      "a = slice(x, axis=0, start=[0], stop=[8], step=[2])\n"
      "b = slice(x, axis=0, start=[1], stop=[9], step=[2])\n"
      "c = slice(x, axis=0, start=[2], stop=[10], step=[2])\n";
  EXPECT_EQ(bytes_of("x: f32[100]", windows + "y = add(a, b)\n return y"), 4 * 8 + 4 * 4);
  EXPECT_EQ(bytes_of("x: f32[10]", windows + "y = add(add(a, b), c)\n return y"), 4 * 10 + 4 * 4);
}

TEST(Work, OfATableTheRowsThatAreGathered) {
  EXPECT_EQ(bytes_of("t: f32[1000, 16], i: i64[3]", "y = take(t, i)\n return y"), 4 * 48 + 8 * 3 + 4 * 48);
  EXPECT_EQ(bytes_of("t: f32[2, 16], i: i64[3]", "y = take(t, i)\n return y"), 4 * 32 + 8 * 3 + 4 * 48);
}

TEST(Work, AReductionTakesWhatItReduces) {
  EXPECT_EQ(bytes_of("x: f32[10, 8]", "y = slice(sum(x, axis=1), axis=0, stop=[5])\n return y"), 4 * 40 + 4 * 5);
  EXPECT_EQ(bytes_of("x: f32[10, 8]", "y = slice(softmax(x), axis=0, stop=[5])\n return y"), 4 * 80 + 4 * 40);
}

}  // namespace
}  // namespace tenon::src

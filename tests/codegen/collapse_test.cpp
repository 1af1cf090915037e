// Which neighbouring axes of a kernel become one where guards ask for the outer one alone.
#include <gtest/gtest.h>

#include "codegen/kernel/kernel.h"
#include "ir/text/text.h"
#include "tests/codegen/compile_everywhere.h"
#include "tests/harness/scheduled_kernel.h"

namespace tenon::codegen {
namespace {

Kernel lowered(const std::string& text) { return test::lowered_kernel(text, test::cuda_target_for("sm_90a")); }

// Its axes and its first load.
std::string shown(const std::string& text) {
  const std::string kernel = print(lowered(text));
  std::string lines;
  for (std::size_t at = 0; at < kernel.size(); at = kernel.find('\n', at) + 1) {
    const std::string line = kernel.substr(at, kernel.find('\n', at) - at);
    const bool load = line.find("= load") != std::string::npos;
    if (line.find("  axis") == 0) lines += line.substr(2) + "\n";
    if (load) return lines + line.substr(line.find("load"));
  }
  return lines;
}

TEST(Collapse, APadOfColumnsIsOneOfTheirElements) {
  EXPECT_EQ(shown("graph g(x: f32[20, 30, 3]) { return pad(x, low=[1, 2, 0], high=[1, 1, 0]) }"),
            "axis i0: 22\naxis i1: 99\nload in0[90*i0 + i1 + -96] if 0 <= i0 + -1 < 20, 0 <= i1 + -6 < 90");
  EXPECT_EQ(shown("graph g(x: f32[20, 30, 3]) { return pad(x, low=[1, 0, 0], high=[1, 0, 0]) }"),
            "axis i0: 1980\nload in0[i0 + -90] if 0 <= i0 + -90 < 1800");
}

// 0 <= k - i < n asks for the last of i's elements first. Colours run backwards too, or are no part of it.
TEST(Collapse, ColumnsThatRunBackwards) {
  EXPECT_EQ(shown("graph g(x: f32[30, 3]) { return flip(pad(x, low=[2, 0], high=[1, 0]), axis=[0, 1]) }"),
            "axis i0: 99\nload in0[-1*i0 + 92] if 0 <= -1*i0 + 92 < 90");
  EXPECT_EQ(shown("graph g(x: f32[30, 3]) { return flip(pad(x, low=[2, 0], high=[1, 0]), axis=[0]) }"),
            "axis i0: 33\naxis i1: 3\nload in0[-3*i0 + i1 + 90] if 0 <= -1*i0 + 30 < 30");
}

TEST(Collapse, NotWhereTheColoursAreGuardedOrColumnsAreSkipped) {
  EXPECT_EQ(shown("graph g(x: f32[30, 3]) { return pad(x, low=[0, 1], high=[0, 0]) }"),
            "axis i0: 30\naxis i1: 4\nload in0[3*i0 + i1 + -1] if 0 <= i1 + -1 < 3");
  EXPECT_EQ(shown("graph g(x: f32[30, 3]) {\n"
                  "  return slice(pad(x, low=[2, 0], high=[2, 0]), axis=[0], start=[0], stop=[33], step=[2]) }"),
            "axis i0: 17\naxis i1: 3\nload in0[6*i0 + i1 + -6] if 0 <= 2*i0 + -2 < 30");
}

// Numbers of 32 bits tell inside from outside whatever the sizes are: their product is that of an operand.
TEST(Collapse, OfAnySize) {
  EXPECT_EQ(shown("graph g(x: f32[h, w, 3]) { return pad(x, low=[0, 2, 0], high=[0, 1, 0]) }"),
            "axis i0: h\naxis i1: 3*w + 9\nload in0[(3*w)*i0 + i1 + -6] if 0 <= i1 + -6 < 3*w");
}

}  // namespace
}  // namespace tenon::codegen

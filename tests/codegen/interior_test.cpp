// Where the guards of a kernel hold.
#include "codegen/analysis/interior.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "ir/text/text.h"
#include "tests/codegen/compile_everywhere.h"
#include "tests/harness/scheduled_kernel.h"

namespace tenon::codegen {
namespace {

Kernel lowered(const std::string& text) { return test::lowered_kernel(text, test::cuda_target_for("sm_90a")); }

// "i0 from 1 to 19, i1 from 3".
std::string shown(const Kernel& kernel) {
  std::string text;
  const auto join = [](const std::vector<Dim>& dims) {
    std::string list;
    for (const Dim& dim : dims) list += (list.empty() ? "" : " and ") + dim.str();
    return list;
  };
  for (const AxisRange& range : interior_of(kernel)) {
    text += (text.empty() ? "" : ", ") + kernel.axes[static_cast<std::size_t>(range.axis)].name;
    if (!range.lows.empty()) text += " from " + join(range.lows);
    if (!range.highs.empty()) text += " to " + join(range.highs);
  }
  return text;
}

TEST(Interior, IsWhatNoGuardCutsOff) {
  EXPECT_EQ(shown(lowered("graph g(x: f32[20, 30]) { return pad(x, low=[1, 4], high=[0, 3]) }")),
            "i0 from 1, i1 from 4 to 34");
  EXPECT_EQ(shown(lowered("graph g(x: f32[20, 30]) { return tanh(x) }")), "");
}

// Two neighbours, of which the second is every other element.
TEST(Interior, OfStridesIsRoundedInwards) {
  EXPECT_EQ(shown(lowered("graph g(x: f32[100]) {\n"
                          "  p = pad(x, low=[3], high=[4])\n"
                          "  a = slice(p, axis=[0], start=[0], stop=[105], step=[2])\n"
                          "  b = slice(p, axis=[0], start=[2], stop=[107], step=[2])\n"
                          "  return add(a, b) }")),
            "i0 from 2 to 51");  // 2 * 2 - 3 = 1 is inside, 2 * 1 - 3 is not; 2 * 50 - 1 = 99 is inside
  EXPECT_EQ(shown(lowered("graph g(x: f32[100]) { return flip(pad(x, low=[3], high=[4]), axis=[0]) }")),
            "i0 from 4 to 104");
}

double inside(const std::string& text, const std::vector<std::int64_t>& spans = {}) {
  const Kernel kernel = lowered(text);
  return share_inside(interior_of(kernel), kernel, spans);
}

TEST(Interior, IsSmallOfWhatIsJoinedAndOfShortRows) {
  EXPECT_EQ(inside("graph g(x: f32[100], y: f32[50]) { return concat(x, y, axis=0) }"), 0);
  EXPECT_EQ(inside("graph g(x: f32[n], y: f32[m]) { return concat(x, y, axis=0) }"), 0);
  EXPECT_NEAR(inside("graph g(x: f32[8, 8]) { return pad(x, low=[2, 2], high=[2, 2]) }"), 8 * 8 / 144.0, 1e-9);
  EXPECT_NEAR(inside("graph g(x: f32[64, 64]) { return pad(x, low=[2, 2], high=[2, 2]) }"), 64 * 64 / 4624.0, 1e-9);
  EXPECT_GT(inside("graph g(x: f32[h, w]) { return pad(x, low=[2, 2], high=[2, 2]) }"), 0.99);
}

// A warp's vectors of four cover 128 points: in rows of 68 each warp has an end, in rows of 1284 each tenth.
TEST(Interior, OfWarpsIsSmallerThanOfPoints) {
  EXPECT_EQ(inside("graph g(x: f32[64, 64]) { return pad(x, low=[0, 2], high=[0, 2]) }", {2, 128}), 0);
  EXPECT_NEAR(inside("graph g(x: f32[64, 1280]) { return pad(x, low=[0, 2], high=[0, 2]) }", {1, 128}),
              1 - 131 / 1284.0, 1e-9);
  EXPECT_EQ(inside("graph g(x: f32[64, 64]) { return pad(x, low=[2, 0], high=[0, 0]) }", {1, 64}), 64 / 66.0);
}

}  // namespace
}  // namespace tenon::codegen

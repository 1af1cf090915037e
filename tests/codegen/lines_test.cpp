// The cache lines that loads touch.
#include "codegen/analysis/lines.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/text/text.h"
#include "tests/codegen/compile_everywhere.h"
#include "tests/harness/scheduled_kernel.h"

namespace tenon::codegen {
namespace {

Kernel lowered(const std::string& text) { return test::lowered_kernel(text, test::cuda_target_for("sm_90a")); }

// "touched of distinct", as threads of `vector` points have them.
std::string shown(const std::string& text, int vector, bool flat = false) {
  const auto lines = lines_of_warp(lowered(text), vector, flat);
  return lines ? fmt::format("{} of {}", lines->touched, lines->distinct) : "none";
}

TEST(Lines, AreThoseOfEachLoadOfAWarp) {
  EXPECT_EQ(shown("graph g(x: f32[64, 1024]) { return tanh(x) }", 4), "4 of 4") << "32 vectors of 16 bytes";
  EXPECT_EQ(shown("graph g(x: f32[64, 1024]) { return tanh(x) }", 1), "1 of 1");
  EXPECT_EQ(shown("graph g(x: f32[1024, 64]) { return transpose(x) }", 4), "128 of 128") << "each element in its own";
  EXPECT_EQ(shown("graph g(x: f32[64, 1024], s: f32[64, 1]) { return mul(x, s) }", 4), "5 of 5")
      << "an element for all points of a row";
}

TEST(Lines, OfWindowsThatLieApartAreTouchedAgain) {
  const std::string windows =  // of which a row of 8 images, 128 bytes each, has two
      "graph g(x: bf16[4096, 8, 8]) {\n  r = slice(x, axis=1, start=[0], stop=[4], step=[3])\n"
      "  return add(slice(r, axis=2, start=[0], stop=[4], step=[3]), slice(r, axis=2, start=[1], stop=[5], "
      "step=[3]))\n}";
  EXPECT_EQ(shown(windows, 4), "256 of 32") << "an image for each thread";
  EXPECT_EQ(shown(windows, 1), "16 of 8") << "an image for four of them";
}

TEST(Lines, OfWhatIsNotKnownAreNone) {
  EXPECT_EQ(shown("graph g(x: f32[n, 64]) { return transpose(x) }", 4), "none");
  EXPECT_EQ(shown("graph g(t: f32[64, 64], i: i32[1024]) { return take(t, i) }", 4), "none");
}

TEST(Lines, SectorsAreUsedAsNeighboursAskForThem) {
  const auto share = [](const std::string& text, std::int64_t points) {
    const Kernel kernel = lowered(text);
    for (const Instr& instr : kernel.body)
      if (instr.kind == InstrKind::load) return share_of_sectors(kernel, instr.access, points).value_or(-1);
    return -1.0;
  };
  EXPECT_EQ(share("graph g(x: f32[64, 1024]) { return tanh(x) }", 2048), 1);
  EXPECT_EQ(share("graph g(x: f32[1024, 64]) { return transpose(x) }", 1024), 0.125) << "an element of each";
  EXPECT_EQ(share("graph g(x: f32[1024, 64]) { return transpose(x) }", 8192), 1) << "eight rows use them up";
  EXPECT_EQ(share("graph g(x: f32[n, 64]) { return transpose(x) }", 1024), -1);
}

}  // namespace
}  // namespace tenon::codegen

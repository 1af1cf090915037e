// Loads that overlap from point to point: what is found, which schedules have it, and that it computes the same.
#include "codegen/analysis/overlap.h"

#include <fmt/format.h>

#include <tuple>

#include "codegen/analysis/interior.h"
#include "tests/codegen/cuda_numerics.h"
#include "tests/codegen/text_checks.h"

namespace tenon::codegen {
namespace {

// Pairs of neighbours in rows of `length`, one of `step`.
std::string pairs(std::int64_t length, std::int64_t from, std::int64_t step = 1, std::int64_t apart = 1) {
  const std::int64_t stop = length - apart;
  return fmt::format(
      "graph g(x: f32[6, {}]) {{\n  a = slice(x, axis=[1], start=[{}], stop=[{}], step=[{}])\n"
      "  b = slice(x, axis=[1], start=[{}], stop=[{}], step=[{}])\n  y = sub(a, b); return y }}",
      length, from, stop, step, from + apart, stop + apart, step);
}

// "5 from 1 by 1 in 2 vectors of 4".
std::string shown(const std::string& text, int vector, bool flat = false) {
  const Kernel kernel = one_cuda_kernel(text).kernel;
  std::string found;
  for (const Overlap& o : overlaps_of(kernel, {static_cast<int>(kernel.axes.size()) - 1, vector, flat}))
    found += fmt::format("{}{} from {} by {} in {} vectors of {}", found.empty() ? "" : ", ", o.elements, o.before,
                         o.step, o.vectors(), o.aligned);
  return found;
}

TEST(Overlap, IsLoadedInVectorsThatAreKnownToBeAligned) {
  EXPECT_EQ(shown(pairs(401, 0), 4), "5 from -1 by 1 in 2 vectors of 4");  // rows begin anywhere
  EXPECT_EQ(shown(pairs(404, 2), 4), "5 from 2 by 1 in 2 vectors of 4");
  EXPECT_EQ(shown(pairs(404, 3), 4), "5 from 3 by 1 in 2 vectors of 4");
  EXPECT_EQ(shown(pairs(402, 0), 4), "5 from 0 by 1 in 3 vectors of 2");
}

TEST(Overlap, OfFarNeighboursIsNone) {
  EXPECT_EQ(shown(pairs(1604, 1, 1, 400), 4), "");
  EXPECT_EQ(shown(pairs(1604, 1, 1, 6), 4), "10 from 1 by 1 in 3 vectors of 4");
}

TEST(Overlap, AlternatesWhereStepsAreLonger) {
  EXPECT_EQ(shown(pairs(404, 0, 2), 2), "4 from 0 by 2 in 1 vectors of 4");
  EXPECT_EQ(shown(pairs(404, 0, 4), 1), "2 from 0 by 4 in 1 vectors of 4");
}

// Its flat vectors begin anywhere in rows, so that what they load may too.
TEST(Overlap, OfFlatVectorsBeginsAnywhere) {
  const std::string text =
      "graph g(x: f32[6, 1029]) {\n  p = pad(x, low=[0, 1], high=[0, 1])\n"
      "  y = maximum(maximum(slice(p, axis=[1], start=[0], stop=[1029]), slice(p, axis=[1], start=[1], stop=[1030])),\n"
      "    slice(p, axis=[1], start=[2], stop=[1031])); return y }";
  EXPECT_EQ(shown(text, 4, true), "6 from -1 by 1 in 3 vectors of 4");
  EXPECT_EQ(print(one_cuda_kernel(text).kernel.schedule), "map threads=256 vector=4 flat interior overlaps");
  expect_right(text);
}

// A product of every way that a thread may take.
TEST(Overlap, ComputesTheSameWhateverVectorsLieLike) {
  for (const std::int64_t length : {256, 301, 38}) {
    const std::string text = fmt::format(
        "graph g(x: f16[5, 7, {0}]) {{\n  p = pad(x, low=[0, 1, 3], high=[0, 1, 2], value=-inf)\n"
        "  a = slice(p, axis=[1, 2], start=[0, 0], stop=[7, {0}])\n"
        "  b = slice(p, axis=[1, 2], start=[1, 2], stop=[8, {1}])\n"
        "  c = slice(p, axis=[1, 2], start=[1, 5], stop=[8, {2}])\n"
        "  d = slice(p, axis=[1, 2], start=[2, 3], stop=[9, {3}])\n"
        "  e = slice(p, axis=[1, 2], start=[2, 4], stop=[9, {4}])\n"
        "  y = maximum(maximum(maximum(a, b), maximum(c, d)), e); return y }}",
        length, length + 2, length + 5, length + 3, length + 4);
    int tried = 0;
    for (const int vector : {4, 8})
      for (const bool flat : {false, true})
        for (const bool interior : {false, true})
          for (const bool wide : {false, true}) {
            if (!flat && length % vector != 0) continue;
            if (wide && !interior) continue;
            ++tried;
            expect_right(text, {}, [&](Kernel& kernel) {
              MapSchedule schedule{.threads = 64, .vector = vector, .flat = flat, .interior = interior};
              schedule.overlaps =
                  !overlaps_of(kernel, {static_cast<int>(kernel.axes.size()) - 1, vector, flat}).empty();
              EXPECT_TRUE(schedule.overlaps) << vector;
              kernel.wide_index = wide;
              kernel.schedule = schedule;
            });
          }
    EXPECT_GE(tried, 6);
  }
}

// Squares of rows that no vector divides, and of rows that some do.
std::string squares(std::int64_t rows, std::int64_t columns) {
  return fmt::format(
      "graph g(x: f32[3, {0}, {1}]) {{\n  p = pad(x, low=[0, 1, 1], high=[0, 1, 1], value=2)\n"
      "  a = slice(p, axis=[1, 2], start=[0, 0], stop=[{0}, {1}])\n"
      "  b = slice(p, axis=[1, 2], start=[1, 2], stop=[{2}, {3}])\n"
      "  c = slice(p, axis=[1, 2], start=[2, 0], stop=[{4}, {1}])\n"
      "  d = slice(p, axis=[1, 2], start=[1, 0], stop=[{2}, {1}])\n"
      "  y = maximum(maximum(a, b), maximum(c, d)); return y }}",
      rows, columns, rows + 1, columns + 2, rows + 2);
}

TEST(Overlap, OfNeighbouringRowsIsLoadedOnceToo) {
  const Kernel kernel = one_cuda_kernel(squares(64, 300)).kernel;
  EXPECT_EQ(loads_left(kernel, 1, 1), 1);
  EXPECT_EQ(loads_left(kernel, 1, 4), 10. / 16);  // of 6 rows on the left, and 4 on the right
  EXPECT_EQ(print(kernel.schedule), "map threads=256 vector=4 overlaps strip=4")
      << "each third warp has an end of a row";
  EXPECT_EQ(print(one_cuda_kernel(squares(64, 1200)).kernel.schedule),
            "map threads=256 vector=4 interior overlaps strip=4");
  expect_right(squares(18, 300));
}

TEST(Overlap, ThreadsOfSeveralRowsComputeTheSame) {
  for (const auto& [rows, columns] : {std::pair{21, 67}, {24, 64}, {2, 65}})
    for (const int vector : {1, 4})
      for (const int strip : {3, 8})
        for (const bool interior : {false, true}) {
          if (columns % vector != 0) continue;
          expect_right(squares(rows, columns), {}, [&](Kernel& kernel) {
            kernel.schedule = MapSchedule{
                .threads = 64, .vector = vector, .interior = interior, .strip = strip, .overlaps = vector > 1};
            EXPECT_EQ(verify(kernel.schedule, kernel, test::cuda_target_for("sm_90a")), "");
          });
        }
}

// Greatest of `rows` x 3 of an image with guards all around it.
std::string greatest(std::int64_t rows, const std::string& dtype, std::int64_t height, std::int64_t width) {
  std::string text =
      fmt::format("graph g(x: {}[3, {}, {}]) {{\n  p = pad(x, low=[0, {}, 1], high=[0, {}, 1], value=-9)\n", dtype,
                  height, width, rows / 2, rows / 2);
  std::string y;
  for (std::int64_t row = 0; row < rows; ++row)
    for (int column = 0; column < 3; ++column) {
      text += fmt::format("  s{0}{1} = slice(p, axis=[1, 2], start=[{0}, {1}], stop=[{2}, {3}])\n", row, column,
                          row + height, column + width);
      y = y.empty() ? fmt::format("s{}{}", row, column) : fmt::format("maximum({}, s{}{})", y, row, column);
    }
  return text + "  y = " + y + "; return y }";
}

// Three loads of each of five rows: four rows of results take eight of them, not twenty.
TEST(Overlap, RowsOfSeveralResultsAreLoadedOnceWhateverGuardsThem) {
  const std::string text = greatest(5, "bf16", 40, 45);
  const CudaKernel run = one_cuda_kernel(text);
  EXPECT_EQ(print(run.kernel.schedule), "map threads=256 vector=1 strip=8");
  test::expect_lines(
      run.source.text,
      {"pack<bf16, 3> w0[12];", "for (int u = 0; u < 12; ++u) {", "w0[u] = load_stretch<3, 1, true, 0>(in0, ",
       "i1 - 2 >= 0 && i2 - 1 >= 0 ? bf16_to_f32(w0[u][0])", "bf16_to_f32(w0[u + 4][1])"});
  EXPECT_EQ(run.source.text.find("w1["), std::string::npos);
  for (const auto& [rows, height, width] : {std::tuple{5, 45, 45}, {3, 19, 7}, {9, 12, 33}, {3, 16, 10}})
    for (const bool interior : {false, true})
      for (const int strip : {2, 4, 8})
        expect_right(greatest(rows, "f16", height, width), {}, [&](Kernel& kernel) {
          kernel.schedule = MapSchedule{.threads = 64, .vector = 1, .interior = interior, .strip = strip};
        });
  test::expect_compiles_everywhere(run.source);
}

// Rows that lie upside down are further on the other way; of every other row only every second is another's.
TEST(Overlap, RowsOfSeveralResultsMayBeTurnedOrLeftOut) {
  const auto by_strips = [](Kernel& kernel) { kernel.schedule = MapSchedule{.threads = 64, .vector = 1, .strip = 4}; };
  std::string turned = greatest(3, "f64", 13, 9);
  turned.replace(turned.find("p = pad(x,"), 10, "p = pad(flip(x, axis=[1]),");
  expect_right(turned, {}, by_strips);
  expect_right(greatest(3, "i8", 19, 7), {}, by_strips);
  expect_right(
      "graph g(x: i8[2, 33, 21]) {\n"
      "  a = slice(x, axis=[1, 2], start=[0, 0], stop=[29, 20], step=[2, 1])\n"
      "  b = slice(x, axis=[1, 2], start=[1, 1], stop=[30, 21], step=[2, 1])\n"
      "  c = slice(x, axis=[1, 2], start=[2, 0], stop=[31, 20], step=[2, 1])\n"
      "  d = slice(x, axis=[1, 2], start=[4, 1], stop=[33, 21], step=[2, 1])\n"
      "  y = maximum(maximum(a, b), maximum(c, d)); return y }",
      {}, by_strips);
}

// Warps of short rows have ends of rows, but few of the strips are at an end of a column.
TEST(Overlap, GuardsOfRowsAreLeftOutWhereThoseOfColumnsAreNot) {
  const CudaKernel run = expect_right(greatest(3, "bf16", 120, 45));
  EXPECT_EQ(print(run.kernel.schedule), "map threads=256 vector=1 interior strip=8");
  test::expect_lines(run.source.text, {"if (first_i1 >= 1 && first_i1 + 7 < 119) {"});
}

TEST(Overlap, CompilesEverywhere) {
  test::expect_compiles_everywhere(one_cuda_kernel(pairs(1029, 1)).source);
  test::expect_compiles_everywhere(
      one_cuda_kernel(
          "graph g(x: bf16[8, 1027]) {\n  p = pad(x, low=[1, 1], high=[1, 1])\n"
          "  y = add(slice(p, axis=[0, 1], start=[0, 0], stop=[8, 1027]), slice(p, axis=[0, 1], start=[0, 2], "
          "stop=[8, 1029]))\n  return y }")
          .source);
}

// A choice of places would put a thread's registers into memory.
TEST(Overlap, StaysInRegisters) {
  const std::string text = test::kernel_part(
      one_cuda_kernel(
          "graph g(x: f32[64, 65536]) {\n  p = pad(x, low=[0, 2], high=[0, 2])\n"
          "  y = add(add(slice(p, axis=[1], start=[0], stop=[65537]), slice(p, axis=[1], start=[1], stop=[65538])),\n"
          "    slice(p, axis=[1], start=[3], stop=[65540])); return y }")
          .source.text);
  EXPECT_NE(text.find("shifted<7, 4>(load_stretch<12, 4, true, 8>(in0, from_w0 - past_w0, 4194304, true), past_w0)"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace tenon::codegen

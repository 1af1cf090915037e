// Gathers: rows in shared memory, vectors of rows that begin anywhere, sums of gathered rows, and the order of rows
// that share an operand. Which schedules have them, and that they compute the same.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/analysis/gathered_rows.h"
#include "codegen/kernel/kernel.h"
#include "ir/text/text.h"
#include "tests/codegen/cuda_numerics.h"
#include "tests/codegen/text_checks.h"
#include "tests/harness/scheduled_kernel.h"

namespace tenon::codegen {
namespace {

Kernel kernel_of(const std::string& graph) {
  const ir::Plan plan = ir::make_plan(ir::parse("graph g(" + graph + "; return y }"));
  EXPECT_EQ(plan.groups.size(), 1U) << print(plan);
  return test::scheduled_kernel(plan, 0, unspecialized(plan), test::cuda_target_for("sm_90a"));
}

std::string chosen(const std::string& graph) { return print(kernel_of(graph).schedule); }

// Elements of a row that come one by one bring a sector each, and a multiprocessor looks up few of them in a clock.
TEST(Gather, RowsThatAreUsedUpComeToSharedMemory) {
  EXPECT_EQ(chosen("x: f32[16384, 4096], i: i64[4096]) { y = take(x, i, axis=1)"),
            "map threads=256 vector=4 unroll=4 strip=2 staged streaming");
  EXPECT_EQ(chosen("x: bf16[16384, 8192], i: i32[8192]) { y = take(x, i, axis=1)"),
            "map threads=256 vector=8 unroll=4 strip=2 staged streaming");
  EXPECT_EQ(chosen("x: f32[2048, 32000], i: i64[32000]) { y = take(x, i, axis=1)"),
            "map threads=1024 vector=4 unroll=8 staged streaming");
  EXPECT_EQ(chosen("x: f32[1000000, 48], i: i64[32]) { y = take(x, i, axis=1)"),
            "map threads=256 vector=4 strip=4 staged streaming");
  EXPECT_EQ(chosen("x: bf16[1000, 64], i: i64[131072]) { y = take(x, i, axis=1)"),
            "map threads=256 vector=8 unroll=8 strip=8 staged streaming");
}

TEST(Gather, RowsOfWhichLittleIsWantedStayInMemory) {
  EXPECT_EQ(chosen("x: f32[4096, 131072], i: i64[1024]) { y = take(x, i, axis=1)"),
            "map threads=512 vector=2 unroll=2 streaming streaming_loads");
  EXPECT_EQ(chosen("x: f32[256, 131072], i: i64[262144]) { y = take(x, i, axis=1)"),
            "map threads=512 vector=2 unroll=2 streaming");  // larger than shared memory
}

Adjust staged(int threads, int vector, int strip, int unroll, bool wide = false) {
  return [=](Kernel& kernel) {
    kernel.schedule =
        MapSchedule{.threads = threads, .vector = vector, .unroll = unroll, .strip = strip, .staged = true};
    kernel.wide_index = wide;
  };
}

TEST(Gather, FromSharedMemoryGivesTheSameWhateverTheBlock) {
  for (const char* dtype : {"f32", "bf16", "u8", "f64"})
    for (const int table : {7, 101})
      for (const int length : {24, 77})
        for (const auto& [strip, unroll] : {std::pair{1, 1}, {3, 2}})
          expect_right(fmt::format("graph g(x: {}[13, {}], i: i64[{}]) {{ y = add(take(x, i, axis=1), 1); return y }}",
                                   dtype, table, length),
                       {}, staged(32, length % 8 == 0 ? 4 : 1, strip, unroll, strip == 3));
}

// What is taken at an affine function of positions that is surely inside is a view: no index is computed or tested.
TEST(Gather, PositionsThatAreAffineAreViews) {
  const auto is_view = [](const std::string& graph) {
    const Kernel kernel = expect_right("graph g(" + graph + "; return y }", {}, {}).kernel;
    return std::all_of(kernel.body.begin(), kernel.body.end(), [](const Instr& instr) {
      return instr.kind != InstrKind::load || instr.access.offset.values().empty();
    });
  };
  const std::string i = "i = iota(shape=[48], dtype=i64); ";
  EXPECT_TRUE(is_view("x: f32[5, 48]) { " + i + "y = take(x, sub(47, i), axis=1)"));
  EXPECT_TRUE(is_view("x: f32[5, 16]) { " + i + "y = take(x, floor_div(i, 3), axis=1)"));
  EXPECT_TRUE(is_view("x: bf16[5, 20]) { " + i + "y = take(x, add(mod(i, 7), 13), axis=1)"));
  EXPECT_TRUE(is_view("x: f32[5, 95]) { " + i + "y = take(x, mul(i, 2), axis=1)"));
  // The relative positions of a window of 7 x 7 (Liu et al., "Swin Transformer", 2021).
  EXPECT_TRUE(
      is_view("t: f32[169, 3], s: f32[3, 49, 49]) {\n"
              "  i = iota(shape=[49, 1], dtype=i32)\n"
              "  j = iota(shape=[49], dtype=i32)\n"
              "  rows = add(sub(floor_div(i, 7), floor_div(j, 7)), 6)\n"
              "  columns = add(sub(mod(i, 7), mod(j, 7)), 6)\n"
              "  y = add(s, transpose(take(t, add(mul(rows, 13), columns)), perm=[2, 0, 1]))"));
  EXPECT_FALSE(is_view("x: f32[5, 48]) { " + i + "y = take(x, sub(i, 4), axis=1)"));  // some from the end
  EXPECT_FALSE(is_view("x: f32[5, 48]) { " + i + "y = take(x, add(i, 1), axis=1)"));  // the last one is clamped
  EXPECT_FALSE(is_view("x: f32[5, 48]) { " + i + "y = take(x, mul(i, i), axis=1)"));
  EXPECT_FALSE(is_view("x: f32[5, 48], k: i64[48]) { y = take(x, k, axis=1)"));
}

TEST(Gather, FromSharedMemoryOfSeveralOperands) {
  const std::string text =
      "graph g(x: f32[rows, 50], z: bf16[3, rows, 20], i: i32[64], k: i64[64], b: f32[rows, 64]) {\n"
      "  a = mul(take(x, i, axis=1), take(x, k, axis=1))\n"
      "  y = add(add(a, b), cast(take(z, i, axis=2), dtype=f32)); return y }";
  const CudaKernel run = expect_right(text, {{"rows", 21}}, staged(64, 4, 2, 1));
  EXPECT_EQ(gathered_rows(run.kernel).size(), 2U);
  test::expect_lines(run.source.text, {"rows0 = stage_around<64>(", "rows1 = stage_around<64>(", "__syncthreads();",
                                       "pack<i64, 4> x", "const int row = team + u * "});
  test::expect_compiles_for(run.source, {"sm_80", "sm_90a"});
}

TEST(Gather, OfShortGroupsWithinRows) {
  const std::string text = "graph g(x: f32[9, 30, 3], i: i64[20]) { y = take(x, i, axis=1); return y }";
  const CudaKernel run = one_cuda_kernel(text);
  for (const GatheredRows& rows : gathered_rows(run.kernel)) EXPECT_EQ(rows.length, 90);
  expect_right(text);
}

TEST(Gather, OddRowsAreReadInVectorsThatAreShifted) {
  for (const char* dtype : {"f32", "bf16", "u8"}) {
    const CudaKernel run = expect_right(fmt::format(
        "graph g(t: {0}[29, 333], i: i64[31], x: {0}[31, 333]) {{ y = add(take(t, i), x); return y }}", dtype));
    EXPECT_TRUE(std::get<MapSchedule>(run.kernel.schedule).overlaps);
    test::expect_lines(run.source.text, {"load_stretch<"});
    test::expect_compiles_everywhere(run.source);
  }
}

// Threads lie along the rows and walk over a bag's: 200 times the bytes were read where a warp had a column.
TEST(Gather, SumsOfGatheredRowsAreColumns) {
  EXPECT_EQ(chosen("t: f32[100000, 512], i: i64[4096, 32]) { y = sum(take(t, i), axis=1)"),
            "reduce team=column threads=256 columns=64 vector=4 unroll=8");
  EXPECT_EQ(chosen("t: bf16[50257, 1024], i: i64[2048, 100]) { y = mean(take(t, i), axis=1)"),
            "reduce team=column threads=256 vector=8 unroll=7");
  EXPECT_EQ(chosen("t: f32[200000, 64], i: i64[131072, 10]) { y = sum(take(t, i), axis=1)"),
            "reduce team=column threads=256 columns=256 vector=4 unroll=5");
  for (const char* row : {"8", "13", "64"})
    expect_right(
        fmt::format("graph g(t: bf16[40, {}], i: i32[9, 21]) {{ y = mean(take(t, i), axis=1); return y }}", row));
}

// Whatever the tiles, in parts too, and where two axes of indices are one bag.
TEST(Gather, TilesOfBagsGiveTheSame) {
  const auto tiles = [](int vector, int unroll, int parts, bool wide) {
    return [=](Kernel& kernel) {
      ReduceSchedule schedule;
      schedule.team = {.mapping = RowMapping::column, .threads = 64, .columns = 16};
      schedule.vector = vector;
      schedule.keep = Reread{.unroll = unroll};
      schedule.cut = in_parts(parts);
      kernel.schedule = schedule;
      kernel.wide_index = wide;
    };
  };
  const std::string bag = "graph g(t: f32[40, 24], i: i64[5, bag]) { y = sum(take(t, i), axis=1); return y }";
  for (const int length : {1, 23, 40}) {
    test::expect_lines(expect_right(bag, {{"bag", length}}, tiles(4, 5, 1, false)).source.text,
                       {"i64 p", "[5];", "= load_here<4, 4>("});
    expect_right(bag, {{"bag", length}}, tiles(1, 2, 3, true));
  }
  expect_right("graph g(t: f16[40, 24], i: i32[5, 7, 9]) { y = max(take(t, i), axis=[1, 2]); return y }", {},
               tiles(8, 3, 1, false));
  expect_right("graph g(t: f32[65], i: i32[16, 24]) { y = sum(take(t, i), axis=0); return y }", {},
               tiles(4, 5, 1, false));  // each column at places of its own
  expect_right(
      "graph g(t: f32[40, 24], i: i32[5, 21], w: f32[5, 21, 1]) {\n"
      "  y = argmax(mul(take(t, i), w), axis=1); return y }",
      {}, tiles(2, 4, 1, false));
}

// 32 MB pass until a row of positions, or of a mask, is wanted again.
TEST(Gather, RowsThatShareALargeOperandFollowEachOther) {
  const auto first = [](const std::string& graph) { return kernel_of(graph).axes[0].extent.str(); };
  const std::string normalised = "w: bf16[1024]) { y = layer_norm(add(take(t, i), p), w)";
  EXPECT_EQ(first("t: bf16[50257, 1024], i: i64[4, 16384], p: bf16[16384, 1024], " + normalised), "16384");
  EXPECT_EQ(first("t: bf16[50257, 1024], i: i64[64, 1024], p: bf16[1024, 1024], " + normalised), "64");
  EXPECT_EQ(first("x: bf16[32, 4096, 4096], m: bf16[4096, 4096]) { y = softmax(add(x, m), axis=-1)"), "4096");
  const Adjust turned = [](Kernel& kernel) {
    reorder_axes(kernel, {1, 0, 2});
    kernel.schedule = choose_schedule(kernel, test::cuda_target_for("sm_90a"));
  };
  expect_right(
      "graph g(t: f32[40, 64], i: i64[3, 7], p: f32[7, 64], w: f32[64]) {\n"
      "  y = layer_norm(add(take(t, i), p), w); return y }",
      {}, turned);
  expect_right("graph g(x: f32[3, 7, 65], m: f32[7, 65]) { y = softmax(add(x, m), axis=-1); return y }", {}, turned);
}

}  // namespace
}  // namespace tenon::codegen

// The schedules that the heuristics choose for Map kernels on sm_90, as measured (bench/results/map-log.md).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "codegen/kernel/kernel.h"
#include "ir/text/text.h"
#include "tests/codegen/compile_everywhere.h"
#include "tests/harness/scheduled_kernel.h"

namespace tenon::codegen {
namespace {

// Of the graph as one kernel.
std::string chosen(const std::string& text) {
  const ir::Plan plan = ir::make_plan(ir::parse(text));
  EXPECT_EQ(plan.groups.size(), 1U) << print(plan);
  const Kernel kernel = test::scheduled_kernel(plan, 0, unspecialized(plan), test::cuda_target_for("sm_90a"));
  return print(kernel.schedule);
}

TEST(MapSchedule, OneAndTwoStreamsTakeSixteenBytesEach) {
  EXPECT_EQ(chosen("graph g(x: bf16[8192, 8192]) { y = tanh(x); return y }"),
            "map threads=512 vector=8 unroll=2 streaming keep_reads");
  EXPECT_EQ(chosen("graph g(x: f32[8192, 8192]) { y = tanh(x); return y }"),
            "map threads=512 vector=4 unroll=2 streaming keep_reads");
}

// Two vectors are under way where the caches hold little, unless much is computed of them, or rows have few.
TEST(MapSchedule, VectorsComeInPairsFarBeyondTheCaches) {
  const auto of_rows = [](const std::string& shape, const std::string& y) {
    return chosen("graph g(x: f32[" + shape + "], b: f32[8]) { y = " + y + "; return y }");
  };
  EXPECT_EQ(of_rows("8192, 8192", "mul(x, 2.0)"), "map threads=512 vector=4 unroll=2 streaming keep_reads");
  EXPECT_EQ(of_rows("8388608, 8", "add(x, b)"), "map threads=512 vector=4 streaming keep_reads");
  EXPECT_EQ(of_rows("8192, 8192", "gelu(gelu(gelu(gelu(x))))"), "map threads=512 vector=4 unroll=2 streaming");
  EXPECT_EQ(of_rows("8192, 8192", "gelu(gelu(gelu(gelu(gelu(gelu(x))))))"), "map threads=512 vector=4 streaming");
  EXPECT_EQ(of_rows("8192, 8192", "gelu(gelu(gelu(gelu(mul(x, slice(b, axis=0, start=[0], stop=[1]))))))"),
            "map threads=512 vector=4 streaming")
      << "beside another operand it may compute less";
}

// Results that vectors cannot end with rows, and loads that lie otherwise: one-hot rows of 257.
TEST(MapSchedule, FlatVectorsComeInPairsBesideNothingThatLiesAsTheyDo) {
  EXPECT_EQ(chosen("graph g(x: i64[262144, 1]) { y = cast(equal(x, iota(shape=[257])), dtype=bf16); return y }"),
            "map threads=256 vector=8 flat unroll=2 streaming keep_reads");
  EXPECT_EQ(chosen("graph g(x: bf16[262144, 257], b: bf16[257]) { y = add(x, b); return y }"),
            "map threads=256 vector=8 flat streaming keep_reads");
}

// What a block brings and uses up is loaded as it lies, where a tile's places would take quotients to find.
TEST(MapSchedule, WhatTheL1HasPassesThroughNoTile) {
  const auto shuffled = [](const char* dtype, int channels, int size, int by) {
    return chosen(
        fmt::format("graph g(x: {0}[64, {1}, {2}, {2}]) {{\n"
                    "  a = reshape(x, shape=[64, {3}, {4}, {4}, {2}, {2}])\n"
                    "  b = transpose(a, perm=[0, 1, 4, 2, 5, 3])\n  y = reshape(b, shape=[64, {3}, {5}, {5}])\n"
                    "  return y\n}}",
                    dtype, channels, size, channels / (by * by), by, size * by));
  };
  EXPECT_EQ(shuffled("f32", 256, 31, 4), "map threads=512 vector=4 streaming keep_reads") << "86 us, 35";
  EXPECT_EQ(shuffled("i8", 131072, 2, 4), "map threads=256 vector=16 flat streaming streaming_loads") << "181 us, 82";
  EXPECT_EQ(shuffled("f32", 256, 64, 2).find("flat tile") != std::string::npos, true) << "places are shifts";
}

// Threads of wide vectors have other lines each, which then do not stay in the L1 from one load to the next.
TEST(MapSchedule, WindowsThatLieApartAreOfSinglePoints) {
  std::string text = "graph g(x: bf16[8192, 192, 8, 8]) {\n";
  std::string sum;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) {
      const std::string name = fmt::format("s{}{}", i, j);
      text += fmt::format(
          "  r{0} = slice(x, axis=2, start=[{1}], stop=[{2}], step=[3])\n"
          "  {0} = slice(r{0}, axis=3, start=[{3}], stop=[{4}], step=[3])\n",
          name, i, i + 4, j, j + 4);
      sum = sum.empty() ? name : fmt::format("maximum({}, {})", sum, name);
    }
  EXPECT_EQ(chosen(text + "  return " + sum + "\n}"), "map threads=256 vector=1") << "232 us by fours, 65";
  EXPECT_EQ(chosen("graph g(x: u8[32, 1080, 1920, 3]) { y = transpose(x, perm=[0, 3, 1, 2]); return y }"),
            "map threads=512 vector=8 strip=4 streaming keep_reads")
      << "132 us by sixteens, 107";
}

// Where most warps lie inside, several loads behind padding are tested by the others alone.
TEST(MapSchedule, SeveralPaddedLoadsHaveAnInterior) {
  const auto padded = [](const char* shape, const char* low, const char* sum) {
    return chosen(
        fmt::format("graph g(x: bf16[{}]) {{ p = pad(x, low={}, high={}); y = {}; return y }}", shape, low, low, sum));
  };
  EXPECT_EQ(padded("144, 3072, 96", "[0, 1, 0]",
                   "add(slice(p, axis=1, start=[0], stop=[3072]), slice(p, axis=1, start=[2], stop=[3074]))"),
            "map threads=512 vector=8 interior streaming keep_reads");
  EXPECT_EQ(padded("144, 3072, 96", "[0, 1, 0]", "relu(p)"), "map threads=512 vector=8 unroll=2 streaming keep_reads")
      << "one load has its tests";
}

// Less than a block for each of 132 multiprocessors: threads wait for what they compute, so that more of them get less.
TEST(MapSchedule, FewPointsAreSharedOutAmongTheMultiprocessors) {
  const auto of_points = [](const std::string& type, const std::string& y) {
    return chosen("graph g(x: " + type + ") { y = " + y + "; return y }");
  };
  EXPECT_EQ(of_points("bf16[524288]", "tanh(x)"), "map threads=256 vector=8");
  EXPECT_EQ(of_points("bf16[135168]", "tanh(x)"), "map threads=128 vector=8");
  EXPECT_EQ(of_points("bf16[67584]", "tanh(x)"), "map threads=128 vector=4");
  EXPECT_EQ(of_points("bf16[65536]", "tanh(x)"), "map threads=128 vector=2");
  EXPECT_EQ(of_points("f32[64]", "tanh(x)"), "map threads=128 vector=2");
  EXPECT_EQ(of_points("f8e5m2[64]", "tanh(x)"), "map threads=128 vector=4");
  // little to compute: what is moved decides; random numbers are drawn four at a time
  EXPECT_EQ(of_points("bf16[65536]", "neg(x)"), "map threads=128 vector=8");
  EXPECT_EQ(chosen("graph g(s: i64, x: f32[4096]) { y = tanh(dropout(x, s, p=0.1)); return y }"),
            "map threads=128 vector=4");
}

// What others left in the caches need not be written back for it, which shows in between: neither where all fits, nor
// where it is little of what is moved.
TEST(MapSchedule, StreamsAboutAsLargeAsTheCachesPassThemBy) {
  EXPECT_EQ(chosen("graph g(x: bf16[2097152]) { y = tanh(x); return y }"), "map threads=256 vector=8");
  EXPECT_EQ(chosen("graph g(x: bf16[8388608]) { y = tanh(x); return y }"), "map threads=256 vector=8 streaming_loads");
  EXPECT_EQ(chosen("graph g(x: bf16[16777216]) { y = tanh(x); return y }"),
            "map threads=512 vector=8 unroll=2 streaming streaming_loads");
  EXPECT_EQ(chosen("graph g(x: bf16[33554432]) { y = tanh(x); return y }"),
            "map threads=512 vector=8 unroll=2 streaming keep_reads");
}

// Not where an element costs more than its bytes, or where blocks of one vector run at once anyway.
TEST(MapSchedule, AFewMoreBlocksThanRunAtOnceBecomeFewerOfMoreVectors) {
  const auto permuted = [](int batch) {
    return chosen("graph g(x: bf16[" + std::to_string(batch) + ", 1024, 12, 64]) {\n" +
                  "  y = transpose(x, perm=[0, 2, 1, 3]); return y }");
  };
  EXPECT_EQ(permuted(2), "map threads=256 vector=8");
  EXPECT_EQ(permuted(8), "map threads=256 vector=8 unroll=4 streaming_loads");
  EXPECT_EQ(permuted(16), "map threads=512 vector=8 unroll=2 streaming streaming_loads");
  EXPECT_EQ(chosen("graph g(x: bf16[8, 1024, 12, 64]) { y = exp(transpose(x, perm=[0, 2, 1, 3])); return y }"),
            "map threads=256 vector=8 streaming_loads");
}

TEST(MapSchedule, ThreeStreamsFarBeyondTheCachesTakeEightBytesEach) {
  EXPECT_EQ(chosen("graph g(x: bf16[8192, 8192], z: bf16[8192, 8192]) { y = add(x, z); return y }"),
            "map threads=256 vector=4 unroll=2 keep_reads");
  EXPECT_EQ(chosen("graph g(x: f16[8192, 8192], z: f16[8192, 8192]) { y = mul(silu(x), z); return y }"),
            "map threads=256 vector=4 unroll=2 keep_reads");
  EXPECT_EQ(chosen("graph g(x: f32[8192, 8192], z: f32[8192, 8192]) { y = add(x, z); return y }"),
            "map threads=256 vector=2 unroll=2 keep_reads");
  // hardly beyond the caches, within them, and of unknown size
  EXPECT_EQ(chosen("graph g(x: bf16[8388608], z: bf16[8388608]) { y = add(x, z); return y }"),
            "map threads=256 vector=8 unroll=2 keep_reads");
  EXPECT_EQ(chosen("graph g(x: bf16[2048, 2048], z: bf16[2048, 2048]) { y = add(x, z); return y }"),
            "map threads=256 vector=8 unroll=4");
  EXPECT_EQ(chosen("graph g(x: bf16[n, 2048], z: bf16[n, 2048]) { y = add(x, z); return y }"),
            "map threads=256 vector=8");
}

// Two elements a thread took twice the time.
TEST(MapSchedule, FourRandomNumbersAreDrawnAtOnce) {
  EXPECT_EQ(chosen("graph g(s: i64, x: f32[16384, 4096], r: f32[16384, 4096]) {\n"
                   "  y = add(dropout(x, s, p=0.1), r)\n  return y\n}"),
            "map threads=256 vector=4 unroll=2 keep_reads");
}

// A row of factors comes from the caches, and the turned half of a rotation from the lines that are there already.
TEST(MapSchedule, BroadcastAndShiftedOperandsAreNoStreams) {
  EXPECT_EQ(chosen("graph g(x: bf16[16384, 4096], b: bf16[4096], c: bf16[4096]) { y = add(mul(x, b), c); return y }"),
            "map threads=512 vector=8 unroll=2 streaming keep_reads");
  EXPECT_EQ(chosen("graph g(x: bf16[128, 4096, 128], c: bf16[4096, 128], s: bf16[4096, 128]) {\n"
                   "  low = slice(x, axis=-1, start=[0], stop=[64])\n"
                   "  high = slice(x, axis=-1, start=[64], stop=[128])\n"
                   "  y = add(mul(x, c), mul(concat(neg(high), low, axis=-1), s))\n  return y\n}"),
            "map threads=512 vector=8 streaming keep_reads");
}

std::string gather_and_add(int batch, int sequence, const std::string& shared) {
  const std::string b = std::to_string(batch), s = std::to_string(sequence);
  return "graph g(i: i64[" + b + ", " + s + "], t: bf16[50257, 1024], p: bf16[" + shared +
         "]) { y = add(take(t, i, axis=0), p); return y }";
}

// 25 MB pass until the positions are read again.
TEST(MapSchedule, VectorsAreSpreadAlongABatchThatSharesMoreThanTheCachesKeep) {
  EXPECT_EQ(chosen(gather_and_add(16, 4096, "4096, 1024")),
            "map threads=256 vector=8 unroll=16 spread streaming streaming_loads");
  EXPECT_EQ(chosen("graph g(x: bf16[16, 4096, 1024], p: bf16[4096, 1024]) { y = add(x, p); return y }"),
            "map threads=256 vector=8 unroll=16 spread streaming streaming_loads");
  // as far as the batch goes
  EXPECT_EQ(chosen(gather_and_add(12, 4096, "4096, 1024")),
            "map threads=128 vector=8 unroll=12 spread streaming streaming_loads");
  EXPECT_EQ(chosen(gather_and_add(15, 4096, "4096, 1024")),
            "map threads=128 vector=8 unroll=15 spread streaming streaming_loads");
  // 6 MB pass; nothing is shared but a row, or nothing at all
  EXPECT_EQ(chosen(gather_and_add(64, 1024, "1024, 1024")), "map threads=512 vector=8 unroll=2 streaming");
  EXPECT_EQ(chosen(gather_and_add(16, 4096, "1, 1024")), "map threads=512 vector=8 unroll=2 streaming");
  EXPECT_EQ(chosen("graph g(i: i64[65536], t: bf16[50257, 1024]) { y = exp(take(t, i, axis=0)); return y }"),
            "map threads=512 vector=8 unroll=2 streaming");
}

// Rows end anywhere, but results lie flat: neighbours are subtracted, padded and pooled in vectors across their ends.
TEST(MapSchedule, ResultsOfOddRowsAreStoredInVectorsWhateverIsLoaded) {
  EXPECT_EQ(chosen("graph g(x: bf16[802816, 56]) { y = sub(slice(x, axis=1, start=[1], stop=[56]), "
                   "slice(x, axis=1, start=[0], stop=[55])); return y }"),
            "map threads=256 vector=4 flat");
  EXPECT_EQ(chosen("graph g(x: f32[2000000, 28]) { y = sub(slice(x, axis=1, start=[1], stop=[28]), "
                   "slice(x, axis=1, start=[0], stop=[27])); return y }"),
            "map threads=256 vector=4 flat");
  EXPECT_EQ(chosen("graph g(x: u8[2000000, 28]) { y = maximum(slice(x, axis=1, start=[1], stop=[28]), "
                   "slice(x, axis=1, start=[0], stop=[27])); return y }"),
            "map threads=256 vector=8 flat");
}

// 85 us for f32 [5000000, 3] with single rows, 45 with all of them.
TEST(MapSchedule, AThreadHasAllRowsOfAShortTransposedAxis) {
  EXPECT_EQ(chosen("graph g(x: f32[5000000, 3]) { y = transpose(x, perm=[1, 0]); return y }"),
            "map threads=512 vector=4 strip=4 streaming keep_reads");
  EXPECT_EQ(chosen("graph g(x: u8[64, 409600, 3]) { y = cast(transpose(x, perm=[0, 2, 1]), dtype=f32); return y }"),
            "map threads=512 vector=4 strip=4 streaming keep_reads");
}

// 401 us for three copies of f32 [24, 2097152] one by one, 278 side by side.
TEST(MapSchedule, ThreeCopiesAreSpread) {
  EXPECT_EQ(chosen("graph g(x: f32[24, 2097152]) { y = broadcast_to(exp(x), shape=[3, 24, 2097152]); return y }"),
            "map threads=128 vector=4 unroll=3 spread streaming streaming_loads");
}

TEST(MapSchedule, TransposesOfOddRowsMoveAlignedVectorsThatAreShifted) {
  EXPECT_EQ(chosen("graph g(x: bf16[4095, 4097]) { y = add(transpose(x), 1); return y }"),
            "map threads=512 vector=8 tile axis=0 rows=64 columns=128 shift");
  EXPECT_EQ(chosen("graph g(x: f32[4095, 4097]) { y = add(transpose(x), 1); return y }"),
            "map threads=512 vector=4 tile axis=0 rows=64 columns=64 shift");
  for (const char* shape : {"[16383, 16385]", "[16383, 16384]"})  // of bytes also where one side is aligned
    EXPECT_NE(chosen("graph g(x: u8" + std::string(shape) + ") { y = add(transpose(x), 1); return y }").find(" shift"),
              std::string::npos);
  // vectors as they lie on both sides, or on one; too few tiles for all multiprocessors
  EXPECT_EQ(chosen("graph g(x: bf16[4096, 4096]) { y = add(transpose(x), 1); return y }"),
            "map threads=256 vector=8 tile axis=0 rows=64 columns=64 tile_vector=8 keep_reads");
  EXPECT_EQ(chosen("graph g(x: f32[4096, 4097]) { y = add(transpose(x), 1); return y }"),
            "map threads=512 vector=4 tile axis=0 rows=64 columns=64 keep_reads");
  EXPECT_EQ(chosen("graph g(x: bf16[511, 513]) { y = add(transpose(x), 1); return y }"),
            "map threads=256 vector=1 tile axis=0 rows=32 columns=32");
}

// The tuner tries what the heuristics would have chosen otherwise, too.
TEST(MapSchedule, TheCandidatesOfSpreadVectorsHoldPlainOnes) {
  const ir::Plan plan = ir::make_plan(ir::parse(gather_and_add(16, 4096, "4096, 1024")));
  const Target target = test::cuda_target_for("sm_90a");
  std::vector<std::string> texts;
  for (const Schedule& candidate :
       candidate_schedules(test::scheduled_kernel(plan, 0, unspecialized(plan), target), target))
    texts.push_back(print(candidate));
  const auto tried = [&](const std::string& text) { return std::count(texts.begin(), texts.end(), text) == 1; };
  EXPECT_TRUE(tried("map threads=256 vector=8 streaming"));
  EXPECT_TRUE(tried("map threads=128 vector=8 unroll=4 spread streaming streaming_loads"));
  EXPECT_TRUE(tried("map threads=256 vector=8 unroll=8 spread streaming streaming_loads"));
}

}  // namespace
}  // namespace tenon::codegen

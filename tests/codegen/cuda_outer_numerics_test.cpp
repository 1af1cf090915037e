// Reduce kernels of generated CUDA on the host whose blocks walk over the rows: reductions over rows and, beside them,
// over columns.
#include <algorithm>

#include "codegen/analysis/row_shape.h"
#include "codegen/analysis/vectorize.h"
#include "codegen/schedule/schedule.h"
#include "tests/codegen/cuda_numerics.h"
#include "tests/codegen/text_checks.h"

namespace tenon::codegen {
namespace {

std::int64_t row_length(const Kernel& kernel) {
  std::int64_t length = 1;
  for (const Axis& axis : kernel.axes)
    if (axis.reduced) length *= axis.extent.constant();
  return length;
}

void hold(Kernel& kernel, const RowTeam& team) {
  ReduceSchedule& schedule = reduce_schedule(kernel);
  schedule.team = team;
  const auto vectors = static_cast<int>(row_length(kernel) / schedule.vector), size = team_size(schedule);
  schedule.keep = InRegisters{(vectors + size - 1) / size * schedule.vector};
}

// Fewer blocks than rows, so that each walks over several.
Adjust persistent(int blocks, int stages = 1, bool bulk = false) {
  return [=](Kernel& kernel) {
    ReduceSchedule& schedule = reduce_schedule(kernel);
    ASSERT_TRUE(persistent_blocks(schedule)) << print(kernel);
    schedule.vector = power_of_two_divisor(kernel.axes.back().extent, static_cast<int>(16 / widest_of(kernel)), {});
    const auto vectors = static_cast<int>(row_length(kernel) / schedule.vector);
    hold(kernel, {.mapping = RowMapping::block, .threads = std::clamp((vectors + 31) / 32 * 32, 32, 256)});
    schedule.cut = PersistentBlocks{blocks, stages, bulk};
  };
}

// The same of warps with rows of their own, of which `lanes` share one.
Adjust warps(int blocks, int lanes, int threads = 64, int stages = 1) {
  return [=](Kernel& kernel) {
    ReduceSchedule& schedule = reduce_schedule(kernel);
    ASSERT_TRUE(persistent_blocks(schedule)) << print(kernel);
    hold(kernel, {.mapping = RowMapping::warp, .threads = threads, .lanes = lanes});
    schedule.cut = PersistentBlocks{blocks, stages, false};
    ASSERT_EQ(verify(kernel.schedule, kernel, test::cuda_target_for("sm_90a")), "") << print(kernel);
  };
}

std::string norm_backward(const std::string& dtype, const std::string& rows, const std::string& columns) {
  return "graph g(dy: " + dtype + "[" + rows + ", " + columns + "], x: " + dtype + "[" + rows + ", " + columns +
         "], weight: " + dtype + "[" + columns + "], mean: f32[" + rows + ", 1], rstd: f32[" + rows + R"(, 1]) {
  g = cast(dy, dtype=f32)
  normal = mul(sub(cast(x, dtype=f32), mean), rstd)
  scaled = mul(g, cast(weight, dtype=f32))
  along = mean(scaled, axis=1, keepdims=true)
  across = mean(mul(scaled, normal), axis=1, keepdims=true)
  dx = cast(mul(rstd, sub(sub(scaled, along), mul(normal, across))), dtype=)" +
         dtype + R"()
  dw = cast(sum(mul(g, normal), axis=0), dtype=)" +
         dtype + R"()
  db = sum(g, axis=0)
  return dx, dw, db
})";
}

TEST(CudaOuterNumerics, GradientsOfANormAreOneKernel) {
  for (const char* dtype : {"f32", "bf16"})
    for (const int ahead : {0, 1, 2, 3}) {
      const CudaKernel run = expect_right(norm_backward(dtype, "17", "96"), {}, persistent(5, ahead));
      EXPECT_EQ(run.source.launch.grid_x.str(), "5");
      test::expect_compiles_everywhere(run.source);
    }
}

TEST(CudaOuterNumerics, AnyNumberOfRows) {
  for (const std::int64_t rows : {0, 1, 2, 19})
    expect_right(norm_backward("f16", "rows", "64"), {{"rows", rows}}, persistent(4));
  for (const std::int64_t rows : {2, 19})
    expect_right(norm_backward("f16", "rows", "64"), {{"rows", rows}}, persistent(4, 3));
}

// Fewer rows than blocks, than slots, and more: the slots' phases come round several times.
TEST(CudaOuterNumerics, RowsThatComeWhole) {
  for (const char* dtype : {"f32", "bf16"})
    for (const int ahead : {1, 2, 3}) {
      const CudaKernel run = expect_right(norm_backward(dtype, "47", "96"), {}, persistent(5, ahead, true));
      test::expect_compiles_for(run.source, {"sm_90a", "sm_100a", "sm_120"});
    }
  for (const std::int64_t rows : {2, 3, 7, 40})
    expect_right(norm_backward("f16", "rows", "64"), {{"rows", rows}}, persistent(4, 2, true));
  expect_right(  // several axes are one row, kept or not
      "graph g(x: f32[3, 5, 4, 16]) {\n  s = sum(mul(x, x), axis=[2, 3], keepdims=true)\n  y = mul(x, s)\n"
      "  c = sum(x, axis=[0, 1])\n  return y, c\n}",
      {}, [](Kernel& kernel) {
        persistent(4, 2, true)(kernel);
        reduce_schedule(kernel).cache.keep_reads = true;
      });
}

TEST(CudaOuterNumerics, RowsInSharedMemoryThatThreadsDoNotFill) {
  expect_right(norm_backward("bf16", "14", "1288"), {}, [](Kernel& kernel) {
    persistent(3, 2)(kernel);
    reduce_schedule(kernel).team.threads = 64;
    reduce_schedule(kernel).keep = InRegisters{24};
  });
  expect_right(norm_backward("bf16", "14", "1288"), {}, [](Kernel& kernel) {
    persistent(3, 2, true)(kernel);
    reduce_schedule(kernel).team.threads = 64;
    reduce_schedule(kernel).keep = InRegisters{24};
  });
}

TEST(CudaOuterNumerics, RowsThatNoVectorDivides) {
  const CudaKernel run = expect_right(norm_backward("bf16", "9", "77"), {}, persistent(2));
  EXPECT_EQ(reduce_schedule(const_cast<Kernel&>(run.kernel)).vector, 1);
  expect_right(norm_backward("bf16", "9", "1300"), {}, [](Kernel& kernel) {  // several vectors a thread, the last short
    persistent(2)(kernel);
    reduce_schedule(kernel).team.threads = 32;
    reduce_schedule(kernel).keep = InRegisters{44};
  });
}

// Rows that all lanes of a warp share, or a few; warps that end with rows for some of their lanes only.
TEST(CudaOuterNumerics, WarpsHaveRowsOfTheirOwn) {
  for (const auto& [dtype, lanes] : {std::pair("f32", 32), std::pair("bf16", 8), std::pair("f32", 2)})
    for (const int stages : {0, 1, 2}) {
      const CudaKernel run = expect_right(norm_backward(dtype, "43", "32"), {}, warps(3, lanes, 64, stages));
      if (stages > 0 && lanes == 8) test::expect_compiles_everywhere(run.source);
    }
  expect_right(norm_backward("bf16", "43", "32"), {}, warps(3, 1));
  for (const std::int64_t rows : {0, 1, 7, 64, 101})
    for (const int stages : {1, 3})
      if (stages == 1 || rows > 1)  // of one row none follow
        expect_right(norm_backward("f16", "rows", "64"), {{"rows", rows}}, warps(2, 8, 96, stages));
}

TEST(CudaOuterNumerics, WarpsWhoseLanesHaveSeveralVectorsOfARow) {
  expect_right(norm_backward("bf16", "29", "33"), {}, warps(2, 8));
  expect_right(norm_backward("f32", "29", "100"), {}, warps(2, 4));
  expect_right(norm_backward("f32", "29", "100"), {}, warps(2, 4, 64, 2));
  expect_right(norm_backward("bf16", "29", "3"), {}, warps(2, 1));
  expect_right(norm_backward("bf16", "11", "776"), {}, warps(2, 32, 96));
}

TEST(CudaOuterNumerics, LanesWithoutARowAddNothing) {
  const CudaKernel run = expect_right(norm_backward("bf16", "13", "32"), {}, warps(1, 4));
  test::expect_lines(run.source.text,
                     {"const u32 first = blockIdx.x * 16 + threadIdx.x / 4;",
                      "for (u32 own_row = first; own_row - threadIdx.x % 32 / 4 < 13; own_row += 16) {",
                      "const bool inside = own_row < 13;", "const u32 row = inside ? own_row : 13 - 1;",
                      "if (inside) {", "reduce_lanes<4>(", "if (inside) {", "leave_outer<4, 64>("});
}

TEST(CudaOuterNumerics, OneReductionARow) {  // its buffer is used again by the next row
  const CudaKernel run = expect_right(
      "graph g(x: f32[23, 64]) { r = max(x, axis=1, keepdims=true); c = sum(x, axis=0); return sub(x, r), c }", {},
      persistent(3));
  test::expect_lines(run.source.text,
                     {"part1[2][", "leave_warps(part1[turn], a1,", "__syncthreads();", "combine_warps<", "turn ^= 1;"});
}

TEST(CudaOuterNumerics, WhatARowsReductionsMakeIsReducedOverRows) {
  const CudaKernel run =
      expect_right("graph g(x: f32[11, 64]) { y = softmax(x); c = sum(y, axis=0); return y, c }", {}, persistent(3));
  test::expect_compiles_everywhere(run.source);
}

TEST(CudaOuterNumerics, EveryReduction) {
  for (const char* dtype : {"f32", "f64", "bf16", "i32", "i64", "u8"}) {
    expect_right("graph g(x: " + std::string(dtype) +
                     "[13, 48]) {\n  r = sum(x, axis=1)\n  a = sum(x, axis=0)\n  b = max(x, axis=0)\n  c = min(x, "
                     "axis=0)\n  d = argmax(x, axis=0)\n  e = prod(x, axis=0)\n  return r, a, b, c, d, e\n}",
                 {}, persistent(4));
    expect_right("graph g(x: " + std::string(dtype) +
                     "[13, 48]) {\n  r = sum(x, axis=1)\n  a = sum(x, axis=0)\n  b = max(x, axis=0)\n  c = min(x, "
                     "axis=0)\n  d = argmax(x, axis=0)\n  e = prod(x, axis=0)\n  return r, a, b, c, d, e\n}",
                 {}, warps(2, 8));
  }
}

TEST(CudaOuterNumerics, SeveralAxesOnBothSides) {
  expect_right(
      "graph g(x: f32[3, 5, 4, 16], w: f32[4, 16]) {\n  s = sum(mul(x, w), axis=[2, 3], keepdims=true)\n"
      "  y = mul(x, s)\n  c = sum(mul(x, s), axis=[0, 1])\n  d = add(c, w)\n  return y, c, d\n}",
      {}, persistent(4));
  expect_right(
      "graph g(x: f32[3, 5, 4, 16], w: f32[4, 16]) {\n  s = sum(mul(x, w), axis=[2, 3], keepdims=true)\n"
      "  y = mul(x, s)\n  c = sum(mul(x, s), axis=[0, 1])\n  d = add(c, w)\n  return y, c, d\n}",
      {}, warps(2, 16));
}

}  // namespace
}  // namespace tenon::codegen

// Reduce kernels of generated CUDA on the host whose blocks walk over the rows: reductions over rows and, beside them,
// over columns.
#include "codegen/schedule/schedule.h"
#include "tests/codegen/cuda_numerics.h"
#include "tests/codegen/text_checks.h"

namespace tenon::codegen {
namespace {

ReduceSchedule& reduce_schedule(Kernel& kernel) { return std::get<ReduceSchedule>(kernel.schedule); }

// Fewer blocks than rows, so that each walks over several.
Adjust persistent(int blocks, int stages = 1, bool bulk = false) {
  return [=](Kernel& kernel) {
    ReduceSchedule& schedule = reduce_schedule(kernel);
    ASSERT_TRUE(persistent_blocks(schedule)) << print(kernel);
    schedule.cut = PersistentBlocks{blocks, stages, bulk};
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
  }
}

TEST(CudaOuterNumerics, SeveralAxesOnBothSides) {
  expect_right(
      "graph g(x: f32[3, 5, 4, 16], w: f32[4, 16]) {\n  s = sum(mul(x, w), axis=[2, 3], keepdims=true)\n"
      "  y = mul(x, s)\n  c = sum(mul(x, s), axis=[0, 1])\n  d = add(c, w)\n  return y, c, d\n}",
      {}, persistent(4));
}

}  // namespace
}  // namespace tenon::codegen

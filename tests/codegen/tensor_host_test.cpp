// Contract and Attend kernels run on the host, with the tensor cores' instructions in software: tiles, fragments,
// tails, pipelines and the online softmax, without a GPU.
#include <gtest/gtest.h>

#include "tests/codegen/tensor_reference.h"
#include "tests/harness/cuda_on_host.h"

namespace tenon::test {
namespace {

using codegen::AttendSchedule;
using codegen::ContractSchedule;
using codegen::MainLoop;

const codegen::Target& target() {
  static const codegen::Target hopper = [] {
    codegen::Target target = codegen::cuda_target("sm_90a");
    target.may.wgmma = false;  // no tensor maps here
    return target;
  }();
  return hopper;
}

std::vector<Array> run_here(const Kernel& kernel, const Bindings& at) {
  return run(kernel, emit_cuda(kernel, target()), at, [](const auto& source, auto& operands, const auto& bindings) {
    std::vector<void*> pointers;
    for (Bytes& operand : operands) pointers.push_back(operand.data());
    run_cuda_on_host(source, pointers, bindings);
  });
}

struct Tile {
  int m, n, k, warps_m, warps_n, stages;
};

void expect_product(const MatmulCase& c, const Tile& tile) {
  SCOPED_TRACE(c.name);
  Kernel kernel = matmul_kernel(c, target());
  auto& schedule = std::get<ContractSchedule>(kernel.schedule);
  if (schedule.loop == MainLoop::stream) schedule = {.loop = MainLoop::mma_sync, .vector_a = 8, .vector_b = 8};
  schedule.tile_m = tile.m;
  schedule.tile_n = tile.n;
  schedule.tile_k = tile.k;
  schedule.warps_m = tile.warps_m;
  schedule.warps_n = tile.warps_n;
  schedule.stages = tile.stages;
  for (const Bindings& at : c.bindings) check_matmul(c, at, run_here(kernel, at));
}

TEST(TensorKernelsOnTheHost, MultiplyOnTensorCores) {
  const DType f16 = DType::f16, bf16 = DType::bf16, f8 = DType::f8e4m3;
  expect_product({.name = "asynchronous", .m = 40, .n = 72, .k = 104, .epilogue = true}, {32, 64, 32, 1, 2, 3});
  expect_product({.name = "turned",
                  .a = bf16,
                  .b = bf16,
                  .out = bf16,
                  .m = 40,
                  .n = 40,
                  .k = 72,
                  .a_transposed = true,
                  .b_transposed = true},
                 {32, 32, 32, 1, 1, 2});
  expect_product({.name = "odd", .batch = 2, .m = 33, .n = 19, .k = 37, .epilogue = true}, {16, 32, 64, 1, 2, 2});
  expect_product({.name = "odd_turned", .m = 21, .n = 50, .k = 67, .a_transposed = true, .b_transposed = true},
                 {16, 64, 32, 1, 1, 2});
  expect_product({.name = "prologue", .m = 48, .n = 64, .k = 80, .prologue = true}, {32, 64, 32, 2, 1, 3});
  expect_product(
      {.name = "f8", .a = f8, .b = DType::f8e5m2, .out = f16, .m = 32, .n = 48, .k = 64, .b_transposed = true},
      {32, 32, 32, 1, 1, 2});
  expect_product({.name = "f8_and_bf16", .a = f8, .b = bf16, .out = DType::f32, .m = 17, .n = 16, .k = 48},
                 {16, 16, 32, 1, 1, 2});
  expect_product({.name = "nothing", .m = 20, .n = 24, .k = 0}, {16, 32, 32, 1, 1, 2});
}

// A matrix of `wide` rows a tile past `few` rows or columns of the result.
struct Stream {
  bool few_are_rows = true;
  int wide = 16, few = 8, chunks = 1, warps = 4;
};

void expect_streamed(const MatmulCase& c, const Stream& stream) {
  SCOPED_TRACE(c.name);
  Kernel kernel = matmul_kernel(c, target());
  ContractSchedule schedule;
  schedule.loop = MainLoop::stream;
  schedule.tile_m = stream.few_are_rows ? stream.few : stream.wide;
  schedule.tile_n = stream.few_are_rows ? stream.wide : stream.few;
  schedule.tile_k = 32 * stream.chunks;
  schedule.warps_m = schedule.warps_n = 1;
  schedule.warps_k = stream.warps;
  schedule.vector_a = schedule.vector_b = 8;
  schedule.streaming_loads = true;
  kernel.schedule = schedule;
  ASSERT_EQ(verify(kernel.schedule, kernel, target()), "");
  for (const Bindings& at : c.bindings) check_matmul(c, at, run_here(kernel, at));
}

TEST(TensorKernelsOnTheHost, StreamAMatrixPastFewRows) {
  const DType bf16 = DType::bf16;
  expect_streamed({.name = "one_row", .m = 1, .n = 40, .k = 264, .b_transposed = true}, {});
  expect_streamed({.name = "weights_across", .a = bf16, .b = bf16, .out = bf16, .m = 5, .n = 72, .k = 200},
                  {.wide = 64, .chunks = 2});
  expect_streamed({.name = "narrow_across", .m = 8, .n = 44, .k = 96}, {.wide = 32, .warps = 2});
  expect_streamed({.name = "epilogue", .m = 13, .n = 48, .k = 320, .b_transposed = true, .epilogue = true},
                  {.wide = 32, .few = 16, .chunks = 4, .warps = 2});
  expect_streamed({.name = "few_turned", .m = 9, .n = 33, .k = 70, .a_transposed = true, .b_transposed = true},
                  {.few = 16});
  expect_streamed({.name = "odd", .batch = 2, .m = 7, .n = 19, .k = 37, .b_transposed = true}, {});
  expect_streamed({.name = "odd_across", .m = 3, .n = 19, .k = 37}, {});
  expect_streamed({.name = "long", .out = DType::f32, .m = 4, .n = 16, .k = 4704, .b_transposed = true}, {.chunks = 2});
  expect_streamed({.name = "computed", .m = 6, .n = 32, .k = 64, .b_transposed = true, .prologue = true}, {});
  expect_streamed({.name = "nothing", .m = 2, .n = 24, .k = 0, .b_transposed = true}, {});
}

TEST(TensorKernelsOnTheHost, StreamAMatrixPastFewColumns) {
  const Stream stream{.few_are_rows = false, .wide = 32, .few = 8, .chunks = 2, .warps = 4};
  expect_streamed({.name = "along_depth", .m = 70, .n = 8, .k = 136}, stream);
  expect_streamed({.name = "across", .m = 64, .n = 3, .k = 130, .a_transposed = true, .epilogue = true},
                  {.few_are_rows = false, .wide = 64});
  expect_streamed({.name = "f8", .a = DType::f8e4m3, .b = DType::f8e5m2, .m = 33, .n = 5, .k = 64}, stream);
}

TEST(TensorKernelsOnTheHost, MultiplyInTf32) {
  const DType f32 = DType::f32;
  expect_product({.name = "asynchronous",
                  .a = f32,
                  .b = f32,
                  .out = f32,
                  .m = 40,
                  .n = 36,
                  .k = 44,
                  .b_transposed = true,
                  .tf32 = true},
                 {32, 32, 16, 1, 1, 3});
  expect_product(
      {.name = "turned", .a = f32, .b = f32, .out = f32, .m = 20, .n = 36, .k = 40, .a_transposed = true, .tf32 = true},
      {16, 32, 32, 1, 1, 2});
}

TEST(TensorKernelsOnTheHost, MultiplyScalars) {
  const DType f32 = DType::f32, f64 = DType::f64;
  expect_product({.name = "f32", .a = f32, .b = f32, .out = f32, .m = 40, .n = 72, .k = 36, .epilogue = true},
                 {32, 64, 16, 2, 1, 3});
  expect_product({.name = "odd",
                  .a = f32,
                  .b = f32,
                  .out = f32,
                  .batch = 2,
                  .m = 35,
                  .n = 33,
                  .k = 29,
                  .a_transposed = true,
                  .b_transposed = true},
                 {32, 64, 16, 1, 2, 2});
  expect_product({.name = "f64", .a = f64, .b = f64, .out = f64, .m = 20, .n = 40, .k = 40}, {16, 64, 16, 1, 2, 2});
}

void expect_attention(const AttentionCase& c, int tile_q, int tile_kv) {
  SCOPED_TRACE(c.name);
  Kernel kernel = attention_kernel(c, target());
  auto& schedule = std::get<AttendSchedule>(kernel.schedule);
  schedule.tile_q = tile_q;
  schedule.tile_kv = tile_kv;
  for (const Bindings& at : c.bindings) check_attention(c, at, kernel, run_here(kernel, at));
}

TEST(TensorKernelsOnTheHost, AttendOnTensorCores) {
  expect_attention({.name = "causal",
                    .queries = 40,
                    .keys = 72,
                    .depth = 32,
                    .width = 48,
                    .group = 2,
                    .mask = Mask::causal,
                    .lse = true},
                   32, 32);
  expect_attention({.name = "odd",
                    .dtype = DType::bf16,
                    .queries = 35,
                    .keys = 61,
                    .depth = 33,
                    .width = 17,
                    .mask = Mask::window,
                    .alibi = true},
                   32, 16);
  expect_attention(
      {.name = "empty_rows", .queries = 50, .keys = 20, .depth = 16, .width = 16, .mask = Mask::causal, .lse = true},
      16, 32);
  expect_attention(
      {.name = "by_hand", .queries = 50, .keys = 20, .depth = 16, .width = 16, .mask = Mask::causal, .by_hand = true},
      32, 32);
  expect_attention({.name = "deep", .heads = 1, .queries = 18, .keys = 40, .depth = 160, .width = 144, .softcap = true},
                   16, 16);
  expect_attention({.name = "loaded",
                    .heads = 1,
                    .queries = 20,
                    .keys = 40,
                    .depth = 16,
                    .width = 24,
                    .mask = Mask::loaded,
                    .keys_transposed = true},
                   16, 32);
  expect_attention(
      {.name = "dropout", .heads = 1, .queries = 20, .keys = 40, .depth = 16, .width = 24, .dropout = true}, 16, 32);
  expect_attention({.name = "no_keys", .heads = 1, .queries = 20, .keys = 0, .lse = true}, 16, 32);
}

TEST(TensorKernelsOnTheHost, AttendWithScalars) {
  expect_attention({.name = "f32",
                    .dtype = DType::f32,
                    .heads = 1,
                    .queries = 20,
                    .keys = 40,
                    .depth = 24,
                    .width = 40,
                    .mask = Mask::causal,
                    .lse = true},
                   16, 16);
  expect_attention({.name = "f32_dropout", .dtype = DType::f32, .heads = 1, .queries = 20, .keys = 20, .dropout = true},
                   16, 16);
  expect_attention({.name = "f64_by_hand",
                    .dtype = DType::f64,
                    .heads = 2,
                    .queries = 18,
                    .keys = 19,
                    .depth = 7,
                    .width = 70,
                    .mask = Mask::none,
                    .by_hand = true},
                   16, 32);
}

}  // namespace
}  // namespace tenon::test

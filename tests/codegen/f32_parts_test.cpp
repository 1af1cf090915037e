// f32 products on tensor cores, each element two numbers of tf32: run on the host, with the instructions in software.
#include <gtest/gtest.h>

#include "codegen/analysis/tiling.h"
#include "codegen/schedule/schedule.h"
#include "tests/codegen/tensor_reference.h"
#include "tests/harness/cuda_on_host.h"
#include "tests/harness/scheduled_kernel.h"

namespace tenon::test {
namespace {

using codegen::ContractSchedule;
using codegen::MainLoop;

struct Tile {
  int m, n, k, warps_m, warps_n, groups, stages;
};

MatmulCase f32_case(MatmulCase c) {
  c.a = c.b = c.out = DType::f32;
  return c;
}

void expect_product(MatmulCase c, const Tile& tile) {
  SCOPED_TRACE(c.name);
  c = f32_case(std::move(c));
  const codegen::Target target = codegen::cuda_target("sm_90a");
  Kernel kernel = matmul_kernel(c, target);
  ContractSchedule schedule;
  schedule.loop = MainLoop::mma_3xtf32;
  schedule.tile_m = tile.m;
  schedule.tile_n = tile.n;
  schedule.tile_k = tile.k;
  schedule.warps_m = tile.warps_m;
  schedule.warps_n = tile.warps_n;
  schedule.warps_k = tile.groups;
  schedule.stages = tile.stages;
  schedule.vector_a = schedule.vector_b = 4;
  kernel.schedule = schedule;
  ASSERT_EQ(verify(kernel.schedule, kernel, target), "");
  const auto launch = [](const auto& source, auto& operands, const auto& bindings) {
    std::vector<void*> pointers;
    for (Bytes& operand : operands) pointers.push_back(operand.data());
    run_cuda_on_host(source, pointers, bindings);
  };
  for (const Bindings& at : c.bindings) check_matmul(c, at, run(kernel, emit_cuda(kernel, target), at, launch));
}

TEST(F32InParts, LiesAlongTheDepthAndAcrossIt) {
  expect_product({.name = "nn", .m = 40, .n = 72, .k = 104, .epilogue = true}, {64, 64, 32, 2, 2, 1, 3});
  expect_product({.name = "nt", .m = 70, .n = 20, .k = 68, .b_transposed = true}, {64, 32, 32, 2, 1, 1, 2});
  expect_product({.name = "tn", .m = 36, .n = 64, .k = 40, .a_transposed = true}, {32, 64, 16, 1, 2, 1, 2});
  expect_product({.name = "tt", .m = 64, .n = 24, .k = 72, .a_transposed = true, .b_transposed = true},
                 {64, 8, 32, 4, 1, 1, 4});
}

TEST(F32InParts, HasRowsThatBeginAnywhere) {
  expect_product({.name = "nn", .batch = 2, .m = 33, .n = 19, .k = 37, .epilogue = true}, {32, 16, 32, 2, 1, 1, 3});
  expect_product({.name = "tt", .m = 21, .n = 50, .k = 67, .a_transposed = true, .b_transposed = true},
                 {16, 64, 32, 1, 2, 1, 2});
  expect_product({.name = "prologue", .m = 48, .n = 64, .k = 80, .prologue = true}, {32, 64, 32, 2, 2, 1, 3});
  expect_product({.name = "nothing", .m = 20, .n = 24, .k = 0}, {16, 32, 32, 1, 1, 1, 2});
}

TEST(F32InParts, GroupsOfWarpsDivideTheDepthOfATile) {
  expect_product({.name = "two", .m = 40, .n = 36, .k = 300}, {32, 32, 64, 1, 1, 2, 3});
  expect_product({.name = "four", .m = 17, .n = 40, .k = 130, .a_transposed = true}, {16, 64, 128, 1, 2, 4, 2});
}

// What lies behind a short depth is not multiplied: seven steps of eight instead of 24, and one of four.
TEST(F32InParts, EndsWithAShortDepth) {
  expect_product({.name = "three_tiles", .m = 40, .n = 36, .k = 69}, {32, 32, 32, 1, 1, 1, 2});
  expect_product({.name = "one_step", .m = 40, .n = 64, .k = 5, .b_transposed = true}, {64, 64, 32, 2, 2, 1, 3});
  expect_product({.name = "groups", .m = 20, .n = 40, .k = 100}, {32, 32, 128, 1, 1, 4, 2});
}

ContractSchedule chosen(const MatmulCase& c, bool split_f32 = true) {
  codegen::Target target = codegen::cuda_target("sm_90a");
  target.may.split_f32 = split_f32;
  return std::get<ContractSchedule>(matmul_kernel(f32_case(c), target).schedule);
}

TEST(F32InParts, AreChosenForProductsOfSomeSize) {
  const MatmulCase tall{.name = "tall", .m = 7097, .n = 64, .k = 15488, .b_transposed = true};
  EXPECT_EQ(print(chosen(tall)), "contract loop=mma_3xtf32 tile_k=64 warps_k=2 stages=3 vector_a=4 vector_b=4");
  EXPECT_EQ(chosen(tall, false).loop, MainLoop::simt);
  EXPECT_EQ(chosen({.name = "small", .m = 64, .n = 64, .k = 64}).loop, MainLoop::simt) << "as fast, and exact";
  EXPECT_LE(chosen({.name = "columns", .m = 8192, .n = 8, .k = 1344}).tile_n, 16);
}

TEST(F32InParts, TakesTensorCoresThatAreFasterThanLanes) {
  EXPECT_TRUE(may_split_f32(codegen::cuda_target("sm_80")));
  EXPECT_FALSE(may_split_f32(codegen::cuda_target("sm_75"))) << "no tf32";
  EXPECT_FALSE(may_split_f32(codegen::cuda_target("sm_86"))) << "three products take longer than one by lanes";
}

}  // namespace
}  // namespace tenon::test

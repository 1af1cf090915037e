// The main loop of warpgroups (contract_wgmma.cuh) on the host (hopper_on_host.h): what it computes by every way that
// operands come and sums leave, at sizes that are no multiples of anything.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/codegen/wgmma_on_host.h"

namespace tenon::test {
namespace {

// Both operands along the depth and across it. Symbols that must be multiples of eight for boxes are.
TEST(Warpgroups, MultiplyWhicheverWayOperandsLie) {
  for (const bool a_transposed : {false, true})
    for (const bool b_transposed : {false, true}) {
      MatmulCase c = any_size(8, 8);
      c.name = fmt::format("{}{}", a_transposed ? "T" : "N", b_transposed ? "T" : "N");
      c.a_transposed = a_transposed, c.b_transposed = b_transposed;
      c.bindings = {{{"b", 1}, {"m", 136}, {"n", 200}, {"k", 216}}, {{"b", 3}, {"m", 64}, {"n", 8}, {"k", 8}}};
      expect_product(c, "tile_m=128 tile_n=128 stages=3");
    }
}

TEST(Warpgroups, MultiplyInF16) {
  MatmulCase c = any_size(8, 8);
  c.name = "f16", c.a = c.b = c.out = DType::f16, c.b_transposed = true;
  c.bindings = {{{"b", 2}, {"m", 104}, {"n", 72}, {"k", 136}}};
  expect_product(c, "tile_m=64 tile_n=96 consumers=1 stages=2");
}

// As they are stored, in lines of 128 elements; the left one may be of another kind than the right one.
TEST(Warpgroups, MultiplyF8) {
  MatmulCase c = any_size(8, 16);
  c.name = "f8", c.a = DType::f8e4m3, c.b = DType::f8e5m2, c.out = DType::bf16;
  c.b_transposed = c.epilogue = true;
  c.bindings = {{{"b", 2}, {"m", 104}, {"n", 72}, {"k", 400}}, {{"b", 1}, {"m", 64}, {"n", 8}, {"k", 16}}};
  expect_product(c, "tile_m=64 tile_n=96 tile_k=128 consumers=1 stages=3 block_steps=1");
  expect_product(c, "tile_m=128 tile_n=128 tile_k=128 stages=2 block_steps=2 cluster=2");
  expect_product(c, "tile_m=64 tile_n=64 tile_k=128 turns stages=3");
  expect_product(c, "tile_m=64 tile_n=64 tile_k=128 consumers=1 stages=4 parts=3");
}

TEST(Warpgroups, WriteZerosWhereThereIsNoDepth) {
  MatmulCase c = any_size(8, 8);
  c.name = "no_depth", c.epilogue = true;
  c.bindings = {{{"b", 2}, {"m", 80}, {"n", 40}, {"k", 0}}};
  expect_product(c, "tile_m=64 tile_n=64 consumers=1 stages=2");
  expect_product(c, "tile_m=64 tile_n=64 turns stages=2");
  expect_product(c, "tile_m=64 tile_n=64 consumers=1 parts=2 stages=4");
}

// More tiles than blocks, so that each has several: a phase of a barrier follows another through all of them.
TEST(Warpgroups, TakeTurns) {
  MatmulCase c = any_size(8, 8);
  c.name = "turns", c.epilogue = true;
  c.bindings = {{{"b", 1}, {"m", 320}, {"n", 200}, {"k", 72}},
                {{"b", 2}, {"m", 128}, {"n", 72}, {"k", 328}},
                {{"b", 1}, {"m", 8}, {"n", 8}, {"k", 64}}};
  expect_product(c, "tile_m=64 tile_n=64 turns stages=3");
  expect_product(c, "tile_m=64 tile_n=64 turns consumers=3 stages=2");
  c.b_transposed = true;
  expect_product(c, "tile_m=128 tile_n=32 turns stages=4");
}

// Threads tell of a stage two copies later; with as many stages as those and the lead nobody waits for ever.
TEST(Warpgroups, ThreadsCopyBesideALead) {
  MatmulCase c = any_size(2, 2);
  c.name = "lead";
  c.bindings = {{{"b", 1}, {"m", 200}, {"n", 130}, {"k", 702}}};
  expect_product(c, "tile_m=128 tile_n=64 feed_a=threads feed_b=threads stages=5 lead=3");
  expect_product(c, "tile_m=128 tile_n=64 feed_a=threads feed_b=threads producers=2 stages=4 lead=2");
  EXPECT_EQ(verify(codegen::parse_schedule("contract loop=wgmma tile_m=128 tile_n=64 tile_k=64 feed_a=threads "
                                           "feed_b=threads stages=4 lead=3"),
                   matmul_kernel(c, hopper()), hopper()),
            "threads copy two stages ahead of those that one warpgroup is ahead by");
}

// With an odd number of stages a producer may take the phase of one that is still read for the one behind it.
TEST(Warpgroups, TakeTurnsBesideTwoProducersOfAsManyStagesEach) {
  MatmulCase c = any_size(8, 8);
  c.name = "even_stages";
  c.bindings = {{{"b", 2}, {"m", 328}, {"n", 264}, {"k", 64}}, {{"b", 2}, {"m", 328}, {"n", 264}, {"k", 200}}};
  for (std::uint64_t seed = 1; seed < 6; ++seed)
    expect_product(c, wgmma_kernel(c, "tile_m=64 tile_n=64 turns feed_a=threads producers=2 stages=6"), seed);
  EXPECT_EQ(verify(codegen::parse_schedule("contract loop=wgmma tile_m=64 tile_n=64 tile_k=64 turns feed_a=threads "
                                           "producers=2 stages=5"),
                   matmul_kernel(c, hopper()), hopper()),
            "two warpgroups bring operands into as many stages each where those that multiply take turns");
}

TEST(Warpgroups, ShareATileInThrees) {
  MatmulCase c = any_size(8, 8);
  c.name = "threes";
  c.bindings = {{{"b", 1}, {"m", 200}, {"n", 72}, {"k", 136}}};
  expect_product(c, "tile_m=192 tile_n=64 consumers=3 stages=2");
}

TEST(Warpgroups, ShareWhatIsReadInAClusterOfTwo) {
  for (const bool b_transposed : {false, true}) {
    MatmulCase c = any_size(8, 8);
    c.name = b_transposed ? "cluster_nt" : "cluster_nn", c.b_transposed = b_transposed;
    c.bindings = {{{"b", 1}, {"m", 264}, {"n", 136}, {"k", 200}}, {{"b", 3}, {"m", 64}, {"n", 264}, {"k", 72}}};
    expect_product(c, "tile_m=64 tile_n=128 consumers=1 stages=3 cluster=2");
    expect_product(c, "tile_m=64 tile_n=128 turns stages=3 cluster=2");
  }
}

TEST(Warpgroups, DivideATilesDepthInAClusterOfUpToEight) {
  MatmulCase c = any_size(8, 8);
  c.name = "parts", c.epilogue = true;
  c.bindings = {{{"b", 1}, {"m", 104}, {"n", 72}, {"k", 712}}, {{"b", 2}, {"m", 64}, {"n", 64}, {"k", 64}}};
  expect_product(c, "tile_m=64 tile_n=64 consumers=1 stages=4 parts=2");
  expect_product(c, "tile_m=128 tile_n=64 stages=4 parts=3");
  expect_product(c, "tile_m=64 tile_n=64 consumers=1 stages=4 parts=8");
}

// Each warp adds up some of the parts: more blocks than it has, and depths that leave some without a step.
TEST(Warpgroups, SplitATilesDepthAmongBlocksThatMeetInMemory) {
  MatmulCase c = any_size(8, 8);
  c.name = "split_k", c.epilogue = true;
  c.bindings = {{{"b", 1}, {"m", 104}, {"n", 72}, {"k", 712}},
                {{"b", 2}, {"m", 136}, {"n", 200}, {"k", 64}},
                {{"b", 1}, {"m", 8}, {"n", 8}, {"k", 0}}};
  expect_product(c, "tile_m=64 tile_n=64 consumers=1 stages=4 split_k=2");
  c.b_transposed = true;
  expect_product(c, "tile_m=128 tile_n=96 stages=4 split_k=5 block_steps=1");
  expect_product(c, "tile_m=64 tile_n=32 consumers=1 stages=4 split_k=11");
  expect_product(c, "tile_m=192 tile_n=64 consumers=3 stages=4 split_k=12");
  expect_product(c, "tile_m=128 tile_n=64 stages=4 feed_a=threads split_k=3");
}

// Results of 16 bits that leave as boxes: edges in the middle of one, batches, and no depth.
TEST(Warpgroups, LetResultsLeaveAsBoxes) {
  MatmulCase c = any_size(8, 8);
  c.name = "box_results";
  c.bindings = {{{"b", 1}, {"m", 336}, {"n", 200}, {"k", 72}},
                {{"b", 2}, {"m", 104}, {"n", 72}, {"k", 328}},
                {{"b", 1}, {"m", 8}, {"n", 8}, {"k", 0}}};
  expect_product(c, "tile_m=64 tile_n=64 consumers=1 stages=3 box_results");
  expect_product(c, "tile_m=128 tile_n=128 stages=3 lead=1 box_results");
  expect_product(c, "tile_m=64 tile_n=128 turns stages=3 box_results");
  c.b_transposed = true;
  expect_product(c, "tile_m=128 tile_n=96 consumers=1 stages=3 box_results");
  expect_product(c, "tile_m=64 tile_n=96 turns stages=4 feed_a=threads box_results");
}

TEST(Warpgroups, AddBlocksOfTheDepthToTotals) {
  MatmulCase c = any_size(8, 8);
  c.name = "blocks", c.out = DType::f32;
  c.bindings = {{{"b", 1}, {"m", 136}, {"n", 72}, {"k", 520}}, {{"b", 1}, {"m", 64}, {"n", 64}, {"k", 256}}};
  expect_product(c, "tile_m=64 tile_n=64 consumers=1 stages=3 block_steps=2");
  expect_product(c, "tile_m=64 tile_n=64 turns stages=3 block_steps=3");
  expect_product(c, "tile_m=128 tile_n=64 stages=4 parts=2 block_steps=1");
}

// Odd rows are no boxes: threads bring them, one element at a time or by copies of four bytes and more.
TEST(Warpgroups, TakeWhatThreadsBring) {
  MatmulCase odd = any_size(1, 1);
  odd.name = "odd", odd.epilogue = true;
  odd.bindings = {{{"b", 2}, {"m", 77}, {"n", 65}, {"k", 201}}, {{"b", 1}, {"m", 130}, {"n", 7}, {"k", 3}}};
  expect_product(odd, "tile_m=64 tile_n=64 consumers=1 stages=4 feed_a=threads feed_b=threads");
  expect_product(odd, "tile_m=64 tile_n=64 turns stages=4 feed_a=threads feed_b=threads producers=2");
  odd.a_transposed = odd.b_transposed = true;
  expect_product(odd, "tile_m=128 tile_n=64 stages=4 feed_a=threads feed_b=threads producers=2");
  for (const std::int64_t divisor : {2, 8}) {  // asynchronous copies
    MatmulCase c = any_size(divisor, divisor);
    c.name = fmt::format("copies of {}", divisor), c.epilogue = true;
    c.bindings = {{{"b", 1}, {"m", 136}, {"n", 72}, {"k", 328}}, {{"b", 2}, {"m", 80}, {"n", 48}, {"k", 8}}};
    expect_product(c, "tile_m=64 tile_n=64 consumers=1 stages=4 feed_a=threads feed_b=threads");
    expect_product(c, "tile_m=128 tile_n=64 stages=5 feed_a=threads feed_b=threads producers=2");
  }
}

TEST(Warpgroups, TakeOneOperandInBoxesAndTheOtherFromThreads) {
  MatmulCase c = any_size(8, 8);
  c.name = "prologue", c.prologue = true;
  c.bindings = {{{"b", 2}, {"m", 136}, {"n", 72}, {"k", 200}}};
  expect_product(c, "tile_m=64 tile_n=64 consumers=1 stages=4 feed_a=threads");
  expect_product(c, "tile_m=128 tile_n=64 stages=4 feed_a=threads producers=2 parts=2");
  c.prologue = false, c.a_flipped = true;
  expect_product(c, "tile_m=128 tile_n=64 stages=4 feed_a=threads");
  c.a_flipped = false, c.b_transposed = true;
  expect_product(c, "tile_m=64 tile_n=64 turns stages=4 feed_b=threads producers=2");
}

}  // namespace
}  // namespace tenon::test

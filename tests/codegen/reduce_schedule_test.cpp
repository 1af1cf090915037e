// The schedules that the heuristics choose for Reduce kernels, as measured on sm_90 (bench/results/reduce-log.md).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "codegen/emit/source.h"
#include "ir/fusion/plan.h"
#include "ir/text/text.h"
#include "tests/codegen/compile_everywhere.h"
#include "tests/codegen/text_checks.h"
#include "tests/harness/scheduled_kernel.h"

namespace tenon::codegen {
namespace {

// The schedule of the first kernel of "graph g(<text>", as the pipeline lowers it.
std::string chosen(const std::string& text, const std::string& arch = "sm_90a") {
  const Target target = test::cuda_target_for(arch);
  const ir::Plan plan = ir::make_plan(ir::parse("graph g(" + text + "\nreturn y }"), {});
  Kernel kernel = test::scheduled_kernel(plan, 0, unspecialized(plan), target);
  kernel.schedule = choose_schedule(kernel, target);
  test::expect_compiles_for(emit_cuda(kernel, target), {arch});
  return print(kernel.schedule);
}

TEST(ReduceSchedule, RowsThatRegistersHoldStayThere) {
  EXPECT_EQ(chosen("x: bf16[64, 6144]) { y = softmax(x)"),
            "reduce team=block threads=256 vector=8 keep=registers elements=24");
  EXPECT_EQ(chosen("x: bf16[64, 32768]) { y = softmax(x)", "sm_75"),
            "reduce team=block threads=512 vector=8 keep=registers elements=64 streaming");
}

// What a warp's registers cannot hold, a block's do.
TEST(ReduceSchedule, RowsOfSeveralOperandsAreHeldByBlocks) {
  EXPECT_EQ(chosen("x: f32[38912, 1024]) { y = layer_norm(x, axis=1)"),
            "reduce team=warp threads=128 vector=4 keep=registers elements=32 streaming keep_reads");
  EXPECT_EQ(chosen("x: f32[38912, 1024], z: f32[38912, 1024]) { y = layer_norm(add(x, z), axis=1)"),
            "reduce team=block threads=128 vector=4 keep=registers elements=8 streaming keep_reads");
  EXPECT_EQ(chosen("x: bf16[38912, 1024], z: bf16[38912, 1024], w: bf16[38912, 1024]) {\n"
                   "  y = softmax(add(x, add(z, w)))"),
            "reduce team=block threads=128 vector=8 keep=registers elements=8 streaming keep_reads");
}

// Few large rows are under way at once: 64 KB or so on a multiprocessor.
TEST(ReduceSchedule, LargeRowsInRegistersAreFew) {
  EXPECT_EQ(chosen("x: bf16[64, 8192]) { y = softmax(x)"),
            "reduce team=block threads=512 vector=8 keep=registers elements=16");
  EXPECT_EQ(chosen("x: bf16[64, 16384]) { y = softmax(x)"),
            "reduce team=block threads=512 vector=8 keep=registers elements=32");
  // Of many, that are narrow, a thread has much.
  EXPECT_EQ(chosen("x: bf16[4096, 12288]) { y = softmax(x)"),
            "reduce team=block threads=256 vector=8 keep=registers elements=48 streaming keep_reads");
  EXPECT_EQ(chosen("x: f32[1024, 8192]) { y = softmax(x)"),
            "reduce team=block threads=256 vector=4 keep=registers elements=32 streaming keep_reads most_blocks=2");
  EXPECT_EQ(chosen("x: f32[1024, 16384]) { y = softmax(x)"),
            "reduce team=block threads=512 vector=4 keep=registers elements=32 streaming keep_reads most_blocks=1");
  // Of so few rows no multiprocessor has many; kernels that ask for shared memory share no launch.
  EXPECT_EQ(chosen("x: f32[64, 16384]) { y = softmax(x)"),
            "reduce team=block threads=512 vector=4 keep=registers elements=32");
  // The L1 is for the weights.
  EXPECT_EQ(chosen("x: f32[64, 16384], w: f32[16384]) { y = layer_norm(x, w)"),
            "reduce team=block threads=1024 vector=4 keep=registers elements=16");
}

// A multiprocessor of an H100 has 228 KB of shared memory, of which each block takes 1 KB.
TEST(ReduceSchedule, BlocksAreHeldOffByTheSharedMemoryTheyAskFor) {
  const Target target = test::cuda_target_for("sm_90a");
  const ir::Plan plan = ir::make_plan(ir::parse("graph g(x: f32[64, 16384]) { y = softmax(x)\nreturn y }"), {});
  Kernel kernel = test::scheduled_kernel(plan, 0, unspecialized(plan), target);
  for (const int blocks : {1, 2, 3}) {
    std::get<ReduceSchedule>(kernel.schedule).occupancy.most = blocks;
    const int bytes = emit_cuda(kernel, target).launch.shared_bytes + 1024;
    EXPECT_LE(blocks * bytes, 228 * 1024);
    EXPECT_GT((blocks + 1) * bytes, 228 * 1024);
  }
}

// A block of 1024 threads, or two of 512, on a multiprocessor.
TEST(ReduceSchedule, LongRowsLieInSharedMemory) {
  // Whose exponentials are of all 24 bits.
  EXPECT_EQ(chosen("x: bf16[90, 16384]) { y = softmax(cast(x, dtype=f32))"),
            "reduce team=block threads=512 vector=8 keep=shared elements=32 shared=32 least_blocks=2");
  const std::string softmax = "x: bf16[90, 65536]) { y = softmax(x)";
  EXPECT_EQ(chosen(softmax),
            "reduce team=block threads=512 vector=8 keep=shared elements=128 shared=112 least_blocks=2");
  EXPECT_EQ(chosen(softmax, "sm_120"),
            "reduce team=block threads=1024 vector=8 keep=shared elements=64 shared=48 least_blocks=1");
  EXPECT_EQ(chosen(softmax, "sm_80"),
            "reduce team=block threads=1024 vector=8 keep=shared elements=64 shared=64 least_blocks=1");
  EXPECT_EQ(chosen(softmax, "sm_75"), "reduce team=block threads=1024 vector=8 online unroll=4 streaming");
  EXPECT_EQ(chosen("x: bf16[90, 131072]) { y = softmax(x)"),
            "reduce team=block threads=320 grid=4 vector=8 keep=shared elements=104 shared=104 least_blocks=3")
      << "beyond a block's shared memory by the grid";
  EXPECT_EQ(chosen("x: bf16[90, 131072]) { y = div(x, add(max(abs(x), axis=1, keepdims=true), 1.0))"),
            "reduce team=block threads=128 cluster=8 vector=8 keep=shared elements=128 shared=128 least_blocks=4")
      << "or by small blocks that meet once";
  EXPECT_EQ(chosen("x: f32[900, 22528], b: f32[22528]) { y = softmax(add(x, b))"),
            "reduce team=block threads=512 vector=4 online unroll=4")
      << "two blocks rather than one beside an operand that all rows share";
  EXPECT_EQ(
      chosen("x: bf16[64, 262144]) { y = softmax(x)"),
      "reduce team=block threads=320 grid=12 vector=8 keep=shared elements=72 shared=72 streaming least_blocks=3");
  EXPECT_EQ(
      chosen("x: f32[4096, 393216]) { y = softmax(x)"),
      "reduce team=block threads=320 grid=19 vector=4 keep=shared elements=68 shared=56 streaming least_blocks=3");
  EXPECT_EQ(chosen("x: f32[90, 32768], w: f32[32768]) { y = layer_norm(x, w)"),
            "reduce team=block threads=512 vector=4 keep=shared elements=64 shared=56 least_blocks=2");
  EXPECT_EQ(
      chosen("x: bf16[512, 2097152]) { y = softmax(x)"),
      "reduce team=block threads=320 grid=49 vector=8 keep=shared elements=136 shared=112 streaming least_blocks=3");
  EXPECT_EQ(chosen("x: bf16[512, 33554432]) { y = softmax(x)"),
            "reduce team=block threads=1024 vector=8 online unroll=4 streaming");
  EXPECT_EQ(chosen("x: bf16[16, 262144]) { y = softmax(x)"),
            "reduce team=block threads=256 cluster=8 vector=8 keep=shared elements=128 shared=104 least_blocks=4")
      << "few bytes";
  EXPECT_EQ(
      chosen("x: f64[64, 65536]) { y = softmax(x)"),
      "reduce team=block threads=256 grid=12 vector=2 keep=shared elements=22 shared=22 streaming least_blocks=3");
  EXPECT_EQ(chosen("x: f32[32, 28672]) { y = softmax(x)"),
            "reduce team=block threads=448 cluster=4 vector=4 keep=shared elements=16 shared=16 least_blocks=1")
      << "few rows: more blocks than one share each";
}

TEST(ReduceSchedule, FewLongRowsAreCutInPartsWhateverSharesTheirSweep) {
  EXPECT_EQ(chosen("x: f32[16, 4194304]) { y = logsumexp(x, axis=[1])"),
            "reduce team=block threads=512 vector=4 online unroll=4 cut=splits parts=16 finish=block streaming_loads");
  EXPECT_EQ(chosen("x: f32[16, 4194304]) { y = var(x, axis=[1])"),
            "reduce team=block threads=512 vector=4 unroll=8 moments cut=splits parts=16 finish=block streaming_loads");
  EXPECT_EQ(chosen("x: f32[64, 64, 262144]) { y = var(x, axis=[0, 2])"),
            "reduce team=block threads=512 vector=4 unroll=8 moments cut=splits parts=4 finish=warp");
  EXPECT_EQ(chosen("x: f32[896, 16777216]) { y = layer_norm(x)"),
            "reduce team=block threads=512 vector=4 unroll=8 moments streaming");
}

TEST(ReduceSchedule, AMeanAndSquaresDownColumnsTakeOneSweep) {
  EXPECT_EQ(chosen("x: bf16[524288, 48]) { y = var(x, axis=[0])"),
            "reduce team=column threads=128 columns=8 vector=8 unroll=8 moments cut=splits parts=528 finish=block "
            "streaming_loads")
      << "2-byte elements of one operand: eight rows under way";
  EXPECT_EQ(chosen("x: f16[712278, 91]) { y = var(x, axis=[0])"),
            "reduce team=column threads=256 vector=1 unroll=16 moments cut=splits parts=176 finish=warp least_blocks=4")
      << "117 us in peeled vectors, 75 in elements";
  EXPECT_EQ(chosen("x: bf16[317, 192, 1024]) { y = var(x, axis=[1])"),
            "reduce team=column threads=128 vector=8 unroll=8 moments streaming_loads");
  EXPECT_EQ(chosen("x: f32[131072, 128]) { y = var(x, axis=[0])"),
            "reduce team=column threads=128 vector=4 unroll=4 moments cut=splits parts=528 finish=warp streaming_loads "
            "least_blocks=6");
}

// Of narrow elements of which much is computed; the others have more under way in smaller blocks.
TEST(ReduceSchedule, WhatIsDearIsSummedByLargeBlocks) {
  const auto loss = [](const char* dtype, const char* element) {
    return chosen(fmt::format("x: {0}[33554432], z: {0}[33554432]) {{ y = mean({1}, axis=0)", dtype, element));
  };
  EXPECT_EQ(loss("bf16", "log(cosh(sub(x, z)))"),
            "reduce team=block threads=1024 vector=8 unroll=2 cut=splits parts=264 finish=block streaming_loads")
      << "58 us by 512, 52";
  EXPECT_EQ(loss("bf16", "abs(sub(x, z))"),
            "reduce team=block threads=512 vector=8 unroll=4 cut=splits parts=264 finish=block streaming_loads");
}

TEST(ReduceSchedule, BlocksHaveTheFewColumnsOfSeveralRows) {
  EXPECT_EQ(chosen("x: bf16[131072, 65, 16]) { y = mean(x, axis=1)"),
            "reduce team=column threads=256 vector=8 unroll=8")
      << "161 us on an H200 by a block for each two columns, 89 so";
  EXPECT_EQ(chosen("x: i16[960, 75, 5625]) { y = argmax(x, axis=1)"),
            "reduce team=column threads=256 columns=256 vector=1 unroll=8")
      << "single narrow columns lie side by side";
}

TEST(ReduceSchedule, LanesHaveWholeVectors) {
  EXPECT_EQ(chosen("x: bf16[135168, 320]) { y = softmax(x)"),
            "reduce team=warp threads=128 lanes=8 vector=8 keep=registers elements=40 streaming keep_reads");
  EXPECT_EQ(chosen("x: f16[135168, 1280]) { y = div(x, max(abs(x), axis=1, keepdims=true))"),
            "reduce team=warp threads=128 vector=8 keep=registers elements=40 streaming keep_reads");
  EXPECT_EQ(chosen("x: f64[131072, 62]) { y = softmax(x)"),
            "reduce team=warp threads=128 lanes=8 vector=2 keep=registers elements=8 streaming keep_reads")
      << "f64 takes two registers";
}

TEST(ReduceSchedule, AMaximumAndExponentialsDownColumnsTakeOneSweep) {
  EXPECT_EQ(chosen("x: f32[25024, 1024]) { y = logsumexp(x, axis=[0])"),
            "reduce team=column threads=256 vector=4 online unroll=8 cut=splits parts=66 finish=warp streaming_loads");
  EXPECT_EQ(chosen("x: bf16[16384, 16, 320]) { y = log_softmax(x, axis=0)"),
            "reduce team=column threads=512 columns=16 vector=4 online unroll=16 streaming");
  EXPECT_EQ(chosen("x: f32[64, 32, 4097, 13]) { y = log_softmax(x, axis=2)"),
            "reduce team=column threads=512 columns=16 vector=1 online unroll=16 streaming")
      << "739 us on an H100, 1316 in three sweeps";
}

TEST(ReduceSchedule, AMeanAndSquaresOfFewRowsAreCutInParts) {
  EXPECT_EQ(chosen("x: f16[1758102], w: f16[1758102], z: f16[1758102], b: bool[1758102]) {\n  v = mul(add(where(b, x, "
                   "0.0), w), z)\n  y = add(var(v), mean(v))"),
            "reduce team=block threads=512 vector=8 peeled unroll=2 moments cut=splits parts=214 finish=block "
            "least_blocks=1")
      << "378 us in one block on an H100, for 12 MB";
}

TEST(ReduceSchedule, LogSumExpReadsLongRowsOnce) {
  EXPECT_EQ(chosen("x: bf16[8192, 131072]) { y = logsumexp(x, axis=[1])"),
            "reduce team=block threads=512 vector=8 online unroll=4");
}

// A block is launched every 1.2 ns: it has some KB of rows where there are many of them, and a lane some elements.
TEST(ReduceSchedule, ManyShortRowsShareABlock) {
  const auto sum = [](std::int64_t rows, int columns) {
    return chosen(fmt::format("x: f32[{}, {}]) {{ y = sum(x, axis=1)", rows, columns));
  };
  EXPECT_EQ(chosen("x: i8[287280, 133]) { y = sum(x, axis=1, dtype=i64)"),
            "reduce team=thread threads=64 vector=1 staged")
      << "424 us by lanes, 114";
  EXPECT_EQ(chosen("x: bf16[844800, 150]) { y = argmax(x, axis=1)"),
            "reduce team=warp threads=64 lanes=2 vector=2 staged")
      << "104 us by lanes, 73";
  EXPECT_EQ(sum(10'000'000, 3), "reduce team=thread threads=512 vector=1 staged");
  EXPECT_EQ(sum(1'000'000, 10), "reduce team=warp threads=512 lanes=2 vector=2 unroll=2 streaming_loads");
  EXPECT_EQ(sum(1'000'000, 17), "reduce team=thread threads=128 vector=1 staged");
  EXPECT_EQ(sum(1'000'000, 64), "reduce team=warp threads=128 lanes=4 vector=4 unroll=4 streaming_loads");
  EXPECT_EQ(sum(1000, 64), "reduce team=warp threads=128 lanes=16 vector=4") << "or they were too few blocks";
  EXPECT_EQ(chosen("x: f32[1000000, 100]) { y = softmax(x)"),
            "reduce team=warp threads=128 lanes=8 vector=4 keep=registers elements=16 streaming keep_reads");
  // Two vectors have a lane each; a lane has three vectors of 41, where two of half as many would be nobody's.
  EXPECT_EQ(chosen("x: f32[1000000, 8]) { y = softmax(x)"),
            "reduce team=warp threads=256 lanes=2 vector=4 keep=registers elements=4 streaming keep_reads");
  EXPECT_EQ(chosen("x: bf16[100000, 328]) { y = softmax(x)"),
            "reduce team=warp threads=128 lanes=16 vector=8 keep=registers elements=24 streaming keep_reads");
}

// A thread reads and writes its row in shared memory; as few lanes share one as have room for it there, and in
// registers where it is read again.
TEST(ReduceSchedule, ShortRowsOfNarrowVectorsAreRunsOfABlock) {
  EXPECT_EQ(chosen("x: bf16[12060416, 13], w: bf16[13]) { y = layer_norm(x, w)"),
            "reduce team=thread threads=128 vector=1 staged keep=registers elements=13 keep_reads");
  EXPECT_EQ(
      chosen("x: bf16[1000000, 58], a: bf16[1000000, 58]) { y = sub(x, mul(exp(a), sum(x, axis=1, keepdims=true)))"),
      "reduce team=warp threads=64 lanes=2 vector=2 staged keep=registers elements=30 keep_reads");
  EXPECT_EQ(chosen("x: f32[1000000, 59]) { y = softmax(x)"),
            "reduce team=warp threads=64 lanes=2 vector=1 staged keep=registers elements=30 keep_reads");
  EXPECT_EQ(chosen("x: bf16[1000000, 99]) { y = sum(x, axis=1)"), "reduce team=thread threads=64 vector=1 staged");
  EXPECT_EQ(chosen("x: u8[6000000, 31]) { y = argmax(x, axis=1)"), "reduce team=thread threads=256 vector=1 staged");
  EXPECT_EQ(chosen("x: bf16[1000000, 100]) { y = softmax(x)"),
            "reduce team=thread threads=64 vector=4 staged keep_reads")
      << "2-byte elements, which nothing else is beside, are read from there again";
  EXPECT_EQ(chosen("x: f32[1000000, 20]) { y = softmax(x)"),
            "reduce team=thread threads=64 vector=4 staged keep=registers elements=20 keep_reads")
      << "five wide vectors";
  for (const char* other :
       {"x: f32[1000000, 14]) { y = logsumexp(x, axis=[1])", "x: bf16[1000000, 2]) { y = softmax(x)",
        "x: bf16[1000, 13]) { y = softmax(x)", "x: f32[1000000, 161]) { y = softmax(x)"})
    EXPECT_EQ(chosen(other).find("staged"), std::string::npos) << other;
  EXPECT_EQ(chosen("x: f32[1000000, 13]) { y = softmax(x)", "sm_75").find("staged"), std::string::npos)
      << "there are no asynchronous copies";
}

// Norms, whose weights take registers beside the row's, have fewer elements a thread; a warp has 32 at most.
TEST(ReduceSchedule, RowsOfSomeThousandsAreOfABlock) {
  const auto norm = [](int columns) {
    return chosen(fmt::format("x: bf16[64, {0}], w: bf16[{0}]) {{ y = rms_norm(x, w)", columns));
  };
  EXPECT_EQ(norm(768), "reduce team=warp threads=128 vector=8 keep=registers elements=24");
  EXPECT_EQ(norm(1024), "reduce team=block threads=128 vector=8 keep=registers elements=8");
  EXPECT_EQ(norm(4096), "reduce team=block threads=256 vector=8 keep=registers elements=16");
  EXPECT_EQ(chosen("x: bf16[8192, 1280], w: bf16[1280]) { y = rms_norm(x, w)"),
            "reduce team=warp threads=128 vector=8 keep=registers elements=40")
      << "of many rows";
  EXPECT_EQ(chosen("x: bf16[64, 1024]) { y = softmax(x)"),
            "reduce team=warp threads=128 vector=8 keep=registers elements=32");
  EXPECT_EQ(chosen("x: bf16[64, 3072]) { y = softmax(x)"),
            "reduce team=block threads=128 vector=8 keep=registers elements=24");
}

// Of odd rows the weights come in words that are shifted: the fewer threads, the fewer of them at a row's ends.
TEST(ReduceSchedule, ThreadsHoldMoreOfOddRows) {
  const auto norm = [](const char* dtype, int columns) {
    return chosen(fmt::format("x: {0}[64, {1}], w: {0}[{1}]) {{ y = rms_norm(x, w)", dtype, columns));
  };
  EXPECT_EQ(norm("bf16", 767),
            "reduce team=warp threads=128 vector=8 peeled keep=registers elements=24 least_blocks=10");
  EXPECT_EQ(norm("bf16", 2047),
            "reduce team=block threads=64 vector=8 peeled keep=registers elements=32 least_blocks=20");
  EXPECT_EQ(norm("bf16", 8191),
            "reduce team=block threads=256 vector=8 peeled keep=registers elements=32 least_blocks=5");
  EXPECT_EQ(norm("f32", 1023),
            "reduce team=block threads=96 vector=4 peeled keep=registers elements=12 least_blocks=1");
  EXPECT_EQ(norm("f32", 4095),
            "reduce team=block threads=256 vector=4 peeled keep=registers elements=16 least_blocks=1");
}

// Of many, a warp has what its lanes can hold, and meets nobody.
TEST(ReduceSchedule, WarpsHoldLongOddRows) {
  EXPECT_EQ(chosen("x: f16[32768, 1041], w: f16[1041]) { y = rms_norm(x, w)"),
            "reduce team=warp threads=64 vector=8 peeled keep=registers elements=40 streaming keep_reads "
            "least_blocks=10");
  EXPECT_EQ(chosen("x: f16[32768, 1041]) { y = softmax(x)"),
            "reduce team=warp threads=64 vector=8 peeled keep=registers elements=40 streaming keep_reads "
            "least_blocks=1");
  EXPECT_EQ(chosen("x: f16[32768, 1531]) { y = softmax(x)"),
            "reduce team=block threads=64 vector=8 peeled keep=registers elements=24 streaming keep_reads "
            "least_blocks=1");
}

// The blocks then read neighbouring rows; not with too few rows for eight loads of each thread.
TEST(ReduceSchedule, ColumnsOfOddRowsAreTakenInVectors) {
  EXPECT_EQ(
      chosen("x: bf16[16384, 4097]) { y = sum(x, axis=0)"),
      "reduce team=column threads=256 vector=8 peeled unroll=8 cut=splits parts=8 streaming_loads least_blocks=1");
  EXPECT_EQ(chosen("x: f32[16384, 4097]) { y = sum(x, axis=0)"),
            "reduce team=column threads=256 vector=4 peeled unroll=8 cut=splits parts=8 least_blocks=1");
  EXPECT_EQ(chosen("x: bf16[65536, 257]) { y = sum(x, axis=0)"),
            "reduce team=column threads=256 vector=8 peeled unroll=8 cut=splits parts=96 finish=warp streaming_loads "
            "least_blocks=1");
  EXPECT_EQ(chosen("x: bf16[2048, 1025]) { y = sum(x, axis=0)"),
            "reduce team=column threads=256 vector=1 unroll=16 cut=splits parts=8 finish=warp");
  EXPECT_EQ(chosen("x: f32[128, 4096, 1023]) { y = sum(x, axis=1)"),
            "reduce team=column threads=1024 vector=1 unroll=4")
      << "tall ones that fill the device, one by one";
}

// Their loads stay together where the compiler has registers enough, which it would not take by itself.
TEST(ReduceSchedule, SingleElementsAtPlacesThatTakeQuotientsHaveRegisters) {
  EXPECT_EQ(chosen("x: bf16[14802504, 9], w: bf16[9]) { y = sum(mul(x, w), axis=[0, 1])"),
            "reduce team=block threads=512 vector=1 unroll=16 cut=splits parts=264 finish=block least_blocks=2");
  EXPECT_EQ(
      chosen("x: f32[2048, 101, 19, 7]) { y = sum(gelu(x), axis=[0, 2])"),
      "reduce team=column threads=256 columns=8 vector=1 unroll=16 cut=splits parts=5 finish=warp least_blocks=4");
  EXPECT_EQ(chosen("x: f32[864, 32769]) { y = max(tanh(x), axis=0)"),
            "reduce team=column threads=256 vector=1 unroll=16")
      << "one axis";
}

// Of odd rows of 2-byte elements, long pieces: those of 16 columns are two sectors each.
TEST(ReduceSchedule, OddColumnsOfTwoBytesHaveLongPieces) {
  EXPECT_EQ(chosen("x: bf16[257, 313225]) { y = div(x, sum(x, axis=0, keepdims=true))"),
            "reduce team=column threads=1024 columns=128 vector=1 keep=registers elements=33 streaming least_blocks=1");
  EXPECT_EQ(chosen("x: bf16[700, 57089]) { y = sub(x, mean(x, axis=0, keepdims=true))"),
            "reduce team=column threads=512 vector=1 keep=registers elements=44 streaming least_blocks=2");
  EXPECT_EQ(chosen("x: f16[760, 57089]) { y = softmax(x, axis=0)"),
            "reduce team=column threads=512 vector=1 keep=registers elements=48 streaming least_blocks=2");
  EXPECT_EQ(chosen("x: bf16[859, 57089]) { y = sub(x, mean(x, axis=0, keepdims=true))"),
            "reduce team=column threads=1024 vector=1 keep=registers elements=27 streaming least_blocks=1");
}

TEST(ReduceSchedule, ColumnsThatRegistersHoldAreReadOnce) {
  EXPECT_EQ(chosen("x: f32[256, 512, 256]) { y = softmax(x, axis=1)"),
            "reduce team=column threads=512 vector=1 keep=registers elements=32 streaming least_blocks=2");
  EXPECT_EQ(chosen("x: bf16[64, 1024, 1000]) { y = softmax(x, axis=1)"),
            "reduce team=column threads=512 columns=8 vector=2 keep=registers elements=32 streaming least_blocks=2");
  EXPECT_EQ(chosen("x: f32[64, 8, 4096]) { y = softmax(x, axis=1)"),
            "reduce team=column threads=256 columns=128 vector=1 keep=registers elements=4 least_blocks=4")
      << "in long pieces of rows";
  EXPECT_EQ(chosen("x: f32[65536, 24, 8]) { y = softmax(x, axis=1)"),
            "reduce team=column threads=128 vector=1 keep=registers elements=6 streaming least_blocks=8")
      << "those of several outer elements";
  EXPECT_EQ(chosen("x: f32[112, 64, 512, 512]) { y = rms_norm(x, axis=[1])"),
            "reduce team=column threads=256 columns=128 vector=1 keep=registers elements=32 streaming least_blocks=4");
  EXPECT_EQ(chosen("x: f32[512, 64, 4095]) { y = softmax(x, axis=1)"),
            "reduce team=column threads=512 columns=128 vector=1 keep=registers elements=16 streaming least_blocks=2")
      << "long pieces of rows that begin anywhere";
  EXPECT_EQ(chosen("x: f32[2048, 129, 75]) { y = softmax(x, axis=1)"),
            "reduce team=column threads=512 columns=128 vector=1 keep=registers elements=33 streaming least_blocks=2")
      << "by two blocks a multiprocessor";
  EXPECT_EQ(chosen("x: bf16[32768, 5, 256]) { y = softmax(x, axis=1)"),
            "reduce team=column threads=128 columns=128 vector=8 keep=registers elements=40 streaming least_blocks=5")
      << "a thread has a short one whole";
  EXPECT_EQ(chosen("x: bf16[8203, 999, 9]) { y = softmax(x, axis=1)"),
            "reduce team=column threads=512 columns=16 vector=1 keep=registers elements=32 streaming least_blocks=2")
      << "two blocks, of which each has rows of few neighbours";
  EXPECT_EQ(chosen("x: f32[32, 8192, 256]) { y = softmax(x, axis=1)"),
            "reduce team=column threads=512 columns=8 vector=4 online unroll=16 streaming")
      << "columns of a cache line, so that all processors have blocks";
}

// The threads of a block have whole columns, or share few rows of each.
TEST(ReduceSchedule, ShortColumnsHaveLongPiecesOfRows) {
  EXPECT_EQ(chosen("x: bf16[41, 64, 2, 7157]) { y = argmin(x, axis=2)"),
            "reduce team=column threads=256 columns=256 vector=1 unroll=2");
  EXPECT_EQ(chosen("x: bf16[2048, 40, 41, 64]) { y = argmax(x, axis=2)"),
            "reduce team=column threads=256 columns=64 vector=4 unroll=8");
  EXPECT_EQ(chosen("x: f32[64, 20, 4096]) { y = sum(x, axis=1)"),
            "reduce team=column threads=256 columns=128 vector=4 unroll=8");
}

// The second function that combines parts costs as much for two as for all multiprocessors.
TEST(ReduceSchedule, RowsThatAreCutAreCutForAllMultiprocessors) {
  EXPECT_EQ(chosen("x: bf16[1048576]) { y = var(x)"),
            "reduce team=block threads=512 vector=8 unroll=2 moments cut=splits parts=128 finish=block");
  EXPECT_EQ(chosen("x: bf16[65536]) { y = var(x)"), "reduce team=block threads=512 vector=8 unroll=8 moments");
}

// A product of one row with weights of 8 bits is a sum along each row of these.
TEST(ReduceSchedule, RowsOfBytesThatAreReadOnceHaveWarps) {
  EXPECT_EQ(chosen("x: bf16[1, 4096], w: i8[14336, 4096]) { y = linear(x, cast(w, dtype=bf16))"),
            "reduce team=warp threads=128 vector=8 unroll=16 streaming_loads");
  EXPECT_EQ(chosen("x: bf16[1, 4096], w: bf16[14336, 4096]) { y = linear(x, w)"),
            "reduce team=block threads=256 vector=8 unroll=2 streaming_loads");
}

// An index into one element is 0 whatever it is: nothing is left of the product.
TEST(ReduceSchedule, WhatIsReducedForNothingIsNoRow) {
  EXPECT_EQ(chosen("x: i32[5, 8], z: f32[1]) { y = take(z, prod(x, axis=-1), axis=0)"),
            "reduce team=thread threads=256 vector=1 unroll=8");
  EXPECT_EQ(chosen("x: bf16[8000, 5001], z: f32[1]) { y = take(z, argmax(x, axis=1), axis=0)"),
            "reduce team=block threads=128 vector=1 unroll=16");
}

// What is read once, more than the caches hold, passes them by, up to where slower loads cost more than that spares.
TEST(ReduceSchedule, OneSweepOverMuchIsStreamed) {
  EXPECT_EQ(chosen("x: bf16[16384, 4095]) { y = sum(x, axis=1)"),
            "reduce team=block threads=256 vector=8 peeled unroll=2 streaming_loads least_blocks=1");
  EXPECT_EQ(chosen("x: f32[8192, 4095]) { y = sum(x, axis=1)"),
            "reduce team=block threads=512 vector=4 peeled unroll=2 streaming_loads least_blocks=1");
  EXPECT_EQ(chosen("x: f32[8192, 4095]) { y = argmax(x, axis=1)"),
            "reduce team=block threads=256 vector=4 peeled unroll=4 streaming_loads least_blocks=1");
  EXPECT_EQ(chosen("x: bf16[16384, 4096]) { y = logsumexp(x, axis=[1])"),
            "reduce team=block threads=64 vector=8 keep=registers elements=64 streaming_loads");
  EXPECT_EQ(chosen("x: bf16[1024, 4095]) { y = sum(x, axis=1)"),
            "reduce team=block threads=128 vector=8 peeled unroll=4 least_blocks=1");
  EXPECT_EQ(chosen("x: bf16[65536, 4095]) { y = sum(x, axis=1)"),
            "reduce team=block threads=128 vector=8 peeled unroll=4 least_blocks=1");
  const auto text_of = [](const std::string& graph) {
    const Target target = test::cuda_target_for("sm_90a");
    const ir::Plan plan = ir::make_plan(ir::parse(graph), {});
    const Source source = emit_cuda(test::scheduled_kernel(plan, 0, unspecialized(plan), target), target);
    test::expect_compiles_everywhere(source);
    return source.text;
  };
  test::expect_lines(text_of("graph g(x: bf16[16384, 4096]) { y = sum(x, axis=1)\nreturn y }"),
                     {"= load_streaming<8, 8>(in0 + 4096 * i0 + r0);"});
  test::expect_lines(text_of("graph g(x: f32[16384, 4096], w: f32[4096]) { y = sum(mul(x, w), axis=1)\nreturn y }"),
                     {"= load_streaming<4, 4>(in0 + ", "= load<4, 4>(in1 + "});
  EXPECT_EQ(text_of("graph g(x: bf16[16384, 8192]) { y = softmax(x)\nreturn y }").find("load_streaming"),
            std::string::npos);
}

// Of two bytes a count of eight is stored: threads store 32 bytes side by side. Of many it makes no difference.
TEST(ReduceSchedule, ShortColumnsHaveVectorsOfTheirResults) {
  EXPECT_TRUE(chosen("x: u8[918, 2, 8192]) { y = sum(cast(equal(x, 3), dtype=i64), axis=1)").find(" vector=4 ") !=
              std::string::npos);
  EXPECT_TRUE(chosen("x: u8[64, 512, 8192]) { y = sum(cast(equal(x, 3), dtype=i64), axis=1)").find(" vector=16 ") !=
              std::string::npos);
}

TEST(ReduceSchedule, RowsAndColumnsWithoutElementsHaveOne) {
  const Target target = test::cuda_target_for("sm_90a");
  for (const char* text :
       {"x: f32[100, 1, 3, 8, 0], w: f32[0]) { return layer_norm(expm1(x), w) }",
        "x: f32[100, 24, 8], w: f32[0]) { return layer_norm(slice(x, axis=2, start=[0], stop=[0]), w) }",
        "x: f32[300, 0]) { return softmax(x) }", "x: f32[300, 0]) { return sum(x, axis=0) }",
        "x: f32[0, 300]) { return sum(x, axis=0) }"}) {
    const ir::Plan plan = ir::make_plan(ir::parse(std::string("graph g(") + text));
    for (int group = 0; group < static_cast<int>(plan.groups.size()); ++group) {
      const Kernel kernel = test::scheduled_kernel(plan, group, unspecialized(plan), target);
      EXPECT_TRUE(verify(kernel.schedule, kernel, target).empty()) << text;
    }
  }
}

TEST(ReduceSchedule, OneSweepOverLongRowsReadsThemAsTheyCome) {
  const auto loss = [](const std::string& columns) {
    return chosen("x: bf16[64, " + columns +
                  "], t: i64[64]) { y = cross_entropy(cast(x, dtype=f32), t, reduction=\"none\")");
  };
  EXPECT_EQ(loss("50304"), "reduce team=block threads=512 vector=8 online unroll=4");
  EXPECT_EQ(loss("50257"), "reduce team=block threads=256 vector=8 peeled online unroll=4 least_blocks=1");
}

}  // namespace
}  // namespace tenon::codegen

// Rows that generated CUDA reads once although several sweeps go over them, on the host: in clusters and grids of
// blocks, in runs and in shared memory.
#include <fmt/format.h>

#include "codegen/schedule/schedule.h"
#include "tests/codegen/cuda_numerics.h"

namespace tenon::codegen {
namespace {

TEST(CudaHeldRows, BlocksOfAClusterShareARow) {
  const auto of_two = [](Kernel& kernel) {
    ReduceSchedule& schedule = by_blocks(kernel);
    schedule.team.cluster = 2;
    schedule.keep = InRegisters{32};
  };
  for (const char* columns : {"1024", "1999"}) {
    const std::string shape = std::string("[3, ") + columns + "]";
    for (const char* dtype : {"f32", "bf16"}) {
      const CudaKernel run = expect_right(
          "graph g(x: " + std::string(dtype) + shape + ") { y = softmax(x); a = argmin(x, axis=1); return y, a }", {},
          of_two);
      EXPECT_EQ(run.source.launch.cluster, 2);
      test::expect_compiles_for(run.source, {"sm_90a", "sm_100a", "sm_120"});
    }
    expect_right("graph g(x: f16" + shape + ") { y = layer_norm(x); return y }", {}, of_two);
  }
}

// Here two teams walk over five rows, each as one block: that blocks meet is what a GPU shows (tests/gpu).
TEST(CudaHeldRows, BlocksOfAGridShareARow) {
  const auto of_blocks = [](bool moments) {
    return [moments](Kernel& kernel) {
      ReduceSchedule& schedule = by_blocks(kernel);
      schedule.team.grid = 3;
      schedule.occupancy.least = 1;
      schedule.keep = InShared{.elements = 24, .shared = 8, .moments = moments};
    };
  };
  const auto of_three = of_blocks(false);
  for (const char* columns : {"1024", "1999"})
    for (const char* dtype : {"f32", "bf16", "f64"}) {
      const std::string shape = fmt::format("{}[5, {}]", dtype, columns);
      const CudaKernel run = expect_right(
          "graph g(x: " + shape + ") { y = softmax(x); a = argmin(x, axis=1); return y, a }", {}, of_three);
      EXPECT_EQ(run.source.launch.together, 3);
      EXPECT_TRUE(run.source.launch.resident);
      test::expect_compiles_for(run.source, {"sm_80", "sm_90a", "sm_120"});
      expect_right("graph g(x: " + shape + ") { y = layer_norm(x); return y }", {}, of_three);
      if (dtype != std::string("f64"))
        expect_right("graph g(x: " + shape + ") { y = layer_norm(x); a = max(x, axis=1); return y, a }", {},
                     of_blocks(true));
    }
  expect_right(
      "graph g(x: f32[12, 5, 40], w: f32[5]) {\n"
      "  d = sub(x, mean(x, axis=[0, 2], keepdims=true))\n"
      "  y = mul(d, reshape(w, shape=[5, 1]))\n  return y\n}",
      {}, of_three);
}

// 3 * 32 threads, of which some have nothing of a row of 300.
TEST(CudaHeldRows, ThreadsOfAGridMayHaveNothingOfARow) {
  expect_right("graph g(x: f32[4, 300]) { y = layer_norm(add(x, 1000)); return y }", {}, [](Kernel& kernel) {
    ReduceSchedule& schedule = by_blocks(kernel);
    schedule.team.grid = 3;
    schedule.occupancy.least = 1;
    schedule.keep = InShared{.elements = 4, .shared = 4, .moments = true};
  });
}

// The rows of a block as one run, of `lanes` each, held or read again.
Adjust as_runs(int threads, int lanes, bool held) {
  return [=](Kernel& kernel) {
    ReduceSchedule& schedule = reduce_schedule(kernel);
    const std::int64_t length = kernel.axes.back().extent.constant();
    schedule.staged = true;
    schedule.peeled = false;
    schedule.team = {.mapping = lanes == 1 ? RowMapping::thread : RowMapping::warp, .threads = threads};
    if (lanes > 1) schedule.team.lanes = lanes;
    while (length % schedule.vector != 0) schedule.vector /= 2;
    schedule.keep = Reread{};
    const auto elements = static_cast<int>((length / schedule.vector + lanes - 1) / lanes * schedule.vector);
    if (held) schedule.keep = InRegisters{elements};
  };
}

TEST(CudaHeldRows, ShortRowsOfEveryLengthComeAsRuns) {
  for (int columns = 2; columns <= 40; columns += columns < 20 ? 1 : 3) {
    const std::string shape = "[37, " + std::to_string(columns) + "]";
    SCOPED_TRACE(shape);
    const bool odd = columns % 2 != 0;
    const CudaKernel run =
        expect_right(std::string("graph g(x: ") + (odd ? "bf16" : "f32") + shape + ") { y = softmax(x); return y }", {},
                     as_runs(32, odd ? 1 : 2, columns % 3 == 0));
    EXPECT_GT(run.source.launch.shared_bytes, 0);
    test::expect_compiles_for(run.source, {"sm_80", "sm_90a", "sm_120"});
  }
}

TEST(CudaHeldRows, RunsOfEveryDType) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::u8, DType::f64, DType::i64})
    for (const char* columns : {"7", "18"}) {
      const std::string shape = std::string("[75, ") + columns + "]";
      SCOPED_TRACE(std::string(name_of(dtype)) + shape);
      expect_right(all_reductions(dtype, shape, ", axis=1"), {}, as_runs(64, 2, false));
      const std::string text = "graph g(x: " + std::string(name_of(dtype)) + shape +
                               ", b: " + std::string(name_of(dtype)) + "[" + columns +
                               "]) {\n  y = sub(mul(x, b), max(x, axis=1, keepdims=true))\n  return y\n}";
      expect_right(text, {}, as_runs(64, 1, true));
      expect_right(text, {}, as_runs(32, 2, false));
    }
}

// What is stored takes the place of what was loaded where no later sweep reads it, else one of its own.
TEST(CudaHeldRows, RunsOfSeveralStreamsAndStores) {
  const auto bytes = [](const std::string& text, int lanes, bool held, const Bindings& bindings = {}) {
    SCOPED_TRACE(text);
    const CudaKernel run = expect_right(text, bindings, as_runs(64, lanes, held));
    test::expect_compiles_for(run.source, {"sm_80", "sm_90a", "sm_120"});
    return run.source.launch.shared_bytes;
  };
  const std::string three =
      "graph g(a: bf16[5, 23, 58], b: bf16[5, 23, 58]) {\n"
      "  y = sub(b, mul(exp(a), sum(b, axis=2, keepdims=true)))\n  return y\n}";
  EXPECT_EQ(bytes(three, 2, true), 32 * 58 * 4);
  EXPECT_EQ(bytes(three, 1, false), 64 * 58 * 4);
  EXPECT_EQ(bytes("graph g(x: f32[rows, 13]) { y = cast(softmax(x), dtype=f16); a = argmax(x, axis=1); return y, a }",
                  1, false, {{"rows", 70}}),
            64 * 13 * 6);
  EXPECT_EQ(bytes("graph g(x: f32[rows, 13], r: f32[rows, 13], w: f32[13]) {\n"
                  "  s = add(x, r)\n  y = rms_norm(s, w)\n  return s, y\n}",
                  2, true, {{"rows", 33}}),
            32 * 13 * 12);
  EXPECT_EQ(bytes("graph g(x: f32[40, 3, 5], w: f32[3, 1]) {\n"
                  "  y = sub(mul(x, w), mean(x, axis=[1, 2], keepdims=true))\n  return y\n}",
                  1, false),
            64 * 15 * 4);
  EXPECT_EQ(bytes("graph g(x: u8[100, 9]) { y = max(x, axis=1); return y }", 1, false), 64 * 9);
}

// A tensor that rows share, and one that lies across, are read where they are.
TEST(CudaHeldRows, RunsBesideWhatLiesElsewhere) {
  expect_right(
      "graph g(x: f32[6, 11, 9], m: f32[11, 9], t: f32[9, 6, 11]) {\n"
      "  y = softmax(add(add(x, m), transpose(t, perm=[1, 2, 0])))\n  return y\n}",
      {}, as_runs(32, 1, true));
}

TEST(CudaHeldRows, RowsInSharedMemory) {
  const auto shared = [](int elements, int in_shared, int cluster) {
    return [=](Kernel& kernel) {
      ReduceSchedule& schedule = by_blocks(kernel);
      schedule.keep = InShared{elements, in_shared};
      schedule.team.cluster = cluster;
    };
  };
  for (const char* columns : {"760", "761"})  // of whole vectors, and peeled
    for (const char* dtype : {"f32", "bf16"}) {
      const std::string shape = std::string(dtype) + "[3, " + columns + "]";
      for (const int in_shared : {8, 24}) {
        const std::string softmax = "graph g(x: " + shape + ") { y = softmax(x); a = argmin(x, axis=1); return y, a }";
        const CudaKernel run = expect_right(softmax, {}, shared(24, in_shared, 1));
        EXPECT_GT(run.source.launch.shared_bytes, 0);
        test::expect_compiles_for(run.source, {"sm_80", "sm_90a", "sm_120"});
        expect_right("graph g(x: " + shape + ", w: bf16[" + columns + "]) { y = layer_norm(x, cast(w, dtype=" + dtype +
                         ")); return y }",
                     {}, shared(24, in_shared, 1));
      }
      expect_right("graph g(x: " + shape + ") { y = log_softmax(x); return y }", {}, shared(16, 8, 2));
    }
}

TEST(CudaHeldRows, LongRowsAsTheyAreScheduled) {
  const auto in_shared_memory = [](const std::string& text, const std::function<void(Kernel&)>& change = {}) {
    const CudaKernel run = expect_right(text, {}, change);
    EXPECT_GT(run.source.launch.shared_bytes, 0);
    return schedule_of(run);
  };
  const ReduceSchedule mixed =  // of many rows: a block has one
      in_shared_memory("graph g(x: bf16[2, 60001]) { y = softmax(x); return y }", [](Kernel& kernel) {
        ReduceSchedule& schedule = reduce_schedule(kernel);
        schedule.team.cluster = 1;
        schedule.team.threads = 512;
        schedule.keep = InShared{128, 112};
      });
  EXPECT_TRUE(mixed.peeled && shared_elements(mixed) < held_elements(mixed));
  EXPECT_EQ(in_shared_memory("graph g(x: f32[1, 65536]) { y = log_softmax(x); return y }").team.threads, 512);
  EXPECT_EQ(in_shared_memory("graph g(x: f32[1, 80004]) { y = log_softmax(x); return y }").team.cluster, 8);
  EXPECT_EQ(in_shared_memory("graph g(x: f32[1, 140004]) { y = softmax(x); return y }").team.cluster, 8);
  EXPECT_EQ(
      in_shared_memory("graph g(x: f32[3, 21000], w: f32[21000]) { y = layer_norm(x, w); return y }").team.cluster, 4);
}

}  // namespace
}  // namespace tenon::codegen

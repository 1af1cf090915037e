// Reduce kernels of generated CUDA on the host: every reduction, by every kind of team, and what is fused around it.
#include <fmt/format.h>

#include "codegen/schedule/schedule.h"
#include "ir/ops/op.h"
#include "tests/codegen/cuda_numerics.h"

namespace tenon::codegen {
namespace {

ReduceSchedule& reduce_schedule(Kernel& kernel) { return std::get<ReduceSchedule>(kernel.schedule); }
const ReduceSchedule& schedule_of(const CudaKernel& run) { return std::get<ReduceSchedule>(run.kernel.schedule); }

// A block of a warp for a row: the smallest that has the parts of larger ones.
ReduceSchedule& by_blocks(Kernel& kernel) {
  ReduceSchedule& schedule = reduce_schedule(kernel);
  schedule.team.mapping = RowMapping::block;
  schedule.team.threads = 32;
  return schedule;
}

std::string all_reductions(DType dtype, const std::string& shape, const std::string& axis) {
  std::string text = "graph g(x: " + std::string(name_of(dtype)) + shape + ") {\n";
  std::string results;
  for (const ir::OpInfo& op : ir::all_ops()) {
    if (op.kind != ir::Kind::reduce || !ir::accepts(op.accepts, dtype)) continue;
    const std::string name(op.name);
    text += "  r_" + name + " = " + name + "(x" + axis + ")\n";
    results += (results.empty() ? "r_" : ", r_") + name;
  }
  return text + "  return " + results + "\n}";
}

class CudaReduceOfDType : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(CudaNumerics, CudaReduceOfDType, testing::ValuesIn(kAllDTypes),
                         [](const auto& test) { return std::string(name_of(test.param)); });

TEST_P(CudaReduceOfDType, ReductionsByAWarp) {
  const CudaKernel run = expect_right(all_reductions(GetParam(), "[rows, 48]", ", axis=1"), {{"rows", 5}});
  EXPECT_EQ(schedule_of(run).team.mapping, RowMapping::warp);
  test::expect_compiles_everywhere(run.source);
}

TEST(CudaReduceNumerics, ReductionsByABlock) {
  for (const DType dtype : {DType::f32, DType::f64, DType::i64, DType::i8}) {
    const CudaKernel run = expect_right(all_reductions(dtype, "[rows, 5001]", ", axis=1"), {{"rows", 2}});
    EXPECT_EQ(schedule_of(run).team.mapping, RowMapping::block);
  }
}

TEST(CudaReduceNumerics, ReductionsByAThread) {
  const CudaKernel run = expect_right(all_reductions(DType::f32, "[rows, 2]", ", axis=1"), {{"rows", 150}});
  EXPECT_EQ(schedule_of(run).team.mapping, RowMapping::thread);
}

TEST(CudaReduceNumerics, ReductionsAlongColumns) {
  const CudaKernel run = expect_right(all_reductions(DType::f32, "[19, columns]", ", axis=0"), {{"columns", 45}});
  EXPECT_EQ(schedule_of(run).team.mapping, RowMapping::column);
  test::expect_compiles_everywhere(run.source);
}

// A product with a vector has axes b0, b1, ..: no value is called so.
TEST(CudaReduceNumerics, ColumnsOfAProductWithManyBatches) {
  expect_right(
      "graph g(x: f32[31, 17, 1, 2, 1, 1], w: f32[1, 17, 1]) {\n"
      "  y = matmul(transpose(x, perm=[4, 5, 2, 0, 3, 1]), w)\n  return y\n}");
}

TEST(CudaReduceNumerics, ColumnsThatAreReadAgainStayInRegisters) {
  const std::string norm =  // of two axes, with operands of columns, of rows and of elements behind an edge
      "graph g(x: bf16[20, 7, 66], r: bf16[19, 7, 66], w: bf16[66], v: bf16[7, 1]) {\n"
      "  y = add(mul(x, v), pad(r, low=[1, 0, 0], high=[0, 0, 0], value=0.5))\n"
      "  d = sub(y, mean(y, axis=[0, 1], keepdims=true))\n"
      "  s = rsqrt(add(mean(mul(d, d), axis=[0, 1], keepdims=true), 0.01))\n  z = mul(mul(d, s), w)\n  return z\n}";
  for (const std::string& text :
       {std::string("graph g(x: f32[2, 137, 50]) { y = softmax(x, axis=1); return y }"),
        std::string("graph g(x: bf16[2, 300, 34]) { y = softmax(x, axis=1); return y }"),
        std::string("graph g(x: f16[rows, 165, 36]) { y = softmax(x, axis=1); a = argmax(x, axis=1); return y, a }"),
        std::string("graph g(x: f64[2, 129, 5]) { y = logsumexp(x, axis=[1]); return y }"), norm}) {
    SCOPED_TRACE(text);
    const CudaKernel run =
        expect_right(text, text.find("rows") == std::string::npos ? Bindings{} : Bindings{{"rows", 2}});
    EXPECT_EQ(schedule_of(run).team.mapping, RowMapping::column);
    EXPECT_TRUE(holds_rows(schedule_of(run)));
    test::expect_compiles_everywhere(run.source);
  }
}

// Ones and zeros, so that the first is often among the elements in front of the vectors.
TEST(CudaReduceNumerics, TheFirstOfEqualElementsWinsWhereverItStands) {
  const CudaKernel run = expect_right(
      "graph g(x: f32[5, 1001]) {\n  one = cast(greater(x, 0), dtype=f32)\n  a = argmax(one, axis=1)\n"
      "  b = argmin(one, axis=1)\n  return a, b\n}");
  EXPECT_TRUE(schedule_of(run).peeled);
}

// The teams that a tuner tries for short rows, and for columns that registers hold.
TEST(CudaReduceNumerics, EveryTeamOfShortRowsAndOfColumnsIsRight) {
  for (const char* text : {"graph g(x: bf16[37, 20]) { y = softmax(x, axis=0); return y }",
                           "graph g(x: f32[70, 17]) { s = sum(x, axis=1); a = argmax(x, axis=1); return s, a }",
                           "graph g(x: f32[70, 12], w: f32[12]) { y = rms_norm(x, w); return y }"}) {
    const CudaKernel lowered = one_cuda_kernel(text);
    int teams = 0;
    for (const Schedule& candidate : candidate_schedules(lowered.kernel, test::cuda_target_for("sm_90a"))) {
      const auto& reduce = std::get<ReduceSchedule>(candidate);
      if (reduce.team.mapping == RowMapping::column ? !holds_rows(reduce) : reduce.team.threads > 128) continue;
      SCOPED_TRACE(print(candidate));
      expect_right(text, {}, [&](Kernel& kernel) { kernel.schedule = candidate; });
      ++teams;
    }
    EXPECT_GE(teams, 3) << text;
  }
}

TEST(CudaReduceNumerics, ReductionsOverSeveralAxes) {
  expect_right(all_reductions(DType::f32, "[3, rows, 5, 8]", ", axis=[0, 2]"), {{"rows", 7}});
  expect_right(all_reductions(DType::bf16, "[3, rows, 5, 8]", ", axis=[1, 3]"), {{"rows", 7}});
  expect_right(all_reductions(DType::i32, "[rows, 5]", ""), {{"rows", 70}});
}

TEST(CudaReduceNumerics, NothingReducedGivesTheIdentity) {
  expect_right("graph g(x: f32[4, rows]) { s = sum(x, axis=1); m = max(x, axis=1); return s, m }", {{"rows", 0}});
}

TEST(CudaReduceNumerics, AReductionOfOneElementIsTheElement) {
  expect_right(all_reductions(DType::f16, "[rows, 1]", ", axis=1"), {{"rows", 9}});
}

TEST(CudaReduceNumerics, Softmax) {
  for (const char* columns : {"1", "5", "8", "100", "1000", "rows"})
    expect_right(std::string("graph g(x: f32[rows, ") + columns + "]) { y = softmax(x); return y }", {{"rows", 77}});
}

TEST(CudaReduceNumerics, RowsInRegistersOrReadAgain) {
  const std::string text =
      "graph g(x: bf16[rows, 512], w: bf16[512], b: bf16[512]) { y = layer_norm(x, w, b); return y }";
  const CudaKernel run = expect_right(text, {{"rows", 3}});
  EXPECT_TRUE(holds_rows(schedule_of(run)));
  expect_right(text, {{"rows", 3}}, [](Kernel& kernel) { reduce_schedule(kernel).keep = Reread{}; });
}

TEST(CudaReduceNumerics, NormsWithWhatSurroundsThem) {
  expect_right(
      "graph g(x: bf16[rows, 256], r: bf16[rows, 256], w: bf16[256]) {\n"
      "  s = add(x, r)\n  y = rms_norm(s, w)\n  return s, y\n}",
      {{"rows", 3}});
  expect_right("graph g(x: f32[rows, 50]) { y = log_softmax(x); return y }", {{"rows", 3}});
  expect_right("graph g(x: f32[rows, 50], t: i64[rows]) { y = cross_entropy(x, t); return y }", {{"rows", 3}});
  expect_right("graph g(x: f32[20, n]) { y = var(x, axis=0); z = sub(x, mean(x, axis=0)); return y, z }", {{"n", 40}});
}

TEST(CudaReduceNumerics, StatisticsStoredBesideTheRowsThatNeedThem) {
  expect_right(
      "graph g(x: bf16[rows, 257], dy: bf16[rows, 257]) {\n"
      "  real = cast(x, dtype=f32)\n  m = mean(real, axis=1, keepdims=true)\n  centred = sub(real, m)\n"
      "  rstd = rsqrt(add(mean(mul(centred, centred), axis=1, keepdims=true), 0.01))\n"
      "  normal = mul(centred, rstd)\n  g = cast(dy, dtype=f32)\n"
      "  dx = mul(rstd, sub(g, mul(normal, mean(mul(g, normal), axis=1, keepdims=true))))\n  return m, rstd, dx\n}",
      {{"rows", 33}});
}

TEST(CudaReduceNumerics, PartsOfRowsAreCombinedByASecondFunction) {
  const auto in_parts = [](Kernel& kernel) { by_blocks(kernel).cut = Splits{3}; };
  for (const DType dtype : {DType::f32, DType::i8}) {
    const CudaKernel run = expect_right(all_reductions(dtype, "[3, 1501]", ", axis=1"), {}, in_parts);
    EXPECT_FALSE(run.source.finish_entry.empty());
  }
  test::expect_compiles_everywhere(
      expect_right("graph g(x: f32[n]) { s = sum(x); a = argmin(x); return s, a }", {{"n", 2099}}, in_parts).source);
  expect_right("graph g(x: bf16[2048]) { y = exp(x); s = mean(y); return y, s }", {}, in_parts);
}

TEST(CudaReduceNumerics, ColumnsInVectorsAndParts) {
  const auto in_parts = [](Kernel& kernel) {
    EXPECT_EQ(reduce_schedule(kernel).team.mapping, RowMapping::column);
    reduce_schedule(kernel).team.threads = 64;
    reduce_schedule(kernel).cut = Splits{2};
  };
  for (const DType dtype : {DType::f64, DType::u8}) {
    const CudaKernel run = expect_right(all_reductions(dtype, "[37, 24]", ", axis=0"), {}, in_parts);
    EXPECT_GT(schedule_of(run).vector, 1);
  }
  expect_right("graph g(x: bf16[19, n], w: bf16[n]) { y = mul(sum(mul(x, w), axis=0), w); return y }", {{"n", 48}});
  expect_right("graph g(x: bf16[19, 48]) { y = softmax(x, axis=0); v = var(x, axis=0); return y, v }");
  test::expect_compiles_everywhere(
      expect_right("graph g(x: bf16[40, 24], s: bf16[40, 1]) { y = mul(x, s); c = sum(y, axis=0); return y, c }", {},
                   in_parts)
          .source);
}

TEST(CudaReduceNumerics, RowsThatVectorsDoNotDivideArePeeled) {
  const auto again = [](Kernel& kernel) {
    reduce_schedule(kernel).keep = Reread{.unroll = 2};
    reduce_schedule(kernel).team.threads = 64;
  };
  for (const char* columns : {"257", "1002"})
    for (const char* dtype : {"f32", "bf16"}) {
      const std::string type(dtype), shape = std::string("[3, ") + columns + "]";
      const std::string softmax =
          "graph g(x: " + type + shape + ") { y = softmax(x); a = argmax(x, axis=1); return y, a }";
      const std::string norm = "graph g(x: " + type + shape + ", r: " + type + shape + ", w: bf16[" + columns +
                               "]) {\n  s = add(x, r)\n  y = rms_norm(s, cast(w, dtype=" + type +
                               "))\n  return s, y\n}";
      for (const std::string& text : {softmax, norm}) {
        const CudaKernel run = expect_right(text);
        EXPECT_TRUE(schedule_of(run).peeled);
        test::expect_compiles_everywhere(run.source);
        expect_right(text, {}, again);
      }
    }
  expect_right("graph g(x: f16[rows, n]) { y = layer_norm(x); return y }", {{"rows", 3}, {"n", 777}});
}

TEST(CudaReduceNumerics, RowsOfAGatheredTable) {  // where a row begins is known only when the index was read
  const CudaKernel run = expect_right(
      "graph g(x: bool[n, n, n, n], i: i32[]) { y = all(take(x, i, axis=0), axis=-1, keepdims=true); return y }",
      {{"n", 3}});
  test::expect_compiles_everywhere(run.source);
}

TEST(CudaReduceNumerics, ColumnsThatVectorsDoNotDivideArePeeled) {
  const auto peeled = [](Kernel& kernel) {
    EXPECT_EQ(reduce_schedule(kernel).team.mapping, RowMapping::column);
    ReduceSchedule& schedule = reduce_schedule(kernel);
    schedule.peeled = true;
    schedule.team.threads = 32;
    schedule.team.columns = 4;
    schedule.vector = 8;
    schedule.keep = Reread{.unroll = 2};
    schedule.cut = Splits{16};
  };
  for (const char* shape : {"[61, 83]", "[5, 9]", "[200, 12]"})
    expect_right(all_reductions(DType::bf16, shape, ", axis=0"), {}, peeled);
  test::expect_compiles_everywhere(
      expect_right(
          "graph g(x: bf16[m, n], y: f16[m, n], s: f32[m, 1]) {\n"
          "  z = mul(mul(x, cast(y, dtype=bf16)), cast(s, dtype=bf16))\n  c = sum(z, axis=0)\n  a = max(z, axis=0)\n"
          "  return c, a\n}",
          {{"m", 77}, {"n", 45}}, peeled)
          .source);
}

TEST(CudaReduceNumerics, BlocksOfAClusterShareARow) {
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
TEST(CudaReduceNumerics, BlocksOfAGridShareARow) {
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
TEST(CudaReduceNumerics, ThreadsOfAGridMayHaveNothingOfARow) {
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

TEST(CudaReduceNumerics, ShortRowsOfEveryLengthComeAsRuns) {
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

TEST(CudaReduceNumerics, RunsOfEveryDType) {
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
TEST(CudaReduceNumerics, RunsOfSeveralStreamsAndStores) {
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
TEST(CudaReduceNumerics, RunsBesideWhatLiesElsewhere) {
  expect_right(
      "graph g(x: f32[6, 11, 9], m: f32[11, 9], t: f32[9, 6, 11]) {\n"
      "  y = softmax(add(add(x, m), transpose(t, perm=[1, 2, 0])))\n  return y\n}",
      {}, as_runs(32, 1, true));
}

TEST(CudaReduceNumerics, RowsInSharedMemory) {
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

TEST(CudaReduceNumerics, LongRowsAsTheyAreScheduled) {
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
  EXPECT_EQ(in_shared_memory("graph g(x: f32[1, 65536]) { y = log_softmax(x); return y }").team.threads, 1024);
  EXPECT_EQ(in_shared_memory("graph g(x: f32[1, 80004]) { y = log_softmax(x); return y }").team.cluster, 4);
  EXPECT_EQ(in_shared_memory("graph g(x: f32[1, 140004]) { y = softmax(x); return y }").team.cluster, 8);
  EXPECT_EQ(
      in_shared_memory("graph g(x: f32[3, 21000], w: f32[21000]) { y = layer_norm(x, w); return y }").team.cluster, 1);
}

TEST(CudaReduceNumerics, ExponentialsAreSummedBesideTheirMaximum) {
  const auto online = [](int unroll) {
    return [unroll](Kernel& kernel) {
      ReduceSchedule& schedule = reduce_schedule(kernel);
      schedule.keep = Reread{true, unroll};
    };
  };
  for (const auto& [columns, unroll] : {std::pair{"600", 1}, {"1003", 4}}) {
    const std::string shape = std::string("[3, ") + columns + "]";
    expect_right("graph g(x: f32" + shape + ") { y = softmax(x); return y }", {}, online(unroll));
    expect_right("graph g(x: f64" + shape + ") { y = logsumexp(x, axis=1); return y }", {}, online(unroll));
    const CudaKernel run = expect_right(
        "graph g(x: bf16" + shape + ", t: i64[3]) { y = cross_entropy(x, t); return y }", {}, online(unroll));
    const auto& body = run.kernel.body;  // the logit is gathered, not summed
    EXPECT_EQ(
        std::count_if(body.begin(), body.end(), [](const Instr& instr) { return instr.kind == InstrKind::reduce; }), 2);
    test::expect_compiles_everywhere(run.source);
    // Vectors that hold nothing but -inf come before and after others; a row is -inf throughout.
    expect_right("graph g(x: f32" + shape + ", n: i32[3, 1]) {\n  i = iota(shape=[3, " + columns +
                     "], axis=1, dtype=i32)\n  y = softmax(where(greater(mod(i, 400), mul(n, 10)), x, -inf))\n"
                     "  return y\n}",
                 {}, online(unroll));
    // Rows with -inf, with inf among them, and of nothing but -inf.
    expect_right("graph g(x: f32" + shape + ") {\n  i = iota(shape=[3, " + columns +
                     "], axis=1, dtype=i32)\n  row = iota(shape=[3, 1], axis=0, dtype=i32)\n"
                     "  z = where(greater(mod(i, 400), 90), x, -inf)\n"
                     "  w = where(logical_and(equal(row, 1), equal(i, 500)), inf, z)\n"
                     "  y = logsumexp(where(equal(row, 2), -inf, w), axis=1)\n  return y\n}",
                 {}, online(unroll));
  }
  // A row of equal elements has one exponential, and nothing to sum beside a maximum.
  expect_right("graph g(x: f64[8, 1], i: i64[rows]) { y = log_softmax(take(x, i, axis=1)); return y }", {{"rows", 64}});
}

// Parts of which one has nothing but -inf are combined with others.
TEST(CudaReduceNumerics, ExponentialsOfPartsAreBroughtToTheRowsMaximum) {
  for (const RowMapping finish : {RowMapping::thread, RowMapping::warp, RowMapping::block}) {
    const auto parts = [finish](Kernel& kernel) {
      ReduceSchedule& schedule = by_blocks(kernel);
      schedule.keep = Reread{.online = true, .unroll = 2};
      schedule.cut = in_parts(3, finish);
    };
    expect_right("graph g(x: f32[3, 1003]) { y = logsumexp(x, axis=1); return y }", {}, parts);
    expect_right("graph g(x: f64[2, 5, 203]) { y = logsumexp(x, axis=[1, 2]); return y }", {}, parts);
    const CudaKernel run = expect_right(
        "graph g(x: f32[3, 1000]) {\n  i = iota(shape=[3, 1000], axis=1, dtype=i32)\n"
        "  y = logsumexp(where(greater(i, 500), x, -inf), axis=1)\n  m = max(x, axis=1)\n  return y, m\n}",
        {}, parts);
    EXPECT_FALSE(run.source.finish_entry.empty());
    test::expect_compiles_everywhere(run.source);
  }
}

// Around a mean of nothing, of ten and of a thousand deviations; of rows in pieces, peeled ones, parts.
TEST(CudaReduceNumerics, SquaresAroundAMeanAreSummedInItsSweep) {
  const auto moments = [](int unroll, int parts, RowMapping mapping = RowMapping::block) {
    return [=](Kernel& kernel) {
      ReduceSchedule& schedule = by_blocks(kernel);
      schedule.team.mapping = mapping;
      schedule.keep = Reread{.unroll = unroll, .moments = true};
      schedule.cut = in_parts(parts, RowMapping::warp);
    };
  };
  for (const char* offset : {"0.0", "10.0", "1000.0"})
    for (const char* shape : {"[3, 600]", "[3, 1003]", "[2, 3, 260]", "[2, 7, 29]"})
      for (const auto& [unroll, parts] : {std::pair{2, 1}, {4, 1}, {4, 3}}) {
        const std::string axes = std::string(shape).size() > 9 ? "[1, 2]" : "1";
        const std::string x = std::string("graph g(x: f32") + shape + ") {\n  z = add(x, " + offset + ")\n";
        expect_right(x + "  v = var(z, axis=" + axes + ")\n  m = mean(z, axis=" + axes + ")\n  return v, m\n}", {},
                     moments(unroll, parts));
        if (parts > 1) continue;
        expect_right(x + "  y = layer_norm(z, axis=" + axes + ")\n  return y\n}", {}, moments(unroll, parts));
      }
  expect_right("graph g(x: f32[70, 100]) { y = layer_norm(x); return y }", {}, moments(2, 1, RowMapping::warp));
  expect_right("graph g(x: f32[70, 100]) { y = layer_norm(x); return y }", {}, moments(2, 1, RowMapping::thread));
  const CudaKernel run = expect_right(
      "graph g(x: bf16[3, 1000]) { v = var(x, axis=1); s = max(x, axis=1); l = sum(abs(x), axis=1); return v, s, l }",
      {}, moments(4, 3));
  EXPECT_FALSE(run.source.finish_entry.empty());
  test::expect_compiles_everywhere(run.source);
}

// The same down columns: whole and in parts, of rows that vectors divide and of others, with elements stored and with
// other reductions in the sweep.
TEST(CudaReduceNumerics, SquaresAroundAMeanAreSummedDownColumns) {
  const auto moments = [](int vector, int unroll, int parts, bool peeled = false) {
    return [=](Kernel& kernel) {
      ReduceSchedule& schedule = by_blocks(kernel);
      schedule.team = {.mapping = RowMapping::column, .threads = 64, .columns = 8};
      schedule.vector = vector;
      schedule.peeled = peeled;
      schedule.keep = Reread{.unroll = unroll, .moments = true};
      schedule.cut = in_parts(parts, RowMapping::warp);
    };
  };
  for (const char* offset : {"0.0", "10.0", "1000.0"})
    for (const char* shape : {"[600, 40]", "[3, 203, 36]", "[2, 13, 29, 20]"})
      for (const auto& [vector, unroll, parts] : {std::tuple{1, 2, 1}, {4, 4, 1}, {4, 2, 3}}) {
        const std::string axes = std::string(shape).size() > 12 ? "[1, 2]" : std::string(shape).size() > 9 ? "1" : "0";
        const std::string x = std::string("graph g(x: f32") + shape + ") {\n  z = add(x, " + offset + ")\n";
        expect_right(x + "  v = var(z, axis=" + axes + ")\n  m = mean(z, axis=" + axes + ")\n  return v, m\n}", {},
                     moments(vector, unroll, parts));
        if (parts > 1) continue;
        const std::string norm = "div(sub(z, mean(z, axis=" + axes + ", keepdims=true)), sqrt(add(var(z, axis=" + axes +
                                 ", keepdims=true), 0.01)))";
        expect_right(x + "  y = " + norm + "\n  return y\n}", {}, moments(vector, unroll, parts));
      }
  for (const char* shape : {"[600, 41]", "[1003, 4]"})
    expect_right(std::string("graph g(x: f32") + shape + ") { v = var(x, axis=0); m = mean(x, axis=0); return v, m }",
                 {}, moments(4, 2, 8, true));
  const CudaKernel run = expect_right(
      "graph g(x: bf16[1000, 24]) { v = var(x, axis=0); s = max(x, axis=0); l = sum(abs(x), axis=0); return v, s, l }",
      {}, moments(8, 4, 3));
  EXPECT_FALSE(run.source.finish_entry.empty());
  test::expect_compiles_everywhere(run.source);
}

// Exponentials are summed in the sweep of the maximum that shifts them, down columns: whole and in parts, in tiles that
// end behind the last row, with elements stored and with other reductions in the sweep.
TEST(CudaReduceNumerics, ExponentialsAreSummedDownColumns) {
  const auto online = [](int vector, int unroll, int parts) {
    return [=](Kernel& kernel) {
      ReduceSchedule& schedule = by_blocks(kernel);
      schedule.team = {.mapping = RowMapping::column, .threads = 64, .columns = 8};
      schedule.vector = vector;
      schedule.keep = Reread{.online = true, .unroll = unroll};
      schedule.cut = in_parts(parts, RowMapping::warp);
    };
  };
  for (const char* shape : {"[600, 40]", "[3, 203, 36]", "[2, 13, 29, 20]"})
    for (const auto& [vector, unroll, parts] : {std::tuple{1, 2, 1}, {4, 4, 1}, {4, 1, 2}, {2, 3, 3}}) {
      const std::string axes = std::string(shape).size() > 12 ? "[1, 2]" : std::string(shape).size() > 9 ? "1" : "0";
      const std::string x = std::string("graph g(x: f32") + shape + ") {\n  z = mul(x, 20.0)\n";
      expect_right(x + "  y = logsumexp(z, axis=" + axes + ")\n  m = min(x, axis=" + axes + ")\n  return y, m\n}", {},
                   online(vector, unroll, parts));
      if (parts > 1 || axes == "[1, 2]") continue;
      expect_right(x + "  y = log_softmax(z, axis=" + axes + ")\n  return y\n}", {}, online(vector, unroll, parts));
    }
  // Columns that begin with -inf, one of nothing else, and one with inf.
  for (const int parts : {1, 3})
    expect_right(
        "graph g(x: f32[300, 8]) {\n  row = iota(shape=[300, 1], axis=0, dtype=i32)\n"
        "  column = iota(shape=[1, 8], axis=1, dtype=i32)\n  z = where(greater(row, mul(column, 30)), x, -inf)\n"
        "  w = where(logical_and(equal(column, 1), equal(row, 250)), inf, z)\n"
        "  y = logsumexp(where(equal(column, 2), -inf, w), axis=0)\n  return y\n}",
        {}, online(2, 4, parts));
  expect_right("graph g(x: f64[300, 6]) { y = softmax(x, axis=0); return y }", {}, online(2, 2, 1));
  const CudaKernel run = expect_right(
      "graph g(x: bf16[1000, 24]) { y = logsumexp(cast(x, dtype=f32), axis=0); return y }", {}, online(8, 4, 3));
  EXPECT_FALSE(run.source.finish_entry.empty());
  test::expect_compiles_everywhere(run.source);
}

// By hand, where nothing guards the maximum: a row of nothing but -inf has no sum, and neither has one with inf. Parts
// and threads that meet only -inf leave those of others alone.
TEST(CudaReduceNumerics, ExponentialsAroundAnUnguardedMaximumAreSummedInItsSweep) {
  const std::string extremes =
      "graph g(x: f32[8, 300]) {\n  i = iota(shape=[1, 300], axis=1, dtype=i32)\n"
      "  row = iota(shape=[8, 1], axis=0, dtype=i32)\n  z = where(greater(i, mul(row, 30)), mul(x, 20.0), -inf)\n"
      "  w = where(logical_and(equal(row, 1), equal(i, 250)), inf, z)\n  r = where(equal(row, 2), -inf, w)\n";
  const std::string along_rows = "  e = exp(sub(r, max(r, axis=1, keepdims=true)))\n  y = sum(e, axis=1)\n";
  const std::string down_columns =
      "  c = transpose(r)\n  e = exp(sub(c, max(c, axis=0, keepdims=true)))\n  y = sum(e, axis=0)\n";
  for (const int parts : {1, 3}) {
    const auto rows = [parts](Kernel& kernel) {
      ReduceSchedule& schedule = by_blocks(kernel);
      schedule.keep = Reread{.online = true, .unroll = 2};
      schedule.cut = in_parts(parts, RowMapping::warp);
    };
    const auto columns = [parts](Kernel& kernel) {
      ReduceSchedule& schedule = by_blocks(kernel);
      schedule.team = {.mapping = RowMapping::column, .threads = 64, .columns = 8};
      schedule.keep = Reread{.online = true, .unroll = 4};
      schedule.cut = in_parts(parts, RowMapping::warp);
    };
    expect_right(extremes + along_rows + "  return y\n}", {}, rows);
    expect_right(extremes + down_columns + "  return y\n}", {}, columns);
    expect_right(
        "graph g(x: f32[300, 40]) {\n  z = mul(x, 20.0)\n  y = sum(exp(sub(z, max(z, axis=0, "
        "keepdims=true))), axis=0)\n  return y\n}",
        {}, columns);
    if (parts > 1) continue;
    expect_right(extremes + along_rows + "  s = div(e, expand_dims(y, axis=1))\n  return s\n}", {}, rows);
    expect_right(extremes + down_columns + "  s = div(e, expand_dims(y, axis=0))\n  return s\n}", {}, columns);
  }
}

// Where all squares cancel, nothing is below 0.
TEST(CudaReduceNumerics, TheVarianceOfEqualElementsIsNought) {
  const auto moments = [](Kernel& kernel) { by_blocks(kernel).keep = Reread{.unroll = 2, .moments = true}; };
  expect_right("graph g(x: f32[3, 1000]) { y = sqrt(var(add(mul(floor(x), 0.0), 7.0), axis=1)); return y }", {},
               moments);
}

TEST(CudaReduceNumerics, WideOffsetsGiveTheSame) {
  expect_right("graph g(x: f32[rows, 100]) { y = softmax(x); a = argmax(x, axis=1); return y, a }", {{"rows", 3}},
               [](Kernel& kernel) { kernel.wide_index = true; });
}

// Elements that are the same all along the inner of the two axes.
TEST(CudaReduceNumerics, AnOnlineSumOfElementsThatStandForWholeRows) {
  expect_right("graph g(x: f32[64, 1], i: i64[31]) { y = logsumexp(take(tanh(x), i, axis=1)); return y }");
}

}  // namespace
}  // namespace tenon::codegen

// Reduce kernels of generated CUDA on the host: every reduction, by every kind of team, and what is fused around it.
#include <fmt/format.h>

#include "codegen/schedule/schedule.h"
#include "ir/ops/op.h"
#include "tests/codegen/cuda_numerics.h"
#include "tests/codegen/text_checks.h"

namespace tenon::codegen {
namespace {

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

// Sums, greatest and least of bytes, as they are and as others, held and read again: four at a time.
TEST(CudaReduceNumerics, BytesAreReducedInWords) {
  for (const char* dtype : {"u8", "i8"})
    for (const char* shape : {"[5, 48]", "[3, 400]", "[2, 5001]", "[1, 20000]"}) {
      const CudaKernel run = expect_right(fmt::format(R"(graph g(x: {}{}) {{
        m = max(x, axis=1, keepdims=true)
        s = sum(cast(x, dtype=f32), axis=1)
        n = sum(cast(x, dtype=i64), axis=1)
        a = mean(cast(x, dtype=bf16), axis=1)
        d = sum(cast(sub(m, x), dtype=i32), axis=1)
        return m, min(x, axis=1), s, n, a, d
      }})",
                                                      dtype, shape));
      test::expect_lines(run.source.text, {"sum_of_bytes("});
      EXPECT_NE(run.source.text.find("greatest_byte("), std::string::npos) << run.source.text;
      EXPECT_NE(run.source.text.find("least_byte("), std::string::npos) << run.source.text;
      if (shape == std::string("[3, 400]")) test::expect_compiles_everywhere(run.source);
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

}  // namespace
}  // namespace tenon::codegen

// Reductions of generated CUDA that share a sweep, on the host: sums of exponentials beside their maximum, and squares
// around a mean beside it.
#include <fmt/format.h>

#include "codegen/schedule/schedule.h"
#include "tests/codegen/cuda_numerics.h"
#include "tests/codegen/text_checks.h"

namespace tenon::codegen {
namespace {

TEST(CudaSharedSweeps, ExponentialsAreSummedBesideTheirMaximum) {
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
TEST(CudaSharedSweeps, ExponentialsOfPartsAreBroughtToTheRowsMaximum) {
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
TEST(CudaSharedSweeps, SquaresAroundAMeanAreSummedInItsSweep) {
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
TEST(CudaSharedSweeps, SquaresAroundAMeanAreSummedDownColumns) {
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
TEST(CudaSharedSweeps, ExponentialsAreSummedDownColumns) {
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
TEST(CudaSharedSweeps, ExponentialsAroundAnUnguardedMaximumAreSummedInItsSweep) {
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

// What is dear stays in registers until its tile's mean or maximum is known: of rows in vectors and one by one, of
// peeled ones, in parts, drawn, stored again, and down columns.
TEST(CudaSharedSweeps, WhatIsDearIsComputedOnceForATile) {
  const auto times = [](const std::string& text, const std::string& what) {
    int count = 0;
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
    return count;
  };
  const auto kernel_text = [](const CudaKernel& run) { return test::kernel_part(run.source.text); };
  const auto rows = [](int vector, int parts, bool peeled = false) {
    return [=](Kernel& kernel) {
      ReduceSchedule& schedule = by_blocks(kernel);
      schedule.vector = vector;
      schedule.peeled = peeled;
      schedule.keep = Reread{.unroll = 4, .moments = true};
      schedule.cut = in_parts(parts, RowMapping::warp);
    };
  };
  const std::string dear = "z = mish(mish(x))\n  v = var(z, axis=1)\n  m = mean(z, axis=1)\n  return v, m\n}";
  for (const int vector : {1, 4})
    for (const int parts : {1, 3}) {
      const CudaKernel run = expect_right("graph g(x: f32[3, 600]) {\n  " + dear, {}, rows(vector, parts));
      EXPECT_EQ(times(kernel_text(run), "tanh_of_softplus_of_f32"), 2) << run.source.text;
      test::expect_compiles_everywhere(run.source);
    }
  expect_right("graph g(x: f32[3, 1003]) {\n  " + dear, {}, rows(4, 1, true));
  expect_right("graph g(x: bf16[3, 600]) {\n  " + dear, {}, rows(8, 1));
  expect_right("graph g(x: f32[3, 600]) { y = layer_norm(mish(mish(x))); return y }", {}, rows(4, 1));
  expect_right(
      "graph g(x: f32[3, 600]) {\n  z = mish(mish(x))\n  v = var(z, axis=1)\n  s = max(mish(x), axis=1)\n  return v, "
      "s\n}",
      {}, rows(4, 1));
  expect_right("graph g(x: f32[3, 600]) { v = var(dropout(x, 1234), axis=1); return v }", {}, rows(4, 3));

  const auto columns = [](int vector, int parts) {
    return [=](Kernel& kernel) {
      ReduceSchedule& schedule = by_blocks(kernel);
      schedule.team = {.mapping = RowMapping::column, .threads = 64, .columns = 8};
      schedule.vector = vector;
      schedule.keep = Reread{.online = true, .unroll = 4};
      schedule.cut = in_parts(parts, RowMapping::warp);
    };
  };
  for (const int vector : {1, 4})
    for (const int parts : {1, 3}) {
      const CudaKernel run = expect_right("graph g(x: f32[203, 40]) { y = logsumexp(mish(mish(x)), axis=0); return y }",
                                          {}, columns(vector, parts));
      EXPECT_EQ(times(kernel_text(run), "tanh_of_softplus_of_f32"), 2) << run.source.text;
      test::expect_compiles_everywhere(run.source);
    }
  expect_right("graph g(x: bf16[203, 40]) { y = softmax(mish(mish(x)), axis=0); return y }", {}, columns(8, 1));
}

// Where all squares cancel, nothing is below 0.
// Both go over a tile a second time; what is kept for one is not the other's.
TEST(CudaSharedSweeps, AnOnlineSumAndAVarianceShareASweep) {
  for (const int vector : {1, 4})
    for (const char* dtype : {"f32", "bf16"})
      expect_right(fmt::format("graph g(x: {}[3, 1016]) {{ z = mish(mish(x))\n  l = logsumexp(z, axis=1)\n"
                               "  v = var(z, axis=1)\n  return l, v }}",
                               dtype),
                   {}, [vector](Kernel& kernel) {
                     ReduceSchedule& schedule = by_blocks(kernel);
                     schedule.vector = vector;
                     schedule.keep = Reread{.online = true, .unroll = 4, .moments = true};
                   });
}

TEST(CudaSharedSweeps, TheVarianceOfEqualElementsIsNought) {
  const auto moments = [](Kernel& kernel) { by_blocks(kernel).keep = Reread{.unroll = 2, .moments = true}; };
  expect_right("graph g(x: f32[3, 1000]) { y = sqrt(var(add(mul(floor(x), 0.0), 7.0), axis=1)); return y }", {},
               moments);
}

TEST(CudaSharedSweeps, WideOffsetsGiveTheSame) {
  expect_right("graph g(x: f32[rows, 100]) { y = softmax(x); a = argmax(x, axis=1); return y, a }", {{"rows", 3}},
               [](Kernel& kernel) { kernel.wide_index = true; });
}

// Elements that are the same all along the inner of the two axes.
TEST(CudaSharedSweeps, AnOnlineSumOfElementsThatStandForWholeRows) {
  expect_right("graph g(x: f32[64, 1], i: i64[31]) { y = logsumexp(take(tanh(x), i, axis=1)); return y }");
}

}  // namespace
}  // namespace tenon::codegen

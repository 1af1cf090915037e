// Map kernels of generated CUDA on the host: every operator, cast and view, and the ways that elements are walked.
#include <fmt/format.h>

#include <sstream>

#include "codegen/schedule/schedule.h"
#include "ir/ops/op.h"
#include "tests/codegen/cuda_numerics.h"
#include "tests/codegen/text_checks.h"

namespace tenon::codegen {
namespace {

// The map ops that take `dtype`.
std::vector<const ir::OpInfo*> maps_of(DType dtype) {
  std::vector<const ir::OpInfo*> ops;
  for (const ir::OpInfo& op : ir::all_ops())
    if (op.kind == ir::Kind::map && ir::accepts(op.accepts, dtype) && op.attributes.empty()) ops.push_back(&op);
  return ops;
}

// Each of `ops` on a, b, c (and p where a condition is wanted), a result of its own.
std::string graph_of_maps(DType dtype, const std::vector<const ir::OpInfo*>& ops) {
  const std::string type(name_of(dtype));
  std::string text = "graph g(a: " + type + "[67], b: " + type + "[67], c: " + type + "[67], p: bool[67]) {\n";
  std::string results;
  for (const ir::OpInfo* op : ops) {
    const std::string name(op->name);
    const char* arguments[] = {"a", "a, b", "a, b, c"};
    text += "  r_" + name + " = " + name + "(" + (name == "where" ? "p, b, c" : arguments[op->operands - 1]) + ")\n";
    results += (results.empty() ? "r_" : ", r_") + name;
  }
  return text + "  return " + results + "\n}";
}

class CudaMapOfDType : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(CudaNumerics, CudaMapOfDType, testing::ValuesIn(kAllDTypes),
                         [](const auto& test) { return std::string(name_of(test.param)); });

TEST_P(CudaMapOfDType, MapsComputeWhatTheTableSays) { expect_right(graph_of_maps(GetParam(), maps_of(GetParam()))); }

TEST_P(CudaMapOfDType, MapsCompileEverywhere) {
  const std::vector<const ir::OpInfo*> ops = maps_of(GetParam());
  for (std::size_t first = 0; first < ops.size(); first += 16) {
    const auto begin = ops.begin() + static_cast<std::ptrdiff_t>(first);
    const auto end = ops.begin() + static_cast<std::ptrdiff_t>(std::min(first + 16, ops.size()));
    test::expect_compiles_everywhere(one_cuda_kernel(graph_of_maps(GetParam(), {begin, end})).source);
  }
}

TEST_P(CudaMapOfDType, CastsToEveryOther) {
  std::string text, results;
  for (const DType to : kAllDTypes) {
    const std::string name(name_of(to));
    text += "  c_" + name + " = cast(x, dtype=" + name + ")\n";
    results += (results.empty() ? "c_" : ", c_") + name;
  }
  const bool sixteen_bits = size_of(GetParam()) == 2;  // then x holds every pattern
  expect_right("graph g(x: " + std::string(name_of(GetParam())) + (sixteen_bits ? "[65536]" : "[1000]") + ") {\n" +
               text + "  return " + results + "\n}");
}

TEST(CudaMapNumerics, BitcastsKeepTheBits) {
  expect_right("graph g(x: i32[100]) { a = bitcast(x, dtype=f32); return a }");
  expect_right("graph g(y: i16[100]) { b = bitcast(neg(y), dtype=bf16); c = bitcast(b, dtype=i16); return b, c }");
  expect_right("graph g(z: u8[100]) { d = bitcast(z, dtype=f8e5m2); return d }");
}
TEST(CudaMapNumerics, Views) {
  expect_right("graph g(x: f32[rows, 12]) { y = add(transpose(x), 1.0); return y }", {{"rows", 8}});
  expect_right(
      "graph g(x: f32[6, 4]) { y = neg(reshape(x, shape=[3, 8])); z = neg(reshape(flip(x), shape=[4, 6])); return y }");
  expect_right("graph g(x: bf16[rows, 8], y: bf16[rows, 24]) { z = exp(concat(x, y, axis=1)); return z }",
               {{"rows", 9}});
  expect_right("graph g(x: f32[rows, 8]) { z = exp(pad(x, low=[1, 2], high=[0, 3], value=2)); return z }",
               {{"rows", 9}});
  expect_right(
      "graph g(x: f32[20, 9]) { z = exp(slice(x, axis=[0, 1], start=[1, 8], stop=[20, 0], step=[3, -2])); return z }");
  expect_right("graph g(t: f16[10, 8], i: i32[rows]) { z = exp(take(t, i)); return z }", {{"rows", 21}});
  expect_right("graph g(x: f32[rows, 6]) { s = sum(pad(x, low=[0, 1], high=[0, 1]), axis=1); return s }",
               {{"rows", 9}});
}

const MapSchedule& map_schedule(const CudaKernel& run) { return std::get<MapSchedule>(run.kernel.schedule); }

TEST_P(CudaMapOfDType, TransposesThroughSharedMemory) {
  const CudaKernel run =
      expect_right("graph g(x: " + std::string(name_of(GetParam())) + "[rows, columns]) { y = transpose(x); return y }",
                   {{"rows", 48}, {"columns", 80}});
  EXPECT_TRUE(map_schedule(run).tile);
  EXPECT_EQ(map_schedule(run).tile->vector, 16 / size_of(GetParam()));
  test::expect_compiles_everywhere(run.source);
}

TEST(CudaMapNumerics, TransposesOfAnyExtent) {
  for (const auto& [rows, columns] : {std::pair{1, 70}, {70, 1}, {33, 66}, {97, 20}, {130, 65}}) {
    const CudaKernel run =
        expect_right("graph g(x: bf16[m, n]) { y = add(transpose(x), 1.0); return y }", {{"m", rows}, {"n", columns}});
    EXPECT_EQ(map_schedule(run).tile.has_value(), rows > 1 && columns > 1);
  }
  const CudaKernel small = expect_right("graph g(x: f32[37, 41]) { y = neg(transpose(x)); return y }");
  EXPECT_EQ(print(small.kernel.schedule), "map threads=256 vector=1 tile axis=0 rows=32 columns=32");
}

TEST(CudaMapNumerics, TransposesWithBatchesBroadcastsAndOtherOperands) {
  const CudaKernel batched = expect_right(
      "graph g(x: f32[2, rows, 3, 40], z: f32[40], r: f32[2, 3, 40, rows]) {\n"
      "  t = transpose(x, perm=[0, 2, 3, 1])\n  y = add(mul(t, reshape(z, shape=[40, 1])), r)\n  return y\n}",
      {{"rows", 36}});
  EXPECT_TRUE(map_schedule(batched).tile);
  const CudaKernel two = expect_right(
      "graph g(x: f16[rows, 40], y: f64[rows, 40]) { z = add(cast(transpose(x), dtype=f64), transpose(y)); return z }",
      {{"rows", 50}});
  EXPECT_EQ(map_schedule(two).tile->vector, 8);
  test::expect_compiles_everywhere(two.source);
}

TEST(CudaMapNumerics, TransposesOfPaddedAndSlicedOperands) {
  expect_right("graph g(x: f32[rows, 40]) { y = exp(transpose(pad(x, low=[1, 2], high=[0, 3], value=2))); return y }",
               {{"rows", 41}});
  expect_right("graph g(x: f32[rows, 40], y: f32[rows, 24]) { z = transpose(concat(x, y, axis=1)); return z }",
               {{"rows", 41}});
  expect_right(
      "graph g(x: bf16[64, 80]) { y = transpose(slice(x, axis=[0, 1], start=[1, 8], stop=[64, 80])); return y }");
}

TEST(CudaMapNumerics, TransposedResultsLeaveThroughSharedMemory) {
  for (const char* dtype : {"bf16", "f32", "u8", "f64"}) {
    const std::string text = "graph g(x: " + std::string(dtype) + "[m, n], r: " + dtype +
                             "[m]) {\n  y = add(x, reshape(r, shape=[m, 1]))\n"
                             "  z = transpose(y)\n  return y, z\n}";
    const CudaKernel run = expect_right(text, {{"m", 48}, {"n", 80}});
    EXPECT_TRUE(map_schedule(run).tile);
    test::expect_lines(run.source.text, {".put(row, column, y", "__syncthreads();", "flush_tile<"});
    test::expect_compiles_everywhere(run.source);
    expect_right(text, {{"m", 33}, {"n", 70}});
  }
}

TEST(CudaMapNumerics, ShortAxesAreTransposedWithoutATile) {
  const CudaKernel run = expect_right("graph g(x: f32[rows, 3]) { y = transpose(x); return y }", {{"rows", 40}});
  EXPECT_FALSE(map_schedule(run).tile);
  const CudaKernel permuted = expect_right(
      "graph g(x: bf16[2, rows, 3, 16]) { y = neg(transpose(x, perm=[0, 2, 1, 3])); return y }", {{"rows", 40}});
  EXPECT_EQ(print(permuted.kernel.schedule), "map threads=256 vector=8");
}

TEST(CudaMapNumerics, OddRowsInVectors) {
  const std::string biased =
      "graph g(x: bf16[rows, 37], b: bf16[37], s: f32[rows, 1]) {\n"
      "  y = add(add(x, b), cast(s, dtype=bf16))\n  z = cast(y, dtype=f32)\n  return y, z\n}";
  const CudaKernel run = expect_right(biased, {{"rows", 75}});
  EXPECT_EQ(print(run.kernel.schedule), "map threads=256 vector=4 flat");
  expect_right(biased, {{"rows", 1}});
  expect_right(biased, {{"rows", 75}}, [](Kernel& kernel) { kernel.wide_index = true; });
  // rows shorter than a vector, of a known and an unknown extent
  expect_right("graph g(x: bf16[rows, 3], b: bf16[3]) { y = mul(x, b); return y }", {{"rows", 43}});
  expect_right("graph g(x: bf16[2, rows, n], b: bf16[n]) { y = mul(x, b); return y }", {{"rows", 43}, {"n", 3}});
  expect_right("graph g(x: f16[rows, 5, n], b: f16[5, 1]) { y = mul(x, b); return y }", {{"rows", 7}, {"n", 13}});
}

TEST(CudaMapNumerics, MisalignedSlicesInVectors) {
  const CudaKernel run = expect_right(
      "graph g(x: bf16[rows, 40]) { y = exp(slice(x, axis=[1], start=[1], stop=[40])); return y }", {{"rows", 21}});
  EXPECT_TRUE(map_schedule(run).flat);
  expect_right("graph g(x: f32[rows, 40]) { y = exp(slice(x, axis=[1], start=[0], stop=[40], step=[3])); return y }",
               {{"rows", 21}});
  expect_right("graph g(x: bf16[rows, 31], y: bf16[rows, 10]) { z = exp(concat(x, y, axis=1)); return z }",
               {{"rows", 21}});
}

TEST(CudaMapNumerics, PairsOfARotation) {
  const CudaKernel run = expect_right(
      "graph rotary(x: bf16[3, rows, 32], c: bf16[rows, 32], s: bf16[rows, 32]) {\n"
      "  p = reshape(x, shape=[3, rows, 16, 2])\n"
      "  even = slice(p, axis=[-1], start=[0], stop=[1])\n  odd = slice(p, axis=[-1], start=[1], stop=[2])\n"
      "  turned = reshape(concat(neg(odd), even, axis=-1), shape=[3, rows, 32])\n"
      "  y = add(mul(x, c), mul(turned, s))\n  return y\n}",
      {{"rows", 10}});
  EXPECT_EQ(print(run.kernel.schedule), "map threads=256 vector=8");
  test::expect_compiles_everywhere(run.source);
}

TEST(CudaMapNumerics, EveryCandidateOfAMapIsRight) {
  const Target target = test::cuda_target_for("sm_90a");
  for (const char* text : {"graph g(x: bf16[m, n]) { y = exp(transpose(x)); return y }",
                           "graph g(x: bf16[m, n], b: bf16[n]) { y = mul(x, b); return y }"}) {
    for (const auto& [rows, columns] : {std::pair{40, 72}, {41, 35}}) {
      const Bindings sizes = {{"m", rows}, {"n", columns}};
      const auto candidates = candidate_schedules(one_cuda_kernel(text, sizes).kernel, target);
      ASSERT_GE(candidates.size(), 5U);
      EXPECT_EQ(print(candidates[0]), print(one_cuda_kernel(text, sizes).kernel.schedule));
      for (const Schedule& schedule : candidates)
        expect_right(text, sizes, [&](Kernel& kernel) { kernel.schedule = schedule; });
    }
  }
}

// Vectors aligned in memory on both sides, of rows that begin at any element.
TEST(CudaMapNumerics, TransposesOfOddRowsShiftedOnTheWay) {
  const auto shifted = [](int vector, int rows, int columns, int threads) {
    return [=](Kernel& kernel) {
      kernel.schedule = MapSchedule{
          .threads = threads,
          .vector = vector,
          .tile = MapTile{
              .axis = static_cast<int>(kernel.axes.size()) - 2, .rows = rows, .columns = columns, .shift = true}};
    };
  };
  const std::string plus = "graph g(x: bf16[m, n], b: bf16[m]) { y = add(transpose(x), b); return y }";
  for (const auto& [rows, columns] : {std::pair{150, 143}, {64, 64}, {67, 9}, {3, 200}, {129, 130}})
    for (const int vector : {2, 8})
      test::expect_compiles_everywhere(
          expect_right(plus, {{"m", rows}, {"n", columns}}, shifted(vector, 64, 64, 256)).source);
  // as the heuristics have them
  test::expect_compiles_everywhere(expect_right(plus, {{"m", 301}, {"n", 203}}, shifted(8, 64, 128, 512)).source);
  test::expect_compiles_everywhere(
      expect_right("graph g(x: f32[201, 203]) { y = exp(transpose(x)); return y }", {}, shifted(4, 64, 64, 512))
          .source);
  // only loads, and only stores, begin at any element
  expect_right("graph g(x: bf16[144, 75]) { y = exp(transpose(x)); return y }", {}, shifted(8, 64, 64, 64));
  expect_right("graph g(x: bf16[75, 144]) { y = exp(transpose(x)); return y }", {}, shifted(8, 64, 64, 64));
  expect_right("graph g(x: bf16[2, 70, 75]) { y = exp(transpose(x, perm=[0, 2, 1])); return y }", {},
               shifted(8, 64, 64, 64));
  expect_right("graph g(x: f32[131, 77]) { y = exp(transpose(x)); return y }", {}, shifted(4, 32, 64, 32));
  expect_right("graph g(x: f64[131, 77]) { y = exp(transpose(x)); return y }", {}, shifted(2, 32, 32, 32));
  expect_right("graph g(x: u8[301, 97]) { y = add(transpose(x), 1); return y }", {}, shifted(16, 64, 128, 64));
  expect_right("graph g(x: bf16[m, n]) { y = exp(flip(transpose(x), axis=[1])); return y }", {{"m", 140}, {"n", 75}},
               shifted(8, 64, 64, 64));
  expect_right(plus, {{"m", 150}, {"n", 143}}, [&](Kernel& kernel) {
    shifted(8, 64, 64, 64)(kernel);
    kernel.wide_index = true;
  });
}

TEST(CudaMapNumerics, VectorsSpreadAlongTheOutermostAxis) {
  const auto spread = [](Kernel& kernel) {
    kernel.schedule = MapSchedule{.threads = 32, .vector = 8, .unroll = 2, .spread = true};
  };
  for (const char* text :
       {"graph g(x: bf16[4, 16, 32], b: bf16[16, 32]) { y = mul(x, b); z = exp(b); return y }",
        "graph g(i: i64[4, 16], t: f32[50, 32], b: f32[16, 32]) { y = add(take(t, i, axis=0), b); return y }"})
    test::expect_compiles_everywhere(expect_right(text, {}, spread).source);
  expect_right("graph g(x: bf16[4, 16, 32], b: bf16[16, 32]) { y = mul(x, b); return y }", {}, [&](Kernel& kernel) {
    spread(kernel);
    kernel.wide_index = true;
  });
}

TEST(CudaMapNumerics, RandomBitsAreTheInterpreters) {
  expect_right(
      "graph g(seed: i64) { a = random_uniform(seed, shape=[101]); b = random_uniform(seed, shape=[64], stream=3); "
      "return a }");
  expect_right("graph g(seed: i64, x: f32[rows, 8]) { y = dropout(x, seed, p=0.25); return y }", {{"rows", 10}});
  expect_right("graph g(seed: i64) { y = random_normal(seed, shape=[100]); return y }");
  // four words of a block at once, also across the ends of rows; and where a vector begins inside a block
  const std::string odd =
      "graph g(seed: i64, x: bf16[rows, 13], r: bf16[13]) {\n"
      "  y = add(dropout(x, seed, p=0.25), r)\n  return y\n}";
  test::expect_lines(expect_right(odd, {{"rows", 10}}).source.text, {"random_elements<8, u32>("});
  test::expect_lines(expect_right("graph g(seed: i64) { y = slice(random_uniform(seed, shape=[101]), axis=[0], "
                                  "start=[3], stop=[99]); return y }")
                         .source.text,
                     {"random_elements_from<4, u32>("});
}

// In few instructions for 16 bits, alone and where what is left of two is all that is seen.
TEST(CudaMapNumerics, ActivationsOfEveryNumber) {
  for (const std::string dtype : {"bf16", "f16"})
    for (const std::string call :
         {"sigmoid(x)", "silu(x)", "softplus(x)", "mish(x)", "gelu(x)", "gelu(x, approximate=\"tanh\")", "elu(x)",
          "sqrt(x)", "sub(gelu(x), gelu(z))", "sub(tanh(mish(x)), tanh(z))", "sub(silu(x), mul(z, sigmoid(x)))",
          "sub(elu(x), log1p(exp(z)))", "log(softplus(sub(x, z)))", "cast(gelu(cast(x, dtype=f32)), dtype=f8e4m3)"}) {
      const std::string type = dtype + "[65536]";
      expect_right("graph g(x: " + type + ", z: " + type + ") { y = " + call + "; return y }");
    }
}

// Along the tile's rows, which are the columns of what is stored: a block of words is computed once.
TEST(CudaMapNumerics, TransposedRandomBitsAreDrawnAlongTheirBlocks) {
  for (const char* shape : {"[96, 68]", "[3, 40, 64]", "[2, 33, 100]"})
    for (const char* dtype : {"f16", "f32"}) {
      const bool batched = std::string(shape).find(',') != std::string(shape).rfind(',');
      const auto run =
          expect_right(std::string("graph g(x: ") + dtype + shape +
                       ", s: i64) { y = transpose(dropout(x, s, p=0.25), perm=" + (batched ? "[0, 2, 1]" : "[1, 0]") +
                       "); return y }");
      test::expect_lines(run.source.text, {"const philox_keys keys", "return random_elements<4, u32>(keys"});
      test::expect_compiles_everywhere(run.source);
    }
  // no whole blocks lie along the rows
  const auto odd = expect_right("graph g(x: f16[70, 67], s: i64) { y = transpose(dropout(x, s)); return y }");
  EXPECT_EQ(odd.source.text.find("philox_keys keys"), std::string::npos);
}

TEST(CudaMapNumerics, WideOffsetsGiveTheSame) {
  const auto widen = [](Kernel& kernel) { kernel.wide_index = true; };
  expect_right("graph g(x: f32[rows, 41]) { y = add(transpose(x), 1.0); return y }", {{"rows", 38}}, widen);
  expect_right("graph g(x: f32[rows, 12]) { y = add(transpose(x), 1.0); return y }", {{"rows", 8}}, widen);
}

// Wherever both are wanted: of each point, of vectors, of what stands still along them, and of a row before and after
// its reduction, where one of the two is there already.
TEST(CudaMapNumerics, SineAndCosineOfOneValueAreOneCall) {
  for (const char* dtype : {"f32", "f64", "bf16"}) {
    const std::string type(dtype), call = type == "f64" ? "  sincos(v" : "  sincosf(v";
    const auto calls = [&](const CudaKernel& run) {
      int count = 0;
      for (std::size_t at = 0; (at = run.source.text.find(call, at)) != std::string::npos; ++at) ++count;
      return count;
    };
    EXPECT_EQ(calls(expect_right("graph g(x: " + type +
                                 "[64]) { y = sub(sin(x), cos(x)); z = cos(add(x, 1)); return y, z }")),
              1);
    // vectors, and what is left behind them
    EXPECT_EQ(calls(expect_right("graph g(x: " + type + "[13, 3]) { y = sub(cos(x), sin(x)); return y }")), 2);
    EXPECT_EQ(calls(expect_right("graph g(x: " + type + "[16, 1], t: " + type +
                                 "[16, 8]) { y = add(mul(sin(x), t), mul(cos(x), neg(t))); return y }")),
              1);
    EXPECT_GE(calls(expect_right(
                  "graph g(x: " + type +
                  "[5, 64]) { s = sin(x); y = add(mul(cos(x), sum(s, axis=1, keepdims=true)), s); return y }")),
              1);
  }
}

TEST(CudaMapNumerics, UnrolledAndRaggedMaps) {
  expect_right("graph g(x: bf16[n]) { y = mul(x, x); return y }", {{"n", 1003}},
               [](Kernel& kernel) { kernel.schedule = MapSchedule{.threads = 64, .vector = 8, .unroll = 2}; });
}

// A product with the reciprocal and what its remainder corrects, where the reciprocal is a normal number: -0,
// infinities and multiples of the divisor are exact, which a difference shows.
TEST(CudaMapNumerics, QuotientsByConstants) {
  for (const auto& [dtype, divisors] : {std::pair{"bf16", "255 -0.7 1e-40 inf"}, std::pair{"f16", "3 1e-30"},
                                        std::pair{"f32", "3 -1e-3 3e38 4"}, std::pair{"f64", "3 -0.7 8"}}) {
    std::string divisor;
    for (std::istringstream text(divisors); text >> divisor;) {
      const std::string type(dtype), extent = size_of(*parse_dtype(type)) == 2 ? "[65536]" : "[4096]";
      expect_right("graph g(x: " + type + extent + ") { y = div(x, " + divisor +
                   "); z = sub(y, 1); return y, z, reciprocal(y) }");
    }
  }
}

// Without the branch of a division: what is exact stays so (x / x, whose logarithm is 0), at both ends of the range
// too.
TEST(CudaMapNumerics, QuotientsOf16Bits) {
  for (const char* dtype : {"bf16", "f16"})
    for (const char* divisor : {"x", "mul(x, 3)", "flip(x)", "reciprocal(x)", "add(abs(flip(x)), 0.001)"})
      expect_right(
          fmt::format("graph g(x: {}[65536]) {{ y = div(x, {}); return y, log(y), sub(y, 1) }}", dtype, divisor));
}

// Along the tile's rows each of its elements is behind a guard of its own.
TEST(CudaMapNumerics, TransposedLoadsBehindGuardsOfSymbolicShapes) {
  expect_right(R"(graph g(x: f32[rows, rows, 1]) {
  flat = reshape(transpose(x, perm=[1, 0, 2]), shape=[rows*rows, 1])
  half = mul(flat, 0.5)
  return concat(half, half, axis=0)
})",
               {{"rows", 70}});
}

// One of two vectors of bytes that were loaded ahead, as their elements lie in memory.
TEST(CudaMapNumerics, UnrolledRollsOfBytes) {
  for (const char* dtype : {"u8", "i8"})
    test::expect_compiles_everywhere(
        expect_right(std::string("graph roll(x: ") + dtype +
                         "[4, 256]) { y = concat(slice(x, axis=0, start=[1], stop=[4]), "
                         "slice(x, axis=0, start=[0], stop=[1])); return y }",
                     {},
                     [](Kernel& kernel) { kernel.schedule = MapSchedule{.threads = 32, .vector = 16, .unroll = 2}; })
            .source);
}

// What outer axes decide is found for the first run of points of a vector and for the next, which may lie in the next
// batch; runs shorter than a vector are not (codegen/emit/cuda/run_values.h).
TEST(CudaMapNumerics, FlatVectorsFindTwoRunsOfWhatOuterAxesDecide) {
  const auto flat = [](Kernel& kernel) {
    MapSchedule schedule;
    schedule.threads = 32;
    schedule.vector = 8;
    schedule.flat = true;
    kernel.schedule = schedule;
  };
  const std::string channels =
      "m: f32[{0}, 1, 1], s: bf16[{0}, 1, 1], b: f32[9, 1, 1, 1]) {{\n"
      "  y = cast(add(mul(sub(cast(x, dtype=f32), m), exp(cast(s, dtype=f32))), b), dtype=bf16)\n  return y\n}}";
  const CudaKernel long_runs =
      expect_right("graph g(x: bf16[9, 5, 3, 7], " + fmt::format(fmt::runtime(channels), 5), {}, flat);
  test::expect_lines(long_runs.source.text, {"rest_i0 = 105 - (", "rest_i1 = 21 - (", "j >= rest_i1 ?"});
  EXPECT_EQ(test::kernel_part(long_runs.source.text).find("[j_i1]"), std::string::npos);
  const CudaKernel short_runs =
      expect_right("graph g(x: bf16[9, 5, 1, 7], " + fmt::format(fmt::runtime(channels), 5), {}, flat);
  EXPECT_EQ(short_runs.source.text.find("rest_i1"), std::string::npos);
  expect_right("graph g(x: bf16[9, 1, 3, 7], " + fmt::format(fmt::runtime(channels), 1), {}, flat);
}

}  // namespace
}  // namespace tenon::codegen

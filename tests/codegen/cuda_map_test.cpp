// The CUDA text of Map kernels.
#include <gtest/gtest.h>

#include <cmath>

#include "codegen/emit/source.h"
#include "ir/text/text.h"
#include "tests/codegen/compile_everywhere.h"
#include "tests/codegen/kernel_builder.h"
#include "tests/codegen/text_checks.h"
#include "tests/harness/scheduled_kernel.h"

namespace tenon::codegen {
namespace {

using ir::Op;
using test::KernelBuilder;

const Dim rows = Dim::symbol("rows");

Source emitted(Kernel& kernel, bool schedule = true) {
  const Target target = test::cuda_target_for("sm_90a");
  if (schedule) kernel.schedule = choose_schedule(kernel, target);
  const Source source = emit_cuda(kernel, target);
  test::expect_compiles_everywhere(source);
  return source;
}

// y = x * sigmoid(x) over `extent` elements.
Kernel silu(DType dtype, const Dim& extent, std::vector<std::string> dims = {}) {
  KernelBuilder b(ir::KernelClass::map, {{"i0", extent}});
  const int x = b.input(dtype, {extent});
  const int y = b.output(dtype, {extent});
  const InstrId value = b.load(x, Index::axis(0));
  const InstrId one = b.literal(1.0, dtype);
  const InstrId exp = b.map(Op::exp, {b.map(Op::neg, {value})});
  b.store(y, Index::axis(0), b.map(Op::div, {value, b.map(Op::add, {one, exp})}));
  b.kernel.dims = std::move(dims);
  for (const std::string& dim : b.kernel.dims) b.kernel.symbols[dim] = {1, 1 << 20, 1};
  return b.kernel;
}

TEST(CudaMap, ReadsAsIfWritten) {
  Kernel kernel = silu(DType::f32, 1 << 20);
  EXPECT_EQ(test::kernel_part(emitted(kernel).text),
            R"(extern "C" __global__ void __launch_bounds__(256) map(const float* in0, float* __restrict__ out0) {
  join_stream();
  const u32 point = (blockIdx.x * 256 + threadIdx.x) * 4;
  const int i0 = (int)point;
  const pack<float, 4> x0 = load<4, 4>(in0 + i0);
  pack<float, 4> y0;
  #pragma unroll
  for (int j = 0; j < 4; ++j) {
    const float v0 = x0[j];
    const float v2 = -v0;  // neg
    const float v3 = exp(v2);  // exp
    const float v4 = 1.0f + v3;  // add
    const float v5 = v0 / v4;  // div
    y0[j] = v5;
  }
  store<4, 4>(out0 + i0, y0);
}
)");
}

TEST(CudaMap, LaunchesOneThreadForEachVector) {
  Kernel kernel = silu(DType::bf16, rows * 64, {"rows"});
  const Source source = emitted(kernel);
  EXPECT_EQ(print(kernel.schedule), "map threads=256 vector=8");
  EXPECT_EQ(source.launch.grid_x.evaluate({{"rows", 1}}), 1);
  EXPECT_EQ(source.launch.grid_x.evaluate({{"rows", 32}}), 1);
  EXPECT_EQ(source.launch.grid_x.evaluate({{"rows", 33}}), 2);
  EXPECT_EQ(source.launch.grid_x.evaluate({{"rows", 0}}), 0);
  EXPECT_EQ(source.dims, (std::vector<std::string>{"rows"}));
  test::expect_lines(source.text, {"const int n0 = (int)dim0;", "if (point >= 64 * n0) return;",
                                   "const pack<bf16, 8> x0 = load<8, 8>(in0 + i0);", "bf16_to_f32(x0[j])",
                                   "y0[j] = f32_to_bf16(v5);", "store_whole<8, 8>(out0 + i0, y0);"});
  EXPECT_EQ(source.text.find("rows"), std::string::npos) << "a name from the graph";
}

TEST(CudaMap, AnOddExtentEndsElementByElement) {
  Kernel kernel = silu(DType::f16, rows, {"rows"});
  const Source source = emitted(kernel);
  test::expect_lines(
      source.text, {"if (point + 8 <= n0) {", "load<8, 8>(in0 + i0)", "} else {",
                    "for (u32 last = point; last < n0; ++last) {", "const int i0 = (int)last;", "f16_to_f32(in0[i0])"});
}

TEST(CudaMap, BroadcastOperandsAreReadOnce) {
  KernelBuilder b(ir::KernelClass::map, {{"i0", rows}, {"i1", 768}});
  const int x = b.input(DType::f32, {rows, 768}), bias = b.input(DType::f32, {768}),
            scale = b.input(DType::f32, {rows});
  const int y = b.output(DType::f32, {rows, 768});
  const Index at = Index::axis(0) * 768 + Index::axis(1);
  const InstrId product = b.map(Op::mul, {b.load(x, at), b.load(scale, Index::axis(0))});
  b.store(y, at, b.map(Op::add, {product, b.load(bias, Index::axis(1))}));
  b.kernel.dims = {"rows"};
  b.kernel.symbols["rows"] = {1, 1 << 20, 1};
  const Source source = emitted(b.kernel);
  test::expect_lines(source.text,
                     {"const int i1 = (int)(point % 768);", "const int i0 = (int)(point / 768);",
                      "const pack<float, 4> x0 = load<4, 4>(in0 + 768 * i0 + i1);", "const float v1 = in2[i0];",
                      "const pack<float, 4> x3 = load<4, 4>(in1 + i1);", "for (int j = 0; j < 4; ++j) {"});
}

TEST(CudaMap, ATransposeReadsATileAlongItsColumns) {
  KernelBuilder b(ir::KernelClass::map, {{"i0", 4096}, {"i1", 8192}});
  const int x = b.input(DType::bf16, {8192, 4096}), y = b.output(DType::bf16, {4096, 8192});
  const InstrId value = b.load(x, Index::axis(1) * 4096 + Index::axis(0));
  b.store(y, Index::axis(0) * 8192 + Index::axis(1), b.map(Op::neg, {value}));
  EXPECT_EQ(
      test::kernel_part(emitted(b.kernel).text),
      R"(extern "C" __global__ void __launch_bounds__(256) map(const bf16* __restrict__ in0, bf16* __restrict__ out0) {
  join_stream();
  __shared__ transpose_tile<bf16, 64, 64> t0;
  const int tile_i1 = (int)(blockIdx.x % 128);
  const int tile_i0 = (int)(blockIdx.x / 128);
  const int first_i0 = tile_i0 * 64, first_i1 = tile_i1 * 64;
  fill_tile<8, 256>(t0, 64, 64, [&](int row, int column) {
    const int i0 = first_i0 + row, i1 = first_i1 + column;
    return load_kept<8, 8>(in0 + i0 + 4096 * i1);
  });
  __syncthreads();
  #pragma unroll
  for (int slot = 0; slot < 512; slot += 256) {
    const int row = slot / 8 + (int)(threadIdx.x / 8);
    const int column = (int)(threadIdx.x % 8) * 8;
    const int i0 = first_i0 + row, i1 = first_i1 + column;
    const pack<bf16, 8> x0 = t0.get<8>(row, column);
    pack<bf16, 8> y0;
    #pragma unroll
    for (int j = 0; j < 8; ++j) {
      const float v0 = bf16_to_f32(x0[j]);
      const float v1 = -v0;  // neg
      y0[j] = f32_to_bf16(v1);
    }
    store_whole<8, 8>(out0 + 8192 * i0 + i1, y0);
  }
}
)");
}

// The positions once, and every gather before the first store.
TEST(CudaMap, GathersOfSpreadVectorsAreUnderWayTogether) {
  const Target target = test::cuda_target_for("sm_90a");
  const ir::Plan plan =
      ir::make_plan(ir::parse("graph g(i: i64[16, 4096], t: bf16[50257, 1024], p: bf16[4096, 1024]) {\n"
                              "  y = add(take(t, i, axis=0), p)\n  return y\n}"));
  const std::string text =
      test::kernel_part(emit_cuda(test::scheduled_kernel(plan, 0, unspecialized(plan), target), target).text);
  test::expect_lines(text, {"const pack<bf16, 8> shared", "= load_streaming<8, 8>(in2 + 1024 * i1 + i2);",
                            "for (int u = 0; u < 16; ++u) {", "[u] = load_here<8, 8>(in0 + i2 + 1024 * (int)v",
                            "[u] = shared", "for (int u = 0; u < 16; ++u) {", "store_streaming<8, 8>(out0 + "});
}

TEST(CudaMap, TilesBeyondTheEdgesAreCut) {
  const Dim columns = Dim::symbol("columns");
  KernelBuilder b(ir::KernelClass::map, {{"i0", columns}, {"i1", rows}});
  const int x = b.input(DType::f32, {rows, columns}), scale = b.input(DType::f32, {rows});
  const int y = b.output(DType::f32, {columns, rows});
  const InstrId value = b.load(x, Index::axis(1) * columns + Index::axis(0));
  b.store(y, Index::axis(0) * rows + Index::axis(1), b.map(Op::mul, {value, b.load(scale, Index::axis(1))}));
  b.kernel.dims = {"rows", "columns"};
  b.kernel.symbols["rows"] = {1, 1 << 15, 4};
  b.kernel.symbols["columns"] = {1, 1 << 15, 1};
  const Source source = emitted(b.kernel);
  EXPECT_EQ(print(b.kernel.schedule), "map threads=512 vector=4 tile axis=0 rows=64 columns=64");
  test::expect_lines(source.text,
                     {"fill_tile<1, 512>(t0, n1 - first_i0, n0 - first_i1, [&](int row, int column) {",
                      "const bool inside = i0 < n1 && i1 < n0;", "if (!inside) continue;", "load<4, 4>(in1 + i1)"});
  EXPECT_EQ(source.launch.grid_x.evaluate({{"rows", 65}, {"columns", 64}}), 2);
}

TEST(CudaMap, VectorsCrossTheEndsOfOddRows) {
  KernelBuilder b(ir::KernelClass::map, {{"i0", rows}, {"i1", 4097}});
  const int x = b.input(DType::bf16, {rows, 4097}), bias = b.input(DType::bf16, {4097});
  const int y = b.output(DType::bf16, {rows, 4097});
  const Index at = Index::axis(0) * 4097 + Index::axis(1);
  b.store(y, at, b.map(Op::add, {b.load(x, at), b.load(bias, Index::axis(1))}));
  b.kernel.dims = {"rows"};
  b.kernel.symbols["rows"] = {1, 1 << 15, 1};
  const Source source = emitted(b.kernel);
  EXPECT_EQ(print(b.kernel.schedule), "map threads=256 vector=8 flat");
  test::expect_lines(
      source.text, {"if (point + 8 <= 4097 * n0) {", "x0 = load<8, 8>(in0 + 4097 * i0 + i1);",
                    "const int past_i1 = (i1 + j) >= 4097;", "const int j_i1 = (i1 + j) - past_i1 * 4097;", "in1[j_i1]",
                    "store_whole<8, 8>(out0 + 4097 * i0 + i1, y0);", "in1[i1]"});
}

TEST(CudaMap, AMisalignedOperandDoesNotUndoTheOthers) {
  KernelBuilder b(ir::KernelClass::map, {{"i0", 1024}});
  const int x = b.input(DType::f32, {1026}), z = b.input(DType::f32, {1026}), y = b.output(DType::f32, {1024});
  const InstrId sum = b.map(Op::add, {b.load(x, Index::axis(0)), b.load(z, Index::axis(0) + Index(2))});
  b.store(y, Index::axis(0), b.map(Op::sub, {sum, b.load(x, Index(Dim(1023)) - Index::axis(0))}));
  const Source source = emitted(b.kernel);
  test::expect_lines(source.text, {"load<4, 4>(in0 + i0)", "load<4, 2>(in1 + i0 + 2)", "in0[-(i0 + j) + 1023]",
                                   "store<4, 4>(out0 + i0, y0)"});
}

TEST(CudaMap, GuardsAtMultiplesOfTheVectorKeepItWhole) {
  // concat of two halves of 32 along the inner axis
  KernelBuilder b(ir::KernelClass::map, {{"i0", 100}, {"i1", 64}});
  const int p = b.input(DType::f32, {100, 32}), q = b.input(DType::f32, {100, 32});
  const int y = b.output(DType::f32, {100, 64});
  const Index i = Index::axis(0), j = Index::axis(1);
  const Guard first{j, 32}, second{j - Index(32), 32};
  const InstrId left = b.load(p, i * 32 + j, {first});
  const InstrId right = b.load(q, i * 32 + j - Index(32), {second});
  b.store(y, i * 64 + j, b.map(Op::where, {b.inside({first}), left, right}));
  test::expect_lines(emitted(b.kernel).text,
                     {"x0 = i1 < 32 ? load<4, 4>(in0 + 32 * i0 + i1) : pack<float, 4>{};",
                      "x1 = i1 - 32 >= 0 ? load<4, 4>(in1 + 32 * i0 + i1 - 32) : pack<float, 4>{};",
                      "const bool v2 = (i1 + j) < 32;", "v2 ? v0 : v1"});
}

TEST(CudaMap, OddGuardsAreCheckedForEachElement) {
  // pad by one on both sides
  KernelBuilder b(ir::KernelClass::map, {{"i0", 64}});
  const int x = b.input(DType::bf16, {62}), y = b.output(DType::bf16, {64});
  const Guard guard{Index::axis(0) - Index(1), 62};
  const InstrId value = b.load(x, Index::axis(0) - Index(1), {guard});
  b.store(y, Index::axis(0), b.map(Op::where, {b.inside({guard}), value, b.literal(-HUGE_VAL, DType::bf16)}));
  test::expect_lines(
      emitted(b.kernel).text,
      {"(i0 + j) - 1 >= 0 && (i0 + j) - 1 < 62 ? bf16_to_f32(in0[(i0 + j) - 1]) : 0.0f", "v1 ? v0 : (-inf_f32())"});
}

TEST(CudaMap, GathersGoElementByElement) {
  KernelBuilder b(ir::KernelClass::map, {{"i0", rows}, {"i1", 64}});
  const int table = b.input(DType::f16, {1000, 64}), ids = b.input(DType::i64, {rows});
  const int y = b.output(DType::f16, {rows, 64});
  const InstrId id = b.load(ids, Index::axis(0));
  const InstrId value = b.load(table, Index::value(id, 1000) * 64 + Index::axis(1));
  b.store(y, Index::axis(0) * 64 + Index::axis(1), value);
  b.kernel.dims = {"rows"};
  b.kernel.symbols["rows"] = {1, 1 << 20, 1};
  test::expect_lines(emitted(b.kernel).text,
                     {"const i64 v0 = in1[i0];", "const pack<f16, 8> x1 = load<8, 8>(in0 + i1 + 64 * (int)v0);"});
}

TEST(CudaMap, WideOffsetsAreComputedIn64Bits) {
  Kernel kernel = silu(DType::f32, rows, {"rows"});
  kernel.symbols["rows"] = {};
  kernel.wide_index = true;
  test::expect_lines(emitted(kernel).text,
                     {"const i64 n0 = dim0;", "const u64 point = ((u64)blockIdx.x * 256 + threadIdx.x) * 4;",
                      "const i64 i0 = (i64)point;"});
}

TEST(CudaMap, LargeResultsBypassTheCaches) {
  Kernel kernel = silu(DType::f32, 1 << 26);
  test::expect_lines(emitted(kernel).text, {"store_streaming<4, 4>(out0 + i0, y0);"});
}

TEST(CudaMap, UnrollGivesAThreadSeveralVectors) {
  Kernel kernel = silu(DType::f32, 4000);
  kernel.schedule = MapSchedule{.threads = 128, .vector = 4, .unroll = 2};
  const Source source = emitted(kernel, false);
  test::expect_lines(
      source.text, {"pack<float, 4> x0[2];", "for (int u = 0; u < 2; ++u) {",
                    "const u32 point = ((blockIdx.x * 2 + u) * 128 + threadIdx.x) * 4;", "if (point + 4 > 4000) break;",
                    "x0[u] = load<4, 4>(in0 + i0);", "for (int u = 0; u < 2; ++u) {", "if (point >= 4000) break;",
                    "const float v0 = x0[u][j];", "store<4, 4>"});
  EXPECT_TRUE(source.launch.grid_x.is(4));
}

TEST(CudaMap, AScalarResultTakesOneThread) {
  KernelBuilder b(ir::KernelClass::map, {});
  const int x = b.input(DType::i64, {}), y = b.output(DType::bool_, {});
  b.store(y, Index(), b.map(Op::equal, {b.load(x, Index()), b.literal(std::int64_t{3}, DType::i64)}, DType::bool_));
  const Source source = emitted(b.kernel);
  test::expect_lines(source.text, {"const i64 v0 = in0[0];", "const bool v2 = v0 == 3ll;", "out0[0] = (u8)v2;"});
}

TEST(CudaMap, RandomElementsAreKeyedByTheirNumber) {
  KernelBuilder b(ir::KernelClass::map, {{"i0", 4096}});
  const int seed = b.input(DType::i64, {}), y = b.output(DType::i32, {4096});
  b.store(y, Index::axis(0), b.random(b.load(seed, Index()), Index::axis(0), 7, -1));
  test::expect_lines(emitted(b.kernel).text,
                     {"const i64 v0 = in0[0];", "const pack<int, 4> x1 = random_elements<4, u32>(v0, 7, i0);",
                      "const int v1 = x1[j];"});
}

}  // namespace
}  // namespace tenon::codegen

// Flat tiles of Map kernels (codegen/analysis/flat_tile.h): what generated CUDA computes with them, on the host, and
// which kernels get them.
#include "codegen/analysis/flat_tile.h"

#include <fmt/format.h>

#include "codegen/analysis/vectorize.h"
#include "codegen/schedule/schedule.h"
#include "tests/codegen/cuda_numerics.h"
#include "tests/codegen/text_checks.h"
#include "tests/harness/targets.h"

namespace tenon::codegen {
namespace {

// A flat tile of that many rows and columns, with vectors of points as wide as 16 bytes of results and the box allow.
Adjust flat(int rows, int columns, int threads = 64) {
  return [=](Kernel& kernel) {
    const std::vector<FlatLoad> loads = loads_across(kernel);
    ASSERT_FALSE(loads.empty()) << print(kernel);
    MapSchedule schedule{.threads = threads, .flat = true};
    schedule.tile = MapTile{.axis = loads[0].order[0], .rows = rows, .columns = columns};
    schedule.vector =
        flat_tile_vector(kernel, *schedule.tile, static_cast<int>(16 / element_bytes(kernel, kernel.stores[0].access)));
    kernel.schedule = schedule;
    EXPECT_EQ(verify(kernel.schedule, kernel, test::cuda_target_for("sm_90a")), "") << print(kernel);
  };
}

std::string transposed(const std::string& type, const std::string& perm, const std::string& op = "neg") {
  return fmt::format("graph g(x: {}) {{ y = {}(transpose(x, perm={})); return y }}", type, op, perm);
}

// Both runs wide and narrow, so that axes are whole, cut, and left out.
void expect_right_with_tiles(const std::string& text) {
  for (const auto& [rows, columns] : {std::pair{64, 48}, {6, 96}}) expect_right(text, {}, flat(rows, columns));
}

TEST(FlatTile, PairsAndTriplesStayTogether) {
  for (const char* dtype : {"u8", "bf16", "f32", "f64"})
    for (const int depth : {2, 3})
      expect_right_with_tiles(transposed(fmt::format("{}[24, 40, {}]", dtype, depth), "[1, 0, 2]",
                                         std::string(dtype) == "u8" ? "abs" : "neg"));
  expect_right_with_tiles(transposed("bf16[3, 17, 33, 2]", "[0, 2, 1, 3]", "exp"));
  expect_right_with_tiles(transposed("f32[7, 19, 5]", "[1, 0, 2]"));
}

TEST(FlatTile, FoursMoveAsPiecesToo) {
  expect_right_with_tiles(transposed("bf16[24, 40, 4]", "[1, 0, 2]"));
  expect_right_with_tiles(transposed("u8[24, 40, 8]", "[1, 0, 2]", "abs"));
}

TEST(FlatTile, ShortAxesOnEitherSideOrBoth) {
  for (const char* shape : {"[48, 32, 8]", "[8, 32, 48]", "[8, 96, 8]", "[7, 65, 9]", "[5, 6, 7]"})
    for (const char* dtype : {"u8", "bf16", "f32"})
      expect_right_with_tiles(transposed(dtype + std::string(shape), "[2, 1, 0]", dtype[0] == 'u' ? "abs" : "neg"));
}

TEST(FlatTile, AnyOrderOfManyAxes) {
  expect_right_with_tiles(transposed("bf16[4, 6, 16, 8]", "[3, 1, 2, 0]"));
  expect_right_with_tiles(transposed("f32[4, 6, 10, 12]", "[0, 3, 2, 1]"));
  expect_right_with_tiles(transposed("f16[3, 4, 5, 6, 7]", "[4, 2, 0, 1, 3]"));
  expect_right_with_tiles(transposed("u8[3, 8, 4, 2, 5, 4]", "[3, 5, 0, 4, 2, 1]", "abs"));
}

TEST(FlatTile, ShuffledPixels) {
  for (const int r : {2, 3, 4})
    for (const char* dtype : {"bf16", "f32"}) {
      const int h = 6, w = 10, c = 3;
      expect_right_with_tiles(
          fmt::format("graph g(x: {}[2, {}, {}, {}]) {{\n"
                      "  p = transpose(reshape(x, shape=[2, {}, {}, {}, {}, {}]), perm=[0, 1, 4, 2, 5, 3])\n"
                      "  y = neg(reshape(p, shape=[2, {}, {}, {}]))\n  return y\n}}",
                      dtype, c * r * r, h, w, c, r, r, h, w, c, h * r, w * r));
      expect_right_with_tiles(
          fmt::format("graph g(x: {}[2, {}, {}, {}]) {{\n"
                      "  p = transpose(reshape(x, shape=[2, {}, {}, {}, {}, {}]), perm=[0, 2, 4, 1, 3, 5])\n"
                      "  y = neg(reshape(p, shape=[2, {}, {}]))\n  return y\n}}",
                      dtype, c, h * r, w * r, c, h, r, w, r, h * w, c * r * r));
    }
}

TEST(FlatTile, SeveralOperands) {
  // as it lies, across, and across in another order; a broadcast one, along each axis
  expect_right_with_tiles(
      "graph g(x: bf16[20, 12, 6], z: bf16[6, 12, 20]) {\n"
      "  y = add(transpose(x, perm=[2, 1, 0]), z)\n  return y\n}");
  expect_right_with_tiles(
      "graph g(x: f32[20, 12, 6], z: f32[20, 6, 12]) {\n"
      "  y = sub(transpose(x, perm=[2, 1, 0]), transpose(z, perm=[1, 2, 0]))\n  return y\n}");
  expect_right_with_tiles(
      "graph g(x: bf16[20, 12, 2], b: f32[2], c: bf16[12, 1, 1]) {\n"
      "  y = mul(add(transpose(x, perm=[1, 0, 2]), cast(b, dtype=bf16)), c)\n  return y\n}");
  expect_right_with_tiles(
      "graph g(x: f16[20, 12, 6]) {\n"
      "  y = exp(transpose(x, perm=[2, 1, 0]))\n  z = cast(y, dtype=f32)\n  return y, z\n}");
}

TEST(FlatTile, PaddedAndSlicedOperands) {
  expect_right_with_tiles(
      "graph g(x: bf16[20, 12, 6]) {\n"
      "  y = exp(transpose(pad(x, low=[1, 0, 2], high=[0, 3, 0], value=2), perm=[2, 1, 0]))\n"
      "  return y\n}");
  expect_right_with_tiles(
      "graph g(x: f32[20, 12, 8]) {\n"
      "  s = slice(x, axis=[0, 1, 2], start=[2, 1, 4], stop=[20, 12, 8])\n"
      "  y = neg(transpose(s, perm=[1, 0, 2]))\n  return y\n}");
  expect_right_with_tiles(
      "graph g(x: f32[20, 12, 2], z: f32[20, 5, 2]) {\n"
      "  y = neg(transpose(concat(x, z, axis=1), perm=[1, 0, 2]))\n  return y\n}");
  expect_right_with_tiles(
      "graph g(x: bf16[20, 12, 6]) {\n"
      "  y = neg(transpose(flip(x, axis=[2]), perm=[2, 1, 0]))\n  return y\n}");
}

TEST(FlatTile, OffsetsOf64BitsGiveTheSame) {
  expect_right(transposed("bf16[20, 12, 6]", "[2, 1, 0]"), {}, [](Kernel& kernel) {
    kernel.wide_index = true;
    flat(64, 64)(kernel);
  });
}

// What the heuristics choose for the graph as one kernel, the box, and the vectors and pieces of loads.
std::string chosen(const std::string& text) {
  const CudaKernel run = one_cuda_kernel(text);
  const auto& schedule = std::get<MapSchedule>(run.kernel.schedule);
  std::string result = print(run.kernel.schedule);
  const auto tile = schedule.flat ? flat_tile_of(run.kernel, schedule) : std::nullopt;
  if (!tile) return result;
  test::expect_compiles_everywhere(run.source);
  result += "; box";
  for (const int extent : tile->extents) result += fmt::format(" {}", extent);
  for (const FlatLoad& load : tile->loads) result += fmt::format("; {} at once, {} together", load.vector, load.piece);
  return result;
}

TEST(FlatTile, PairsOfLargeTensorsPassThroughThem) {
  EXPECT_EQ(
      chosen(transposed("bf16[8192, 8192, 2]", "[1, 0, 2]")),
      "map threads=128 vector=8 flat tile axis=2 rows=64 columns=64 keep_reads; box 32 32 2; 8 at once, 2 together");
  EXPECT_EQ(
      chosen(transposed("f32[4096, 8192, 3]", "[1, 0, 2]")),
      "map threads=128 vector=4 flat tile axis=2 rows=64 columns=64 keep_reads; box 24 24 3; 4 at once, 1 together");
  // rows of a sector need none
  EXPECT_EQ(chosen(transposed("bf16[8192, 2048, 16]", "[1, 0, 2]")), "map threads=512 vector=8 streaming keep_reads");
}

TEST(FlatTile, ShortAxesThatAreTurnedNeedNone) {
  EXPECT_EQ(chosen(transposed("bf16[1122448, 4, 7]", "[0, 2, 1]")),
            "map threads=256 vector=8 flat streaming keep_reads");
}

TEST(FlatTile, ShortAxesAreJoinedWithTheirNeighbours) {
  EXPECT_EQ(
      chosen(transposed("bf16[4096, 4096, 8]", "[2, 1, 0]")),
      "map threads=128 vector=8 flat tile axis=0 rows=64 columns=32 keep_reads; box 8 8 32; 8 at once, 1 together");
  EXPECT_EQ(chosen(transposed("f32[7, 1048577, 9]", "[2, 1, 0]")),
            "map threads=128 vector=1 flat tile axis=0 rows=256 columns=128; box 9 30 7; 1 at once, 1 together");
  EXPECT_EQ(chosen(transposed("f32[512, 384, 512]", "[2, 1, 0]")),
            "map threads=512 vector=4 tile axis=0 rows=64 columns=64 tile_vector=4 keep_reads");
}

}  // namespace
}  // namespace tenon::codegen

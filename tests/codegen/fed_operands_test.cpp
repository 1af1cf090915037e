// Operands that threads compute on their way into a product of warpgroups (contract_fed.cuh), run on the host.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/text/text.h"
#include "tests/codegen/wgmma_on_host.h"
#include "tests/harness/differential.h"
#include "tests/harness/targets.h"

namespace tenon::test {
namespace {

// Of `size` rows or columns that the graph does not know: the planner stores no operand for what may be few of them.
void expect_fed(const std::string& graph, std::int64_t size, const std::vector<std::string>& ways) {
  Options options = default_options();
  options.cache = false;
  const Bindings at{{"size", size}};
  const RandomCase c{ir::parse(graph), at, random_inputs(ir::parse(graph), at, 1), {}};
  for (const std::string& way : ways) {
    SCOPED_TRACE(graph + way);
    const codegen::Schedule schedule = codegen::parse_schedule("contract loop=wgmma tile_k=64 " + way);
    int kernels = 0;
    const auto find = [&](const Kernel& kernel) -> std::optional<codegen::Schedule> {
      EXPECT_EQ(verify(schedule, kernel, hopper()), "");
      ++kernels;
      return schedule;
    };
    const Verdict verdict = check_with_schedules(c, "hopper_on_host", options, find);
    EXPECT_TRUE(verdict.same) << verdict.difference;
    EXPECT_EQ(kernels, 1);
  }
}

const char* const kOne = "tile_m=64 tile_n=64 consumers=1 stages=4 feed_b=threads";
const char* const kTwo = "tile_m=128 tile_n=64 stages=4 feed_b=threads producers=2";
const char* const kWide = "tile_m=256 tile_n=128 stages=4 lead=1 feed_b=threads";

TEST(FedOperands, BytesInWholeTiles) {
  expect_fed("graph g(x: bf16[size, 320], w: i8[256, 320]) {\n  y = linear(x, cast(w, dtype=bf16))\n  return y\n}\n",
             300, {kOne, kTwo, kWide});
}

TEST(FedOperands, BytesBeyondTheLastTile) {
  expect_fed("graph g(x: f16[size, 208], w: u8[200, 208]) {\n  y = linear(x, cast(w, dtype=f16))\n  return y\n}\n", 130,
             {kOne, kWide});
  expect_fed("graph g(x: bf16[size, 72], w: i8[67, 72]) {\n  y = linear(x, cast(w, dtype=bf16))\n  return y\n}\n", 70,
             {kTwo});
}

TEST(FedOperands, BytesAcrossTheDepth) {
  expect_fed(
      "graph g(x: bf16[size, 136], w: i8[136, 208], scale: bf16[208]) {\n"
      "  y = matmul(x, mul(cast(w, dtype=bf16), scale))\n  return y\n}\n",
      130, {kTwo, kWide});
}

TEST(FedOperands, HalfBytesWithAScaleOfEachRow) {
  expect_fed(
      "graph g(x: bf16[size, 256], packed: u8[192, 128], scale: bf16[192, 1]) {\n"
      "  pairs = stack(bitwise_and(packed, 15), right_shift(packed, 4), axis=-1)\n"
      "  w = mul(sub(cast(reshape(pairs, shape=[192, 256]), dtype=bf16), 8), scale)\n"
      "  y = linear(x, w)\n  return y\n}\n",
      150, {kOne, kTwo});
}

TEST(FedOperands, RowsOfATable) {
  expect_fed(
      "graph g(x: bf16[size, 128], table: bf16[50, 128], rows: i32[72]) {\n"
      "  y = linear(x, take(table, rows, axis=0))\n  return y\n}\n",
      70, {kTwo});
}

// Of a batch; the first operand, of which a wide tile has few rows.
TEST(FedOperands, AnActivation) {
  expect_fed("graph g(x: bf16[2, 200, 192], w: bf16[2, 192, size]) {\n  y = matmul(relu(x), w)\n  return y\n}\n", 264,
             {"tile_m=128 tile_n=256 stages=4 feed_a=threads", "tile_m=64 tile_n=64 turns stages=4 feed_a=threads"});
}

}  // namespace
}  // namespace tenon::test

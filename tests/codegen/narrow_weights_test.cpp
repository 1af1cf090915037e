// Products with weights of 8 and 4 bits, run on the host: every order in which two values lie in a byte, with and
// without signs, zeros and scales, past few rows and past one, in both layouts. The bytes take all 256 values.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "codegen/emit/source.h"
#include "ir/text/text.h"
#include "tests/codegen/compile_everywhere.h"
#include "tests/codegen/text_checks.h"
#include "tests/harness/guarded.h"
#include "tests/harness/scheduled_kernel.h"

namespace tenon::test {
namespace {

// Normal reals; of bytes each value is as likely as others.
std::vector<ir::HostArray> data(const ir::Graph& graph) {
  std::vector<ir::HostArray> arrays = data_for(graph, {});
  for (ir::HostArray& array : arrays) {
    if (size_of(array.dtype) != 1) continue;
    for (std::size_t i = 0; i < array.bytes.size(); ++i)
      array.bytes[i] = static_cast<std::byte>((i * 2654435761u) >> 13 & 0xff);
  }
  return arrays;
}

// Of fused kernels alone: without fusion no product has narrow weights.
void expect_product(const std::string& text) {
  SCOPED_TRACE(text);
  const ir::Graph graph = ir::parse("graph g(" + text + "\nreturn y }");
  const std::vector<ir::HostArray> inputs = data(graph);
  GuardedProgram program(graph, "cuda_on_host", true);
  for (const ir::Comparison& output : ir::compare_with_interpreter(graph, inputs, program(inputs), {}, 2))
    EXPECT_TRUE(is_right(output)) << output.mismatches << " elements differ, the first is " << output.first_mismatch;
}

// The first kernel of a graph as it is written for `arch`, which must compile without a spill.
std::string kernel_of(const std::string& text, const std::string& arch = "sm_90a") {
  const codegen::Target target = cuda_target_for(arch);
  const ir::Plan plan = ir::make_plan(ir::parse("graph g(" + text + "\nreturn y }"), {});
  const codegen::Source source =
      codegen::emit_cuda(scheduled_kernel(plan, 0, codegen::unspecialized(plan), target), target);
  expect_compiles_for(source, {arch});
  return kernel_part(source.text);
}

// Two values of 4 bits in each byte of `packed`, as u8[n, k].
std::string nibbles(const std::string& first, const std::string& second, int n, int k) {
  return fmt::format("  q = reshape(stack({}, {}, axis=-1), shape=[{}, {}])\n", first, second, n, k);
}
const char* const kLow = "bitwise_and(packed, 15)";
const char* const kHigh = "right_shift(packed, 4)";

std::string four_bits(int m, int n, int k, const std::string& first, const std::string& second,
                      const std::string& weight, const std::string& dtype = "bf16") {
  return fmt::format("x: {4}[{0}, {2}], packed: u8[{1}, {3}]) {{\n", m, n, k, k / 2, dtype) +
         nibbles(first, second, n, k) + "  y = linear(x, " + weight + ")";
}

TEST(NarrowWeights, FourBitsPastOneToSixteenRows) {
  for (const int m : {1, 3, 8, 16}) expect_product(four_bits(m, 40, 448, kLow, kHigh, "sub(cast(q, dtype=bf16), 8)"));
}

TEST(NarrowWeights, EitherHalfOfAByteIsFirst) {
  expect_product(four_bits(8, 24, 256, kHigh, kLow, "sub(cast(q, dtype=bf16), 8)"));
  expect_product(four_bits(1, 24, 256, kHigh, kLow, "sub(cast(q, dtype=bf16), 8)"));
}

TEST(NarrowWeights, WithOtherZeros) {
  for (const std::string zero : {"0", "15", "129", "-8", "0.5"})
    expect_product(four_bits(4, 24, 160, kLow, kHigh, "sub(cast(q, dtype=bf16), " + zero + ")"));
  expect_product(four_bits(4, 24, 160, kLow, kHigh, "cast(q, dtype=bf16)"));
  expect_product(four_bits(4, 24, 160, kLow, kHigh, "add(-3, cast(q, dtype=bf16))"));
  expect_product(four_bits(4, 24, 160, kLow, kHigh, "sub(8, cast(q, dtype=bf16))"));
  expect_product(four_bits(4, 24, 160, kLow, kHigh, "cast(sub(cast(q, dtype=i8), 8), dtype=bf16)"));
}

TEST(NarrowWeights, OfHalfPrecision) {
  for (const std::string zero : {"8", "-300", "1000"})
    expect_product(four_bits(4, 24, 160, kLow, kHigh, "sub(cast(q, dtype=f16), " + zero + ")", "f16"));
  expect_product("x: f16[4, 96], w: i8[24, 96]) { y = linear(x, cast(w, dtype=f16))");
  expect_product("x: f16[4, 96], w: u8[24, 96]) { y = linear(x, sub(cast(w, dtype=f16), 131))");
}

// Two's complement in 4 bits, by every idiom: arithmetic shifts, and the sign bit turned and subtracted.
TEST(NarrowWeights, WithSigns) {
  const std::string packed = "x: bf16[4, 160], packed: i8[24, 80]) {\n";
  expect_product(packed + nibbles("right_shift(left_shift(packed, 4), 4)", "right_shift(packed, 4)", 24, 160) +
                 "  y = linear(x, cast(q, dtype=bf16))");
  expect_product(packed + nibbles("bitwise_and(packed, 15)", "bitwise_and(right_shift(packed, 4), 15)", 24, 160) +
                 "  y = linear(x, cast(sub(bitwise_xor(q, 8), 8), dtype=bf16))");
  expect_product(packed + nibbles("bitwise_or(bitwise_and(packed, 7), 64)", "add(packed, 100)", 24, 160) +
                 "  y = linear(x, cast(q, dtype=bf16))");
}

TEST(NarrowWeights, EightBits) {
  for (const int m : {1, 3, 8, 16})
    for (const std::string dtype : {"i8", "u8"})
      expect_product(
          fmt::format("x: bf16[{0}, 208], w: {1}[40, 208]) {{ y = linear(x, cast(w, dtype=bf16))", m, dtype));
  expect_product("x: bf16[8, 208], w: u8[40, 208]) { y = linear(x, sub(cast(w, dtype=bf16), 128))");
  expect_product("x: bf16[8, 208], w: i8[40, 208]) { y = linear(x, add(cast(w, dtype=bf16), 128))");
  expect_product("x: bf16[8, 208], w: u8[40, 208]) { y = linear(x, add(cast(w, dtype=bf16), 128))");
}

// Vectors of 4 and 2 elements, single ones, and a depth that no chunk fills.
TEST(NarrowWeights, DepthsOfEverySort) {
  for (const int k : {20, 24, 36, 66, 130, 576})
    expect_product(four_bits(3, 17, k, kLow, kHigh, "sub(cast(q, dtype=bf16), 8)"));
  for (const int k : {7, 12, 18, 40, 100, 272})
    expect_product(fmt::format("x: bf16[3, {0}], w: i8[17, {0}]) {{ y = linear(x, cast(w, dtype=bf16))", k));
}

TEST(NarrowWeights, WithScalesAndZerosOfGroups) {
  const std::string groups =
      "  s = reshape(broadcast_to(reshape(scale, shape=[24, 4, 1]), shape=[24, 4, 64]), "
      "shape=[24, 256])\n  z = reshape(broadcast_to(reshape(zero, shape=[24, 4, 1]), "
      "shape=[24, 4, 64]), shape=[24, 256])\n";
  for (const int m : {1, 8}) {
    const std::string x = fmt::format("x: bf16[{}, 256], ", m);
    expect_product(x + "scale: bf16[24, 4], zero: bf16[24, 4], w: i8[24, 256]) {\n" + groups +
                   "  y = linear(x, mul(sub(cast(w, dtype=bf16), z), s))");
    expect_product(
        x + "scale: bf16[24, 4], zero: u8[24, 4], packed: u8[24, 128]) {\n" + groups + nibbles(kLow, kHigh, 24, 256) +
        "  y = linear(x, mul(cast(sub(cast(q, dtype=i8), cast(bitwise_and(z, 15), dtype=i8)), dtype=bf16), s))");
    expect_product(x + "scale: bf16[24, 4], zero: u8[24, 4], packed: u8[24, 128]) {\n" + groups +
                   nibbles(kLow, kHigh, 24, 256) + "  y = linear(x, mul(sub(cast(q, dtype=bf16), 8), s))");
  }
}

// Weights as [k, n]: neighbours of a byte along the columns, and along the depth, which lies across.
TEST(NarrowWeights, AcrossTheDepth) {
  for (const int m : {1, 5}) {
    const std::string x = fmt::format("x: bf16[{}, 96], ", m);
    expect_product(x + "w: i8[96, 64]) { y = matmul(x, cast(w, dtype=bf16))");
    expect_product(x + "packed: u8[96, 32]) {\n" + nibbles(kLow, kHigh, 96, 64) +
                   "  y = matmul(x, sub(cast(q, dtype=bf16), 8))");
    expect_product(x +
                   "packed: u8[48, 64]) {\n  q = reshape(stack(bitwise_and(packed, 15), right_shift(packed, 4), "
                   "axis=1), shape=[96, 64])\n  y = matmul(x, sub(cast(q, dtype=bf16), 8))");
  }
}

// The first half of a row in the low bits, the second in the high ones; and a value of each byte alone.
TEST(NarrowWeights, ApartInTheirRows) {
  for (const int m : {1, 4}) {
    const std::string x = fmt::format("x: bf16[{}, 128], packed: u8[24, 64]) {{\n", m);
    expect_product(x +
                   "  q = concat(bitwise_and(packed, 15), right_shift(packed, 4), axis=-1)\n"
                   "  y = linear(x, sub(cast(q, dtype=bf16), 8))");
    expect_product(x +
                   "  q = reshape(stack(bitwise_and(packed, 15), packed, axis=-1), shape=[24, 128])\n"
                   "  y = linear(x, cast(q, dtype=bf16))");
  }
}

// As rows of the result: the few are columns.
TEST(NarrowWeights, OnTheLeft) {
  for (const int n : {1, 6})
    expect_product(fmt::format("x: bf16[160, {}], packed: u8[40, 80]) {{\n", n) + nibbles(kLow, kHigh, 40, 160) +
                   "  y = matmul(sub(cast(q, dtype=bf16), 8), x)");
}

// Four values of 2 bits share a byte; where they are not chosen by their place, each point gets a copy.
TEST(NarrowWeights, OfTwoBits) {
  expect_product(
      "x: bf16[4, 256], packed: u8[24, 64]) {\n  q = reshape(stack(bitwise_and(packed, 3), "
      "bitwise_and(right_shift(packed, 2), 3), bitwise_and(right_shift(packed, 4), 3), right_shift(packed, 6), "
      "axis=-1), "
      "shape=[24, 256])\n  y = linear(x, sub(cast(q, dtype=bf16), 2))");
}

// A byte that two points share is loaded once, and taken apart in words.
TEST(NarrowWeights, ShareALoad) {
  for (const int m : {1, 8}) {
    const std::string kernel = kernel_of(four_bits(m, 14336, 4096, kLow, kHigh, "sub(cast(q, dtype=bf16), 8)"));
    EXPECT_EQ(kernel.find("load_streaming<16, 16>(in1"), kernel.rfind("(in1") - 22) << kernel;
    expect_lines("extern \"C\" __global__" + kernel,
                 {"bytes_choose<byte_vector<u8, 32>, 2, 0x55555555u>", "bytes_to_16<bf16, true, -8>"});
  }
}

// Scales and zeros of groups of 128, as `type`.
std::string in_groups(int m, const std::string& dtype, const std::string& type, const std::string& weight) {
  return fmt::format(
             "x: {1}[{0}, 4096], packed: u8[14336, 2048], scale: {2}[14336, 32], zero: {2}[14336, 32]) {{\n"
             "  g = reshape(stack(bitwise_and(packed, 15), right_shift(packed, 4), axis=-1), shape=[14336, 32, 128])\n"
             "  s = reshape(scale, shape=[14336, 32, 1])\n  z = reshape(zero, shape=[14336, 32, 1])\n",
             m, dtype, type) +
         "  y = linear(x, reshape(" + weight + ", shape=[14336, 4096]))";
}

class NarrowWeightsEverywhere : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Cuda, NarrowWeightsEverywhere, testing::ValuesIn(kArchitectures));

TEST_P(NarrowWeightsEverywhere, CompileWithoutSpillOrWarning) {
  const std::string arch = GetParam();
  for (const int m : {1, 16, 32}) {
    kernel_of(four_bits(m, 14336, 4096, kLow, kHigh, "sub(cast(q, dtype=bf16), 8)"), arch);
    kernel_of(four_bits(m, 14336, 4000, kLow, kHigh, "sub(cast(q, dtype=f16), 8)", "f16"), arch);
    kernel_of(in_groups(m, "bf16", "bf16", "mul(sub(cast(g, dtype=bf16), z), s)"), arch);
    kernel_of(in_groups(m, "f16", "f32", "cast(mul(sub(cast(g, dtype=f32), z), s), dtype=f16)"), arch);
  }
  for (const int m : {1, 8, 24}) {
    const std::string x = fmt::format("x: bf16[{}, 4096], ", m);
    kernel_of(x + "w: i8[14336, 4096]) { y = linear(x, cast(w, dtype=bf16))", arch);
    kernel_of(x + "w: u8[4096, 14336]) { y = matmul(x, sub(cast(w, dtype=bf16), 128))", arch);
  }
}

TEST(NarrowWeights, EveryCandidateCompiles) {
  const codegen::Target target = cuda_target_for("sm_90a");
  for (const std::string& text :
       {four_bits(8, 14336, 4096, kLow, kHigh, "sub(cast(q, dtype=bf16), 8)"),
        in_groups(16, "bf16", "u8",
                  "mul(sub(cast(g, dtype=bf16), cast(z, dtype=bf16)), "
                  "cast(s, dtype=bf16))"),
        std::string("x: bf16[8, 4096], w: i8[4096, 14336]) { y = matmul(x, cast(w, dtype=bf16))")}) {
    const ir::Plan plan = ir::make_plan(ir::parse("graph g(" + text + "\nreturn y }"), {});
    codegen::Kernel kernel = scheduled_kernel(plan, 0, codegen::unspecialized(plan), target);
    for (const codegen::Schedule& schedule : codegen::candidate_schedules(kernel, target)) {
      SCOPED_TRACE(print(schedule));
      kernel.schedule = schedule;
      expect_compiles_for(codegen::emit_cuda(kernel, target), {"sm_90a"});
    }
  }
}

}  // namespace
}  // namespace tenon::test

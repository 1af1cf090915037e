// Contract and Attend kernels as CUDA: what their text holds, and that NVRTC makes code of it for every architecture,
// without spills, local memory or remarks.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "tests/codegen/compile_everywhere.h"
#include "tests/codegen/tensor_kernels.h"
#include "tests/codegen/text_checks.h"

namespace tenon::test {
namespace {

using codegen::Source;
using codegen::Target;

void expect_compiles(const std::string& name, const Kernel& kernel, const Target& target) {
  static const auto nvrtc = installed_nvrtc();
  if (!nvrtc) GTEST_SKIP() << "no NVRTC to compile with";
  const auto& known = nvrtc->architectures;
  if (std::find(known.begin(), known.end(), target.sm) == known.end()) return;
  const Source source = emit_cuda(kernel, target);
  if (const char* folder = std::getenv("TENON_TEST_SOURCES"))
    std::ofstream(std::string(folder) + "/" + name + "." + target.arch + ".cu") << source.text;
  EXPECT_LE(source.launch.shared_bytes, target.shared_memory_per_block) << name;
  try {
    const auto compiled = runtime::cuda::compile(*nvrtc, source.text, source.entry, target.arch);
    EXPECT_EQ(compiled.resources.spill_store_bytes, 0) << name << "\n" << compiled.log;
    EXPECT_EQ(compiled.resources.stack_bytes, 0) << name << "\n" << compiled.log;
    EXPECT_TRUE(compiled.warnings.empty()) << name << ": " << compiled.warnings.front();
    EXPECT_LE(compiled.resources.registers * source.launch.block, target.registers_per_multiprocessor) << name;
    if (std::getenv("TENON_TEST_SOURCES") == nullptr) return;
    std::printf("%-18s %-8s %3d registers %6d shared  %s\n", name.c_str(), target.arch.c_str(),
                compiled.resources.registers, source.launch.shared_bytes, print(kernel.schedule).c_str());
  } catch (const Error& error) {
    ADD_FAILURE() << name << ": " << error.what();
  }
}

TEST(TensorKernelText, MultipliesByWarpgroupsFromBoxes) {
  const Target target = codegen::cuda_target("sm_90a");
  const MatmulCase c{.name = "bf16",
                     .a = DType::bf16,
                     .b = DType::bf16,
                     .out = DType::bf16,
                     .m = 4096,
                     .n = 4096,
                     .k = 8192,
                     .epilogue = true};
  Kernel kernel = matmul_kernel(c, target);
  kernel.schedule = codegen::parse_schedule("contract loop=wgmma tile_m=128 tile_n=256 tile_k=64 stages=4 cluster=2");
  const Source source = emit_cuda(kernel, target);
  expect_lines(
      source.text,
      {"copy_box(to, map0, full, (int)k, (int)m);", "copy_box_to_all(to + box * 8192, map1, full, 3, ",
       "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16", "loaded.x7 = load<8, 8>(in3 + ", "touch_line(in3 + ",
       "make_result_ahead<8, 64>(get, touch, [&](int m, int n,", "tanh(", "store_whole<8, 8>(out0",
       "using tiles = wgmma_tiles<bf16, 128, 256, 2, false, 0, 1, 4, 2, 1, 1, false, 1, 0, true, false, true, true, "
       "0>;"});
  ASSERT_EQ(source.launch.tensor_maps.size(), 2u);
  EXPECT_EQ(source.launch.tensor_maps[0].box, (std::vector<int>{64, 128}));
  EXPECT_EQ(source.launch.tensor_maps[1].box, (std::vector<int>{64, 64}));
  EXPECT_EQ(source.launch.cluster, 2);
  EXPECT_TRUE(source.launch.resident);
}

// What boxes cannot bring, a warpgroup reads, computes and writes as boxes would lie.
TEST(TensorKernelText, WhatIsNoBoxIsReadByThreads) {
  const Target target = codegen::cuda_target("sm_90a");
  struct Feeds {
    MatmulCase c;
    std::string a, b, maps;
  };
  for (const Feeds& feeds :
       {Feeds{{.name = "odd_rows", .k = 100}, "make_copied_tile", "copy_box", "map0"},
        Feeds{{.name = "computed", .prologue = true}, "make_fed_tile", "copy_box", "map0"},
        Feeds{{.name = "backwards", .a_flipped = true}, "make_copied_tile", "copy_box", "map0"},
        Feeds{{.name = "another_dtype", .a = DType::f8e4m3}, "make_fed_tile", "copy_box", "map0"}}) {
    const Source source = emit_cuda(matmul_kernel(feeds.c, target), target);
    expect_lines(source.text, {"const auto load_a = ", feeds.a, "const auto load_b = ", feeds.b});
    EXPECT_EQ(source.launch.tensor_maps.size(), 1u) << feeds.c.name;
  }
}

// Each element of the weights is needed once: registers take it from memory, and the caches do not keep it.
TEST(TensorKernelText, FewRowsStreamTheirWeights) {
  const Target target = codegen::cuda_target("sm_90a");
  const MatmulCase c{.name = "decode", .m = 8, .n = 4096, .k = 4096, .b_transposed = true};
  const Source source = emit_cuda(matmul_kernel(c, target), target);
  expect_lines(source.text,
               {"const auto matrix = make_operand<8, true, false>([&](int n, int k)", "load_streaming<8, 8>(in1",
                "const auto few = make_operand<8, true, false>([&](int m, int k)", "return load<8, 8>(in0",
                "contract_stream<f16, 16, 8, 8, 2, true, int>("});
}

// Two blocks of a cluster have half of the depth each where tiles are fewer than multiprocessors.
TEST(TensorKernelText, BlocksOfAClusterDivideTheDepth) {
  const Target target = codegen::cuda_target("sm_90a");
  const MatmulCase c{.name = "few_tiles", .m = 64, .n = 4096, .k = 4096, .b_transposed = true};
  const Kernel kernel = matmul_kernel(c, target);
  EXPECT_EQ(std::get<codegen::ContractSchedule>(kernel.schedule).parts, 2);
  const Source source = emit_cuda(kernel, target);
  EXPECT_EQ(source.launch.cluster, 2);
  EXPECT_FALSE(source.launch.resident);  // a cluster for each tile
}

// Results in 32 bits of a long depth: totals beside the tensor cores' sums.
TEST(TensorKernelText, LongSumsAreBlocked) {
  const Target target = codegen::cuda_target("sm_90a");
  const auto block_steps = [&](DType out, std::int64_t k) {
    const MatmulCase c{.name = "long", .out = out, .m = 2048, .n = 2048, .k = k};
    return std::get<codegen::ContractSchedule>(matmul_kernel(c, target).schedule).block_steps;
  };
  EXPECT_EQ(block_steps(DType::f32, 8192), 8);
  EXPECT_EQ(block_steps(DType::f32, 1024), 0);
  EXPECT_EQ(block_steps(DType::f16, 8192), 0);
}

TEST(TensorKernelText, MultipliesOnTensorCoresAndStoresVectors) {
  const Target target = codegen::cuda_target("sm_80");
  const MatmulCase c{
      .name = "bf16", .a = DType::bf16, .b = DType::bf16, .out = DType::bf16, .m = 4096, .n = 4096, .epilogue = true};
  const Source source = emit_cuda(matmul_kernel(c, target), target);
  expect_lines(source.text, {"make_operand<8, true, true>([&](int m, int k)", "return in0 + ",
                             "make_operand<8, false, true>([&](int n, int k)",
                             "make_result<8>([&](int m, int n, const pack<float, 8>& x2)", "tanh(",
                             "store_whole<8, 8>(out0", "contract_mma<bf16, 128, 128, 32, 2, 4, 3, int>("});
  for (const char* piece : {"ldmatrix.sync", "mma.sync.aligned.m16n8k16", "cp.async.cg"})
    EXPECT_NE(source.text.find(piece), std::string::npos) << piece;
}

TEST(TensorKernelText, OddSizesAreReadElementByElement) {
  const Target target = codegen::cuda_target("sm_90a");
  const Source source = emit_cuda(matmul_kernel({.name = "odd", .m = 4095, .n = 3333, .k = 77}, target), target);
  expect_lines(source.text, {", true>, 1, true, false, 32>((int)4095, (int)77,",
                             ", false>, 1, false, false, 32>((int)3333, (int)77,", "make_result_ahead<1, 0>"});
  const Source small = emit_cuda(matmul_kernel({.name = "small", .m = 511, .n = 333, .k = 77}, target), target);
  expect_lines(small.text, {"contract_mma<f16, "});
}

TEST(TensorKernelText, F32IsNotRoundedUnlessAsked) {
  Target target = codegen::cuda_target("sm_90a");
  MatmulCase c{.name = "f32", .a = DType::f32, .b = DType::f32, .out = DType::f32};
  expect_lines(emit_cuda(matmul_kernel(c, target), target).text, {"contract_3xtf32<"});
  target.may.split_f32 = false;
  expect_lines(emit_cuda(matmul_kernel(c, target), target).text, {"contract_simt<float, "});
  c.tf32 = true;
  expect_lines(emit_cuda(matmul_kernel(c, target), target).text, {"contract_mma<tf32, "});
}

TEST(TensorKernelText, MasksBecomeRangesOfKeys) {
  Target target = codegen::cuda_target("sm_90a");
  target.may.wgmma = false;
  const AttentionCase c{.name = "window", .queries = 512, .keys = 640, .mask = Mask::window};
  const Source source = emit_cuda(attention_kernel(c, target), target);
  expect_lines(source.text, {"int first_key = 0, last_key = 640;", "last_key = min(last_key, (int)(last_query + 129));",
                             "first_key = max(first_key, (int)(first_query + 0));", "first_key -= first_key % 64;",
                             "attend_mma<f16, "});
  EXPECT_LE(source.launch.shared_bytes, 3 * 64 * (64 + 8) * 2);  // a tile each of q, k and v: no matrix of scores
}

TEST(TensorKernelText, LengthsBecomeRangesOfKeys) {
  const Target target = codegen::cuda_target("sm_90a");
  const AttentionCase c{.name = "lengths", .heads = 32, .queries = 512, .keys = 640, .mask = Mask::lengths};
  const std::string text = emit_cuda(attention_kernel(c, target), target).text;
  EXPECT_NE(text.find("range.last = ends_by(range.last, "), std::string::npos) << text;
  EXPECT_NE(text.find("range.last_open = ends_by(range.last_open, "), std::string::npos) << text;
}

TEST(TensorKernelText, ABiasComesInBoxesOrPairs) {
  Target target = codegen::cuda_target("sm_90a");
  AttentionCase c{.name = "bias", .heads = 32, .queries = 512, .keys = 640, .bias = true};
  expect_lines(emit_cuda(attention_kernel(c, target), target).text, {"const auto open_score = by_boxes("});
  target.may.score_boxes = false;
  expect_lines(emit_cuda(attention_kernel(c, target), target).text, {"const auto open_score = by_pairs("});
  target.may.read_ahead = false;
  const std::string off = emit_cuda(attention_kernel(c, target), target).text;
  EXPECT_EQ(off.find("= by_pairs("), std::string::npos) << off;
  target.may.read_ahead = true;
  c.keys = 641;
  const std::string odd = emit_cuda(attention_kernel(c, target), target).text;
  EXPECT_EQ(odd.find("= by_pairs("), std::string::npos) << odd;
}

TEST(TensorKernelText, TilesThatEveryQuerySeesAreNotMasked) {
  const Target target = codegen::cuda_target("sm_90a");
  const AttentionCase c{.name = "window", .heads = 32, .queries = 512, .keys = 640, .mask = Mask::window};
  const Source source = emit_cuda(attention_kernel(c, target), target);
  expect_lines(source.text,
               {"key_range<int> range = {0, 640, 0, 640};", "range.last = min(range.last, (int)(last + 129));",
                "range.last_open = min(range.last_open, (int)(first + 129));",
                "range.first = max(range.first, (int)(first + 0));",
                "range.first_open = max(range.first_open, (int)(last + 0));",
                "make_weights<true, true, false, masking::by_ranges>(0x1p-3f, 0, open_score, shift, weight, factor);"});
}

class EveryArchitecture : public testing::TestWithParam<const char*> {};

void expect_no_attention(Kernel kernel, const std::string& why) {
  try {
    verify(kernel);
    ADD_FAILURE() << "was taken, but " << why;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::internal);
    EXPECT_NE(std::string(error.what()).find(why), std::string::npos) << error.what();
  }
}

TEST(AttentionOfAKernel, IsWhatItsBodyComputes) {
  const Kernel kernel = attention_kernel({.name = "by_hand", .by_hand = true}, codegen::cuda_target("sm_90a"));
  using Part = InstrId codegen::Attention::*;
  const auto with = [&](Part part, InstrId id) {
    Kernel other = kernel;
    other.attention.*part = id;
    return other;
  };
  const codegen::Attention& parts = kernel.attention;
  expect_no_attention(with(&codegen::Attention::scores, parts.mix), "is no scores");
  expect_no_attention(with(&codegen::Attention::mix, -1), "there is no mix");
  expect_no_attention(with(&codegen::Attention::sum, parts.maximum), "the sum is another reduction");
  expect_no_attention(with(&codegen::Attention::maximum, -1), "there is a shift where there is a maximum");
  expect_no_attention(with(&codegen::Attention::shift, parts.sum), "is made of another part");
  expect_no_attention(with(&codegen::Attention::score, parts.scores), "the maximum is not that of the score");
  expect_no_attention(with(&codegen::Attention::weight, parts.score), "the weight is no exponential");
  Kernel unscaled = kernel;
  unscaled.attention.scaling.clear();
  expect_no_attention(unscaled, "the scaled weights are not those that are mixed");
  Kernel skipped = kernel;
  skipped.attention.scaling.erase(skipped.attention.scaling.begin());
  expect_no_attention(skipped, "is not linear in the weights");
}

TEST_P(EveryArchitecture, TakesContractKernels) {
  const Target target = codegen::cuda_target(GetParam());
  for (const MatmulCase& c : matmul_cases()) expect_compiles(c.name, matmul_kernel(c, target), target);
}

TEST_P(EveryArchitecture, TakesAttendKernels) {
  const Target target = codegen::cuda_target(GetParam());
  for (const AttentionCase& c : attention_cases())
    expect_compiles("attend_" + c.name, attention_kernel(c, target), target);
}

// Whatever is chosen for so little work: the widest tile that a kernel can have, for each number of warpgroups.
TEST(WarpgroupAttention, CompilesWithoutSpillsOrWarnings) {
  const Target target = codegen::cuda_target("sm_90a");
  int compiled = 0;
  for (const AttentionCase& c : attention_cases()) {
    Kernel kernel = attention_kernel(c, target);
    for (const char* tile :
         {"tile_q=192 turns", "tile_q=128 turns", "tile_q=64 stages=3", "tile_q=192 turns block_mask",
          "tile_q=128 turns block_mask", "tile_q=64 stages=3 block_mask", "tile_q=64 stages=4 parts=2"})
      for (const int keys : {128, 112, 96, 80, 64, 48}) {
        kernel.schedule = codegen::parse_schedule(fmt::format("attend loop=wgmma tile_kv={} {}", keys, tile));
        if (!verify(kernel.schedule, kernel, target).empty()) continue;
        expect_compiles(fmt::format("attend_{}_{}_{}", c.name, tile, keys), kernel, target);
        ++compiled;
        break;
      }
  }
  EXPECT_GE(compiled, 26);
}

INSTANTIATE_TEST_SUITE_P(Cuda, EveryArchitecture, testing::ValuesIn(kArchitectures),
                         [](const auto& arch) { return std::string(arch.param); });

}  // namespace
}  // namespace tenon::test

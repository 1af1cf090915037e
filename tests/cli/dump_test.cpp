// tenon dump and explain: every level of a graph, and the decisions behind it.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/cli.h"

namespace tenon {
namespace {

TEST_F(Cli, DumpShowsEveryLevelThatNeedsNoCompiler) {
  EXPECT_TRUE(contains(tenon("dump " + gelu() + " --emit graph").text, "gelu(x, approximate=\"tanh\")"));
  EXPECT_TRUE(contains(tenon("dump " + gelu() + " --emit graph --after decompose").text, "tanh("));
  EXPECT_TRUE(contains(tenon("dump " + gelu() + " --emit plan").text, "plan gelu: 1 kernel\n0 map over [rows, 64]"));
  EXPECT_TRUE(contains(tenon("dump " + gelu() + " --emit dot").text, "digraph gelu {"));
  EXPECT_EQ(nlohmann::json::parse(tenon("dump " + gelu() + " --emit json").text)["name"], "gelu");
}

TEST_F(Cli, DotShowsNamesConstantsAndAxes) {
  const std::string graph = file("mean.tn",
                                 "graph mean(x: f32[8, 64]) {\n  total = sum(x, axis=-1)\n  y = mul(total, 0.015625)\n"
                                 "  return y\n}\n");
  const std::string text = tenon("dump --emit dot " + graph).text;
  EXPECT_TRUE(contains(text, "[label=\"total = sum(x, axis=1)\\nf32[8]\"];")) << text;
  EXPECT_TRUE(contains(text, "[label=\"y = mul(total, 0.015625)\\nf32[8]\"];")) << text;
}

TEST_F(Cli, TheRateOfAProductIsThatOfItsTypes) {
  const auto explained = [&](const std::string& dtype, const std::string& target) {
    const std::string graph = file(dtype + ".tn", "graph g(x: " + dtype + "[1024, 1024], w: " + dtype +
                                                      "[1024, 1024]) {\n  y = matmul(x, w)\n  return y\n}\n");
    return tenon("explain --disable split_f32 --target " + target + " " + graph).text;
  };
  const std::string bf16 = explained("bf16", "sm_90a"), f32 = explained("f32", "sm_90a");
  EXPECT_TRUE(contains(bf16, ", 700 TFLOP/s of tensor cores, 35 of plain lanes, overlap")) << bf16;
  EXPECT_TRUE(contains(bf16, ", 2.15 GFLOP at 700 TFLOP/s of tensor cores\n")) << bf16;
  EXPECT_TRUE(contains(f32, ", 2.15 GFLOP at 35 TFLOP/s of plain lanes\n")) << f32;
}

#ifdef TENON_WITH_CPU
TEST_F(Cli, DumpShowsTheCpuLevels) {
  EXPECT_TRUE(contains(tenon("dump " + gelu() + " --emit schedule --target cpu").text, "map_tanh: map"));
  EXPECT_TRUE(contains(tenon("dump " + gelu() + " --emit kernel --target cpu").text, "tanh(v"));
  EXPECT_TRUE(contains(tenon("dump " + gelu() + " --emit llvm").text, "define void @map_tanh("));
  EXPECT_TRUE(contains(tenon("dump " + gelu() + " --emit asm").text, "map_tanh:"));
  EXPECT_EQ(tenon("dump " + gelu() + " --emit llvm --target sm_90a").code, 2);
}

#endif

TEST_F(Cli, CudaLevelsNeedNoGpu) {
  if (!has_nvrtc()) GTEST_SKIP() << "no NVRTC";
  EXPECT_TRUE(contains(tenon("dump " + gelu() + " --emit cuda --target sm_80").text, "__global__ void"));
  const std::string kernel = tenon("dump " + gelu() + " --emit cuda --no-prelude --target sm_80").text;
  EXPECT_TRUE(kernel.starts_with("extern \"C\" __global__ void")) << kernel;
  EXPECT_TRUE(contains(tenon("dump " + gelu() + " --emit cuda --target sm_80").text, "\n\n" + kernel));
  EXPECT_TRUE(contains(tenon("dump " + gelu() + " --no-prelude").text, "help: use it with --emit cuda"));
  EXPECT_TRUE(contains(tenon("dump " + gelu() + " --emit ptx --target sm_80").text, ".target sm_80"));
  const Outcome cubin = tenon("dump " + gelu() + " --emit cubin --target sm_90a -o " + path("kernel.cubin"));
  EXPECT_EQ(cubin.code, 0) << cubin.text;
  EXPECT_GT(std::filesystem::file_size(path("kernel.cubin")), 1000U);
}

TEST_F(Cli, ExplainGivesTheRuleOfACut) {
  const std::string graph =
      file("mean.tn", "graph mean(x: f32[rows, 64]) {\n  y = sum(sum(x, axis=1))\n  return y\n}\n");
  EXPECT_TRUE(contains(tenon("explain " + graph).text, "[different-reduced-axes]"));
  EXPECT_EQ(nlohmann::json::parse(tenon("explain --json " + graph).text)["refusals"][0]["rule"],
            "different-reduced-axes");
}

// Of each mask whether it bounds the keys, is asked of tiles, or of each score.
TEST_F(Cli, ExplainSaysWhatMasksDo) {
  const std::string graph = file("masks.tn", R"(graph masks(
  q: bf16[2, 16, 2048, 64], k: bf16[2, 16, 2048, 64], v: bf16[2, 16, 2048, 64], document: i32[2048], last: i32[2]
) {
  j = iota(shape=[2048], dtype=i32)
  same = equal(reshape(document, shape=[2048, 1]), document)
  known = less_equal(j, reshape(last, shape=[2, 1, 1, 1]))
  s = matmul(q, transpose(k, perm=[0, 1, 3, 2]), dtype=f32)
  y = matmul(cast(softmax(where(same, where(known, s, -inf), -inf)), dtype=bf16), v)
  return y
}
)");
  const std::string bound = "kernel 0 masks:\n  key <= (a number of last): no key behind it is read\n";
  const std::string on = tenon("explain --target sm_90a " + graph).text;
  EXPECT_TRUE(contains(on, bound + "  equal of document: asked of tiles of ")) << on;
  const std::string off = tenon("explain --target sm_90a --disable block_mask " + graph).text;
  EXPECT_TRUE(contains(off, bound + "  equal of document: asked of each score ")) << off;
  const std::string cpu = tenon("explain --target cpu " + graph).text;
  EXPECT_TRUE(contains(cpu, bound + "  equal of document: asked of tiles of 64 keys")) << cpu;
  EXPECT_FALSE(contains(tenon("explain --target sm_90a " + gelu()).text, "masks")) << "there is no attention";
}

// What a thread loads once, and how much has no guards.
TEST_F(Cli, ExplainSaysWhatWindowsDo) {
  const std::string graph = file("pool.tn", R"(graph pool(x: f32[64, 4096]) {
  p = pad(x, low=[0, 4], high=[0, 4])
  y = add(slice(p, axis=[1], start=[0], stop=[4096]), slice(p, axis=[1], start=[8], stop=[4104]))
  z = add(y, slice(p, axis=[1], start=[5], stop=[4101]))
  return z
}
)");
  const std::string inside = "  all but 0.2 % of the results lie inside: no guards\n";
  const std::string on = tenon("explain --target sm_90a " + graph).text;
  EXPECT_TRUE(contains(on, "kernel 0 windows:\n  x: 12 loads of 4 results are 3 of 16 bytes\n" + inside)) << on;
  const std::string apart = tenon("explain --target sm_90a --disable overlaps " + graph).text;
  EXPECT_FALSE(contains(apart, "windows")) << apart;
  const std::string cpu = tenon("explain --target cpu " + graph).text;
  EXPECT_TRUE(contains(cpu, "kernel 0 windows:\n" + inside)) << cpu;
  EXPECT_FALSE(contains(tenon("explain --target cpu --disable interior " + graph).text, "windows"));
}

// Two small kernels that share nothing, one too large to go with them, and what the switch does.
TEST_F(Cli, APackIsShownAsOneLaunchOfItsMembers) {
  if (!has_nvrtc()) GTEST_SKIP() << "NVRTC is not installed";
  const std::string graph = file("three.tn",
                                 "graph three(x: f32[100], y: f32[7, 30], z: f32[4096, 4096]) {\n"
                                 "  return exp(x), sum(y, axis=1), exp(z)\n}\n");
  const std::string on = " --target sm_90a " + graph;
  EXPECT_TRUE(contains(tenon("dump --emit plan" + on).text, "plan three: 3 kernels in 2 launches\n"));
  const std::string explained = tenon("explain" + on).text;
  EXPECT_TRUE(contains(explained, "kernels 0 1 in one launch: 2.0 us, 2.0 us less\n")) << explained;
  EXPECT_TRUE(contains(explained, "kernels 1 and 2 are launched apart [pack-long]")) << explained;
  EXPECT_EQ(nlohmann::json::parse(tenon("explain --json" + on).text)["packs"], nlohmann::json({{0, 1}}));
  const std::string schedules = tenon("dump --emit schedule" + on).text;
  EXPECT_TRUE(contains(schedules, "map_exp: map threads=128 vector=4 (in pack_of_2_map_exp)\n")) << schedules;
  EXPECT_TRUE(contains(schedules, "map_exp: map threads=512 vector=4 unroll=2 streaming keep_reads\n")) << schedules;
  for (const char* member : {"0", "1"})
    EXPECT_TRUE(contains(tenon(std::string("dump --emit cuda --kernel ") + member + on).text, "pack_of_2_map_exp("));
  EXPECT_TRUE(contains(tenon("dump --emit kernel --kernel 1" + on).text, "reduce"));
  EXPECT_FALSE(contains(tenon("dump --emit cuda --disable packing" + on).text, "pack_of"));
  EXPECT_TRUE(contains(tenon("dump --emit dot" + on).text, "subgraph cluster_launch_0 {"));
  EXPECT_FALSE(contains(tenon("dump --emit plan --target cpu " + graph).text, "launch"));
}

TEST_F(Cli, ExplainGivesPredictedTimesAndTheNumbersBehindThem) {
  const std::string graph = file("exp.tn", "graph g(x: f32[3000, 1000]) {\n  y = exp(x)\n  return y\n}\n");
  const std::string text = tenon("explain --target sm_90a " + graph).text;
  EXPECT_TRUE(contains(text, "predicted for H100 (assumed): copy 3000 GB/s, launch 2.0 us")) << text;
  EXPECT_TRUE(contains(text, "kernel 0 map: 10.0 us (memory 8.0")) << text;
  const auto json = nlohmann::json::parse(tenon("explain --json --target sm_90a " + graph).text);
  EXPECT_EQ(json["kernels"][0]["predicted"]["bytes"], 24e6);
  EXPECT_EQ(json["cost_model"]["bandwidth_gb_s"], 3000);
  const Outcome unknown = tenon("explain --target sm_91 " + graph);
  EXPECT_NE(unknown.code, 0);
  EXPECT_TRUE(contains(unknown.text, "'sm_91' is no target")) << unknown.text;
}

TEST_F(Cli, ExplainSaysWhichSizesItAssumed) {
  EXPECT_TRUE(contains(tenon("explain --target sm_90a " + gelu()).text,
                       "\nat rows = 1024 (assumed; --dim rows=N says another)\npredicted for "));
  EXPECT_TRUE(contains(tenon("explain --target sm_90a --dim rows=7 " + gelu()).text, "\nat rows = 7\npredicted for "));
}

#ifdef TENON_WITH_CPU
TEST_F(Cli, ExplainSaysWhatIsUpdatedInPlace) {
  const std::string graph = file("state.tn", R"(graph state(m: f32[n], x: f32[64, 4], w: f32[4, 4]) {
  next = mul(m, 0.5)
  y = matmul(x, w)
  return next into m, y into x
})");
  const std::string text = tenon("explain --target cpu " + graph).text;
  EXPECT_TRUE(contains(text, "next updates m in place, 4096 bytes\n")) << text;
  EXPECT_TRUE(contains(text, "y is copied into x behind all kernels, 1024 bytes: ")) << text;
}
#endif

}  // namespace
}  // namespace tenon

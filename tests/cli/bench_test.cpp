// What measures: tenon bench, tune, calibrate, and explain --measure.
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/cli.h"

namespace tenon {
namespace {

#ifdef TENON_WITH_CPU
TEST_F(Cli, BenchTimesAGraphBesideACopy) {
  const Outcome outcome = tenon("bench " + gelu() + " --target cpu --dim rows=64 --seconds 0.02 --unfused --check -o " +
                                path("bench.json"));
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_TRUE(contains(outcome.text, "check ok")) << outcome.text;
  std::ifstream file(path("bench.json"));
  const auto document = nlohmann::json::parse(file);
  EXPECT_EQ(document["target"], "cpu");
  const auto& row = document["cases"][0];
  EXPECT_EQ(row["graph"], "gelu");
  EXPECT_EQ(row["kernels"], 1);
  EXPECT_GT(row["unfused_kernels"], 1);
  EXPECT_GT(row["unfused_ms"], 0.0);
  EXPECT_EQ(row["bytes"], 2 * 64 * 64 * 4);
  EXPECT_EQ(row["unwritten"], 0);
  EXPECT_GE(row["samples"], 5);
  EXPECT_LE(row["p10_ms"], row["ms"]);
  EXPECT_LE(row["ms"], row["p90_ms"]);
  EXPECT_GT(row["copy_ms"], 0.0);
  EXPECT_NEAR(row["gb_s"], 2 * 64 * 64 * 4 / row["ms"].get<double>() / 1e6, 1e-6);
}

// However the plan cuts the graph: the table is gathered from, x is sliced, and n is neither input nor output.
TEST_F(Cli, BenchTimesTheFirstResultOfAProcess) {
  const std::string bench = "bench --first --json --target cpu --dim rows=64 " + gelu();
  const std::string folder = "TENON_CACHE_DIR=" + path("first");
  const auto empty = nlohmann::json::parse(tenon(bench, folder).text);
  EXPECT_EQ(empty["compiles"], 1);
  EXPECT_GT(empty["first_ms"], 0);
  EXPECT_EQ(nlohmann::json::parse(tenon(bench, folder).text)["compiles"], 0);
  EXPECT_EQ(tenon(bench + " " + gelu()).code, 2);
}

TEST_F(Cli, BenchCountsTheBytesThatNoPlanAvoids) {
  const std::string graph = file("parts.tn",
                                 "graph parts(table: bf16[1000, 32], ids: i64[8], x: f32[8, 64], idle: f32[99]) {\n"
                                 "  row = take(table, ids, axis=0)\n"
                                 "  part = slice(x, axis=-1, start=[0], stop=[32])\n"
                                 "  n = sum(part, axis=-1, keepdims=true)\n"
                                 "  y = mul(cast(row, dtype=f32), exp(n))\n"
                                 "  return y\n}\n");
  const Outcome outcome = tenon("bench " + graph + " --target cpu --seconds 0.01 --no-flush --no-fuse --json");
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  const auto row = nlohmann::json::parse(outcome.text)["cases"][0];
  EXPECT_GT(row["kernels"], 1);
  EXPECT_EQ(row["bytes"], 8 * 32 * 2 + 8 * 8 + 8 * 32 * 4 + 8 * 32 * 4);
}

TEST_F(Cli, BenchSavesWhatItRan) {
  const std::string graph =
      file("negate.tn", "graph negate(x: i16[9], y: f32[5]) {\n  a = neg(x)\n  b = neg(y)\n  return a, b\n}\n");
  const std::string wanted = "bench " + graph + " --target cpu --seconds 0.01 --no-flush --save ";
  const Outcome outcome = tenon(wanted + path("."));
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  const auto saved = [&]<typename T>(const std::string& name, T) {
    std::ifstream bytes(path("negate." + name + ".bin"), std::ios::binary);
    std::vector<T> values(std::filesystem::file_size(path("negate." + name + ".bin")) / sizeof(T));
    bytes.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(T)));
    return values;
  };
  auto integers = saved("in0", std::int16_t{});
  for (auto& value : integers) value = static_cast<std::int16_t>(-value);
  EXPECT_EQ(saved("out0", std::int16_t{}), integers);
  auto reals = saved("in1", float{});
  ASSERT_EQ(reals.size(), 5U);
  for (float& value : reals) value = -value;
  EXPECT_EQ(saved("out1", float{}), reals);
  EXPECT_TRUE(contains(tenon(wanted + path("absent")).text, "cannot write"));
}

TEST_F(Cli, BenchCountsTheOperationsOfContractions) {
  const std::string product = file("product.tn",
                                   "graph product(a: f32[4, 8, 16], b: f32[16, 32]) {\n"
                                   "  y = relu(matmul(a, b))\n  return y\n}\n");
  const std::string causal = file("causal.tn",
                                  "graph causal(q: f32[2, 4, 8, 16], k: f32[2, 2, 10, 16], v: f32[2, 2, 10, 32]) {\n"
                                  "  y = attention(q, k, v, causal=true)\n  return y\n}\n");
  const Outcome outcome = tenon("bench " + product + " " + causal + " --target cpu --seconds 0.01 --no-flush --json");
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  const auto rows = nlohmann::json::parse(outcome.text)["cases"];
  EXPECT_EQ(rows[0]["flops"], 2 * 4 * 8 * 16 * 32);
  EXPECT_EQ(rows[1]["flops"], 2 * 2 * 4 * (3 + 4 + 5 + 6 + 7 + 8 + 9 + 10) * (16 + 32));
}

TEST_F(Cli, ExplainMeasuresKernelsBesideWhatWasPredicted) {
  const std::string graph = file("exp.tn", "graph g(x: f32[rows, 1000]) {\n  y = exp(x)\n  return y\n}\n");
  const std::string text = tenon("explain --target cpu --measure --dim rows=64 " + graph).text;
  EXPECT_TRUE(contains(text, "512.0 KB; measured ")) << text;
  EXPECT_TRUE(contains(text, " of predicted")) << text;
  const auto json = nlohmann::json::parse(tenon("explain --json --target cpu --measure --dim rows=64 " + graph).text);
  EXPECT_GT(json["kernels"][0]["measured_us"], 0);
}

TEST_F(Cli, TuneKeepsTheFastestScheduleForLaterRuns) {
  const std::string kept = "TENON_CACHE_DIR=" + path("tuned");
  const std::string tune = "tune " + gelu() + " --target cpu --dim rows=64 --seconds 0.001";
  const Outcome outcome = tenon(tune + " --json", kept);
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  const auto kernel = nlohmann::json::parse(outcome.text)["kernels"][0];
  EXPECT_EQ(kernel["graph"], "gelu");
  EXPECT_GT(kernel["trials"].size(), 1u);
  EXPECT_LE(kernel["best_us"], kernel["heuristic_us"]);
  const std::string dump = "dump --emit schedule --target cpu --dim rows=64 " + gelu();
  EXPECT_TRUE(contains(tenon(dump, kept).text, kernel["best"].get<std::string>()));
  EXPECT_TRUE(
      contains(tenon(dump, kept + " TENON_DISABLE=tuned").text, kernel["trials"][0]["schedule"].get<std::string>()));
  EXPECT_TRUE(contains(tenon(tune, kept).text, "nothing to tune"));
  EXPECT_TRUE(contains(tenon(tune + " --again", kept).text, "of the best in geometric mean"));
}

TEST_F(Cli, TuneWritesWhatItMeasuredAheadOfAFailure) {
  const std::string results = path("tuned.json"), kept = "TENON_CACHE_DIR=" + path("tuned_in_part");
  const Outcome outcome = tenon(
      "tune " + gelu() + " " + path("missing.tn") + " --target cpu --dim rows=64 --seconds 0.001 -o " + results, kept);
  EXPECT_NE(outcome.code, 0);
  std::ifstream file(results);
  const auto document = nlohmann::json::parse(file);
  EXPECT_EQ(document["kernels"][0]["graph"], "gelu");
  EXPECT_GT(document["heuristic_share"]["least"], 0);
}

TEST_F(Cli, CalibrateKeepsTheNumbersOfThisDeviceForThePlanner) {
  const std::string graph = file("exp.tn", "graph g(x: f32[3000, 1000]) {\n  y = exp(x)\n  return y\n}\n");
  const std::string kept = "TENON_CACHE_DIR=" + path("calibrated");
  const Outcome outcome = tenon("calibrate --target cpu --json", kept);
  const Outcome used = tenon("explain --json --target cpu " + graph, kept);
  const Outcome not_used = tenon("explain --json --target cpu --disable calibration " + graph, kept);
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  const auto measured = nlohmann::json::parse(outcome.text);
  for (const char* name : {"launch_us", "bandwidth_gb_s", "gigaslots_s", "tensor_tflops"})
    EXPECT_GT(measured[name], 0) << name;
  EXPECT_LT(measured["bandwidth_gb_s"], 2000);
  EXPECT_EQ(nlohmann::json::parse(used.text)["cost_model"], measured);
  const std::string assumed = nlohmann::json::parse(not_used.text)["cost_model"]["device"];
  EXPECT_TRUE(contains(assumed, "a CPU with ")) << assumed;
}

#endif

TEST_F(Cli, CalibrateOfAnArchitectureWithoutADeviceIsAnError) {
  if (!has_nvrtc()) GTEST_SKIP() << "NVRTC is not installed";
  const Outcome outcome = tenon("calibrate --target sm_90a");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(contains(outcome.text, "--target sm_90a: there is nothing to measure")) << outcome.text;
}

}  // namespace
}  // namespace tenon

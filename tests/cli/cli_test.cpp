// The `tenon` command as a person uses it: real files, output and exit codes.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "src/npy.h"

namespace tenon {
namespace {

struct Outcome {
  int code = -1;
  std::string text;  ///< stdout and stderr
};

// `environment`: assignments before the command, "TENON_CACHE_DIR=folder".
Outcome tenon(const std::string& arguments, const std::string& environment = "") {
  Outcome outcome;
  FILE* pipe = ::popen((environment + " " + TENON_CLI + " " + arguments + " 2>&1").c_str(), "r");
  char buffer[4096];
  for (std::size_t count; (count = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) outcome.text.append(buffer, count);
  const int status = ::pclose(pipe);
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

class Cli : public ::testing::Test {
 protected:
  Cli() : folder_(std::filesystem::temp_directory_path() / ("tenon_cli_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~Cli() override { std::filesystem::remove_all(folder_); }

  std::string file(const std::string& name, const std::string& content) const {
    std::ofstream(path(name)) << content;
    return path(name);
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  std::string gelu() const {
    return file("gelu.tn", "graph gelu(x: f32[rows, 64]) {\n  y = gelu(x, approximate=\"tanh\")\n  return y\n}\n");
  }

 private:
  std::filesystem::path folder_;
};

bool has_nvrtc() {
  return tenon("doctor --json").text.find("\"what\": \"NVRTC\",\n      \"found\": true") != std::string::npos;
}

TEST_F(Cli, DumpShowsEveryLevelThatNeedsNoCompiler) {
  EXPECT_TRUE(contains(tenon("dump " + gelu() + " --emit graph").text, "gelu(x, approximate=\"tanh\")"));
  EXPECT_TRUE(contains(tenon("dump " + gelu() + " --emit graph --after decompose").text, "tanh("));
  EXPECT_TRUE(contains(tenon("dump " + gelu() + " --emit plan").text, "plan gelu: 1 kernel\n0 map over [rows, 64]"));
  EXPECT_TRUE(contains(tenon("dump " + gelu() + " --emit dot").text, "digraph gelu {"));
  EXPECT_EQ(nlohmann::json::parse(tenon("dump " + gelu() + " --emit json").text)["name"], "gelu");
}

#ifdef TENON_WITH_CPU
TEST_F(Cli, DumpShowsTheCpuLevels) {
  EXPECT_TRUE(contains(tenon("dump " + gelu() + " --emit schedule --target cpu").text, "map_tanh: map"));
  EXPECT_TRUE(contains(tenon("dump " + gelu() + " --emit kernel --target cpu").text, "tanh(v"));
  EXPECT_TRUE(contains(tenon("dump " + gelu() + " --emit llvm").text, "define void @map_tanh("));
  EXPECT_TRUE(contains(tenon("dump " + gelu() + " --emit asm").text, "map_tanh:"));
  EXPECT_EQ(tenon("dump " + gelu() + " --emit llvm --target sm_90a").code, 2);
}

TEST_F(Cli, RunReadsAndWritesNumpyFiles) {
  ir::HostArray x = ir::make_array(DType::f32, {3, 64});
  for (std::int64_t i = 0; i < 192; ++i) ir::set_real(x, i, 0.01 * static_cast<double>(i));
  write_npy(path("x.npy"), x);
  const Outcome outcome =
      tenon("run " + gelu() + " --target cpu --input x=" + path("x.npy") + " --output y=" + path("y.npy") + " --check");
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_TRUE(contains(outcome.text, "check y: ok"));
  const ir::HostArray y = read_npy(path("y.npy"));
  EXPECT_EQ(y.shape, (std::vector<std::int64_t>{3, 64}));
  EXPECT_NEAR(ir::get_real(y, 100), 0.8411920, 1e-5);  // gelu(1)
}

TEST_F(Cli, RunMakesRandomInputs) {
  const Outcome outcome = tenon("run " + gelu() + " --target cpu --random 7 --dim rows=5 --check");
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_TRUE(contains(outcome.text, "of 320 elements differ"));
}

TEST_F(Cli, RunSummarizesIntermediateValues) {
  ir::HostArray x = ir::make_array(DType::f32, {4});
  const double elements[] = {0, 1, -4, 9};
  for (std::int64_t i = 0; i < 4; ++i) ir::set_real(x, i, elements[i]);
  write_npy(path("x.npy"), x);
  const std::string graph =
      file("s.tn", "graph s(x: f32[n]) {\n  h = div(1, x)\n  r = sqrt(h)\n  y = exp(r)\n  return y\n}\n");
  const std::string run = "run " + graph + " --target cpu --input x=" + path("x.npy");

  const Outcome some = tenon(run + " --summary r,x --check");
  EXPECT_EQ(some.code, 0) << some.text;  // the summarized values are checked too
  const auto line = [](const std::string& text, const std::string& name) {
    const auto begin = text.find("\n" + name + " ");
    if (begin == std::string::npos) return std::string("no line of ") + name;
    std::istringstream words(text.substr(begin + 1, text.find('\n', begin + 1) - begin - 1));
    std::string joined;
    for (std::string word; words >> word;) joined += (joined.empty() ? "" : " ") + word;
    return joined;
  };
  EXPECT_EQ(line(some.text, "r"), "r f32[4] 0.333333 1 0.666667 0.333333 1 1 0");  // sqrt of inf, 1, -1/4, 1/9
  EXPECT_EQ(line(some.text, "x"), "x f32[4] -4 9 1.5 4.71699 0 0 1");
  EXPECT_EQ(line(some.text, "y"), "no line of y");
  EXPECT_FALSE(contains(some.text, "check x")) << "an input need not be returned to be summarized";

  const Outcome all = tenon(run + " --summary all");
  EXPECT_EQ(line(all.text, "h"), "h f32[4] -0.25 1 0.287037 0.525254 0 1 0");
  EXPECT_EQ(line(all.text, "y"), "y f32[4] 1.39561 2.71828 2.05695 0.661335 1 1 0");
  EXPECT_TRUE(contains(tenon(run).text, "on cpu: 1 kernels\n"));
  EXPECT_FALSE(contains(tenon(run).text, "mean"));

  const Outcome absent = tenon(run + " --summary root");
  EXPECT_EQ(absent.code, 2);
  EXPECT_TRUE(contains(absent.text, "--summary root: the graph has no such value"));
  EXPECT_FALSE(contains(absent.text, "did you mean"));
  EXPECT_EQ(tenon(run + " --summary r --output r=" + path("r.npy")).code, 2);  // not a result of the graph as written
}

TEST_F(Cli, RunSummarizesIntegersAndValuesWithoutElements) {
  const std::string integers =
      file("i.tn", "graph i(x: i32[n]) {\n  y = mul(x, 2)\n  z = less(x, y)\n  return y, z\n}\n");
  const Outcome none = tenon("run " + integers + " --target cpu --random 1 --dim n=0 --summary y");
  EXPECT_EQ(none.code, 0) << none.text;
  EXPECT_TRUE(contains(none.text, "i32[0]")) << none.text;
  const Outcome some = tenon("run " + integers + " --target cpu --random 1 --dim n=100 --summary all");
  EXPECT_EQ(some.code, 0) << some.text;
  EXPECT_TRUE(contains(some.text, "bool[100]")) << some.text;
}

TEST_F(Cli, RunSuggestsTheValueThatWasMeant) {
  const std::string graph = file("m.tn", "graph m(x: f32[4]) {\n  scores = exp(x)\n  y = neg(scores)\n  return y\n}\n");
  const Outcome outcome = tenon("run " + graph + " --target cpu --random 1 --summary scorse");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(contains(outcome.text, "help: did you mean scores? ")) << outcome.text;
}

TEST_F(Cli, RunSaysTheSameAsJson) {
  const std::string graph = file("j.tn", "graph j(x: f32[n]) {\n  h = log(x)\n  y = neg(h)\n  return y\n}\n");
  ir::HostArray x = ir::make_array(DType::f32, {3});
  const double elements[] = {-1, 0, 1};
  for (std::int64_t i = 0; i < 3; ++i) ir::set_real(x, i, elements[i]);
  write_npy(path("x.npy"), x);
  const Outcome outcome =
      tenon("run " + graph + " --target cpu --input x=" + path("x.npy") + " --summary all --check --profile --json");
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  const auto document = nlohmann::json::parse(outcome.text);
  EXPECT_EQ(document["target"], "cpu");
  EXPECT_EQ(document["kernels"], 1);
  ASSERT_EQ(document["summary"].size(), 3U);
  EXPECT_EQ(document["summary"][1], nlohmann::json::parse(R"({"name": "h", "dtype": "f32", "shape": [3], "elements": 3,
    "min": 0.0, "max": 0.0, "mean": 0.0, "std": 0.0, "nan": 1, "inf": 1, "zeros": 1})"));
  EXPECT_EQ(document["profile"]["kernels"].size(), 1U);
  EXPECT_EQ(document["profile"]["kernels"][0]["bytes"], 3 * 3 * 4);
  EXPECT_EQ(document["check"][0]["equal"], true);

  write_npy(path("x.npy"), ir::make_array(DType::f32, {0}));
  const auto empty = nlohmann::json::parse(
      tenon("run " + graph + " --target cpu --input x=" + path("x.npy") + " --summary h --json").text);
  EXPECT_TRUE(empty["summary"][0]["mean"].is_null());
}

TEST_F(Cli, RunProfilesEachKernel) {
  const Outcome outcome =
      tenon("run " + gelu() + " --target cpu --random 1 --dim rows=64 --no-fuse --check --profile --trace " +
            path("trace.json"));
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_TRUE(contains(outcome.text, "mean us")) << outcome.text;
  std::ifstream file(path("trace.json"));
  const auto trace = nlohmann::json::parse(file);
  double last_end = 0;
  int kernels = 0;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    ++kernels;
    const std::string number = std::to_string(event["args"]["group"].get<int>());
    EXPECT_TRUE(contains(outcome.text, "\n" + number + " " + event["name"].get<std::string>() + " ")) << event;
    EXPECT_GE(event["ts"].get<double>(), last_end);  // one after another
    EXPECT_GT(event["dur"].get<double>(), 0);
    EXPECT_GE(event["args"]["bytes"].get<int>(), 64 * 64 * 4);
    EXPECT_GT(event["args"]["of_roof"].get<double>(), 0);
    last_end = event["ts"].get<double>() + event["dur"].get<double>();
  }
  EXPECT_TRUE(contains(outcome.text, "on cpu: " + std::to_string(kernels) + " kernels")) << outcome.text;
  EXPECT_GT(kernels, 1);
  EXPECT_EQ(tenon("run " + gelu() + " --target cpu --random 1 --dim rows=0 --profile").code, 0);
}

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
#endif

TEST_F(Cli, CudaLevelsNeedNoGpu) {
  if (!has_nvrtc()) GTEST_SKIP() << "no NVRTC";
  EXPECT_TRUE(contains(tenon("dump " + gelu() + " --emit cuda --target sm_80").text, "__global__ void"));
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
  EXPECT_TRUE(contains(schedules, "map_exp: map threads=128 vector=4 unroll=1 (in pack_of_2_map_exp)\n")) << schedules;
  EXPECT_TRUE(contains(schedules, "map_exp: map threads=256 vector=4 unroll=1 streaming\n")) << schedules;
  for (const char* member : {"0", "1"})
    EXPECT_TRUE(contains(tenon(std::string("dump --emit cuda --kernel ") + member + on).text, "pack_of_2_map_exp("));
  EXPECT_TRUE(contains(tenon("dump --emit kernel --kernel 1" + on).text, "reduce"));
  EXPECT_FALSE(contains(tenon("dump --emit cuda --disable packing" + on).text, "pack_of"));
  EXPECT_FALSE(contains(tenon("dump --emit plan --target cpu " + graph).text, "launch"));
}

TEST_F(Cli, ExplainGivesPredictedTimesAndTheNumbersBehindThem) {
  const std::string graph = file("exp.tn", "graph g(x: f32[3000, 1000]) {\n  y = exp(x)\n  return y\n}\n");
  const std::string text = tenon("explain " + graph).text;
  EXPECT_TRUE(contains(text, "predicted for H100: copy 3000 GB/s, launch 2.0 us")) << text;
  EXPECT_TRUE(contains(text, "kernel 0 map: 10.0 us (memory 8.0")) << text;
  const auto json = nlohmann::json::parse(tenon("explain --json " + graph).text);
  EXPECT_EQ(json["kernels"][0]["predicted"]["bytes"], 24e6);
  EXPECT_EQ(json["cost_model"]["bandwidth_gb_s"], 3000);
}

#ifdef TENON_WITH_CPU
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
  EXPECT_EQ(nlohmann::json::parse(not_used.text)["cost_model"]["device"], "H100");
}
#endif

TEST_F(Cli, CalibrateOfAnArchitectureWithoutADeviceIsAnError) {
  if (!has_nvrtc()) GTEST_SKIP() << "NVRTC is not installed";
  const Outcome outcome = tenon("calibrate --target sm_90a");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(contains(outcome.text, "--target sm_90a: there is nothing to measure")) << outcome.text;
}

TEST_F(Cli, FmtKeepsCommentsAndMeaning) {
  const std::string graph = file("f.tn", "# why\ngraph f(x:f32[4]){\n  y=neg(  x )\n  return y\n}\n");
  const Outcome outcome = tenon("fmt " + graph);
  EXPECT_EQ(outcome.text, "# why\ngraph f(x: f32[4]) {\n  y = neg(x)\n  return y\n}\n");
  EXPECT_EQ(tenon("fmt --json " + graph + " -o " + path("f.json")).code, 0);
  EXPECT_TRUE(contains(tenon("fmt " + path("f.json")).text, "neg(x)"));
  EXPECT_TRUE(contains(tenon("fmt - < " + graph).text, "neg(x)"));
}

TEST_F(Cli, OpsListsTheTable) {
  EXPECT_TRUE(contains(tenon("ops").text, "layer_norm(x, …"));
  EXPECT_GT(nlohmann::json::parse(tenon("ops --json").text).size(), 100U);
}

TEST_F(Cli, DoctorListsWhatItFoundAndTheVariables) {
  const Outcome outcome = tenon("doctor");
  EXPECT_EQ(outcome.code, 0);
  for (const char* word : {"NVRTC", "GPU", "CPU target", "kernel cache", "TENON_CACHE_DIR"})
    EXPECT_TRUE(contains(outcome.text, word)) << word;
}

TEST_F(Cli, CacheCountsVerifiesAndClears) {
  EXPECT_TRUE(contains(tenon("cache stats").text, "kernels, "));
  EXPECT_TRUE(contains(tenon("cache verify").text, "0 removed"));
  EXPECT_EQ(tenon("cache clear").code, 0);
  EXPECT_EQ(nlohmann::json::parse(tenon("cache stats --json").text)["entries"], 0);
}

TEST_F(Cli, ExitCodesTellWhatWentWrong) {
  EXPECT_EQ(tenon("version").code, 0);
  EXPECT_EQ(tenon("dump " + file("bad.tn", "graph f(x: f32[4]) { return z }\n")).code, 1);
  EXPECT_EQ(tenon("dump " + path("absent.tn")).code, 1);
  EXPECT_EQ(tenon("").code, 2);
  EXPECT_EQ(tenon("dump").code, 2);
  EXPECT_EQ(tenon("dump " + gelu() + " --emit everything").code, 2);
  EXPECT_EQ(tenon("dump " + gelu() + " --dim rows=many").code, 2);
  if (!contains(tenon("doctor").text, "GPU           found")) {
    EXPECT_EQ(tenon("run " + gelu() + " --target cuda --random 1 --dim rows=2").code, 3);
  }
}

}  // namespace
}  // namespace tenon

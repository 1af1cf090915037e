// The Python scripts of bench/, as far as they work without PyTorch. Skipped where there is no Python 3.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>

#include "tests/cli/cli.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;

class BenchScripts : public ::testing::Test {
 protected:
  BenchScripts() : folder_(fs::temp_directory_path() / ("tenon_bench_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~BenchScripts() override { fs::remove_all(folder_); }

  void SetUp() override {
    if (std::system("python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null") != 0)
      GTEST_SKIP() << "no Python 3.9";
  }

  std::string file(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ / name) << content;
    return (folder_ / name).string();
  }

  static std::string output_of(const std::string& command) {
    const Outcome outcome = outcome_of(command + " 2>&1");
    EXPECT_EQ(outcome.code, 0) << outcome.text;
    return outcome.text;
  }

  fs::path folder_;
};

constexpr const char* kTenon = R"({"tenon": "0.1.0 abc", "device": "a GPU", "cases": [
  {"graph": "gelu", "ms": 0.5, "p10_ms": 0.49, "p90_ms": 0.51, "kernels": 1, "gb_s": 3000.4, "copy_share": 0.987, "unwritten": 0,
   "bytes": 1500000000, "copy_ms": 0.4935, "instructions": 6e9, "gigaslots_s": 29000},
  {"graph": "sum", "ms": 4.0, "p10_ms": 4.0, "p90_ms": 4.0, "kernels": 2, "gb_s": 100, "copy_share": 0.1, "unwritten": 3},
  {"graph": "big", "error": "out of memory"}]})";

TEST_F(BenchScripts, CompareJoinsPeersIntoOneTable) {
  const std::string tenon = file("tenon.json", kTenon);
  const std::string peers = file("peers.json", R"({"torch": "2.11", "cases": {
    "gelu": {"eager": {"ms": 5.0}, "compile": {"ms": 0.6}}, "sum": {"eager": {"ms": 1.0}, "compile": {"error": "no\ntriton"}}}})");
  const std::string more = file("more.json", R"({"torch": "2.11", "cases": {"gelu": {"max": {"ms": 0.55}}}})");
  const std::string chart = (folder_ / "chart.svg").string(), roofline = (folder_ / "roofline.svg").string();
  EXPECT_EQ(output_of("python3 -B " TENON_SOURCE_DIR "/bench/compare.py " + tenon + " " + peers + " " + more +
                      " --svg " + chart + " --roofline " + roofline),
            "a GPU, Tenon 0.1.0 abc, torch 2.11\n"
            "\n"
            "Ratio to the best peer over 2 of 3 cases: geometric mean 0.52, at least 1.0 in 1, worst 0.25; "
            "drift above 3 % in 0.\n"
            "Share of a copy over 2 cases: geometric mean 0.31, worst 0.10.\n"
            "\n"
            "| case | kernels | ms | ±% | GB/s | of copy | eager ms | compile ms | max ms | best peer | ratio | drift "
            "% |  |\n"
            "|---|---|---|---|---|---|---|---|---|---|---|---|---|\n"
            "| gelu | 1 | 0.5000 | 2.0 | 3000 | 0.987 | 5.000 | 0.6000 | 0.5500 | max | 1.10 | - |  |\n"
            "| sum | 2 | 4.000 | 0.0 | 100 | 0.100 | 1.000 | - | - | eager | 0.25 | - | 3 elements unwritten |\n"
            "| big | - | - | - | - | - | - | - | - | - | - | - | failed: out of memory |\n"
            "\n"
            "Not measured:\n"
            "\n"
            "- compile in peers.json, no triton: sum\n"
            "- Tenon, out of memory: big\n"
            "- every peer, not in the files of the peers: big\n");
  const auto content = [](const std::string& path) {
    std::stringstream svg;
    svg << std::ifstream(path).rdbuf();
    return svg.str();
  };
  EXPECT_NE(content(chart).find(">gelu</text>"), std::string::npos);
  EXPECT_EQ(content(chart).find(">big</text>"), std::string::npos);  // has no bar
  EXPECT_NE(content(roofline).find("a copy at 3040 GB/s, 29000 G instructions/s"), std::string::npos);
  EXPECT_NE(content(roofline).find("<title>gelu</title>"), std::string::npos);
  EXPECT_EQ(content(roofline).find("<title>sum</title>"), std::string::npos);  // its instructions were not counted
}

// Two files that time the same peer are two runs of it: the faster one counts, and their distance is the drift.
TEST_F(BenchScripts, CompareFlagsACaseWhosePeerDrifted) {
  const auto row = [](const std::string& graph) {
    return R"({"graph": ")" + graph + R"(", "ms": 0.5, "p10_ms": 0.5, "p90_ms": 0.5, "kernels": 1, "gb_s": 80,
      "tflop_s": 700, "copy_share": 0.1, "unwritten": 0})";
  };
  const auto peers = [](const std::string& device, const std::string& eager, const std::string& residual) {
    return R"({"device": ")" + device + R"(", "torch": "2.11", "cuda": "13.0", "cublas": "13.2.0", "cudnn": "9.10.2",
      "triton": "3.6.0", "cases": {"matmul_nn_bf16_8": {"eager": {"ms": )" +
           eager + R"(}, "max": {"ms": 0.9}},
      "matmul_residual_bf16_8": {"eager": {"ms": )" +
           residual + R"(}, "max": {"error": "late"}}}})";
  };
  const std::string tenon =
      file("tenon.json", R"({"tenon": "0.1.0 abc", "device": "a GPU", "cases": [)" + row("matmul_nn_bf16_8") + "," +
                             row("matmul_residual_bf16_8") + "]}");
  const std::string before = file("peers-1.json", peers("a GPU", "0.6", "0.4"));
  const std::string after = file("peers-2.json", peers("a GPU", "0.55", "0.408"));
  const std::string compare = "python3 -B " TENON_SOURCE_DIR "/bench/compare.py " + tenon + " " + before + " ";
  EXPECT_EQ(
      output_of(compare + after),
      "a GPU, Tenon 0.1.0 abc, torch 2.11, cuda 13.0, cublas 13.2.0, cudnn 9.10.2, triton 3.6.0\n"
      "\n"
      "Ratio to the best peer over 2 of 2 cases: geometric mean 0.94, at least 1.0 in 1, worst 0.80; "
      "drift above 3 % in 1.\n"
      "\n"
      "## Products\n"
      "\n"
      "Ratio to the best peer over 1 of 1 cases: geometric mean 1.10, at least 1.0 in 1, worst 1.10; "
      "drift above 3 % in 1.\n"
      "\n"
      "| case | kernels | ms | ±% | GB/s | TFLOP/s | of copy | eager ms | max ms | best peer | ratio | drift % |  |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|---|---|\n"
      "| matmul_nn_bf16_8 | 1 | 0.5000 | 0.0 | 80 | 700 | 0.100 | 0.5500 | 0.9000 | eager | 1.10 | 9.1 | "
      "drift above 3 % |\n"
      "\n"
      "## Products with epilogues\n"
      "\n"
      "Ratio to the best peer over 1 of 1 cases: geometric mean 0.80, at least 1.0 in 0, worst 0.80; "
      "drift above 3 % in 0.\n"
      "\n"
      "| case | kernels | ms | ±% | GB/s | TFLOP/s | of copy | eager ms | best peer | ratio | drift % |  |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|---|\n"
      "| matmul_residual_bf16_8 | 1 | 0.5000 | 0.0 | 80 | 700 | 0.100 | 0.4000 | eager | 0.80 | 2.0 |  |\n"
      "\n"
      "Not measured:\n"
      "\n"
      "- max in peers-1.json, late: matmul_residual_bf16_8\n"
      "- max in peers-2.json, late: matmul_residual_bf16_8\n");
  const std::string elsewhere = file("peers-3.json", peers("another GPU", "0.6", "0.4"));
  EXPECT_TRUE(contains(output_of(compare + elsewhere), "ran on another device: a GPU and another GPU\n"));
}

// A peer that computes no such case has no time, and none is missing.
TEST_F(BenchScripts, CompareHasAttentionByClassAndThePeersThatApply) {
  const auto row = [](const std::string& graph) {
    return R"({"graph": ")" + graph + R"(", "ms": 0.5, "p10_ms": 0.5, "p90_ms": 0.5, "kernels": 1, "gb_s": 80,
      "tflop_s": 700, "copy_share": 0.1, "unwritten": 0})";
  };
  const std::string tenon =
      file("tenon.json", R"({"tenon": "0.1.0 abc", "device": "a GPU", "cases": [)" +
                             row("attention_gqa_causal_bf16_1") + "," + row("attention_window8_causal_bf16_1") + "," +
                             row("attention_decode_paged_bf16_1") + "]}");
  const std::string peers = file("peers.json", R"({"cases": {
    "attention_gqa_causal_bf16_1": {"eager": {"ms": 1.0}, "cudnn": {"ms": 0.6}, "flex": {"not_applicable": "plain"}},
    "attention_window8_causal_bf16_1": {"eager": {"ms": 1.0}, "cudnn": {"error": "late"}, "flex": {"ms": 0.4}},
    "attention_decode_paged_bf16_1": {"eager": {"ms": 2.0}, "cudnn": {"ms": 1.0}, "flex": {"not_applicable": "pages"}}}})");
  const std::string text = output_of("python3 -B " TENON_SOURCE_DIR "/bench/compare.py " + tenon + " " + peers);
  EXPECT_TRUE(contains(text, "## Attention: forward\n")) << text;
  EXPECT_TRUE(contains(text, "eager ms | cudnn ms | best peer | ratio | drift % |  |\n")) << text;
  EXPECT_TRUE(contains(text,
                       "| attention_gqa_causal_bf16_1 | 1 | 0.5000 | 0.0 | 80 | 700 | 0.100 | 1.000 | 0.6000 | "
                       "cudnn | 1.20 | - |  |\n"))
      << text;
  EXPECT_TRUE(contains(text, "## Attention: changed scores\n")) << text;
  EXPECT_TRUE(contains(text, "0.100 | 1.000 | 0.4000 | flex | 0.80 | - |  |\n")) << text;
  EXPECT_TRUE(contains(text, "## Attention: decoding\n")) << text;
  EXPECT_TRUE(contains(text, "Not measured:\n\n- cudnn in peers.json, late: attention_window8_causal_bf16_1\n"))
      << text;
  EXPECT_FALSE(contains(text, "flex in peers.json")) << text;
}

// peer_cases.py only builds functions when it is loaded, so that any object may stand for PyTorch.
constexpr const char* kWithoutTorch = R"(import sys, types
class Anything(types.ModuleType):
    def __getattr__(self, name): return Anything(name)
    def __call__(self, *_, **__): return self
for name in ("torch", "torch.nn", "torch.nn.functional", "triton"): sys.modules[name] = Anything(name)
)";
constexpr const char* kPython = "PYTHONPATH=" TENON_SOURCE_DIR "/bench python3 -B ";

TEST_F(BenchScripts, APeerThatFailsCostsItsOwnEntry) {
  const std::string script = file("fail.py", kWithoutTorch + std::string(R"(import json, peers
def measure(peer, function, arguments, device, seconds):
    if peer == "max": raise RuntimeError("no triton")
    return {"ms": function(*arguments), "first_s": 0}
peers.measure = measure
peers.versions = lambda device: {"torch": "2.11"}
peers.CASES = {"good": lambda device: (abs, [-2]), "broken": lambda device: 1 / 0, "other": None}
peers.LIBRARIES = {"good": {"cudnn": lambda *_: lambda x: 3}}
sys.argv[1:] = ["--device=cpu", "--peers=max,eager", "--cases=good|broken", "--out=" + sys.argv[1], *sys.argv[2:]]
peers.main()
print(json.load(open(sys.argv[4][6:])))
)"));
  const std::string command = kPython + script + " " + (folder_ / "peers.json").string();
  EXPECT_TRUE(contains(output_of(command),
                       "{'torch': '2.11', 'cases': {"
                       "'good': {'max': {'error': 'RuntimeError: no triton'}, 'eager': {'ms': 2, 'first_s': 0}}, "
                       "'broken': {'max': {'error': 'ZeroDivisionError: division by zero'}, "
                       "'eager': {'error': 'ZeroDivisionError: division by zero'}}}}\n"));
  EXPECT_TRUE(
      contains(output_of(command + " --peers=cudnn"),
               "'good': {'cudnn': {'ms': 3, 'first_s': 0}}, "
               "'broken': {'cudnn': {'not_applicable': 'no attention, or scores that scaled_dot_product_attention "
               "does not change so'}}}"));
  EXPECT_TRUE(contains(output_of(command + " --budget=-1"),
                       "'good': {'max': {'error': 'not begun in time'}, 'eager': {'error': 'not begun in time'}}"));
}

TEST_F(BenchScripts, PeersNameTheirLibraries) {
  const std::string script = file("versions.py", kWithoutTorch + std::string(R"(import peers
peers.torch.backends = types.SimpleNamespace(cudnn=types.SimpleNamespace(version=lambda: 91002))
peers.cublas_version = lambda: peers.dotted(130200)
found = peers.versions("cuda")
print(*found, found["cublas"], found["cudnn"])
)"));
  EXPECT_EQ(output_of(kPython + script), "torch device cuda cublas cudnn triton 13.2.0 9.10.2\n");
}

TEST_F(BenchScripts, AGraphThatCrashesCostsItsOwnRow) {
  const std::string program = file("tenon", R"(#!/bin/sh
case $2 in *bad.tn) echo "no device" >&2; exit 3;; esac
for out; do :; done
echo '{"tenon": "0.1.0 abc", "device": "a GPU", "cases": [{"graph": "good", "ms": 1.0, "unwritten": 0}]}' >"$out"
)");
  fs::permissions(program, fs::perms::owner_all);
  const std::string out = (folder_ / "tenon.json").string();
  const std::string command = "python3 -B " TENON_SOURCE_DIR "/bench/tenon_times.py " + program + " --out " + out;
  const Outcome outcome = outcome_of(command + " bad.tn good.tn 2>&1");
  EXPECT_EQ(outcome.code, 1) << outcome.text;
  std::ifstream written(out);
  const auto document = nlohmann::json::parse(written);
  EXPECT_EQ(document["device"], "a GPU");
  ASSERT_EQ(document["cases"].size(), 2U);
  EXPECT_EQ(document["cases"][0]["graph"], "bad");
  EXPECT_EQ(document["cases"][0]["error"], "exit code 3: no device");
  EXPECT_EQ(document["cases"][1]["ms"], 1.0);
  EXPECT_EQ(outcome_of(command + " good.tn 2>&1").code, 0);
  EXPECT_TRUE(contains(outcome_of(command + " good.tn --budget=-1 2>&1").text, "not begun in time"));
}

// Python is a script that writes down how it was called.
TEST_F(BenchScripts, RunTimesThePeersBeforeAndBehindTenon) {
  const std::string python = file("python3", R"(#!/bin/sh
[ "$1" = -c ] && exit 0
here=$(dirname "$0")
echo "$@" | sed "s|$here/||g" >>"$here/calls"
while [ $# -gt 0 ]; do [ "$1" = --out ] && touch "$2"; shift; done
)");
  fs::permissions(python, fs::perms::owner_all);
  const auto calls = [&](const std::string& globs) {
    fs::remove(folder_ / "calls");
    const std::string folder = folder_.string();
    const Outcome outcome = outcome_of(
        "PATH=" + folder +
        ":$PATH TARGET=cuda PEERS=eager SECONDS_EACH=0.1 BUDGET=inf bash " TENON_SOURCE_DIR "/bench/run.sh " + folder +
        " " + folder + "/out " + globs + " 2>&1");
    EXPECT_EQ(outcome.code, 0) << outcome.text;
    std::stringstream text;
    text << std::ifstream(folder_ / "calls").rdbuf();
    return text.str();
  };
  const std::string peers =
      "peers.py --cases ^(matmul_nn_bf16_1024|matmul_nn_f16_8192)$ --peers eager --device cuda --seconds 0.1 "
      "--budget inf --out out/peers-";
  EXPECT_EQ(calls("'*nn_f16*' matmul/matmul_nn_bf16_1024"),
            peers + "1.json\n" +
                "tenon_times.py bin/tenon cases/matmul/matmul_nn_bf16_1024.tn cases/matmul/matmul_nn_f16_8192.tn "
                "--target cuda --seconds 0.1 --budget inf --out out/tenon.json\n" +
                peers + "2.json\n" +
                "compare.py out/tenon.json out/peers-1.json out/peers-2.json -o out/table.md --svg out/chart.svg "
                "--roofline out/roofline.svg\n");
  EXPECT_FALSE(contains(calls("'matmul/*'"), "gelu_bf16_small_256"));
  EXPECT_TRUE(contains(calls(""), "gelu_bf16_small_256"));
}

TEST_F(BenchScripts, EveryCaseHasAPeerOfItsName) {
  const std::string script =
      file("names.py", kWithoutTorch + std::string("import peer_cases\nprint('\\n'.join(peer_cases.CASES))\n"));
  std::istringstream lines(output_of(kPython + script));
  std::set<std::string> peers, cases;
  for (std::string line; std::getline(lines, line);) peers.insert(line);
  for (const auto& entry : fs::recursive_directory_iterator(TENON_SOURCE_DIR "/bench/cases"))
    if (entry.path().extension() == ".tn") cases.insert(entry.path().stem().string());
  EXPECT_EQ(peers, cases);
}

// What the GPU test prints is where Tenon's figure comes from: that of dependent launch, not the first line's.
TEST_F(BenchScripts, TheChainsFigureIsTheTests) {
  const std::string program = file("gpu_test", R"(#!/bin/sh
echo "100 kernels: launched 312.0 us, replayed 131.0 us"
echo "100 kernels, dependent launch: launched 262.0 us, replayed 97.4 us"
)");
  fs::permissions(program, fs::perms::owner_all);
  const std::string table = output_of("python3 -B " TENON_SOURCE_DIR "/bench/chain.py " + program);
  EXPECT_NE(table.find("| Tenon | 97.4 |"), std::string::npos) << table;
}

#ifdef TENON_WITH_CPU
TEST_F(BenchScripts, FirstResultsAreTimedInFreshProcesses) {
  const std::string table =
      output_of("python3 -B " TENON_SOURCE_DIR "/bench/first_result.py " TENON_CLI " --target cpu --runs 1 --peers=");
  EXPECT_NE(table.find("gelu_bf16_small_256 on cpu"), std::string::npos) << table;
  EXPECT_NE(table.find("| Tenon | "), std::string::npos) << table;
  EXPECT_LT(table.find("Tenon, pair 1 of 1, filled cache: "), table.find("| Tenon | ")) << "told of as it ends";
}
#endif

TEST_F(BenchScripts, SweptGraphsAreSpelledInPyTorch) {
  const std::string sweep = file("sweep.json", R"({"graphs": [{"index": 5, "class": "gather", "graph": {
    "format": "tenon-graph", "version": 1, "name": "sweep_1_5",
    "inputs": [{"name": "x0", "dtype": "bf16", "shape": [100, 8]}, {"name": "x1", "dtype": "i64", "shape": [20]}],
    "nodes": [
      {"op": "take", "operands": ["x0", "x1"], "results": [{"name": "v0", "dtype": "bf16", "shape": [20, 8]}]},
      {"op": "greater", "operands": ["v0", {"value": 0.5, "dtype": "bf16"}],
       "results": [{"name": "v1", "dtype": "bool", "shape": [20, 8]}]},
      {"op": "where", "operands": ["v1", {"value": "-inf", "dtype": "bf16"}, {"value": 1.0, "dtype": "bf16"}],
       "results": [{"name": "v2", "dtype": "bf16", "shape": [20, 8]}]},
      {"op": "slice", "operands": ["v2"], "attrs": {"axis": [1], "start": [1], "stop": [7], "step": [2]},
       "results": [{"name": "v3", "dtype": "bf16", "shape": [20, 3]}]},
      {"op": "softmax", "operands": ["v3"], "attrs": {"axis": [0, 1]},
       "results": [{"name": "v4", "dtype": "bf16", "shape": [20, 3]}]},
      {"op": "max", "operands": ["v4"], "attrs": {"axis": -1, "keepdims": true},
       "results": [{"name": "y0", "dtype": "bf16", "shape": [20, 1]}]}],
    "outputs": [{"name": "y0", "value": "y0"}]}}]})");
  EXPECT_EQ(output_of("python3 -B " TENON_SOURCE_DIR "/bench/sweep_peers.py " + sweep + " --source"),
            "def sweep_1_5(x0, x1):\n"
            "    \"\"\"x0: bf16[100, 8], x1: i64[20] below 100\"\"\"\n"
            "    device = x0.device\n"
            "    v0 = x0[x1]\n"
            "    v1 = v0 > 0.5\n"
            "    v2 = torch.where(v1, torch.full([], float('-inf'), dtype=torch.bfloat16, device=device), 1.0)\n"
            "    v3 = v2[:, 1:7:2]\n"
            "    v4 = torch.softmax(v3.permute([0, 1]).flatten(0), -1).reshape([20, 3]).permute([0, 1])\n"
            "    y0 = v4.amax([1], keepdim=True)\n"
            "    return y0\n\n");
}

#ifdef TENON_WITH_CPU
TEST_F(BenchScripts, EveryOperatorOfASweepHasASpelling) {
  const std::string sweep = (folder_ / "sweep.json").string();
  const Outcome outcome = tenon("sweep --target cpu --build --bytes 4K:64K --count 120 --seed 3 -o " + sweep);
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  const std::string text = output_of("python3 -B " TENON_SOURCE_DIR "/bench/sweep_peers.py " + sweep + " --source");
  EXPECT_NE(text.find("def sweep_3_119("), std::string::npos);
}
#endif

TEST_F(BenchScripts, PeersOfASweepAreComparedInAllAndByClass) {
  const std::string sweep = file("sweep.json", R"({"graphs": [
    {"index": 0, "class": "loss", "ms": 1.0, "graph": {"name": "sweep_1_0"}},
    {"index": 1, "class": "view", "ms": 1.0, "graph": {"name": "sweep_1_1"}},
    {"index": 2, "class": "view", "error": "refused", "graph": {"name": "sweep_1_2"}}]})");
  const std::string peers = file("peers.json", R"({"cases": {"sweep_1_0": {"compile": {"ms": 0.5}},
    "sweep_1_1": {"compile": {"ms": 2.0}}, "sweep_1_2": {"compile": {"ms": 2.0}}}})");
  EXPECT_EQ(output_of("python3 -B " TENON_SOURCE_DIR "/bench/sweep_peers.py " + sweep + " --compare " + peers),
            "time of a peer over Tenon    graphs   mean median  worst below 1\n"
            "compile, all                      2   1.00   2.00   0.50       1\n"
            "compile, loss                     1   0.50   0.50   0.50       1\n"
            "compile, view                     1   2.00   2.00   2.00       0\n"
            "    0.50  loss           sweep_1_0\n"
            "    2.00  view           sweep_1_1\n");
}

}  // namespace
}  // namespace tenon

// The Python scripts of bench/, as far as they work without PyTorch. Skipped where there is no Python 3.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
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
    "gelu": {"eager": {"ms": 5.0}, "compile": {"ms": 0.6}}, "sum": {"eager": {"ms": 1.0}, "error": "no triton"}}})");
  const std::string more = file("more.json", R"({"torch": "2.11", "cases": {"gelu": {"max": {"ms": 0.55}}}})");
  const std::string chart = (folder_ / "chart.svg").string(), roofline = (folder_ / "roofline.svg").string();
  EXPECT_EQ(output_of("python3 -B " TENON_SOURCE_DIR "/bench/compare.py " + tenon + " " + peers + " " + more +
                      " --svg " + chart + " --roofline " + roofline),
            "a GPU, Tenon 0.1.0 abc, torch 2.11\n"
            "\n"
            "Ratio to the best peer over 2 cases: geometric mean 0.52, at least 1.0 in 1, worst 0.25.\n"
            "Share of a copy over 2 cases: geometric mean 0.31, worst 0.10.\n"
            "\n"
            "| case | kernels | ms | ±% | GB/s | of copy | eager ms | compile ms | max ms | best peer | ratio |  |\n"
            "|---|---|---|---|---|---|---|---|---|---|---|---|\n"
            "| gelu | 1 | 0.5000 | 2.0 | 3000 | 0.987 | 5.000 | 0.6000 | 0.5500 | max | 1.10 |  |\n"
            "| sum | 2 | 4.000 | 0.0 | 100 | 0.100 | 1.000 | - | - | eager | 0.25 | 3 elements unwritten |\n"
            "| big | - | - | - | - | - | - | - | - | - | - | failed: out of memory |\n");
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

// peer_cases.py only builds functions when it is loaded, so that any object may stand for PyTorch.
TEST_F(BenchScripts, EveryCaseHasAPeerOfItsName) {
  const std::string script = file("names.py", R"(import sys, types
class Anything(types.ModuleType):
    def __getattr__(self, name): return Anything(name)
    def __call__(self, *_, **__): return self
for name in ("torch", "torch.nn", "torch.nn.functional"): sys.modules[name] = Anything(name)
import peer_cases
print("\n".join(peer_cases.CASES))
)");
  std::istringstream lines(output_of("PYTHONPATH=" TENON_SOURCE_DIR "/bench python3 -B " + script));
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

}  // namespace
}  // namespace tenon

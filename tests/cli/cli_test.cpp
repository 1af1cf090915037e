// The other subcommands, and the exit codes of all.
#include "tests/cli/cli.h"

#include <nlohmann/json.hpp>
#include <string>

namespace tenon {
namespace {

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

TEST_F(Cli, SwitchesListsWhatCanBeSwitchedOff) {
  const Outcome outcome = tenon("switches");
  for (const char* word : {"pass     fold", "planner  siblings", "kernels  keep_reads", "runtime  tuned"})
    EXPECT_TRUE(contains(outcome.text, word)) << word;
  for (const auto& row : nlohmann::json::parse(tenon("switches --json").text))
    EXPECT_EQ(tenon("dump " + gelu() + " --target sm_90a --disable " + row["name"].get<std::string>()).code, 0) << row;
}

TEST_F(Cli, AMistypedSwitchIsAnError) {
  const Outcome outcome = tenon("dump " + gelu() + " --disable keep_read");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(contains(outcome.text, "'keep_read' is nothing that can be switched off")) << outcome.text;
  EXPECT_TRUE(contains(outcome.text, "did you mean 'keep_reads'? Options::disable (TENON_DISABLE) takes canon"))
      << outcome.text;
  EXPECT_TRUE(
      contains(outcome.text, "\n  here: --disable NAME, or TENON_DISABLE=NAME; `tenon switches` says what each is"))
      << outcome.text;
  EXPECT_TRUE(contains(tenon("dump " + gelu(), "TENON_PRINT=shedule").text, "did you mean 'schedule'?"));
  EXPECT_TRUE(contains(tenon("bench --seconds 0.01 --target cpu " + gelu(), "TENON_PRINT=schedule").text, ": map "));
}

TEST_F(Cli, DoctorListsWhatItFoundAndTheVariables) {
  const Outcome outcome = tenon("doctor");
  EXPECT_EQ(outcome.code, 0);
  for (const char* word : {"NVRTC", "GPU", "CPU target", "kernel cache", "TENON_CACHE_DIR"})
    EXPECT_TRUE(contains(outcome.text, word)) << word;
}

TEST_F(Cli, DoctorSaysThatTheCacheHasNoFolderWhereNoVariableNamesOne) {
  const std::string text = tenon("doctor", "env -u HOME -u XDG_CACHE_HOME -u TENON_CACHE_DIR").text;
  EXPECT_TRUE(contains(text,
                       "kernel cache  missing: no folder: neither TENON_CACHE_DIR nor XDG_CACHE_HOME nor HOME is set\n"
                       "                        set one of them\n"))
      << text;
  EXPECT_TRUE(contains(tenon("doctor", "TENON_CACHE=0").text, "kernel cache  missing: switched off\n"));
}

// In a cache of its own: other tests fill the one that all share meanwhile.
TEST_F(Cli, CacheCountsVerifiesAndClears) {
  const std::string own = "TENON_CACHE_DIR=" + path("cache");
  EXPECT_EQ(tenon("run " + gelu() + " --target cpu --random 1 --dim rows=2", own).code, 0);
  EXPECT_EQ(nlohmann::json::parse(tenon("cache stats --json", own).text)["entries"], 1);
  EXPECT_TRUE(contains(tenon("cache stats", own).text, "1 entry, "));
  EXPECT_TRUE(contains(tenon("cache verify", own).text, "0 removed"));
  EXPECT_EQ(tenon("cache clear", own).code, 0);
  EXPECT_EQ(nlohmann::json::parse(tenon("cache stats --json", own).text)["entries"], 0);
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

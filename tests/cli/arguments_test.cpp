// Words and numbers that are mistyped, and the command's own help.
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "src/api/npy.h"
#include "tests/cli/cli.h"

namespace tenon {
namespace {

TEST_F(Cli, HelpAndVersionAreFoundWhereOthersHaveThem) {
  EXPECT_EQ(tenon("--version").text, tenon("version").text);
  EXPECT_EQ(tenon("--version").code, 0);
  EXPECT_EQ(tenon("help").code, 0);
  EXPECT_EQ(tenon("help").text, tenon("--help").text);
  EXPECT_EQ(tenon("help run").code, 0);
  EXPECT_EQ(tenon("help run").text, tenon("run --help").text);
  EXPECT_EQ(tenon("help cache stats").text, tenon("cache stats --help").text);
}

TEST_F(Cli, AMistypedCommandGetsTheOneThatWasMeant) {
  const Outcome outcome = tenon("dmp " + gelu());
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.text,
            "tenon: argument error: 'dmp' is no command of tenon\n"
            "  help: did you mean dump? tenon has dump, run, explain, bench, tune, sweep, calibrate, ops, switches, "
            "fmt, doctor, cache, completion, man, version; `tenon help` says what each does\n");
  EXPECT_TRUE(contains(tenon("cache stat").text, "'stat' is no command of cache\n  help: did you mean stats?"));
  EXPECT_TRUE(contains(tenon("help dmp").text, "did you mean dump?"));
  EXPECT_TRUE(contains(tenon("").text, "tenon: which command?"));
  EXPECT_EQ(tenon("").code, 2);
  EXPECT_EQ(tenon("cache").code, 2);
}

TEST_F(Cli, ANumberThatIsNoneIsSaidInOneLine) {
  const auto said = [&](const std::string& options) {
    const Outcome outcome = tenon("run " + gelu() + " --target cpu " + options);
    EXPECT_EQ(outcome.code, 2) << outcome.text;
    return outcome.text.substr(0, outcome.text.find('\n'));
  };
  EXPECT_EQ(said("--random -1"), "--random: '-1' is no whole number from 0 on; write --random 1");
  EXPECT_EQ(said("--random many"), "--random: 'many' is no whole number from 0 on; write --random 1");
  EXPECT_EQ(said("--random 1.5"), "--random: '1.5' is no whole number from 0 on; write --random 1");
  EXPECT_TRUE(contains(tenon("dump " + gelu() + " --kernel -1").text, "'-1' is no whole number from 0 on"));
  EXPECT_TRUE(contains(tenon("bench " + gelu() + " --seconds 0").text, "--seconds: '0' is no number above 0"));
}

TEST_F(Cli, AnOptionThatDoesNothingIsRefused) {
  const auto said = [&](const std::string& options) {
    const Outcome outcome = tenon("dump " + gelu() + " --target sm_90a " + options);
    EXPECT_EQ(outcome.code, 2) << outcome.text;
    return outcome.text.substr(0, outcome.text.find('\n'));
  };
  for (const std::string level : {"graph", "json", "plan", "dot"})
    EXPECT_EQ(said("--kernel 0 --emit " + level),
              "tenon: argument error: --kernel 0: --emit " + level + " is of the whole graph");
  EXPECT_EQ(said("--kernel 5 --emit schedule"), "tenon: argument error: --kernel 5: the plan has 1 kernel");
  EXPECT_EQ(said("--after fold --emit plan"), "tenon: argument error: --after fold with --emit plan");
}

TEST_F(Cli, AFileIsGivenOnceToANameThatTheGraphHas) {
  const std::string run = "run " + gelu() + " --target cpu --random 1 --dim rows=2 ";
  EXPECT_TRUE(contains(tenon(run + "--output z=" + path("z.npy")).text,
                       "--output z: the graph has no such output\n  help: its outputs are y\n"));
  EXPECT_TRUE(contains(tenon(run + "--output y=" + path("a.npy") + " --output y=" + path("b.npy")).text,
                       "--output y stands twice"));
  EXPECT_TRUE(contains(tenon(run + "--input z=" + path("z.npy")).text, "--input z: the graph has no such input"));
  EXPECT_TRUE(contains(tenon("run - --input x=- <" + gelu()).text, "standard input is to be read twice"));
}

TEST_F(Cli, TheLibrarysErrorsGetTheCommandsWords) {
  const Outcome slice = tenon("dump " + file("s.tn",
                                             "graph s(x: f32[n]) {\n"
                                             "  y = slice(x, start=[3], stop=[n])\n  return y\n}\n"));
  EXPECT_EQ(slice.code, 1);
  EXPECT_TRUE(contains(slice.text,
                       "  help: give the symbols bounds by which it is known to be inside\n"
                       "  here: bounds stand behind the graph's inputs: where rows in [1, 65536], rows % 16 == 0\n"))
      << slice.text;
}

TEST_F(Cli, ASwitchOfTheEnvironmentIsReadOrRefused) {
  EXPECT_EQ(tenon("dump " + gelu() + " --target sm_90a", "TENON_TUNE=no TENON_REPLAY=false TENON_CACHE=off").code, 0);
  EXPECT_TRUE(contains(tenon("doctor", "TENON_CACHE=off").text, "switched off"));
  const Outcome outcome = tenon("doctor", "TENON_THREADS=-3");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.text,
            "tenon: argument error: TENON_THREADS='-3' is not understood\n"
            "  help: TENON_THREADS takes a whole number from 0 to 4096\n");
}

TEST_F(Cli, DoctorListsTheArchitecturesThatTargetTakes) {
  if (!has_nvrtc()) GTEST_SKIP() << "NVRTC is not installed";
  std::string detail;
  const auto document = nlohmann::json::parse(tenon("doctor --json").text);
  for (const auto& finding : document["found"])
    if (finding["what"] == "NVRTC") detail = finding["detail"];
  const auto open = detail.rfind('(');
  std::istringstream names(detail.substr(open + 1, detail.size() - open - 2));
  int count = 0;
  for (std::string name; names >> name; ++count)
    EXPECT_EQ(tenon("dump " + gelu() + " --emit schedule --target " + name).code, 0) << name;
  EXPECT_GT(count, 5);
  EXPECT_TRUE(contains(detail, " sm_90a")) << detail;
}

#ifdef TENON_WITH_CPU
TEST_F(Cli, AMissingDimensionIsGivenByAnOption) {
  write_npy(path("x.npy"), ir::make_array(DType::f32, {4}));
  const std::string graph =
      file("d.tn", "graph d(x: f32[4]) where n >= 1 {\n  y = broadcast_to(x, shape=[n, 4])\n  return y\n}\n");
  const Outcome outcome = tenon("run " + graph + " --target cpu --input x=" + path("x.npy"));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.text,
            "tenon: argument error: no input's shape decides the dimension 'n'\n"
            "  help: give it a value in the bindings\n  here: --dim n=512\n");
}

TEST_F(Cli, AFolderThatKeepsNoKernelsIsSaidOnce) {
  const std::string folder = file("no_folder", "") + "/cache";
  const Outcome outcome = tenon("run " + gelu() + " --target cpu --random 1 --dim rows=2", "TENON_CACHE_DIR=" + folder);
  EXPECT_EQ(outcome.code, 0);
  const std::string warning = "tenon: warning: compiled kernels are not kept in " + folder + ": ";
  const auto at = outcome.text.find(warning);
  EXPECT_NE(at, std::string::npos) << outcome.text;
  EXPECT_EQ(outcome.text.find("warning", at + warning.size()), std::string::npos) << outcome.text;
  EXPECT_TRUE(contains(outcome.text, "ran gelu on cpu: 1 kernel\n"));
}

TEST_F(Cli, ACheckThatDecidesLittleIsNoPlainOk) {
  const std::string graph = file("u.tn",
                                 "graph u(x: f32[1000]) {\n  y = greater(sub(mul(x, 3), add(add(x, x), x)), 0)\n"
                                 "  z = neg(x)\n  return y, z\n}\n");
  const Outcome outcome = tenon("run " + graph + " --target cpu --random 1 --check");
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_TRUE(contains(outcome.text, "check y: UNDECIDED in ")) << outcome.text;
  EXPECT_FALSE(contains(outcome.text, "check y: ok")) << outcome.text;
  EXPECT_TRUE(contains(tenon("bench --target cpu --seconds 0.01 --check " + graph).text, "  check UNDECIDED in "));
  EXPECT_TRUE(contains(outcome.text,
                       "check z: ok, worst error 0 of its tolerance, 0 absolute; 0 of 1000 elements "
                       "differ\n"))
      << outcome.text;
}
#endif

}  // namespace
}  // namespace tenon

// tenon run: NumPy files in and out, random inputs, checks, summaries, profiles.
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "src/api/npy.h"
#include "tests/cli/cli.h"

namespace tenon {
namespace {

#ifdef TENON_WITH_CPU
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

TEST_F(Cli, RunSavesTheInputsThatItMade) {
  const std::string run = "run " + gelu() + " --target cpu --dim rows=3 --output y=";
  EXPECT_EQ(tenon(run + path("y.npy") + " --random 5 --save-inputs " + path(".")).code, 0);
  EXPECT_EQ(tenon(run + path("again.npy") + " --input x=" + path("x.npy")).code, 0);
  EXPECT_EQ(outcome_of("cmp " + path("y.npy") + " " + path("again.npy")).code, 0);
  EXPECT_EQ(tenon(run + path("y.npy") + " --random 5 --save-inputs " + path("absent")).code, 1);
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
  EXPECT_TRUE(contains(tenon(run).text, "on cpu: 1 kernel\n"));
  EXPECT_FALSE(contains(tenon(run).text, "mean"));

  const Outcome absent = tenon(run + " --summary root");
  EXPECT_EQ(absent.code, 2);
  EXPECT_TRUE(contains(absent.text, "the graph has no value 'root'"));
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

#endif

}  // namespace
}  // namespace tenon

// --weights: inputs by name from files of weights, given once.
#include <nlohmann/json.hpp>
#include <string>

#include "tenon/tenon.h"
#include "tests/cli/cli.h"

namespace tenon {
namespace {

#ifdef TENON_WITH_CPU
class Weighted : public Cli {
 protected:
  Weighted() {
    save_safetensors(model, {{"fc.weight", Array::from({1, 2, 3, 4}, {2, 2})},
                             {"scale", Array::from({4, 16}, {2})},
                             {"other", Array::zeros({7})}});
    save_npy(path("x.npy"), Array::from({1, 1, 0, 1}, {2, 2}));
  }
  std::string run(const std::string& options) const { return "run " + graph + " --target cpu " + options; }
  std::vector<float> y() const { return load_npy(path("y.npy")).to<float>(); }

  const std::string model = path("model.safetensors");
  const std::string graph = file("layer.tn",
                                 "graph layer(fc_weight: f32[2, 2], x: f32[n, 2], scale: f32[2]) {\n"
                                 "  s = rsqrt(scale)\n  y = mul(linear(x, fc_weight), s)\n  return y\n}\n");
};

TEST_F(Weighted, RunTakesInputsByTheirNames) {
  const Outcome outcome = tenon(run("--weights " + model + " --input x=" + path("x.npy") +
                                    " --output y=" + path("y.npy") + " --check --summary all"));
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_TRUE(contains(outcome.text, "check y: ok")) << outcome.text;
  EXPECT_EQ(y(), (std::vector<float>{1.5, 1.75, 1, 1}));
}

TEST_F(Weighted, RunReadsNoMoreOfThemThanItNeeds) {
  const Outcome outcome =
      tenon(run("--weights " + model + " --input x=" + path("x.npy") + " --output y=" + path("y.npy") + " --profile"));
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_EQ(y(), (std::vector<float>{1.5, 1.75, 1, 1}));
}

TEST_F(Weighted, AFileOfAnInputGoesBeforeThem) {
  save_npy(path("s.npy"), Array::from({1, 1}, {2}));
  const std::string options = "--weights " + model + " --input scale=" + path("s.npy") + " --input x=" + path("x.npy");
  const Outcome outcome = tenon(run(options + " --output y=" + path("y.npy")));
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_EQ(y(), (std::vector<float>{3, 7, 2, 4}));
}

TEST_F(Weighted, OtherInputsMayBeRandom) {
  const Outcome outcome = tenon(run("--weights " + model + " --random 1 --dim n=3 --check"));
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_TRUE(contains(outcome.text, "of 6 elements differ")) << outcome.text;
}

TEST_F(Weighted, WhatIsMissingIsListed) {
  EXPECT_EQ(
      tenon(run("--weights " + model)).text,
      "tenon: argument error: input 'x' has no data\n"
      "  help: give --input x=FILE.npy, --weights FILE for inputs by their names, or --random SEED for the inputs "
      "without files\n");
  const Outcome all = tenon(run(""));
  EXPECT_EQ(all.code, 2);
  EXPECT_TRUE(contains(all.text, "inputs 'fc_weight', 'x', 'scale' have no data\n")) << all.text;
}

TEST_F(Weighted, FilesThatDoNotFitAreNamed) {
  EXPECT_EQ(tenon(run("--weights model.pt")).text,
            "tenon: argument error: --weights model.pt: no .safetensors file and no .npz file\n"
            "  help: name it by what it is\n");
  EXPECT_TRUE(
      contains(tenon(run("--weights " + model + " --weights " + model)).text, "'fc.weight' is in another file"));
  save_safetensors(model, {{"w", Array::zeros({1})}});
  const Outcome none = tenon(run("--weights " + model));
  EXPECT_EQ(none.code, 2);
  EXPECT_TRUE(contains(none.text, "no input of graph 'layer' is called as one of 1 arrays")) << none.text;
}

TEST_F(Weighted, ExplainSaysWhatIsComputedOnce) {
  const std::string explain = "explain " + graph + " --target cpu --weights " + model;
  const Outcome outcome = tenon(explain);
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_TRUE(contains(outcome.text, "s is computed once of scale: f32[2], 8 bytes\n")) << outcome.text;
  EXPECT_FALSE(contains(tenon(explain + " --disable hoist").text, "computed once"));
  EXPECT_TRUE(nlohmann::json::parse(tenon(explain + " --json").text).contains("once"));
}

#ifdef TENON_WITH_NPZ
TEST_F(Weighted, ArraysOfNumPyGetTheDTypesOfTheInputs) {
  save_npz(path("model.npz"), {{"fc_weight", Array::from({1, 2, 3, 4}, {2, 2}).cast(DType::f64)},
                               {"scale", Array::from({4, 16}, {2}).cast(DType::f16)}});
  const Outcome outcome =
      tenon(run("--weights " + path("model.npz") + " --input x=" + path("x.npy") + " --output y=" + path("y.npy")));
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_EQ(y(), (std::vector<float>{1.5, 1.75, 1, 1}));
}
#endif
#endif

}  // namespace
}  // namespace tenon

// Calls by name: arrays in any order, results by their names, and mistakes with the names that there are.
#ifdef TENON_WITH_CPU
#include <gtest/gtest.h>

#include <functional>

#include "tenon/tenon.h"

namespace tenon {
namespace {

std::string text_of(const std::function<void()>& mistake) {
  try {
    mistake();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

Executable affine() {
  return compile(Graph::parse("graph affine(x: f32[n], scale: f32[1], shift: f32[1]) {\n"
                              "y = add(mul(x, scale), shift)\n s = sum(x)\n return y, s }"),
                 "cpu");
}

const Array kX = Array::from({1, 2, 3}, {3}), kScale = Array::from({2}, {1}), kShift = Array::from({1}, {1});

TEST(NamedRun, TakesArraysInAnyOrderAndGivesResultsByName) {
  const Executable run = affine();
  const NamedResults results = run({{"shift", kShift}, {"x", kX}, {"scale", kScale}});
  EXPECT_EQ(results["y"].to<float>(), (std::vector<float>{3, 5, 7}));
  EXPECT_EQ(results["s"].item<float>(), 6);
  EXPECT_EQ(results.names, (std::vector<std::string>{"y", "s"}));
  const Array y = run({{"x", kX}, {"scale", kScale}, {"shift", kShift}})["y"];
  EXPECT_EQ(y.to<float>(), (std::vector<float>{3, 5, 7}));
}

TEST(NamedRun, TakesAVectorAndViewsOfWeights) {
  const Executable run = affine();
  const Array odd = Array::from({9, 1, 2, 3}, {4});
  const WeightView view{DType::f32, {3}, odd.bytes.data() + 4};  // aligned for no kernel
  const Weights weights{{"scale", kScale}};
  const std::vector<NamedArray> arrays{{"x", view}, {"scale", weights["scale"]}, {"shift", kShift}};
  EXPECT_EQ(run(arrays)["y"].to<float>(), (std::vector<float>{3, 5, 7}));
}

TEST(NamedRun, ResultsKeepTheirMemory) {
  const Executable run = affine();
  NamedResults results;
  run.run({{"x", kX}, {"scale", kScale}, {"shift", kShift}}, results);
  const void* const y = results["y"].bytes.data();
  run.run({{"x", kX}, {"scale", kShift}, {"shift", kShift}}, results);
  EXPECT_EQ(results["y"].bytes.data(), y);
  EXPECT_EQ(results["y"].to<float>(), (std::vector<float>{2, 3, 4}));
}

TEST(NamedRun, CallsInOrderAndOfNothingAreWhatTheyWere) {
  const std::vector<Array> in_order = affine()({kX, kScale, kShift});
  EXPECT_EQ(in_order[1].item<float>(), 6);
  const std::vector<Array> none =
      compile(Graph::parse("graph g() { return iota(shape=[3], dtype=f32) as y }"), "cpu")({});
  EXPECT_EQ(none[0].to<float>(), (std::vector<float>{0, 1, 2}));
}

TEST(NamedRun, MistakesAreNamed) {
  const Executable run = affine();
  EXPECT_EQ(text_of([&] { run({{"x", kX}, {"scael", kScale}, {"shift", kShift}}); }),
            "argument error: graph 'affine' has no free input 'scael'\n"
            "  help: did you mean scale? the inputs are x, scale, shift");
  EXPECT_EQ(text_of([&] { run({{"x", kX}, {"x", kX}, {"shift", kShift}}); }),
            "argument error: graph 'affine' was given twice input 'x'\n"
            "  help: the inputs are x, scale, shift");
  EXPECT_EQ(text_of([&] { run({{"x", kX}}); }),
            "argument error: graph 'affine' was not given input scale, shift\n"
            "  help: the inputs are x, scale, shift");
  const NamedResults results = run({{"x", kX}, {"scale", kScale}, {"shift", kShift}});
  EXPECT_EQ(text_of([&] { (void)results["yy"]; }),
            "argument error: no result is called 'yy'\n"
            "  help: did you mean y? the results are y, s");
}

}  // namespace
}  // namespace tenon
#endif

// Inputs that are bound: calls take the others, results are the same, and what does not fit is named.
#ifdef TENON_WITH_CPU
#include <gtest/gtest.h>

#include <cstdio>
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

Graph mlp() {
  return Graph::parse(
      "graph mlp(h_0_weight: f32[64, 64], x: f32[n, 64], h_0_bias: f32[64], gamma: f32[64], variance: f32[64]) {\n"
      "  h = relu(linear(x, h_0_weight, h_0_bias))\n  s = mul(gamma, rsqrt(add(variance, 0.001)))\n"
      "  y = mul(h, s)\n  return y\n}");
}

Weights model() {
  return {{"h.0.weight", Array::normal({64, 64}, 1)},
          {"h.0.bias", Array::normal({64}, 2)},
          {"gamma", Array::normal({64}, 3)},
          {"variance", Array::from(std::vector<float>(64, 2.0F), {64})},
          {"optimizer.step", Array::zeros({1}, DType::i64)}};
}

std::vector<float> expected(const Array& x) {
  const Weights w = model();
  return compile(mlp(), "cpu")(
             {w["h.0.weight"].array(), x, w["h.0.bias"].array(), w["gamma"].array(), w["variance"].array()})[0]
      .to<float>();
}

const Array kX = Array::normal({5, 64}, 7);

void expect_near(const std::vector<float>& actual, const std::vector<float>& wanted) {
  ASSERT_EQ(actual.size(), wanted.size());
  for (std::size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], wanted[i], 1e-5F * (1 + std::abs(wanted[i])));
}

TEST(Bind, CallsTakeTheOtherInputs) {
  const Executable run = compile(mlp(), "cpu").bind(model());
  expect_near(run({kX})[0].to<float>(), expected(kX));
  expect_near(run({{"x", kX}})["y"].to<float>(), expected(kX));
  const Array more = Array::normal({17, 64}, 8);
  expect_near(run({more})[0].to<float>(), expected(more));
  EXPECT_EQ(run.output_shapes({{9, 64}}), (std::vector<std::vector<std::int64_t>>{{9, 64}}));
}

TEST(Bind, WhatDependsOnBoundInputsAloneIsComputedOnce) {
  const Executable run = compile(mlp(), "cpu").bind(model());
  EXPECT_NE(run.explain().find("s is computed once of gamma, variance: f32[64], 256 bytes\n"), std::string::npos)
      << run.explain();
  EXPECT_EQ(run.stats().bound_bytes, 64 * 64 * 4 + 64 * 4 + 64 * 4);
  Options options = default_options();
  options.disable.insert("hoist");
  const Executable all = compile(mlp(), "cpu", options).bind(model());
  EXPECT_EQ(all.explain().find("computed once"), std::string::npos);
  EXPECT_EQ(all.stats().bound_bytes, 64 * 64 * 4 + 3 * 64 * 4);
  expect_near(all({kX})[0].to<float>(), expected(kX));
}

// A kernel that would store the same in each run is one of binding, although it frees no input.
TEST(Bind, WhatThePlanStoresOfBoundInputsIsStoredOnce) {
  Options options = default_options();
  options.fuse = false;
  const Graph g = Graph::parse(
      "graph g(x: f32[n, 8], w: f32[8], v: f32[8]) {\n  t = tanh(w)\n  u = mul(x, t)\n  s = mul(u, w)\n"
      "  y = add(s, exp(v))\n  return y, v as z\n}");
  const Array x = Array::normal({3, 8}, 1), w = Array::normal({8}, 2), v = Array::normal({8}, 3);
  const Executable all = compile(g, "cpu", options), part = all.bind({{"w", w}}), run = part.bind({{"v", v}});
  EXPECT_NE(part.explain().find("t is computed once of w: f32[8], 32 bytes\n"), std::string::npos) << part.explain();
  EXPECT_EQ(part.stats().kernels, all.stats().kernels - 1);
  EXPECT_EQ(run.stats().kernels, all.stats().kernels - 2);
  const std::vector<float> wanted = all({x, w, v})[0].to<float>();
  expect_near(part({x, v})[0].to<float>(), wanted);
  expect_near(run({x})[0].to<float>(), wanted);
}

TEST(Bind, MayBeRepeatedForTheInputsThatAreLeft) {
  const Weights weights = model();
  Weights first, second;
  for (const auto& [name, view, memory] : weights) (name == "gamma" ? second : first).add(name, view, memory);
  const Executable part = compile(mlp(), "cpu").bind(first);
  expect_near(part({kX, weights["gamma"].array()})[0].to<float>(), expected(kX));
  const Executable whole = part.bind(second);
  expect_near(whole({kX})[0].to<float>(), expected(kX));
  EXPECT_EQ(text_of([&] { (void)whole.bind(second); }),
            "argument error: no input of graph 'mlp' is called as one of 1 arrays\n"
            "  help: its inputs are 'x'; the arrays are 'gamma'");
}

TEST(Bind, OutlivesTheWeightsAndTheFile) {
  const std::string path = testing::TempDir() + "tenon_bind_test.safetensors";
  save_safetensors(path, model());
  const auto bound = [&] { return compile(mlp(), "cpu").bind(load_safetensors(path)); };
  const Executable run = bound();
  std::remove(path.c_str());
  expect_near(run({kX})[0].to<float>(), expected(kX));
}

TEST(Bind, ReadsWhatIsAlignedWhereItLies) {
  Graph g("twice");
  g.output("y", g.input("x", DType::f32, {4}) * g.input("w", DType::f32, {4}));
  alignas(16) float memory[5] = {2, 2, 2, 2, 2};
  const auto with = [&](const float* data) {
    Weights weights;
    weights.add("w", {DType::f32, {4}, reinterpret_cast<const std::byte*>(data)}, nullptr);
    return compile(g, "cpu").bind(weights);
  };
  const Executable there = with(memory), copied = with(memory + 1);
  memory[2] = 3;  // the same in every run, says the caller: here to see who reads it
  const Array x = Array::from({1, 1, 1, 1}, {4});
  EXPECT_EQ(there({x})[0].to<float>(), (std::vector<float>{2, 2, 3, 2}));
  EXPECT_EQ(copied({x})[0].to<float>(), (std::vector<float>{2, 2, 2, 2}));
}

TEST(Bind, ABoundInputMayDecideASymbol) {
  const Executable run =
      compile(Graph::parse("graph g(x: f32[n], w: f32[n]) {\n y = mul(x, exp(w))\n return y }"), "cpu")
          .bind({{"w", Array::zeros({3})}});
  EXPECT_EQ(run({Array::from({1, 2, 3}, {3})})[0].to<float>(), (std::vector<float>{1, 2, 3}));
  EXPECT_NE(text_of([&] { run({Array::from({1, 2}, {2})}); }), "no error");
  EXPECT_EQ(text_of([&] { run.prepare({{"n", 5}}); }),
            "argument error: axis 0 of input 'w', which is bound, has 3 elements, not 5\n"
            "  help: give the symbols the values that its shape says");
}

TEST(Bind, AResultMayBeABoundInput) {
  const Executable run =
      compile(Graph::parse("graph g(x: f32[2], w: f32[2]) {\n y = mul(x, w)\n return y, w as same, exp(w) as e }"),
              "cpu")
          .bind({{"w", Array::zeros({2})}});
  const auto results = run({Array::from({1, 2}, {2})});
  EXPECT_EQ(results[1].to<float>(), (std::vector<float>{0, 0}));
  EXPECT_EQ(results[2].to<float>(), (std::vector<float>{1, 1}));
}

TEST(Bind, StateStaysWithTheCaller) {
  const Executable run = compile(
      Graph::parse("graph g(w: f32[2], v: f32[2], x: f32[2]) {\n n = add(v, mul(x, w))\n return n into v }"), "cpu");
  EXPECT_EQ(text_of([&] { (void)run.bind({{"v", Array::zeros({2})}}); }),
            "argument error: input 'v' cannot be bound: result 'n' updates it in each run\n"
            "  help: give it to each call, and leave its name out of what is bound");
  const Executable bound = run.bind({{"w", Array::from({2, 3}, {2})}});
  Array v = Array::from({1, 1}, {2}), x = Array::from({10, 10}, {2});
  const Buffer inputs[] = {buffer_of(v), buffer_of(x)};
  bound.run(inputs, {});
  bound.run(inputs, {});
  EXPECT_EQ(v.to<float>(), (std::vector<float>{41, 61}));
}

TEST(Bind, WhatDoesNotFitIsNamed) {
  const Executable run = compile(mlp(), "cpu");
  EXPECT_EQ(text_of([&] { (void)run.bind({{"h.0.bias", Array::zeros({32})}}); }),
            "argument error: input 'h_0_bias' is f32[64], the array 'h.0.bias' is f32[32]\n"
            "  help: give it the input's shape, or the input its");
  EXPECT_EQ(text_of([&] { (void)run.bind({{"gamma", Array::zeros({64}, DType::f16)}}); }),
            "argument error: input 'gamma' is f32[64], the array 'gamma' is f16[64]\n"
            "  help: convert it: view.array().cast(dtype)");
  EXPECT_EQ(text_of([&] { (void)run.bind({{"h.0.bias", Array::zeros({64})}, {"h/0/bias", Array::zeros({64})}}); }),
            "argument error: input 'h_0_bias' may be 'h.0.bias' or 'h/0/bias'\n"
            "  help: call one of them 'h_0_bias'");
  EXPECT_EQ(text_of([&] { (void)run.bind({{"gama", Array::zeros({64})}}); }),
            "argument error: no input of graph 'mlp' is called as one of 1 arrays\n"
            "  help: its inputs are 'h_0_weight', 'x', 'h_0_bias', 'gamma', 'variance'; the arrays are 'gama'");
  EXPECT_EQ(text_of([&] { (void)run.bind(model(), {.strict = true}); }),
            "argument error: graph 'mlp' has no input that may take the array 'optimizer.step'\n"
            "  help: leave it out, or bind without `strict`");
  EXPECT_EQ(text_of([&] { run.bind(model())({kX, kX}); }),
            "argument error: graph 'mlp' takes 1 inputs that are not bound, 2 given\n"
            "  help: give one array for each input, in the graph's order");
}

}  // namespace
}  // namespace tenon
#endif

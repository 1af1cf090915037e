// Results that update inputs: what a run leaves in the input's memory, and which of them are written in place.
#ifdef TENON_WITH_CPU
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <numeric>

#include "ir/text/text.h"
#include "tenon/tenon.h"

namespace tenon {
namespace {

Array counting(std::vector<std::int64_t> shape) {
  Array array = Array::zeros(std::move(shape));
  std::vector<float> values(static_cast<std::size_t>(array.size()));
  std::iota(values.begin(), values.end(), 1.0F);
  return Array::from(values, array.shape);
}

// What is different after a run on the caller's memory: the content of all inputs, and the graph's own outputs.
struct After {
  std::vector<Array> inputs, outputs;
};

After run_on_buffers(const Executable& run, std::vector<Array> inputs, const std::vector<DType>& dtypes) {
  After after{std::move(inputs), {}};
  std::vector<std::vector<std::int64_t>> shapes;
  std::vector<Buffer> in, out;
  for (Array& input : after.inputs) {
    in.push_back({input.bytes.data(), input.dtype, input.shape});
    shapes.push_back(input.shape);
  }
  const auto own = run.output_shapes(shapes);
  for (const auto& shape : own) after.outputs.push_back(Array::zeros(shape, dtypes[after.outputs.size()]));
  for (Array& output : after.outputs) out.push_back({output.bytes.data(), output.dtype, output.shape});
  run.run(in, out);
  return after;
}

// One run on buffers gives what one on arrays returns, with every switch of fusion; why updates are copied, by default.
std::vector<std::string> check(const std::string& text, const std::vector<Array>& inputs) {
  const Graph g = Graph::parse(text);
  std::vector<std::string> copied;
  for (const bool fuse : {false, true}) {
    Options options = default_options();
    options.fuse = fuse;
    const Executable run = compile(g, "cpu", options);
    const std::vector<Array> expected = run(inputs);
    std::vector<DType> dtypes;
    for (const Port& output : g.outputs())
      if (output.updates.empty()) dtypes.push_back(output.value.dtype());
    const After after = run_on_buffers(run, inputs, dtypes);
    std::size_t own = 0;
    for (std::size_t i = 0; i < g.outputs().size(); ++i) {
      const Port output = g.outputs()[i];
      const auto ports = g.inputs();
      const auto input =
          std::find_if(ports.begin(), ports.end(), [&](const Port& port) { return port.name == output.updates; });
      const Array& actual =
          output.updates.empty() ? after.outputs[own++] : after.inputs[static_cast<std::size_t>(input - ports.begin())];
      EXPECT_EQ(str(actual), str(expected[i])) << output.name << (fuse ? "" : ", unfused");
      EXPECT_EQ(actual.bytes, expected[i].bytes);
    }
    copied.clear();
    for (const UpdateInfo& update : run.updates()) copied.push_back(update.copied);
  }
  return copied;
}

using Reasons = std::vector<std::string>;

TEST(Update, AnElementwiseOneIsWrittenInPlace) {
  const Reasons reasons = check(R"(graph momentum(p: f32[64], v: f32[64], grad: f32[64]) {
  w = add(mul(v, 0.9), grad)
  q = sub(p, mul(w, 0.1))
  return q into p, w into v
})",
                                {counting({64}), counting({64}), counting({64})});
  EXPECT_EQ(reasons, (Reasons{"", ""}));
}

TEST(Update, WhatNobodyReadsAnyMoreIsOverwritten) {
  EXPECT_EQ(check(R"(graph replace(state: f32[8, 4], x: f32[8, 4]) {
  y = softmax(x)
  return y into state
})",
                  {counting({8, 4}), counting({8, 4})}),
            Reasons{""});
}

// The product reads the old content, wherever its line stands: its kernel goes first.
TEST(Update, ReadersOfTheOldContentGoFirst) {
  EXPECT_EQ(check(R"(graph step(x: f32[64, 4], w: f32[4, 3]) {
  y = exp(mul(x, -0.1))
  s = softmax(matmul(x, w), axis=0)
  return y into x, s
})",
                  {counting({64, 4}), counting({4, 3})}),
            Reasons{""});
}

TEST(Update, AStencilIsCopiedBehindItsKernel) {
  const Reasons reasons = check(R"(graph jacobi(x: f32[64]) {
  p = pad(x, low=[1], high=[1])
  y = mul(add(slice(p, axis=0, start=[0], stop=[64]), slice(p, axis=0, start=[2], stop=[66])), 0.5)
  return y into x
})",
                                {counting({64})});
  ASSERT_EQ(reasons.size(), 1U);
  EXPECT_NE(reasons[0].find("which writes the new content of 'x', reads it at other elements than it writes"),
            std::string::npos)
      << reasons[0];
}

TEST(Update, ARowThatNeedsItselfIsCopied) {
  const Reasons reasons =
      check("graph normalize(x: f32[8, 4]) {\n  y = softmax(x)\n  return y into x\n}\n", {counting({8, 4})});
  ASSERT_EQ(reasons.size(), 1U);
  EXPECT_NE(reasons[0].find("needs the old content for its reductions"), std::string::npos) << reasons[0];
}

// The index is old content too: written in place it would be read again between the sweeps.
TEST(Update, ARowThatFindsItsElementsByItselfIsCopied) {
  Array rows = Array::zeros({4}, DType::i32);
  for (std::int32_t i = 0; i < 4; ++i) std::memcpy(rows.bytes.data() + 4 * i, &i, sizeof i);
  const Reasons reasons = check(R"(graph gathered(x: f32[5, 5], at: i32[4]) {
  y = softmax(take(x, at))
  return y, right_shift(at, 1) into at
})",
                                {counting({5, 5}), rows});
  ASSERT_EQ(reasons.size(), 1U);
  EXPECT_NE(reasons[0].find("needs the old content"), std::string::npos) << reasons[0];
}

// Along rows and down columns, in one part or several.
TEST(Update, SumsAreAddedInPlace) {
  for (const char* text : {"graph f(t: f32[16], x: f32[4, 16]) {\n  y = add(t, sum(x, axis=0))\n  return y into t\n}\n",
                           "graph f(t: f32[4], x: f32[4, 16]) {\n  y = add(t, sum(x, axis=1))\n  return y into t\n}\n",
                           "graph f(t: f32[], x: f32[4, 16]) {\n  y = maximum(t, max(x))\n  return y into t\n}\n"}) {
    const Graph g = Graph::parse(text);
    std::vector<Array> inputs;
    for (const Port& input : g.inputs()) {
      std::vector<std::int64_t> shape;
      for (const Dim& extent : input.value.shape()) shape.push_back(extent.constant());
      inputs.push_back(counting(shape));
    }
    EXPECT_EQ(check(text, inputs), Reasons{""}) << text;
  }
  const Reasons reasons = check(R"(graph f(t: f32[4], x: f32[4, 16]) {
  y = add(t, sum(x, axis=1))
  return y into t, mul(t, 2.0) as twice
})",
                                {counting({4}), counting({4, 16})});
  EXPECT_EQ(reasons.size(), 1U);
}

TEST(Update, TwoInputsSwap) {
  check("graph swap(a: f32[5], b: f32[5]) {\n  return b as a_next into a, a as b_next into b\n}\n",
        {counting({5}), Array::from(std::vector<float>(5, 7.0F), {5})});
  const Reasons reasons =
      check("graph mix(a: f32[5], b: f32[5]) {\n  return add(a, b) as c into a, sub(a, b) as d into b\n}\n",
            {counting({5}), Array::from(std::vector<float>(5, 7.0F), {5})});
  EXPECT_EQ(reasons.size(), 2U);
}

TEST(Update, AResultMayAlsoBeReturned) {
  check("graph both(x: f32[5]) {\n  y = exp(x)\n  return y, y as next into x, x as old\n}\n", {counting({5})});
  check("graph same(x: f32[5], z: f32[5]) {\n  return x as next into x, x as copy into z\n}\n",
        {counting({5}), counting({5})});
}

TEST(Update, NewContentIsReadToo) {
  check(R"(graph accumulate(total: f32[16], x: f32[4, 16]) {
  next = add(total, sum(x, axis=0))
  share = softmax(next)
  change = sub(next, total)
  return next into total, share, change
})",
        {counting({16}), counting({4, 16})});
}

// A compiler knows that the new content does not depend on the old one, which the other result still needs.
TEST(Update, WhatIsNoFunctionOfTheOldContentWaitsForIt) {
  check("graph f(x: bool[64]) {\n  return not_equal(x, x) as y into x, logical_not(x) as z\n}\n",
        {Array::from(std::vector<bool>(64, true), {64})});
  check("graph f(x: i32[64]) {\n  return sub(x, x) as y into x, add(x, 1) as z\n}\n",
        {Array::from(std::vector<std::int32_t>(64, 7), {64})});
}

TEST(Update, EmptyStateStaysEmpty) {
  check("graph nothing(x: f32[0, 4]) {\n  return add(x, 1.0) as y into x\n}\n", {Array::zeros({0, 4})});
}

// A thousand steps: state moves on, and nothing is allocated after the first.
TEST(Update, ALoopHoldsItsState) {
  Graph g("steps");
  const Dim n = g.dim("n");
  const Tensor x = g.input("x", DType::f32, {n}), v = g.input("v", DType::f32, {n});
  const Tensor next = v + 1.0;
  g.update(v, next);
  g.update(x, x + next);
  EXPECT_EQ(g.outputs()[1].name, "x_next");
  EXPECT_EQ(g.outputs()[1].updates, "x");
  const Executable run = compile(g, "cpu");
  Array position = Array::zeros({3}), speed = Array::zeros({3});
  const Buffer state[] = {{position.bytes.data(), DType::f32, {3}}, {speed.bytes.data(), DType::f32, {3}}};
  run.run(state, {});
  const auto held = run.stats().held_bytes;
  for (int step = 1; step < 1000; ++step) run.run(state, {});
  EXPECT_EQ(run.stats().held_bytes, held);
  EXPECT_EQ(speed.to<float>()[2], 1000.0F);
  EXPECT_EQ(position.to<float>()[2], 500500.0F);
}

std::string message_of(const std::function<void()>& mistake) {
  try {
    mistake();
  } catch (const Error& error) {
    return error.message();
  }
  return "no error";
}

TEST(Update, WhatIsUpdatedOverlapsWithNothing) {
  const Graph g = Graph::parse("graph f(x: f32[4], y: f32[4]) {\n  z = add(x, y)\n  return z into x, exp(y) as e\n}\n");
  const Executable run = compile(g, "cpu");
  alignas(16) float a[4] = {}, b[4] = {};
  const Buffer x{a, DType::f32, {4}}, y{b, DType::f32, {4}};
  const auto refusal = [&](std::vector<Buffer> in, std::vector<Buffer> out) {
    return message_of([&] { run.run(in, out); });
  };
  EXPECT_EQ(refusal({x, x}, {y}), "input 'x', which is updated, has the buffer of input 'y'");
  EXPECT_EQ(refusal({x, y}, {x}), "input 'x', which is updated, has the buffer of output 'e'");
  EXPECT_EQ(refusal({x, y}, {y, y}), "2 output buffers given, the graph has 1");
}

TEST(Update, MistakesAreNamed) {
  const auto refusal = [](const std::string& returned) {
    return message_of([&] {
      Graph::parse("graph f(x: f32[4], y: f32[4]) {\n  z = exp(y)\n  s = sum(y)\n  return " + returned + "\n}\n");
    });
  };
  EXPECT_EQ(refusal("z into x"), "no error");
  EXPECT_EQ(refusal("z into z"), "'z' updates 'z', which is no input");
  EXPECT_EQ(refusal("s into x"), "'s' is f32[], but input 'x', which it updates, is f32[4]");
  EXPECT_EQ(refusal("z into x, z as w into x"), "input 'x' is updated already, by 'z'");
  EXPECT_EQ(refusal("z into q"), "unknown value 'q'");
  Graph g("g"), other("other");
  const Tensor x = g.input("x", DType::f32, {4}), far = other.input("x", DType::f32, {4});
  EXPECT_EQ(message_of([&] { g.update(x, far); }), "what updates 'x' is of another graph");
  EXPECT_EQ(message_of([&] { g.update(x, exp(x)), g.update(x, x); }), "input 'x' is updated already, by 'x_next'");
}

TEST(Update, BothFormsKeepIt) {
  const ir::Graph graph =
      ir::parse("graph f(x: f32[4], y: f32[4]) {\n  z = exp(y)\n  return z, z as next into x, y as same into y\n}\n");
  EXPECT_TRUE(same(ir::parse(print(graph)), graph)) << print(graph);
  EXPECT_TRUE(same(ir::parse_json(print_json(graph)), graph)) << print_json(graph);
  EXPECT_NE(print(graph).find("return z, z as next into x, y as same into y"), std::string::npos) << print(graph);
}

}  // namespace
}  // namespace tenon

#endif

// Running on host arrays: results into memory that is there already, arrays as buffers, arrays that are passed and not
// copied.
#ifdef TENON_WITH_CPU
#include <gtest/gtest.h>

#include <array>
#include <functional>

#include "tenon/tenon.h"

namespace tenon {
namespace {

std::string message_of(const std::function<void()>& mistake) {
  try {
    mistake();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// y = 2 x + 1 and s = the sum of all.
Executable affine() {
  Graph g("affine");
  const Tensor x = g.input("x", DType::f32, {g.dim("n")});
  g.output("y", 2 * x + 1);
  g.output("s", sum(x));
  return compile(g, "cpu");
}

// p - d, which may be written in p's place.
Executable step() {
  return compile(Graph::parse(R"(graph step(p: f32[n], d: f32[n]) {
    q = sub(p, d)
    return q
  })"),
                 "cpu");
}

TEST(RunArrays, ResultsGoWhereResultsOfTheSameTypeLie) {
  const Executable run = affine();
  std::vector<Array> outputs;
  run.run({Array::from({1, 2, 3}, {3})}, outputs);
  ASSERT_EQ(outputs.size(), 2U);
  EXPECT_EQ(outputs[0].to<float>(), (std::vector<float>{3, 5, 7}));
  const void* const y = outputs[0].bytes.data();
  const void* const s = outputs[1].bytes.data();
  run.run({Array::from({4, 5, 6}, {3})}, outputs);
  EXPECT_EQ(outputs[0].to<float>(), (std::vector<float>{9, 11, 13}));
  EXPECT_EQ(outputs[1].item<float>(), 15);
  EXPECT_EQ(outputs[0].bytes.data(), y);
  EXPECT_EQ(outputs[1].bytes.data(), s);
}

TEST(RunArrays, MemoryThatSufficesServesOtherSizes) {
  const Executable run = affine();
  std::vector<Array> outputs{Array::zeros({100}, DType::f64), Array::zeros({2, 2}, DType::u8), Array::zeros({1})};
  const void* const y = outputs[0].bytes.data();
  for (const std::int64_t n : {200, 3, 0, 77}) {
    run.run({Array::zeros({n})}, outputs);
    ASSERT_EQ(outputs.size(), 2U);
    EXPECT_EQ(outputs[0].dtype, DType::f32);
    EXPECT_EQ(outputs[0].shape, std::vector<std::int64_t>{n});
    EXPECT_EQ(outputs[0].to<float>(), std::vector<float>(static_cast<std::size_t>(n), 1.0F));
    EXPECT_EQ(outputs[0].bytes.data(), y);
    EXPECT_TRUE(outputs[1].shape.empty());
  }
}

TEST(RunArrays, AnUpdateMayLieInItsInputsArray) {
  const Executable run = step();
  std::vector<Array> state{Array::from({1, 2, 3}, {3})};
  const Array change = Array::from({0.5F, 0.5F, 1}, {3});
  run.run({state[0], change}, state);
  EXPECT_EQ(state[0].to<float>(), (std::vector<float>{0.5F, 1.5F, 2}));
}

TEST(RunArrays, AnInputsArrayOfAnotherTypeIsNoOutput) {
  const Executable run = compile(Graph::parse("graph g(x: f32[n]) {\n  y = sum(x)\n  return y\n}\n"), "cpu");
  std::vector<Array> arrays{Array::from({1, 2}, {2})};
  EXPECT_EQ(message_of([&] { run.run(arrays, arrays); }),
            "argument error: output 'y' has the array of an input of another dtype or shape\n"
            "  help: give outputs arrays of their own");
  EXPECT_EQ(arrays[0].to<float>(), (std::vector<float>{1, 2}));
  arrays.push_back(Array::zeros({}));
  EXPECT_EQ(message_of([&] { run.run({arrays[0]}, arrays); }),
            "argument error: 2 arrays given for 1 outputs, an input's among them\n"
            "  help: give outputs arrays of their own");
  EXPECT_EQ(arrays.size(), 2U);
}

TEST(RunArrays, InputsComeInBracesInAVectorOrInAnotherRange) {
  const Executable run = step();
  const Array p = Array::from({5}, {1}), d = Array::from({3}, {1});
  const std::vector<Array> vector{p, d};
  const std::array<Array, 2> array{p, d};
  EXPECT_EQ(run({p, d})[0].item<float>(), 2);
  EXPECT_EQ(run(vector)[0].item<float>(), 2);
  EXPECT_EQ(run(array)[0].item<float>(), 2);
  EXPECT_EQ(run({Array::from({5}, {1}), d}, {{"n", 1}})[0].item<float>(), 2);
  Graph constant;
  constant.output("one", full(constant, {}, 1.0, DType::f32));
  EXPECT_EQ(compile(constant, "cpu")({})[0].item<float>(), 1);
}

TEST(RunArrays, WhatDoesNotFitIsRefused) {
  const Executable run = step();
  const Array x = Array::zeros({2});
  EXPECT_EQ(message_of([&] { run({x}); }),
            "argument error: graph 'step' takes 2 inputs, 1 given\n"
            "  help: give one array for each input, in the graph's order");
  EXPECT_EQ(message_of([&] { run({x, Array::zeros({2}, DType::i32)}); }),
            "argument error: input 'd' is i32, not f32\n  help: pass a f32 buffer");
  EXPECT_EQ(message_of([&] { run({x, Array{DType::f32, {2}, Bytes(7)}}); }),
            "argument error: an array of f32[2] has 7 bytes, not 8\n  help: make it with Array::from or Array::zeros");
}

TEST(RunArrays, ArraysAreBuffers) {
  const Executable run = step();
  const std::vector<Array> inputs{Array::from({1, 2}, {2}), Array::from({1, 1}, {2})};
  Array y = Array::empty({2});
  const Buffer output = buffer_of(y);
  EXPECT_EQ(output.data, y.bytes.data());
  run.run(buffers_of(inputs), {&output, 1});
  EXPECT_EQ(y.to<float>(), (std::vector<float>{0, 1}));
  const Buffer in[] = {buffer_of(inputs[0]), buffer_of(inputs[0])};
  run.run(in, {&output, 1});
  EXPECT_EQ(y.to<float>(), (std::vector<float>{0, 0}));
  y.bytes.clear();
  EXPECT_EQ(message_of([&] { buffer_of(y); }),
            "argument error: an array of f32[2] has 0 bytes, not 8\n  help: make it with Array::from or Array::zeros");
}

}  // namespace
}  // namespace tenon
#endif  // TENON_WITH_CPU

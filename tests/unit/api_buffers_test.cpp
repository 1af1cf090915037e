// Where the caller's buffers may lie: apart, or in the place of an input that is updated element by element.
#ifdef TENON_WITH_CPU
#include <gtest/gtest.h>

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

constexpr const char* kRemedy =
    "\n  help: give it memory of its own: only an elementwise update of an input that nothing else reads afterwards "
    "may "
    "be written in its place";

Array counting(std::vector<std::int64_t> shape) {
  Array array = Array::zeros(std::move(shape));
  std::vector<float> values;
  for (std::int64_t i = 0; i < array.size(); ++i) values.push_back(static_cast<float>(i % 97) - 40);
  return Array::from(values, array.shape);
}

// The graph's outputs, each in memory of its own.
std::vector<Array> apart(const Executable& run, const std::vector<Array>& inputs) { return run(inputs); }

// The outputs where output i has the buffer of input at[i], or one of its own where that is -1.
std::vector<Array> in_place(const Graph& g, const Executable& run, std::vector<Array> inputs,
                            const std::vector<int>& at) {
  std::vector<std::vector<std::int64_t>> shapes;
  for (const Array& input : inputs) shapes.push_back(input.shape);
  const auto wanted = run.output_shapes(shapes);
  std::vector<Array> own;
  for (std::size_t i = 0; i < at.size(); ++i)
    own.push_back(Array::zeros(at[i] < 0 ? wanted[i] : std::vector<std::int64_t>{0}, g.outputs()[i].value.dtype()));
  std::vector<Buffer> in, out;
  for (Array& input : inputs) in.push_back({input.bytes.data(), input.dtype, input.shape});
  for (std::size_t i = 0; i < at.size(); ++i)
    out.push_back(at[i] < 0 ? Buffer{own[i].bytes.data(), own[i].dtype, own[i].shape}
                            : in[static_cast<std::size_t>(at[i])]);
  run.run(in, out);
  for (std::size_t i = 0; i < at.size(); ++i)
    if (at[i] >= 0) own[i] = inputs[static_cast<std::size_t>(at[i])];
  return own;
}

std::string refused(const char* text, const std::vector<int>& at, std::vector<std::int64_t> shape = {6, 4}) {
  const Graph g = Graph::parse(text);
  const Executable run = compile(g, "cpu");
  const std::vector<Array> inputs(g.inputs().size(), counting(std::move(shape)));
  return message_of([&] { in_place(g, run, inputs, at); });
}

std::string exactly(const std::string& output, const std::string& other) {
  return "argument error: output '" + output + "' has the buffer of " + other + kRemedy;
}

// ---- in place -------------------------------------------------------------------------------------------------------

// Every width of the last vector, several rows, and more than one task.
TEST(InPlace, AnElementwiseUpdateIsWhatItIsElsewhere) {
  const Graph g = Graph::parse(R"(graph scale(x: f32[n, m]) {
    y = add(mul(x, 3.0), 1.0)
    return y
  })");
  const Executable run = compile(g, "cpu");
  for (std::int64_t m : {1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 127, 1000, 100003})
    for (std::int64_t n : {1, 3}) {
      const std::vector<Array> x{counting({n, m})};
      EXPECT_EQ(in_place(g, run, x, {0})[0].bytes, apart(run, x)[0].bytes) << n << " x " << m;
    }
}

TEST(InPlace, AnOptimisersStepUpdatesAllItsStates) {
  const Graph g = Graph::parse(R"(graph step(p: f32[n], m: f32[n], v: f32[n], grad: f32[n]) {
    m1 = add(mul(m, 0.9), mul(grad, 0.1))
    v1 = add(mul(v, 0.99), mul(mul(grad, grad), 0.01))
    p1 = sub(p, div(mul(m1, 0.1), add(sqrt(v1), 1e-3)))
    return p1, m1, v1
  })");
  const Executable run = compile(g, "cpu");
  for (std::int64_t n : {5, 16, 77, 4099, 300001}) {
    Array v = counting({n});
    for (std::size_t i = 0; i < v.bytes.size(); i += 4) v.bytes[i + 3] &= std::byte{0x7f};  // not negative
    const std::vector<Array> state{counting({n}), counting({n}), v, counting({n})};
    const auto here = in_place(g, run, state, {0, 1, 2}), elsewhere = apart(run, state);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(here[i].bytes, elsewhere[i].bytes) << n << ", output " << i;
  }
}

// The other result is scattered element by element, and LLVM loads each of these anew from what it takes for constant.
TEST(InPlace, AnotherResultIsOfTheOldContent) {
  const Graph g = Graph::parse(R"(graph turned(x: bf16[33, 7, 31]) {
    y = div(x, x)
    t = transpose(x, perm=[0, 2, 1])
    return y, t
  })");
  const Executable run = compile(g, "cpu");
  ASSERT_EQ(run.stats().kernels, 1) << run.plan();
  Array x = Array::zeros({33, 7, 31}, DType::bf16);
  for (std::size_t i = 0; i < x.bytes.size(); i += 2) x.bytes[i] = std::byte(i % 97), x.bytes[i + 1] = std::byte{0x40};
  EXPECT_EQ(in_place(g, run, {x}, {0, -1})[1].bytes, apart(run, {x})[1].bytes);
}

TEST(InPlace, AnInputMayBeReadByEarlierKernels) {
  const Graph g = Graph::parse(R"(graph reversed(x: f32[40, 40]) {
    y = add(x, flip(matmul(x, x), axis=0))
    return y
  })");
  const Executable run = compile(g, "cpu");
  ASSERT_EQ(run.stats().kernels, 2) << run.plan();
  const std::vector<Array> x{counting({40, 40})};
  EXPECT_EQ(in_place(g, run, x, {0})[0].bytes, apart(run, x)[0].bytes);
}

TEST(InPlace, InputsMayShareABufferWithEachOther) {
  const Graph g = Graph::parse("graph sum(a: f32[6, 4], b: f32[6, 4]) {\n  y = add(a, b)\n  return y\n}\n");
  const Executable run = compile(g, "cpu");
  Array a = counting({6, 4}), y = counting({6, 4});
  const Buffer shared{a.bytes.data(), a.dtype, a.shape}, in[] = {shared, shared};
  const Buffer out{y.bytes.data(), y.dtype, y.shape};
  const std::vector<Array> wanted = run({a, a});
  run.run(in, {&out, 1});
  EXPECT_EQ(y.bytes, wanted[0].bytes);
  run.run(in, {&shared, 1});  // and the output with both
  EXPECT_EQ(a.bytes, wanted[0].bytes);
}

TEST(InPlace, OfAReversedInputIsRefused) {
  EXPECT_EQ(refused("graph g(x: f32[6, 4]) {\n  y = flip(x, axis=0)\n  return y\n}\n", {0}), exactly("y", "input 'x'"));
}

TEST(InPlace, OfAnInputThatIsReadAtOtherElementsTooIsRefused) {
  EXPECT_EQ(refused("graph g(x: f32[6, 4]) {\n  y = add(x, flip(x, axis=1))\n  return y\n}\n", {0}),
            exactly("y", "input 'x'"));
}

TEST(InPlace, OfAnInputThatALaterKernelReadsIsRefused) {
  EXPECT_EQ(refused(R"(graph g(x: f32[6, 4], w: f32[6, 4]) {
    y = add(x, 1.0)
    z = matmul(transpose(y), x)
    return y, z
  })",
                    {0, -1}),
            exactly("y", "input 'x'"));
}

TEST(InPlace, OfARowsReductionIsRefused) {
  EXPECT_EQ(refused("graph g(x: f32[6, 4]) {\n  y = softmax(x)\n  return y\n}\n", {0}), exactly("y", "input 'x'"));
}

// Each is stored from the other's input: nothing orders the load of the one before the store of the other.
TEST(InPlace, OfASwapIsRefused) {
  EXPECT_EQ(refused(R"(graph g(a: f32[6, 4], b: f32[6, 4]) {
    x = neg(b)
    y = neg(a)
    return x, y
  })",
                    {0, 1}),
            exactly("x", "input 'a'"));
}

TEST(InPlace, OfATransposeIsRefused) {
  EXPECT_EQ(refused("graph g(x: f32[64, 64]) {\n  y = add(x, transpose(x))\n  return y\n}\n", {0}, {64, 64}),
            exactly("y", "input 'x'"));
}

// ---- overlaps -------------------------------------------------------------------------------------------------------

struct Overlaps : testing::Test {
  Executable run = compile(Graph::parse(R"(graph g(a: f32[n], b: f32[n]) {
    x = add(a, 1.0)
    y = mul(b, 2.0)
    return x, y
  })"),
                           "cpu");
  alignas(16) float memory[64] = {};
  std::string report(int a, int b, int x, int y, std::int64_t n = 8) {
    const auto at = [&](int offset) { return Buffer{memory + offset, DType::f32, {n}}; };
    const Buffer in[] = {at(a), at(b)}, out[] = {at(x), at(y)};
    return message_of([&] { run.run(in, out); });
  }
};

TEST_F(Overlaps, BuffersSideBySideAreFine) { EXPECT_EQ(report(0, 8, 16, 24), "no error"); }

TEST_F(Overlaps, InPlaceIsFine) { EXPECT_EQ(report(0, 8, 0, 8), "no error"); }

TEST_F(Overlaps, AnOutputOnAPartOfAnInput) {
  EXPECT_EQ(report(0, 16, 4, 32), std::string("argument error: output 'x' overlaps with input 'a'") + kRemedy);
  EXPECT_EQ(report(4, 16, 0, 32), std::string("argument error: output 'x' overlaps with input 'a'") + kRemedy);
}

TEST_F(Overlaps, AnOutputOnAnInputThatItIsNotMadeFrom) { EXPECT_EQ(report(0, 8, 8, 16), exactly("x", "input 'b'")); }

TEST_F(Overlaps, TwoOutputs) {
  EXPECT_EQ(report(0, 8, 16, 16), exactly("y", "output 'x'"));
  EXPECT_EQ(report(0, 8, 20, 16), std::string("argument error: output 'x' overlaps with output 'y'") + kRemedy);
}

TEST_F(Overlaps, EmptyBuffersOverlapWithNothing) { EXPECT_EQ(report(0, 0, 0, 0, 0), "no error"); }

}  // namespace
}  // namespace tenon
#endif  // TENON_WITH_CPU

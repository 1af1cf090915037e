// Compiling and running from C++ on the CPU target: host arrays, the caller's buffers, what is refused, inspection, and
// several threads on one Executable (the tsan preset runs this too).
#ifdef TENON_WITH_CPU
#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "tenon/tenon.h"

namespace tenon {
namespace {

// y = 2 x + 1 and s = the sum of each row, for any number of rows.
Graph affine() {
  Graph g("affine");
  const Dim rows = g.dim("rows", {.min = 1, .max = 4096});
  const Tensor x = g.input("x", DType::f32, {rows, 4});
  const Tensor y = 2 * x + 1;
  g.output("y", y);
  g.output("s", sum(y, -1));
  return g;
}

Array counting(std::int64_t rows) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < rows * 4; ++i) values.push_back(static_cast<float>(i));
  return Array::from(values, {rows, 4});
}

void expect_right(const std::vector<Array>& results, std::int64_t rows) {
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[0].shape, (std::vector<std::int64_t>{rows, 4}));
  EXPECT_EQ(results[1].shape, (std::vector<std::int64_t>{rows}));
  const auto y = results[0].to<float>(), s = results[1].to<float>();
  for (std::size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], 2 * static_cast<float>(i) + 1);
  for (std::size_t r = 0; r < s.size(); ++r) ASSERT_EQ(s[r], 32 * static_cast<float>(r) + 16);
}

TEST(ApiRun, HostArraysInAndOutAtAnySize) {
  const Executable run = compile(affine(), "cpu");
  EXPECT_EQ(run.target(), "cpu");
  for (std::int64_t rows : {1, 3, 64, 1000}) expect_right(run({counting(rows)}), rows);
}

TEST(ApiRun, TheCallersBuffersAreReadAndWritten) {
  const Executable run = compile(affine(), "cpu");
  Array x = counting(5), y = Array::zeros({5, 4}), s = Array::zeros({5});
  const Buffer in[] = {{x.bytes.data(), x.dtype, x.shape}};
  const Buffer out[] = {{y.bytes.data(), y.dtype, y.shape}, {s.bytes.data(), s.dtype, s.shape}};
  run.run(in, out);
  expect_right({y, s}, 5);
  EXPECT_EQ(x.bytes, counting(5).bytes);
}

TEST(ApiRun, AnInputReturnedIsCopied) {
  Graph g;
  const Tensor x = g.input("x", DType::i32, {3});
  g.output("same", x);
  g.output("more", x + 1);
  const auto results = compile(g, "cpu")({Array::from(std::vector<std::int32_t>{1, 2, 3}, {3})});
  EXPECT_EQ(results[0].to<std::int32_t>(), (std::vector<std::int32_t>{1, 2, 3}));
  EXPECT_EQ(results[1].to<std::int32_t>(), (std::vector<std::int32_t>{2, 3, 4}));
}

TEST(ApiRun, EmptyArraysRun) {
  Graph g;
  const Tensor x = g.input("x", DType::f32, {g.dim("n"), 4});
  g.output("y", exp(x));
  g.output("s", sum(x));
  const auto results = compile(g, "cpu")({Array::zeros({0, 4})});
  EXPECT_EQ(results[0].shape, (std::vector<std::int64_t>{0, 4}));
  EXPECT_EQ(results[1].to<float>(), std::vector<float>{0});
}

TEST(ApiRun, PreparingCompilesSoThatRunningDoesNot) {
  const Executable run = compile(affine(), "cpu");
  EXPECT_EQ(run.stats().builds, 0);
  run.prepare({{"rows", 64}});
  const int builds = run.stats().builds;
  EXPECT_EQ(builds, run.stats().kernels);
  run({counting(64)});
  run({counting(128)});  // another multiple of 16: the same class
  EXPECT_EQ(run.stats().builds, builds);
  EXPECT_EQ(run.stats().specializations, 1);
}

TEST(ApiRun, OutputShapesFollowTheInputs) {
  const Executable run = compile(affine(), "cpu");
  EXPECT_EQ(run.output_shapes({{9, 4}}), (std::vector<std::vector<std::int64_t>>{{9, 4}, {9}}));
}

TEST(ApiRun, KernelsShowsEachKernelOfThePlan) {
  const Executable run = compile(affine(), "cpu");
  const auto kernels = run.kernels({{"rows", 100}});
  ASSERT_EQ(static_cast<int>(kernels.size()), run.stats().kernels);
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    EXPECT_EQ(kernels[i].group, static_cast<int>(i));
    EXPECT_NE(kernels[i].source.find(kernels[i].name), std::string::npos);
    EXPECT_FALSE(kernels[i].kernel.empty());
    EXPECT_FALSE(kernels[i].plan.empty());
    EXPECT_FALSE(kernels[i].assembly.empty());
    EXPECT_FALSE(kernels[i].binary.empty());
    EXPECT_TRUE(kernels[i].ptx.empty());
    EXPECT_GT(kernels[i].bytes, 0);
    EXPECT_EQ(kernels[i].launch.substr(0, 6), "tasks ");
  }
}

TEST(ApiRun, UnfusedMakesMoreKernelsAndTheSameResults) {
  Options options = default_options();
  options.fuse = false;
  const Executable plain = compile(affine(), "cpu", options);
  EXPECT_GT(plain.stats().kernels, compile(affine(), "cpu").stats().kernels);
  expect_right(plain({counting(33)}), 33);
  options.fuse = true;
  options.disable = {"fuse"};  // by its name
  EXPECT_EQ(compile(affine(), "cpu", options).stats().kernels, plain.stats().kernels);
}

// work(0), work(1), … at the same time; an Error is a failure of the test, not of the program.
void in_threads(int count, const std::function<void(int)>& work) {
  std::vector<std::thread> threads;
  for (int t = 0; t < count; ++t)
    threads.emplace_back([&work, t] {
      try {
        work(t);
      } catch (const Error& error) {
        ADD_FAILURE() << error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(ApiThreads, OneExecutableServesManyThreadsAtManySizes) {
  const Executable run = compile(affine(), "cpu");
  in_threads(4, [&run](int t) {
    for (std::int64_t rows : {1 + t, 16, 40 + t, 64}) expect_right(run({counting(rows)}), rows);
  });
  EXPECT_EQ(run.stats().builds, run.stats().specializations * run.stats().kernels);
}

TEST(ApiThreads, CompilingFromSeveralThreads) {
  in_threads(4, [](int t) { expect_right(compile(affine(), "cpu")({counting(8 + t)}), 8 + t); });
}

// ---- what run refuses
// ---------------------------------------------------------------------------------------------------

std::string message_of(const std::function<void()>& mistake) {
  try {
    mistake();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

struct ApiBuffers : testing::Test {
  Executable run = compile(affine(), "cpu");
  Array x = counting(2), y = Array::zeros({2, 4}), s = Array::zeros({2});
  Buffer in{x.bytes.data(), x.dtype, x.shape};
  Buffer out[2] = {{y.bytes.data(), y.dtype, y.shape}, {s.bytes.data(), s.dtype, s.shape}};
  std::string refused() {
    return message_of([this] { run.run({&in, 1}, out); });
  }
};

TEST_F(ApiBuffers, TooFew) {
  EXPECT_EQ(message_of([this] { run.run({}, out); }),
            "argument error: 0 input buffers given, the graph has 1\n  help: pass one for each, in the graph's order");
  EXPECT_EQ(message_of([this] { run.run({&in, 1}, {out, 1}); }),
            "argument error: 1 output buffers given, the graph has 2\n  help: pass one for each, in the graph's order");
}

TEST_F(ApiBuffers, OfAnotherDType) {
  in.dtype = DType::i32;
  EXPECT_EQ(refused(), "argument error: input 'x' is i32, not f32\n  help: pass a f32 buffer");
}

TEST_F(ApiBuffers, OfAnotherShape) {
  out[1].shape = {3};
  EXPECT_EQ(refused(),
            "argument error: output 's' has shape [3], not [2]\n"
            "  help: Executable::output_shapes gives the shapes for these inputs");
  in.shape = {2, 5};
  EXPECT_EQ(refused(),
            "argument error: input 'x': axis 1 has extent 5, the graph says 4\n  help: give it as f32[rows, 4]");
}

TEST_F(ApiBuffers, Unaligned) {
  in.data = static_cast<std::byte*>(in.data) + 4;
  EXPECT_EQ(refused(), "argument error: input 'x' is not aligned to 16 bytes\n  help: allocate it with that alignment");
}

TEST_F(ApiBuffers, WithoutMemory) {
  out[0].data = nullptr;
  EXPECT_EQ(refused(), "argument error: output 'y' has no memory\n  help: pass a buffer of its size");
}

TEST_F(ApiBuffers, BeyondTheSymbolsBounds) {
  EXPECT_EQ(message_of([this] { run({Array::zeros({4097, 4})}); }),
            "argument error: dimension 'rows' is 4097, the graph wants at most 4096\n"
            "  help: give inputs with rows <= 4096");
  EXPECT_EQ(message_of([this] { run.prepare({{"columns", 3}}); }),
            "argument error: graph 'affine' has no dimension 'columns'\n  help: its dimensions are rows");
  EXPECT_EQ(message_of([this] { run.kernels(); }),
            "argument error: no input's shape decides the dimension 'rows'\n  help: give it a value in the bindings");
}

}  // namespace
}  // namespace tenon
#endif  // TENON_WITH_CPU

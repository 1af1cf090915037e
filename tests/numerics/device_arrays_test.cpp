// Arrays in a device's memory, streams and events: the same program on each target.
#include <gtest/gtest.h>

#include "src/driver/pipeline.h"
#include "tenon/tenon.h"
#include "tests/harness/targets.h"

namespace tenon::test {
namespace {

class DeviceArrays : public OnTarget {
 protected:
  const Device& device() {
    if (!device_) device_.emplace(GetParam(), options());
    return *device_;
  }
  static Options options() {
    Options options = default_options();
    options.cache = false;
    return options;
  }
  static Array counting(std::vector<std::int64_t> shape) {
    Array array = Array::zeros(std::move(shape));
    float next = 0;
    for (float& element : array.data<float>()) element = ++next;
    return array;
  }
  static std::vector<float> values(const DeviceArray& array) { return array.to_host().to<float>(); }

 private:
  std::optional<Device> device_;
};

std::string message_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::argument);
    return error.what();
  }
  return "no error";
}

TEST_P(DeviceArrays, HoldWhatTheHostGaveThem) {
  const Array host = counting({3, 5});
  const DeviceArray array = device().array(host);
  EXPECT_EQ(array.shape(), host.shape);
  EXPECT_EQ(array.size(), 15);
  EXPECT_EQ(array.byte_count(), 60);
  EXPECT_EQ(array.to_host().to<float>(), host.to<float>());
  EXPECT_EQ(array.device(), device());
  EXPECT_EQ(device().zeros({4}, DType::i32).to_host().to<std::int32_t>(), std::vector<std::int32_t>(4));
  EXPECT_EQ(device().zeros({2, 0}).byte_count(), 0);
  EXPECT_EQ(device().array(Array::zeros({0})).to_host().shape, (std::vector<std::int64_t>{0}));
  EXPECT_TRUE(device().name() == "cpu" || device().name().starts_with("cuda:"));
  EXPECT_FALSE(device().description().empty());
}

TEST_P(DeviceArrays, AreCopiedByCloneAlone) {
  const DeviceArray array = device().array(counting({4}));
  DeviceArray copy = array.clone();
  EXPECT_NE(copy.data(), array.data());
  copy.copy_from(Array::zeros({4}));
  EXPECT_EQ(values(array), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(values(copy), (std::vector<float>(4)));
  copy.copy_from(array);
  EXPECT_EQ(values(copy), values(array));
  const void* place = copy.data();
  const DeviceArray moved = std::move(copy);
  EXPECT_EQ(moved.data(), place);
  EXPECT_EQ(copy.data(), nullptr);  // NOLINT(bugprone-use-after-move)
  static_assert(!std::is_copy_constructible_v<DeviceArray>);
}

TEST_P(DeviceArrays, RunWhereTheyLie) {
  const Executable run = compile(Graph::parse("graph g(x: f32[n, 4], b: f32[4]) {\n  y = add(x, b)\n"
                                              "  s = sum(y, axis=1)\n  return y, s\n}\n"),
                                 device());
  const DeviceArray b = device().array(counting({4}));
  std::vector<DeviceArray> results;
  run.run({device().array(counting({3, 4})), b}, results);
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(values(results[0]), (std::vector<float>{2, 4, 6, 8, 6, 8, 10, 12, 10, 12, 14, 16}));
  EXPECT_EQ(values(results[1]), (std::vector<float>{20, 36, 52}));

  const void* place = results[0].data();
  run.run({device().array(counting({2, 4})), b}, results);  // fewer elements fit the memory of more
  EXPECT_EQ(results[0].data(), place);
  EXPECT_EQ(results[0].shape(), (std::vector<std::int64_t>{2, 4}));
  EXPECT_EQ(values(results[1]), (std::vector<float>{20, 36}));
  run.run({device().array(counting({30, 4})), b}, results);
  EXPECT_EQ(results[1].shape(), (std::vector<std::int64_t>{30}));
  EXPECT_EQ(values(run({results[0], b})[1]), values(run({device().array(results[0].to_host()), b})[1]));
}

TEST_P(DeviceArrays, AreUpdatedInPlace) {
  Graph g("step");
  const Tensor x = g.input("x", DType::f32, {4}), total = g.input("total", DType::f32, {4});
  g.update(total, total + x);
  g.output("twice", x * 2);
  const Executable run = compile(g, device());
  const DeviceArray ones = device().array(counting({4})), sum = device().zeros({4});
  const Stream stream = device().stream();
  std::vector<DeviceArray> results;
  for (int i = 0; i < 10; ++i) run.run_async({ones, sum}, results, stream);
  stream.wait();
  EXPECT_EQ(values(sum), (std::vector<float>{10, 20, 30, 40}));
  ASSERT_EQ(results.size(), 1U);
  EXPECT_EQ(values(results[0]), (std::vector<float>{2, 4, 6, 8}));
}

TEST_P(DeviceArrays, OfAnElementwiseGraphMayBeItsResultsToo) {
  const Executable run = compile(Graph::parse("graph g(x: f32[n]) {\n  y = mul(x, 2)\n  return y\n}\n"), device());
  const DeviceArray x = device().array(counting({4}));
  const Buffer buffer = x.buffer();
  for (int i = 0; i < 3; ++i) run.run_async(std::span(&buffer, 1), std::span(&buffer, 1), device().default_stream());
  EXPECT_EQ(values(x), (std::vector<float>{8, 16, 24, 32}));
}

TEST_P(DeviceArrays, OfAGraphWithoutInputsAreMade) {
  const Executable run = compile(
      Graph::parse("graph g() {\n  y: f32[3] = full(shape=[3], value=2, dtype=f32)\n  return y\n}\n"), device());
  EXPECT_EQ(values(run(std::vector<DeviceArray>{})[0]), (std::vector<float>{2, 2, 2}));
}

TEST_P(DeviceArrays, StreamsWaitForEvents) {
  const Executable step = compile(Graph::parse("graph g(x: f32[n]) {\n  y = add(x, 1)\n  return y\n}\n"), device());
  const Stream first = device().stream(), second = device().stream();
  constexpr std::int64_t kCount = 1 << 22;
  const DeviceArray a = device().zeros({kCount}), b = device().zeros({kCount});
  const Event begin = first.record();
  std::vector<DeviceArray> results;
  results.push_back(device().empty({kCount}));
  for (int i = 0; i < 20; ++i) {  // 3 for each turn, each stream waiting for the other
    const Buffer from = i % 2 == 0 ? a.buffer() : b.buffer(), to = i % 2 == 0 ? b.buffer() : a.buffer();
    step.run_async(std::span(&from, 1), std::span(&to, 1), first);
    second.wait_for(first.record());
    const Buffer& twice = results[0].buffer();
    step.run_async(std::span(&to, 1), std::span(&twice, 1), second);
    const Buffer back = to;
    step.run_async(std::span(&twice, 1), std::span(&back, 1), second);
    first.wait_for(second.record());
  }
  const Event end = first.record();
  end.wait();
  EXPECT_TRUE(end.reached());
  EXPECT_GE(end.milliseconds_since(begin), 0);
  EXPECT_EQ(values(a)[0], 60);
  EXPECT_EQ(values(a)[kCount - 1], 60);
}

TEST_P(DeviceArrays, AreCopiedInTheOrderOfAStream) {
  const Executable step = compile(Graph::parse("graph g(x: f32[n]) {\n  y = mul(x, 3)\n  return y\n}\n"), device());
  const Stream stream = device().stream();
  const Array host = counting({1000});
  DeviceArray x = device().empty({1000});
  const DeviceArray y = device().empty({1000});
  Array back;
  x.copy_from(host, stream);
  step.run_async(std::span(&x.buffer(), 1), std::span(&y.buffer(), 1), stream);
  x.copy_from(y, stream);
  x.copy_to(back, stream);
  stream.wait();
  EXPECT_EQ(back.to<float>()[999], 3000);
}

TEST_P(DeviceArrays, WrongOnesAreRefused) {
  const Executable run = compile(Graph::parse("graph g(x: f32[n]) {\n  y = sum(x, axis=0)\n  return y\n}\n"), device());
  std::vector<DeviceArray> results;
  const DeviceArray x = device().zeros({4}), none;
  DeviceArray y = device().zeros({4});
  EXPECT_NE(message_of([&] { run.run({x, x}, results); }).find("takes 1 inputs, 2 given"), std::string::npos);
  EXPECT_NE(message_of([&] { run.run({none}, results); }).find("of no device"), std::string::npos);
  EXPECT_NE(message_of([&] { none.to_host(); }).find("of no device"), std::string::npos);
  EXPECT_NE(message_of([&] { y.copy_from(Array::zeros({5})); }).find("f32[5] cannot be copied to f32[4]"),
            std::string::npos);
  EXPECT_NE(message_of([&] { y.copy_from(Array::zeros({4}, DType::i32)); }).find("i32[4]"), std::string::npos);
  EXPECT_NE(message_of([&] { device().zeros({-1}); }).find("[-1]"), std::string::npos);
  EXPECT_NE(message_of([&] { run.run({device().zeros({4}, DType::f64)}, results); }).find("f64"), std::string::npos);
}

TENON_ON_EACH_TARGET(DeviceArrays);

#ifdef TENON_WITH_CPU
TEST(DeviceArrays, OfAnotherDeviceAreRefused) {
  const Device cpu("cpu");
  const Graph g = Graph::parse("graph g(x: f32[n]) {\n  y = exp(x)\n  return y\n}\n");
  const auto backend = backend_of("cuda_on_host");
  const Executable run = src::make_executable(src::plan(g.data(), *backend, default_options()), backend, {});
  std::vector<DeviceArray> results;
  EXPECT_NE(message_of([&] { run.run({cpu.zeros({4})}, results); }).find("'x' is on cpu"), std::string::npos);
  EXPECT_NE(message_of([&] {
              run.run_async(std::span<const Buffer>(), std::span<const Buffer>(), cpu.stream());
            }).find("a stream of cpu"),
            std::string::npos);
}
#endif

TEST(Devices, AreNamed) {
  EXPECT_NE(message_of([] { Device("cuda:one"); }).find("'cuda:one' names no device"), std::string::npos);
  EXPECT_NE(message_of([] { Device("cuda:-1"); }).find("names no device"), std::string::npos);
  EXPECT_NE(message_of([] { Device("sm_90a"); }).find("is an architecture, not a device"), std::string::npos);
}

}  // namespace
}  // namespace tenon::test

// What a call costs the host: a graph of one small kernel, called by each door of the public API. On the CPU a call
// runs the kernel; exit code 1 where one takes more than 2 us. On a GPU a call asks for the kernel: the driver's launch
// is counted, which alone may take 2 us, and the kernel is not (test HostCost of tests/gpu tells the two apart).
//     tenon_host_calls [DEVICE]    "cpu" unless told otherwise, or "cuda"
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "tenon/tenon.h"

namespace {

constexpr double kMostMicroseconds = 2;

// Of the median batch of calls. `wait` is not timed: it keeps a GPU's queue from filling up.
template <typename Call, typename Wait>
double microseconds_of(Call call, Wait wait) {
  using Clock = std::chrono::steady_clock;
  constexpr int kBatches = 201, kCalls = 100;
  std::vector<double> batches;
  for (int i = 0; i < kBatches * kCalls; ++i) call();  // a processor that slept, a driver that has not launched yet
  wait();
  for (int batch = 0; batch < kBatches; ++batch) {
    const auto start = Clock::now();
    for (int i = 0; i < kCalls; ++i) call();
    batches.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count() / kCalls);
    wait();
  }
  std::nth_element(batches.begin(), batches.begin() + kBatches / 2, batches.end());
  return batches[kBatches / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const tenon::Device device(argc > 1 ? argv[1] : "cpu");
  tenon::Graph g("scaled");
  const tenon::Dim n = g.dim("n");
  const tenon::Tensor x = g.input("x", tenon::DType::f32, {n}), w = g.input("w", tenon::DType::f32, {n});
  g.output("y", x * w + 1);
  const tenon::Executable run = tenon::compile(g, device);
  const tenon::Stream stream = device.stream();
  const auto wait = [&] { stream.wait(); };
  bool fast = true;
  const auto report = [&](const char* door, double microseconds) {
    fast = fast && microseconds <= kMostMicroseconds;
    fmt::print("{:<48} {:.2f} us a call\n", door, microseconds);
  };

  const tenon::Array host = tenon::Array::normal({16}, 1);
  const tenon::DeviceArray a = device.array(host), b = device.array(host), c = device.array(host);
  const std::vector<tenon::Buffer> inputs{buffer_of(a), buffer_of(b)}, outputs{buffer_of(c)};
  report("buffers on a stream", microseconds_of([&] { run.run_async(inputs, outputs, stream); }, wait));
  std::vector<tenon::DeviceArray> results;
  report("device arrays on a stream, results used again",
         microseconds_of([&] { run.run_async({a, b}, results, stream); }, wait));
  if (device.name() != "cpu") return 0;  // host arrays would be copied, and waited for

  std::vector<tenon::Array> arrays;
  report("host arrays, results used again", microseconds_of([&] { run.run({host, host}, arrays); }, wait));
  tenon::NamedResults named;
  report("host arrays by name, results used again",
         microseconds_of([&] { run.run({{"x", host}, {"w", host}}, named); }, wait));
  return fast ? 0 : 1;
}

// What `run_async` costs the host at sizes seen before, for each kernel and for each call, beside cuLaunchKernel called
// with the same functions, grids and arguments in the same run.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>

#include "ir/text/text.h"
#include "runtime/cuda/device.h"
#include "runtime/executable.h"
#include "src/driver/pipeline.h"
#include "tenon/tenon.h"
#include "tests/gpu/figures.h"
#include "tests/harness/targets.h"

namespace tenon::test {
namespace {

namespace cuda = runtime::cuda;

// Kernels that cannot share one: each sums what the one before made, along the other axis.
std::string chain(int kernels) {
  std::string calls;
  for (int i = 0; i < kernels; ++i)
    calls += fmt::format("  x{} = mul(x{}, sum(x{}, axis={}, keepdims=true))\n", i + 1, i, i, i % 2);
  return fmt::format("graph chain(x0: f32[rows, 8]) {{\n{}  return x{}\n}}\n", calls, kernels);
}

class DeviceBuffers {
 public:
  DeviceBuffers(const runtime::Backend& backend, const std::vector<std::vector<std::int64_t>>& shapes)
      : backend_(backend) {
    for (const auto& shape : shapes) {
      std::int64_t count = 1;
      for (std::int64_t extent : shape) count *= extent;
      const std::vector<float> zeros(static_cast<std::size_t>(count));
      buffers.push_back({backend.allocate(zeros.size() * 4), DType::f32, shape});
      backend.copy_in(buffers.back().data, zeros.data(), zeros.size() * 4, nullptr);
      backend.synchronize(nullptr);
    }
  }
  ~DeviceBuffers() {
    for (const Buffer& buffer : buffers) backend_.release(buffer.data);
  }
  DeviceBuffers(const DeviceBuffers&) = delete;
  DeviceBuffers& operator=(const DeviceBuffers&) = delete;

  std::vector<Buffer> buffers;

 private:
  const runtime::Backend& backend_;
};

// The launches of a record as bare driver calls.
class BareLaunches {
 public:
  BareLaunches(const cuda::DevicePtr& device, const runtime::LaunchRecord& record, void* memory)
      : driver_(device->driver()), memory_(memory) {
    for (const runtime::PreparedLaunch& launch : record.launches) {
      const runtime::BuiltLaunch& built = *launch.built;
      modules_.emplace_back(device, built.binary.entry->binary);
      Call call;
      call.function =
          modules_.back().function(built.source.entry, static_cast<std::size_t>(built.source.launch.shared_bytes));
      call.grid = static_cast<unsigned>(launch.function.grid);
      call.block = static_cast<unsigned>(built.source.launch.block);
      call.shared = static_cast<unsigned>(built.source.launch.shared_bytes);
      call.pointers = launch.pointers.size();
      call.dims = launch.dims;
      calls_.push_back(call);
      if (built.source.finish_entry.empty()) continue;
      call.function = modules_.back().function(built.source.finish_entry, 0);
      call.grid = static_cast<unsigned>(launch.finish.grid);
      call.block = static_cast<unsigned>(built.source.finish.block);
      call.shared = 0;
      calls_.push_back(std::move(call));
    }
    for (Call& call : calls_) {  // every pointer the same memory: large enough for any of them
      for (std::size_t i = 0; i < call.pointers; ++i) call.arguments.push_back(&memory_);
      for (std::int64_t& dim : call.dims) call.arguments.push_back(&dim);
    }
  }

  void operator()() {
    for (Call& call : calls_)
      cuda::check(driver_,
                  driver_.launch_kernel(call.function, call.grid, 1, 1, call.block, 1, 1, call.shared, nullptr,
                                        call.arguments.data(), nullptr),
                  "launching");
  }

 private:
  struct Call {
    cuda::FunctionHandle function = nullptr;
    unsigned grid = 0, block = 0, shared = 0;
    std::size_t pointers = 0;
    std::vector<std::int64_t> dims;
    std::vector<void*> arguments;
  };
  const cuda::Driver& driver_;
  void* memory_;
  std::vector<cuda::Module> modules_;
  std::vector<Call> calls_;
};

TEST(HostCost, OfEachKernelAtSizesSeenBefore) {
  require("cuda");
  if (IsSkipped() || HasFatalFailure()) return;
  const auto backend = backend_of("cuda");
  const Options options = default_options();
  const cuda::DevicePtr device = cuda::Device::open(cuda::open_driver(), options.device);
  const cuda::CurrentContext current(*device);
  for (const int wanted : {1, 8}) {
    const ir::Graph graph = ir::parse(chain(wanted));
    const Executable executable = src::make_executable(src::plan(graph, *backend, options), backend, options);
    const std::vector<std::int64_t> shape = {16, 8};
    const DeviceBuffers buffers(*backend, {shape, shape, {4096}});
    const std::span<const Buffer> all = buffers.buffers;
    for (const std::int64_t rows : {1, 7, 32}) executable.prepare({{"rows", rows}});  // others met before
    executable.run(all.subspan(0, 1), all.subspan(1, 1));
    const auto record = executable.impl().record_for(all.subspan(0, 1), {});
    BareLaunches bare(device, *record, buffers.buffers[2].data);
    const auto kernels = static_cast<double>(record->launches.size());
    // Few launches at a time, so that the queue never fills and no call waits for the GPU.
    constexpr int kRounds = 400;
    const int repeats = 64 / static_cast<int>(record->launches.size());
    std::vector<double> ours, theirs;
    for (int round = 0; round < kRounds; ++round) {
      ours.push_back(milliseconds_of([&] {
        for (int i = 0; i < repeats; ++i) executable.run_async(all.subspan(0, 1), all.subspan(1, 1), nullptr);
      }));
      backend->synchronize(nullptr);
      theirs.push_back(milliseconds_of([&] {
        for (int i = 0; i < repeats; ++i) bare();
      }));
      backend->synchronize(nullptr);
    }
    const double run = median(ours) * 1e3 / repeats / kernels, launch = median(theirs) * 1e3 / repeats / kernels;
    std::printf("%d kernels: run %.3f us a kernel, cuLaunchKernel %.3f us\n", static_cast<int>(kernels), run, launch);
    figure(fmt::format("host cost a kernel on top of cuLaunchKernel, {} kernels a run", kernels), run - launch, "us",
           1);
    EXPECT_LT(run - launch, 10) << "loose: machines differ; the bar is 1";
  }
}

// What a program's loop calls: device arrays on a stream, whose results are used again.
TEST(HostCost, OfACallOnDeviceArrays) {
  require("cuda");
  if (IsSkipped() || HasFatalFailure()) return;
  const Device gpu("cuda");
  const Executable executable = compile(Graph::parse(chain(1)), gpu);
  const Stream stream = gpu.stream();
  const DeviceArray x = gpu.zeros({16, 8}), room = gpu.zeros({4096});
  std::vector<DeviceArray> results;
  executable.run_async({x}, results, stream);
  const std::vector<Buffer> inputs{buffer_of(x)};
  const auto record = executable.impl().record_for(inputs, {});
  const cuda::DevicePtr device = cuda::Device::open(cuda::open_driver(), default_options().device);
  const cuda::CurrentContext current(*device);
  BareLaunches bare(device, *record, buffer_of(room).data);
  const auto kernels = static_cast<double>(record->launches.size());
  constexpr int kRounds = 400, kCalls = 64;
  std::vector<double> ours, theirs;
  for (int round = 0; round < kRounds; ++round) {
    ours.push_back(milliseconds_of([&] {
      for (int i = 0; i < kCalls; ++i) executable.run_async({x}, results, stream);
    }));
    gpu.wait();
    theirs.push_back(milliseconds_of([&] {
      for (int i = 0; i < kCalls; ++i) bare();
    }));
    gpu.wait();
  }
  const double call = median(ours) * 1e3 / kCalls, launches = median(theirs) * 1e3 / kCalls;
  std::printf("%d kernels: a call %.3f us, cuLaunchKernel %.3f us\n", static_cast<int>(kernels), call, launches);
  figure("host cost of a call on device arrays on top of cuLaunchKernel", call - launches, "us", 2);
  EXPECT_LT(call - launches, 10) << "loose: machines differ; the bar is 2";
}

}  // namespace
}  // namespace tenon::test

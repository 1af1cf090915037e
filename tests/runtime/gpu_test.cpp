// On a real GPU: compiled kernels run and are right, however they are launched, and faults become typed errors.
// Skipped where there is no driver, GPU or NVRTC.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "runtime/cache.h"
#include "runtime/cuda/device.h"
#include "runtime/cuda/graph.h"
#include "tests/runtime/installed_nvrtc.h"
#include "tests/runtime/temporary_folder.h"

namespace tenon::runtime::cuda {
namespace {

const char* const source = R"(
extern "C" __global__ void scale(const float* x, float* y, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i];
}
extern "C" __global__ void rank_in_cluster(unsigned* y) {
  unsigned rank, size;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
  if (threadIdx.x == 0) y[blockIdx.x] = size * 100 + rank;
}
extern "C" __global__ void keep_policy(unsigned long long* y) {
#if __CUDA_ARCH__ >= 800
  asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(y[0]));
#endif
}
extern "C" __global__ void add_one_dependent(float* y, int n) {
  asm volatile("griddepcontrol.wait;" ::: "memory");
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += 1.0f;
}
extern "C" __global__ void large_shared(float* y) {
  extern __shared__ float t[];
  for (int i = threadIdx.x; i < 50000; i += blockDim.x) t[i] = i;
  __syncthreads();
  if (threadIdx.x == 0) y[0] = t[49999];
}
struct __align__(64) TensorMap { unsigned long long opaque[16]; };
extern "C" __global__ void copy_box(const __grid_constant__ TensorMap map, float* y) {
  __shared__ __align__(128) float box[8 * 8];
  __shared__ __align__(8) unsigned long long barrier;
  unsigned bar = (unsigned)__cvta_generic_to_shared(&barrier), to = (unsigned)__cvta_generic_to_shared(box);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(bar));
    asm volatile("fence.mbarrier_init.release.cluster;");
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 256;" ::"r"(bar) : "memory");
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                 ::"r"(to), "l"(&map), "r"(8), "r"(4), "r"(bar) : "memory");
  }
  __syncthreads();
  unsigned done = 0;
  while (!done) {
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                 : "=r"(done) : "r"(bar) : "memory");
  }
  y[threadIdx.x] = box[threadIdx.x];
}
extern "C" __global__ void fault(float* y) { y[threadIdx.x] = 1; }
)";

struct Machine {
  std::shared_ptr<const Nvrtc> nvrtc;
  DevicePtr device;
  std::string arch;
  std::string missing;  // why there is no GPU to test on
};

Machine find_machine() {
  Machine machine;
  try {
    machine.nvrtc = open_nvrtc(test::nvrtc_search());
    machine.device = Device::open(open_driver(), 0);
    machine.arch = arch_for(machine.device->info().major, machine.device->info().minor, *machine.nvrtc);
  } catch (const Error& error) {
    machine.missing = error.message();
  }
  return machine;
}

std::vector<std::byte> as_bytes(const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

class Gpu : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    machine_ = new Machine(find_machine());
    if (machine_->missing.empty() && is_hopper_or_later()) {
      machine_->device->synchronize();
      cubin_ = compile(*machine_->nvrtc, source, "scale", machine_->arch).cubin;
    }
  }
  static void TearDownTestSuite() {
    delete machine_;
    machine_ = nullptr;
  }
  static bool is_hopper_or_later() { return machine_->device->info().major >= 9; }

  void SetUp() override {
    if (!machine_->missing.empty()) GTEST_SKIP() << machine_->missing;
    if (!is_hopper_or_later()) GTEST_SKIP() << "these kernels need sm_90; this is " << machine_->arch;
    device = machine_->device;
    current.emplace(*device);
    stream.emplace(device);
    module.emplace(device, cubin_);
  }
  void TearDown() override {
    module.reset();
    stream.reset();
    current.reset();
  }

  std::vector<float> read(const DeviceBuffer& buffer) const {
    std::vector<std::byte> raw(buffer.bytes());
    stream->synchronize();
    buffer.download(raw);
    std::vector<float> values(raw.size() / sizeof(float));
    std::memcpy(values.data(), raw.data(), raw.size());
    return values;
  }
  DeviceBuffer buffer_of(const std::vector<float>& values) const {
    DeviceBuffer buffer(device, values.size() * sizeof(float));
    buffer.upload(as_bytes(values));
    return buffer;
  }
  void scale(const DeviceBuffer& x, const DeviceBuffer& y, float a, int n, bool dependent = false) const {
    DevicePointer from = x.address();
    DevicePointer to = y.address();
    void* arguments[] = {&from, &to, &a, &n};
    const LaunchConfig config{{static_cast<unsigned>((n + 255) / 256), 1, 1}, {256, 1, 1}, 0, {}, dependent};
    launch(device->driver(), module->function("scale"), config, stream->get(), arguments, "scale");
  }

  static Machine* machine_;
  static std::vector<std::byte> cubin_;
  DevicePtr device;
  std::optional<CurrentContext> current;
  std::optional<Stream> stream;
  std::optional<Module> module;
};
Machine* Gpu::machine_ = nullptr;
std::vector<std::byte> Gpu::cubin_;

TEST_F(Gpu, IsDescribed) {
  const auto& info = device->info();
  std::printf("%s %s, %d SMs, %lld bytes shared a block, L2 %lld, %lld bytes, driver %d, %s\n", info.name.c_str(),
              uuid_text(info.uuid).c_str(), info.sm_count, static_cast<long long>(info.shared_bytes_per_block),
              static_cast<long long>(info.l2_bytes), static_cast<long long>(info.memory_bytes),
              device->driver().version, machine_->nvrtc->identity().c_str());
  EXPECT_GT(info.sm_count, 0);
  EXPECT_GE(info.shared_bytes_per_block, 99 * 1024);
  EXPECT_GT(info.l2_bytes, 1 << 20);
  EXPECT_GT(info.clock_khz, 100000);
  EXPECT_TRUE(info.memory_pools);
  EXPECT_LE(device->memory_info().free, device->memory_info().total);
}

TEST_F(Gpu, ACompiledKernelComputes) {
  const int n = 1000003;
  std::vector<float> x(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 1000) - 500;
  const auto from = buffer_of(x);
  const DeviceBuffer to(device, from.bytes(), stream->get());
  scale(from, to, 2.5f, n);
  const auto y = read(to);
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i], 2.5f * x[i]) << i;
}

TEST_F(Gpu, TheDriverAndPtxasAgreeOnResources) {
  const auto compiled = compile(*machine_->nvrtc, source, "scale", machine_->arch);
  const auto function = module->function("scale");
  EXPECT_EQ(module->info(function).registers, compiled.resources.registers);
  EXPECT_EQ(module->info(function).local_bytes, 0);
  EXPECT_GE(module->blocks_per_sm(function, 256, 0), 4);
}

TEST_F(Gpu, BlocksFormClusters) {
  const auto y = buffer_of(std::vector<float>(8));
  DevicePointer to = y.address();
  void* arguments[] = {&to};
  launch(device->driver(), module->function("rank_in_cluster"), {{8, 1, 1}, {32, 1, 1}, 0, {4, 1, 1}}, stream->get(),
         arguments, "rank_in_cluster");
  const auto values = read(y);
  std::vector<unsigned> ranks(8);
  std::memcpy(ranks.data(), values.data(), 32);
  EXPECT_EQ(ranks, (std::vector<unsigned>{400, 401, 402, 403, 400, 401, 402, 403}));
}

TEST_F(Gpu, ADependentLaunchSeesWhatItWaitedFor) {
  int n = 100000;
  const auto x = buffer_of(std::vector<float>(static_cast<std::size_t>(n), 3));
  const auto y = buffer_of(std::vector<float>(static_cast<std::size_t>(n)));
  scale(x, y, 2, n);
  DevicePointer to = y.address();
  void* arguments[] = {&to, &n};
  const LaunchConfig config{{static_cast<unsigned>((n + 255) / 256), 1, 1}, {256, 1, 1}, 0, {}, true};
  launch(device->driver(), module->function("add_one_dependent"), config, stream->get(), arguments, "add_one");
  for (const float value : read(y)) ASSERT_EQ(value, 7);
}

TEST_F(Gpu, ABlockMayAskForMoreThan48KiBOfSharedMemory) {
  const auto y = buffer_of({0});
  DevicePointer to = y.address();
  void* arguments[] = {&to};
  launch(device->driver(), module->function("large_shared", 200000), {{1, 1, 1}, {256, 1, 1}, 200000}, stream->get(),
         arguments, "large_shared");
  EXPECT_EQ(read(y)[0], 49999);
  EXPECT_THROW(module->function("large_shared", 1 << 20), Error);
}

TEST_F(Gpu, ATensorMapDescribesABoxOfAMatrix) {
  std::vector<float> matrix(32 * 64);
  for (std::size_t i = 0; i < matrix.size(); ++i) matrix[i] = static_cast<float>(i);
  const auto x = buffer_of(matrix);
  const auto y = buffer_of(std::vector<float>(64));
  TensorMap map{};
  const std::uint64_t extents[] = {64, 32};
  const std::uint64_t strides[] = {64 * sizeof(float)};
  const std::uint32_t box[] = {8, 8};
  const std::uint32_t steps[] = {1, 1};
  check(device->driver(),
        device->driver().tensor_map_encode_tiled(
            &map, TensorMapType::f32, 2, reinterpret_cast<void*>(x.address()), extents, strides, box, steps,
            TensorMapInterleave::none, TensorMapSwizzle::none, TensorMapL2Promotion::bytes_128, TensorMapFill::zero),
        "encoding a tensor map");
  DevicePointer to = y.address();
  void* arguments[] = {&map, &to};
  launch(device->driver(), module->function("copy_box"), {{1, 1, 1}, {64, 1, 1}}, stream->get(), arguments, "copy_box");
  const auto values = read(y);
  for (std::size_t i = 0; i < 64; ++i) ASSERT_EQ(values[i], matrix[(4 + i / 8) * 64 + 8 + i % 8]) << i;
}

TEST_F(Gpu, AGraphRepeatsAndIsUpdated) {
  const int n = 1000;
  const auto x = buffer_of(std::vector<float>(static_cast<std::size_t>(n), 1));
  const auto y = buffer_of(std::vector<float>(static_cast<std::size_t>(n), 0));
  LaunchGraph graph(device, stream->get(), [&] {
    scale(x, y, 2, n);
    scale(y, x, 3, n);
  });
  EXPECT_EQ(read(x)[0], 1) << "recording ran the kernels";
  graph.launch(stream->get());
  graph.launch(stream->get());
  EXPECT_EQ(read(x)[999], 36);
  graph.update(stream->get(), [&] {
    scale(x, y, 0.5f, n);
    scale(y, x, 1, n);
  });
  graph.launch(stream->get());
  EXPECT_EQ(read(x)[999], 18);
  graph.update(stream->get(), [&] { scale(x, y, 10, n); });  // another topology
  graph.launch(stream->get());
  EXPECT_EQ(read(y)[0], 180);
}

TEST_F(Gpu, EventsMeasureTime) {
  const int n = 1 << 24;
  const DeviceBuffer x(device, static_cast<std::size_t>(n) * 4);
  const Event begin(device, Event::Timing::on);
  const Event end(device, Event::Timing::on);
  begin.record(stream->get());
  for (int i = 0; i < 20; ++i) scale(x, x, 1, n);
  end.record(stream->get());
  end.synchronize();
  EXPECT_GT(end.milliseconds_since(begin), 0.02f);
  EXPECT_LT(end.milliseconds_since(begin), 1000.0f);
}

TEST_F(Gpu, TooMuchMemoryIsOutOfMemoryAndTheDeviceGoesOn) {
  try {
    const DeviceBuffer huge(device, std::size_t{1} << 50);
    ADD_FAILURE() << "a petabyte was allocated";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::out_of_memory) << error.what();
    EXPECT_NE(error.message().find("CUDA_ERROR_OUT_OF_MEMORY (2)"), std::string::npos) << error.what();
  }
  EXPECT_EQ(read(buffer_of({5}))[0], 5);
}

TEST_F(Gpu, CodeForAnotherArchitectureIsUnsupported) {
  const auto other = compile(*machine_->nvrtc, "extern \"C\" __global__ void f(int* x) { *x = 1; }", "f",
                             machine_->arch == "sm_120" ? "sm_80" : "sm_120");
  try {
    const Module wrong(device, other.cubin);
    ADD_FAILURE() << "it was loaded";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unsupported) << error.what();
  }
}

// The prelude has it as a number on sm_90 (vector.cuh, keep_policy).
TEST_F(Gpu, ThePolicyThatKeepsLinesIsTheKnownNumber) {
  if (device->info().major != 9) GTEST_SKIP() << "made by an instruction there";
  const DeviceBuffer buffer(device, 8);
  DevicePointer address = buffer.address();
  void* arguments[] = {&address};
  launch(device->driver(), module->function("keep_policy"), {{1, 1, 1}, {1, 1, 1}}, stream->get(), arguments,
         "keep_policy");
  stream->synchronize();
  std::uint64_t policy = 0;
  buffer.download(std::as_writable_bytes(std::span(&policy, 1)));
  EXPECT_EQ(policy, 0x14f0000000000000ULL);
}

TEST_F(Gpu, ABlockThatIsTooLargeIsALaunchError) {
  try {
    void* none[1] = {};
    launch(device->driver(), module->function("fault"), {{1, 1, 1}, {4096, 1, 1}}, stream->get(), none, "fault");
    ADD_FAILURE() << "it was launched";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::launch) << error.what();
    EXPECT_NE(error.message().find("launching fault (grid 1x1x1, block 4096x1x1"), std::string::npos) << error.what();
  }
}

// In a process of its own, since the context is lost afterwards.
[[noreturn]] void write_through_a_null_pointer() {
  try {
    const Machine machine = find_machine();
    const Module module(machine.device, compile(*machine.nvrtc, source, "fault", machine.arch).cubin);
    const CurrentContext current(*machine.device);
    const Stream stream(machine.device);
    DevicePointer nowhere = 0;
    void* arguments[] = {&nowhere};
    launch(machine.device->driver(), module.function("fault"), {{1, 1, 1}, {32, 1, 1}}, stream.get(), arguments,
           "fault");
    stream.synchronize();
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    std::_Exit(error.kind() == ErrorKind::device_lost ? 0 : 2);
  }
  std::_Exit(1);
}

TEST_F(Gpu, AFaultInAKernelIsDeviceLost) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(write_through_a_null_pointer(), testing::ExitedWithCode(0),
              "device lost error: waiting for a stream: CUDA_ERROR_ILLEGAL_ADDRESS \\(700\\)");
}

double milliseconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

// Measured for the record; the bar (2 ms from a warm disk cache) is checked loosely, since machines differ.
TEST_F(Gpu, AKernelLoadsFromAWarmDiskCacheInMilliseconds) {
  const test::TemporaryFolder folder;
  DiskCacheOptions options;
  options.folder = (folder.path() / "cache").string();
  const CacheKey key{"test", machine_->nvrtc->identity(), machine_->arch, "flags", source};
  KernelCache(std::make_shared<DiskCache>(options)).get_or_compile(key, [] { return CacheEntry{"", cubin_}; });
  std::vector<double> times;
  for (int i = 0; i < 21; ++i) {
    KernelCache cache(std::make_shared<DiskCache>(options));
    times.push_back(milliseconds_of([&] {
      const auto entry = cache.get_or_compile(key, []() -> CacheEntry { throw std::logic_error("a miss"); });
      const Module loaded(device, entry->binary);
      loaded.function("scale");
    }));
  }
  std::sort(times.begin(), times.end());
  std::printf("kernel load from a warm disk cache: median %.3f ms, max %.3f ms\n", times[10], times[20]);
  EXPECT_LT(times[10], 10.0);
}

TEST_F(Gpu, HostCostOfALaunchIsSmall) {
  const int n = 1;
  const auto x = buffer_of({1});
  const auto function = module->function("scale");
  DevicePointer at = x.address();
  float a = 1;
  int count = n;
  void* arguments[] = {&at, &at, &a, &count};
  const LaunchConfig config{{1, 1, 1}, {32, 1, 1}};
  constexpr int rounds = 500;
  const auto& driver = device->driver();
  const auto ours = [&] {
    for (int i = 0; i < rounds; ++i) launch(driver, function, config, stream->get(), arguments, "scale");
  };
  const auto bare = [&] {
    for (int i = 0; i < rounds; ++i) {
      driver.launch_kernel(function, 1, 1, 1, 32, 1, 1, 0, stream->get(), arguments, nullptr);
    }
  };
  ours();
  stream->synchronize();
  const double with = milliseconds_of(ours);
  stream->synchronize();
  const double without = milliseconds_of(bare);
  stream->synchronize();
  std::printf("host cost of a launch: %.3f us, cuLaunchKernel alone %.3f us\n", with * 1e3 / rounds,
              without * 1e3 / rounds);
  EXPECT_LT(with * 1e3 / rounds, 100.0);
}

}  // namespace
}  // namespace tenon::runtime::cuda

// The driver without a GPU: what its absence says, how its codes become errors, and, with functions of the test's own
// in the driver's table, that every handle is given back.
#include "runtime/cuda/driver.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>

#include "runtime/cuda/device.h"
#include "runtime/dynamic_library.h"

namespace tenon::runtime::cuda {
namespace {

template <typename Call>
Error error_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return Error(ErrorKind::internal, "");
}

TEST(OpenDriver, GivesAUsableDriverOrSaysHowToGetOne) {
  try {
    const auto driver = open_driver();
    EXPECT_GE(driver->version, 12000);
    EXPECT_NE(driver->path.find("libcuda.so"), std::string::npos);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::no_device);
    EXPECT_NE(error.remedy(), "");
  }
}

TEST(OpenDriver, AMissingLibraryIsNoDeviceWithARemedy) {
  const auto error = error_of([] { open_driver("libcuda-not-here.so.1"); });
  EXPECT_EQ(error.kind(), ErrorKind::no_device);
  EXPECT_NE(error.message().find("no CUDA driver: libcuda-not-here.so.1"), std::string::npos) << error.message();
  EXPECT_NE(error.remedy().find("install the NVIDIA driver, release 525 or later"), std::string::npos);
}

TEST(OpenDriver, ALibraryWithoutTheEntryPointsIsUnsupported) {
  EXPECT_EQ(error_of([] { open_driver("libm.so.6"); }).kind(), ErrorKind::unsupported);
}

// In a process of its own: a stub once loaded answers to the name libcuda.so.1 too.
TEST(OpenDriver, TheToolkitsStubIsNamedAsSuch) {
  const std::string stub = "/usr/local/cuda/lib64/stubs/libcuda.so";
  if (!std::filesystem::exists(stub)) GTEST_SKIP() << "no toolkit stub here";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto open_stub = [&stub] {
    const auto error = error_of([&] { open_driver(stub); });
    std::fprintf(stderr, "%s\n", error.what());
    std::_Exit(error.kind() == ErrorKind::no_device ? 0 : 1);
  };
  EXPECT_EXIT(open_stub(), testing::ExitedWithCode(0), "is the toolkit's stub, not a CUDA driver");
}

TEST(DriverErrors, NameTheCallTheCodeAndTheRemedy) {
  Driver driver;
  driver.get_error_name = [](Result, const char** name) {
    *name = "CUDA_ERROR_OUT_OF_MEMORY";
    return Result::success;
  };
  driver.get_error_string = [](Result, const char** text) {
    *text = "out of memory";
    return Result::success;
  };
  const auto error = driver_error(driver, Result::out_of_memory, "allocating 4096 bytes");
  EXPECT_STREQ(
      error.what(),
      "out of memory error: allocating 4096 bytes: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory\n"
      "  help: free device memory, use smaller inputs, or look with nvidia-smi for other programs on this GPU");
}

TEST(DriverErrors, ACodeThatNobodyKnowsStillMakesAMessage) {
  const auto error = driver_error(Driver{}, static_cast<Result>(987), "launching f");
  EXPECT_EQ(error.kind(), ErrorKind::launch);
  EXPECT_EQ(error.message(), "launching f: CUDA error (987): no description");
}

TEST(DriverErrors, CodesThatSpoilTheContextAreDeviceLost) {
  for (const int code : {214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 721}) {
    EXPECT_EQ(kind_of(static_cast<Result>(code)), ErrorKind::device_lost) << code;
  }
  for (const int code : {1, 400, 500, 600, 900}) {
    EXPECT_EQ(kind_of(static_cast<Result>(code)), ErrorKind::launch) << code;
  }
  for (const int code : {36, 200, 209, 218, 222, 801}) {
    EXPECT_EQ(kind_of(static_cast<Result>(code)), ErrorKind::unsupported) << code;
  }
  for (const int code : {3, 34, 46, 100, 101, 802}) {
    EXPECT_EQ(kind_of(static_cast<Result>(code)), ErrorKind::no_device) << code;
  }
  EXPECT_EQ(kind_of(Result::out_of_memory), ErrorKind::out_of_memory);
  EXPECT_EQ(kind_of(Result::launch_out_of_resources), ErrorKind::resource);
}

// A driver of one device whose handles are numbers and whose memory is counted. Its functions are plain, so its state
// is a global of this test.
struct FakeState {
  std::set<std::string> live;
  ContextHandle current = nullptr;
  int depth = 0;
  int next = 1;
  std::string launches;
  Result next_allocation = Result::success;
};
FakeState fake;

template <typename Handle>
Handle make_handle(const std::string& kind) {
  const auto number = static_cast<std::uintptr_t>(fake.next++);
  fake.live.insert(kind + std::to_string(number));
  return reinterpret_cast<Handle>(number);
}

template <typename Handle>
Result drop_handle(const std::string& kind, Handle handle) {
  const auto number = std::to_string(reinterpret_cast<std::uintptr_t>(handle));
  EXPECT_EQ(fake.live.erase(kind + number), 1u) << kind << number << " was freed twice";
  return Result::success;
}

Result allocate(DevicePointer* address, const std::string& kind) {
  if (fake.next_allocation != Result::success) return fake.next_allocation;
  *address = static_cast<DevicePointer>(fake.next++);
  fake.live.insert(kind + std::to_string(*address));
  return Result::success;
}

Result release(DevicePointer address, const std::string& kind) {
  EXPECT_EQ(fake.live.erase(kind + std::to_string(address)), 1u);
  return Result::success;
}

void fake_device_functions(Driver& driver) {
  driver.device_get_count = [](int* count) { return *count = 1, Result::success; };
  driver.device_get = [](DeviceHandle* device, int ordinal) { return *device = ordinal, Result::success; };
  driver.device_get_name = [](char* name, int, DeviceHandle) { return std::strcpy(name, "Fake"), Result::success; };
  driver.device_get_uuid = [](std::array<std::uint8_t, 16>* uuid, DeviceHandle) {
    return uuid->fill(7), Result::success;
  };
  driver.device_total_mem = [](std::size_t* bytes, DeviceHandle) { return *bytes = 1000, Result::success; };
  driver.device_get_attribute = [](int* value, DeviceAttribute attribute, DeviceHandle) {
    *value = static_cast<int>(attribute);
    return Result::success;
  };
  driver.device_primary_ctx_retain = [](ContextHandle* context, DeviceHandle) {
    static int context_of_the_device = 0;  // never released
    *context = reinterpret_cast<ContextHandle>(&context_of_the_device);
    return Result::success;
  };
  driver.ctx_get_current = [](ContextHandle* context) { return *context = fake.current, Result::success; };
  driver.ctx_push_current = [](ContextHandle context) { return fake.current = context, ++fake.depth, Result::success; };
  driver.ctx_pop_current = [](ContextHandle* context) {
    *context = fake.current;
    fake.current = nullptr;
    return --fake.depth, Result::success;
  };
}

void fake_object_functions(Driver& driver) {
  driver.stream_create = [](StreamHandle* stream, unsigned) {
    return *stream = make_handle<StreamHandle>("stream"), Result::success;
  };
  driver.stream_destroy = [](StreamHandle stream) { return drop_handle("stream", stream); };
  driver.event_create = [](EventHandle* event, unsigned) {
    return *event = make_handle<EventHandle>("event"), Result::success;
  };
  driver.event_destroy = [](EventHandle event) { return drop_handle("event", event); };
  driver.mem_alloc = [](DevicePointer* address, std::size_t) { return allocate(address, "memory"); };
  driver.mem_free = [](DevicePointer address) { return release(address, "memory"); };
  driver.mem_alloc_async = [](DevicePointer* address, std::size_t, StreamHandle) {
    return allocate(address, "pooled");
  };
  driver.mem_free_async = [](DevicePointer address, StreamHandle) { return release(address, "pooled"); };
  driver.module_load_data_ex = [](ModuleHandle* module, const void*, unsigned, int*, void**) {
    return *module = make_handle<ModuleHandle>("module"), Result::success;
  };
  driver.module_unload = [](ModuleHandle module) { return drop_handle("module", module); };
  driver.module_get_function = [](FunctionHandle*, ModuleHandle, const char* name) {
    return std::strcmp(name, "rows_0") == 0 ? Result::success : Result::not_found;
  };
  driver.func_get_attribute = [](int* value, FunctionAttribute, FunctionHandle) {
    return *value = 64, Result::success;
  };
  driver.launch_kernel = [](FunctionHandle, unsigned x, unsigned, unsigned, unsigned block, unsigned, unsigned,
                            unsigned, StreamHandle, void**, void**) {
    fake.launches += "plain " + std::to_string(x) + "x" + std::to_string(block) + ";";
    return block > 1024 ? Result::invalid_value : Result::success;
  };
  driver.launch_kernel_ex = [](const LaunchParameters* parameters, FunctionHandle, void**, void**) {
    fake.launches += "ex";
    for (unsigned i = 0; i < parameters->attribute_count; ++i) {
      const auto& attribute = parameters->attributes[i];
      fake.launches +=
          " " + std::to_string(static_cast<int>(attribute.id)) + ":" + std::to_string(attribute.value.flag);
    }
    fake.launches += ";";
    return Result::success;
  };
}

class FakeDevice : public testing::Test {
 protected:
  FakeDevice() {
    fake = FakeState{};
    auto driver = std::make_shared<Driver>();
    fake_device_functions(*driver);
    fake_object_functions(*driver);
    device = Device::open(std::move(driver), 0);
  }
  ~FakeDevice() override {
    device.reset();
    EXPECT_TRUE(fake.live.empty()) << *fake.live.begin() << " was never freed";
    EXPECT_EQ(fake.depth, 0) << "a context was left current";
  }
  DevicePtr device;
};

std::uint8_t reply(DeviceAttribute attribute) { return static_cast<std::uint8_t>(attribute); }

TEST_F(FakeDevice, EveryPropertyIsReadFromItsOwnAttribute) {
  const auto& info = device->info();
  EXPECT_EQ(info.name, "Fake");
  EXPECT_EQ(info.major, reply(DeviceAttribute::compute_capability_major));
  EXPECT_EQ(info.minor, reply(DeviceAttribute::compute_capability_minor));
  EXPECT_EQ(info.sm_count, reply(DeviceAttribute::multiprocessor_count));
  EXPECT_EQ(info.l2_bytes, reply(DeviceAttribute::l2_cache_bytes));
  EXPECT_EQ(info.shared_bytes_per_block, reply(DeviceAttribute::max_shared_memory_per_block_optin));
  EXPECT_EQ(info.memory_bytes, 1000);
  EXPECT_TRUE(info.memory_pools);
  EXPECT_EQ(uuid_text(info.uuid), "GPU-07070707-0707-0707-0707-070707070707");
}

TEST_F(FakeDevice, ATargetHasWhatItsDriverTells) {
  const codegen::Target target = target_of(device->info(), "sm_80");
  EXPECT_EQ(target.device, "Fake");
  EXPECT_EQ(target.arch, "sm_80");
  EXPECT_EQ(target.multiprocessors, reply(DeviceAttribute::multiprocessor_count));
  EXPECT_EQ(target.threads_per_multiprocessor, reply(DeviceAttribute::max_threads_per_multiprocessor));
  EXPECT_EQ(target.blocks_per_multiprocessor, reply(DeviceAttribute::max_blocks_per_multiprocessor));
  EXPECT_EQ(target.registers_per_multiprocessor, reply(DeviceAttribute::max_registers_per_multiprocessor));
  EXPECT_EQ(target.shared_memory_per_multiprocessor, reply(DeviceAttribute::max_shared_memory_per_multiprocessor));
  EXPECT_EQ(target.shared_memory_per_block, reply(DeviceAttribute::max_shared_memory_per_block_optin));
  EXPECT_EQ(target.reserved_shared_memory_per_block, reply(DeviceAttribute::reserved_shared_memory_per_block));
  EXPECT_EQ(target.l2_bytes, reply(DeviceAttribute::l2_cache_bytes));
}

TEST(CudaTarget, BandwidthIsThatOfTheBusOrElseOfTheName) {
  DeviceInfo h200;
  h200.name = "NVIDIA H200";
  EXPECT_EQ(target_of(h200, "sm_90a").bandwidth_gb_s, codegen::cuda_target("sm_90a", "NVIDIA H200").bandwidth_gb_s);
  h200.memory_clock_khz = 3201000;  // as its driver says
  h200.memory_bus_bits = 6016;
  EXPECT_NEAR(target_of(h200, "sm_90a").bandwidth_gb_s, 4814, 1);
}

TEST_F(FakeDevice, ADeviceThatIsNotThereIsNoDevice) {
  auto driver = std::make_shared<Driver>();
  fake_device_functions(*driver);
  for (const int ordinal : {-1, 1}) {
    const auto error = error_of([&] { Device::open(driver, ordinal); });
    EXPECT_EQ(error.kind(), ErrorKind::no_device);
    EXPECT_EQ(error.message(), "there is no CUDA device " + std::to_string(ordinal) + ": the driver shows 1");
  }
}

TEST_F(FakeDevice, MovedAndReplacedObjectsAreFreedOnce) {
  Stream a(device);
  Stream b(std::move(a));
  a = Stream(device);
  b = std::move(a);
  Event c(device, Event::Timing::on);
  Event d(std::move(c));
  DeviceBuffer e(device, 64);
  DeviceBuffer f(device, 64, b.get());
  e = std::move(f);
  e = DeviceBuffer();
  const std::byte code[1] = {};
  Module g(device, code);
  Module h(std::move(g));
  g = Module(device, code);
}

TEST_F(FakeDevice, AnEmptyBufferAllocatesNothing) {
  const DeviceBuffer none(device, 0);
  EXPECT_EQ(none.address(), 0u);
  none.upload({});
}

TEST_F(FakeDevice, RunningOutOfMemoryNamesTheSizeAndTheDevice) {
  fake.next_allocation = Result::out_of_memory;
  const auto error = error_of([&] { DeviceBuffer(device, 123456); });
  EXPECT_EQ(error.kind(), ErrorKind::out_of_memory);
  EXPECT_TRUE(error.message().starts_with("allocating 123456 bytes on Fake")) << error.message();
}

TEST_F(FakeDevice, ACopyBeyondTheBufferIsADefectOfOurs) {
  const DeviceBuffer buffer(device, 8);
  const std::byte data[8] = {};
  EXPECT_EQ(error_of([&] { buffer.upload(data, 1); }).kind(), ErrorKind::internal);
}

TEST_F(FakeDevice, AMissingKernelIsNamed) {
  const std::byte code[1] = {};
  const Module module(device, code);
  const auto error = error_of([&] { module.function("softmax_0"); });
  EXPECT_EQ(error.kind(), ErrorKind::launch);
  EXPECT_TRUE(error.message().starts_with("finding kernel softmax_0: ")) << error.message();
}

// The device has less than 48 KiB to ask for, so that whatever must ask fails.
TEST_F(FakeDevice, AKernelsOwnSharedMemoryCountsBesideWhatItAsksFor) {
  const std::byte code[1] = {};
  const Module module(device, code);
  module.function("rows_0", 48 * 1024 - 64);
  const auto error = error_of([&] { module.function("rows_0", 48 * 1024); });
  EXPECT_EQ(error.kind(), ErrorKind::resource);
  EXPECT_TRUE(error.message().starts_with("rows_0 needs 49216 bytes of shared memory a block; ")) << error.message();
}

TEST_F(FakeDevice, LaunchesUseTheSimplestCallThatWillDo) {
  LaunchConfig config{{5, 1, 1}, {128, 1, 1}};
  launch(device->driver(), nullptr, config, nullptr, nullptr, "f");
  config.cluster = {2, 1, 1};
  launch(device->driver(), nullptr, config, nullptr, nullptr, "f");
  config.programmatic_dependent = true;
  launch(device->driver(), nullptr, config, nullptr, nullptr, "f");
  config.grid.y = 0;
  launch(device->driver(), nullptr, config, nullptr, nullptr, "f");
  EXPECT_EQ(fake.launches, "plain 5x128;ex 4:2;ex 4:2 6:1;");
}

TEST_F(FakeDevice, AFailedLaunchSaysWhatWasLaunched) {
  const LaunchConfig config{{5, 2, 1}, {2048, 1, 1}, 100};
  const auto error = error_of([&] { launch(device->driver(), nullptr, config, nullptr, nullptr, "gelu_0"); });
  EXPECT_EQ(error.kind(), ErrorKind::launch);
  EXPECT_TRUE(error.message().starts_with(
      "launching gelu_0 (grid 5x2x1, block 2048x1x1, 100 bytes of dynamic shared memory): "))
      << error.message();
}

TEST(DynamicLibraryTest, KnowsTheFileAndBuildOfAnAddress) {
  const auto library = DynamicLibrary::open("libm.so.6", DynamicLibrary::Lifetime::scoped);
  ASSERT_TRUE(library);
  const void* address = library->address("cos");
  ASSERT_NE(address, nullptr);
  EXPECT_EQ(library->address("no_such_function"), nullptr);
  EXPECT_NE(file_of_address(address).find("libm"), std::string::npos);
  EXPECT_EQ(build_id_of_address(address).size(), 40u);
}

TEST(DynamicLibraryTest, SaysWhyALibraryDoesNotOpen) {
  std::string why;
  EXPECT_FALSE(DynamicLibrary::open("/nonexistent/lib.so", DynamicLibrary::Lifetime::scoped, &why));
  EXPECT_NE(why.find("/nonexistent/lib.so"), std::string::npos);
  EXPECT_FALSE(DynamicLibrary::find_loaded("libnever.so.9", DynamicLibrary::Lifetime::scoped));
}

}  // namespace
}  // namespace tenon::runtime::cuda

// Fills the table of driver entry points.
// Relies on cuGetProcAddress: exported names alone may carry the oldest ABI of a function (cuMemAlloc of CUDA 2.0).
#include "runtime/cuda/driver.h"

#include <fmt/format.h>

#include "runtime/dynamic_library.h"

namespace tenon::runtime::cuda {
namespace {

// The version that the prototypes in driver.h were written from; the driver answers with functions of that ABI.
constexpr int prototype_version = 12000;

constexpr const char* install_driver =
    "install the NVIDIA driver, release 525 or later (in a container, start it with GPU access), or use the CPU target";

using GetProcAddress = Result (*)(const char* name, void** address, int cuda_version, std::uint64_t flags, int* status);

class Binder {
 public:
  Binder(GetProcAddress get, const std::string& path) : get_(get), path_(path) {}

  template <typename Function>
  void operator()(Function& function, const char* name) const {
    void* address = nullptr;
    int status = 0;
    const Result result = get_(name, &address, prototype_version, 0, &status);
    if (result == Result::stub_library) refuse_stub();
    if (result != Result::success || address == nullptr) {
      throw Error(ErrorKind::unsupported, fmt::format("the CUDA driver at {} does not offer {}", path_, name), {},
                  install_driver);
    }
    function = reinterpret_cast<Function>(address);
  }

 private:
  [[noreturn]] void refuse_stub() const {
    throw Error(ErrorKind::no_device, fmt::format("{} is the toolkit's stub, not a CUDA driver", path_), {},
                "take the toolkit's lib64/stubs folder off the library path, and install the NVIDIA driver");
  }

  GetProcAddress get_;
  const std::string& path_;
};

void bind_device_functions(const Binder& bind, Driver& driver) {
  bind(driver.get_error_name, "cuGetErrorName");
  bind(driver.get_error_string, "cuGetErrorString");
  bind(driver.init, "cuInit");
  bind(driver.driver_get_version, "cuDriverGetVersion");
  bind(driver.device_get_count, "cuDeviceGetCount");
  bind(driver.device_get, "cuDeviceGet");
  bind(driver.device_get_name, "cuDeviceGetName");
  bind(driver.device_get_attribute, "cuDeviceGetAttribute");
  bind(driver.device_get_uuid, "cuDeviceGetUuid");
  bind(driver.device_total_mem, "cuDeviceTotalMem");
  bind(driver.device_primary_ctx_retain, "cuDevicePrimaryCtxRetain");
  bind(driver.ctx_push_current, "cuCtxPushCurrent");
  bind(driver.ctx_pop_current, "cuCtxPopCurrent");
  bind(driver.ctx_set_current, "cuCtxSetCurrent");
  bind(driver.ctx_get_current, "cuCtxGetCurrent");
  bind(driver.ctx_synchronize, "cuCtxSynchronize");
  bind(driver.ctx_reset_persisting_l2_cache, "cuCtxResetPersistingL2Cache");
}

void bind_stream_functions(const Binder& bind, Driver& driver) {
  bind(driver.stream_create, "cuStreamCreate");
  bind(driver.stream_destroy, "cuStreamDestroy");
  bind(driver.stream_synchronize, "cuStreamSynchronize");
  bind(driver.stream_query, "cuStreamQuery");
  bind(driver.stream_wait_event, "cuStreamWaitEvent");
  bind(driver.event_create, "cuEventCreate");
  bind(driver.event_destroy, "cuEventDestroy");
  bind(driver.event_record, "cuEventRecord");
  bind(driver.event_query, "cuEventQuery");
  bind(driver.event_synchronize, "cuEventSynchronize");
  bind(driver.event_elapsed_time, "cuEventElapsedTime");
}

void bind_memory_functions(const Binder& bind, Driver& driver) {
  bind(driver.mem_get_info, "cuMemGetInfo");
  bind(driver.mem_alloc, "cuMemAlloc");
  bind(driver.mem_free, "cuMemFree");
  bind(driver.mem_alloc_async, "cuMemAllocAsync");
  bind(driver.mem_free_async, "cuMemFreeAsync");
  bind(driver.mem_host_alloc, "cuMemHostAlloc");
  bind(driver.mem_free_host, "cuMemFreeHost");
  bind(driver.mem_host_register, "cuMemHostRegister");
  bind(driver.mem_host_unregister, "cuMemHostUnregister");
  bind(driver.memcpy_htod, "cuMemcpyHtoD");
  bind(driver.memcpy_dtoh, "cuMemcpyDtoH");
  bind(driver.memcpy_dtod, "cuMemcpyDtoD");
  bind(driver.memcpy_htod_async, "cuMemcpyHtoDAsync");
  bind(driver.memcpy_dtoh_async, "cuMemcpyDtoHAsync");
  bind(driver.memcpy_dtod_async, "cuMemcpyDtoDAsync");
  bind(driver.memset_d8_async, "cuMemsetD8Async");
  bind(driver.memset_d32_async, "cuMemsetD32Async");
  bind(driver.pointer_get_attribute, "cuPointerGetAttribute");
  bind(driver.tensor_map_encode_tiled, "cuTensorMapEncodeTiled");
  bind(driver.tensor_map_replace_address, "cuTensorMapReplaceAddress");
}

void bind_launch_functions(const Binder& bind, Driver& driver) {
  bind(driver.module_load_data_ex, "cuModuleLoadDataEx");
  bind(driver.module_unload, "cuModuleUnload");
  bind(driver.module_get_function, "cuModuleGetFunction");
  bind(driver.func_get_attribute, "cuFuncGetAttribute");
  bind(driver.func_set_attribute, "cuFuncSetAttribute");
  bind(driver.occupancy_max_active_blocks_per_multiprocessor, "cuOccupancyMaxActiveBlocksPerMultiprocessor");
  bind(driver.occupancy_max_active_clusters, "cuOccupancyMaxActiveClusters");
  bind(driver.launch_kernel, "cuLaunchKernel");
  bind(driver.launch_kernel_ex, "cuLaunchKernelEx");
  bind(driver.stream_begin_capture, "cuStreamBeginCapture");
  bind(driver.stream_end_capture, "cuStreamEndCapture");
  bind(driver.graph_get_nodes, "cuGraphGetNodes");
  bind(driver.graph_node_get_type, "cuGraphNodeGetType");
  bind(driver.graph_kernel_node_get_params, "cuGraphKernelNodeGetParams");
  bind(driver.graph_instantiate_with_flags, "cuGraphInstantiateWithFlags");
  bind(driver.graph_exec_update, "cuGraphExecUpdate");
  bind(driver.graph_exec_kernel_node_set_params, "cuGraphExecKernelNodeSetParams");
  bind(driver.graph_launch, "cuGraphLaunch");
  bind(driver.graph_exec_destroy, "cuGraphExecDestroy");
  bind(driver.graph_destroy, "cuGraphDestroy");
}

// The reason why `library` serves no GPU, whatever code the driver gave for it.
void initialise(Driver& driver) {
  const Result result = driver.init(0);
  if (result == Result::success) {
    check(driver, driver.driver_get_version(&driver.version), "asking for the driver's version");
    return;
  }
  const Error error = driver_error(driver, result, "starting the CUDA driver");
  const bool ours = error.kind() == ErrorKind::no_device || error.kind() == ErrorKind::unsupported;
  if (ours) throw error;
  throw Error(ErrorKind::no_device, error.message(), {}, install_driver);
}

}  // namespace

std::shared_ptr<const Driver> open_driver(const std::string& library) {
  std::string reason;
  const auto opened = DynamicLibrary::open(library, DynamicLibrary::Lifetime::process, &reason);
  if (!opened) throw Error(ErrorKind::no_device, "no CUDA driver: " + reason, {}, install_driver);

  auto driver = std::make_shared<Driver>();
  const auto get = opened->symbol<GetProcAddress>("cuGetProcAddress_v2");  // in every driver from CUDA 12.0 on
  if (get == nullptr) {
    throw Error(ErrorKind::unsupported, fmt::format("the CUDA driver {} is older than CUDA 12.0", library), {},
                install_driver);
  }
  driver->path = file_of_address(reinterpret_cast<const void*>(get));
  const Binder bind(get, driver->path);
  bind_device_functions(bind, *driver);
  bind_stream_functions(bind, *driver);
  bind_memory_functions(bind, *driver);
  bind_launch_functions(bind, *driver);
  initialise(*driver);
  return driver;
}

}  // namespace tenon::runtime::cuda

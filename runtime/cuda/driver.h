// The CUDA Driver API as Tenon uses it: our own declarations of its C interface (as of CUDA 12.0) and a table of entry
// points, filled from libcuda.so.1 at run time. A build needs no toolkit; a program without a GPU never opens it.
// Each member is named after the driver function (mem_alloc is cuMemAlloc); NVIDIA's manual is its documentation.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "tenon/error.h"

namespace tenon::runtime::cuda {

// Handles. Distinct incomplete types, so that a stream cannot be passed for an event.
using DeviceHandle = int;
using DevicePointer = std::uint64_t;
using ContextHandle = struct ContextObject*;
using ModuleHandle = struct ModuleObject*;
using FunctionHandle = struct FunctionObject*;
using StreamHandle = struct StreamObject*;
using EventHandle = struct EventObject*;
using GraphHandle = struct GraphObject*;
using GraphNodeHandle = struct GraphNodeObject*;
using GraphExecHandle = struct GraphExecObject*;

/// What every driver function returns. Only the codes that Tenon tells apart are named; others occur too.
enum class Result : int {
  success = 0,
  invalid_value = 1,
  out_of_memory = 2,
  not_initialized = 3,
  deinitialized = 4,
  stub_library = 34,
  call_requires_newer_driver = 36,
  device_unavailable = 46,
  no_device = 100,
  invalid_device = 101,
  device_not_licensed = 102,
  invalid_image = 200,
  invalid_context = 201,
  no_binary_for_gpu = 209,
  ecc_uncorrectable = 214,
  unsupported_limit = 215,
  invalid_ptx = 218,
  nvlink_uncorrectable = 220,
  jit_compiler_not_found = 221,
  unsupported_ptx_version = 222,
  jit_compilation_disabled = 223,
  contained = 226,
  invalid_handle = 400,
  not_found = 500,
  not_ready = 600,
  illegal_address = 700,
  launch_out_of_resources = 701,
  launch_timeout = 702,
  context_is_destroyed = 709,
  device_assert = 710,
  hardware_stack_error = 714,
  illegal_instruction = 715,
  misaligned_address = 716,
  invalid_address_space = 717,
  invalid_pc = 718,
  launch_failed = 719,
  cooperative_launch_too_large = 720,
  tensor_memory_leak = 721,
  not_permitted = 800,
  not_supported = 801,
  system_not_ready = 802,
  system_driver_mismatch = 803,
  compat_not_supported_on_device = 804,
  stream_capture_unsupported = 900,
  stream_capture_invalidated = 901,
  graph_exec_update_failure = 910,
  external_device = 911,
  invalid_cluster_size = 912,
  unknown = 999,
};

/// CUdevice_attribute, the ones read here.
enum class DeviceAttribute : int {
  max_threads_per_block = 1,
  max_shared_memory_per_block = 8,
  clock_rate_khz = 13,
  multiprocessor_count = 16,
  integrated = 18,
  memory_clock_rate_khz = 36,
  memory_bus_width_bits = 37,
  l2_cache_bytes = 38,
  max_threads_per_multiprocessor = 39,
  compute_capability_major = 75,
  compute_capability_minor = 76,
  max_shared_memory_per_multiprocessor = 81,
  max_registers_per_multiprocessor = 82,
  max_shared_memory_per_block_optin = 97,
  max_blocks_per_multiprocessor = 106,
  reserved_shared_memory_per_block = 111,
  memory_pools_supported = 115,
};

/// CUfunction_attribute.
enum class FunctionAttribute : int {
  max_threads_per_block = 0,
  shared_bytes = 1,
  constant_bytes = 2,
  local_bytes = 3,
  registers = 4,
  ptx_version = 5,
  binary_version = 6,
  max_dynamic_shared_bytes = 8,
  preferred_shared_carveout = 9,
  non_portable_cluster_size_allowed = 14,
};

/// CUpointer_attribute, the ones read here. `memory_type` yields a MemoryType, `device_ordinal` an int.
enum class PointerAttribute : int { memory_type = 2, is_managed = 8, device_ordinal = 9 };
enum class MemoryType : unsigned { host = 1, device = 2, array = 3, unified = 4 };

enum class CaptureMode : int { global = 0, thread_local_ = 1, relaxed = 2 };

constexpr unsigned stream_non_blocking = 1;
constexpr unsigned event_default = 0;
constexpr unsigned event_disable_timing = 2;
constexpr unsigned host_register_portable = 1;

/// CUlaunchAttribute: an id and a 64-byte union, of which Tenon sets three members.
struct LaunchAttribute {
  enum class Id : int { cooperative = 2, cluster_dimension = 4, programmatic_stream_serialization = 6 };
  union Value {
    char pad[64];
    unsigned cluster[3];
    int flag;
  };
  Id id;
  char pad[4];
  Value value;
};
static_assert(sizeof(LaunchAttribute) == 72);

/// CUlaunchConfig.
struct LaunchParameters {
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
  StreamHandle stream;
  const LaunchAttribute* attributes;
  unsigned attribute_count;
};
static_assert(sizeof(LaunchParameters) == 56);

/// CUDA_KERNEL_NODE_PARAMS (its second version, CUDA 12.0).
struct KernelNodeParameters {
  FunctionHandle function;
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
  void** arguments;
  void** extra;
  void* kernel;  ///< CUkernel; read only when `function` is null
  ContextHandle context;
};
static_assert(sizeof(KernelNodeParameters) == 72);

/// CUgraphExecUpdateResultInfo.
struct GraphUpdateInfo {
  int result;
  GraphNodeHandle error_node;
  GraphNodeHandle error_from_node;
};

/// CUtensorMap: 128 opaque bytes, passed to a kernel by value as a __grid_constant__ parameter.
struct alignas(128) TensorMap {
  std::uint64_t opaque[16];
};

enum class TensorMapType : int {
  u8 = 0,
  u16 = 1,
  u32 = 2,
  i32 = 3,
  u64 = 4,
  i64 = 5,
  f16 = 6,
  f32 = 7,
  f64 = 8,
  bf16 = 9,
  f32_ftz = 10,
  tf32 = 11,
};
enum class TensorMapInterleave : int { none = 0 };
enum class TensorMapSwizzle : int { none = 0, bytes_32 = 1, bytes_64 = 2, bytes_128 = 3 };
enum class TensorMapL2Promotion : int { none = 0, bytes_64 = 1, bytes_128 = 2, bytes_256 = 3 };
enum class TensorMapFill : int { zero = 0, nan = 1 };

/// Entry points of the driver. Plain data, so that a test can stand in for a GPU by filling it with its own functions.
/// Every function may be called from any thread; those without a handle act on the thread's current context.
struct Driver {
  std::string path;  ///< file that the functions come from
  int version = 0;   ///< what cuDriverGetVersion says: 1000 * major + 10 * minor of the newest CUDA it serves

  Result (*get_error_name)(Result, const char** name) = nullptr;
  Result (*get_error_string)(Result, const char** text) = nullptr;
  Result (*init)(unsigned flags) = nullptr;
  Result (*driver_get_version)(int* version) = nullptr;

  Result (*device_get_count)(int* count) = nullptr;
  Result (*device_get)(DeviceHandle*, int ordinal) = nullptr;
  Result (*device_get_name)(char* name, int size, DeviceHandle) = nullptr;
  Result (*device_get_attribute)(int* value, DeviceAttribute, DeviceHandle) = nullptr;
  Result (*device_get_uuid)(std::array<std::uint8_t, 16>* uuid, DeviceHandle) = nullptr;
  Result (*device_total_mem)(std::size_t* bytes, DeviceHandle) = nullptr;
  Result (*device_primary_ctx_retain)(ContextHandle*, DeviceHandle) = nullptr;

  Result (*ctx_push_current)(ContextHandle) = nullptr;
  Result (*ctx_pop_current)(ContextHandle*) = nullptr;
  Result (*ctx_set_current)(ContextHandle) = nullptr;
  Result (*ctx_get_current)(ContextHandle*) = nullptr;
  Result (*ctx_synchronize)() = nullptr;

  Result (*stream_create)(StreamHandle*, unsigned flags) = nullptr;
  Result (*stream_destroy)(StreamHandle) = nullptr;
  Result (*stream_synchronize)(StreamHandle) = nullptr;
  Result (*stream_query)(StreamHandle) = nullptr;
  Result (*stream_wait_event)(StreamHandle, EventHandle, unsigned flags) = nullptr;
  Result (*event_create)(EventHandle*, unsigned flags) = nullptr;
  Result (*event_destroy)(EventHandle) = nullptr;
  Result (*event_record)(EventHandle, StreamHandle) = nullptr;
  Result (*event_query)(EventHandle) = nullptr;
  Result (*event_synchronize)(EventHandle) = nullptr;
  Result (*event_elapsed_time)(float* milliseconds, EventHandle begin, EventHandle end) = nullptr;

  Result (*mem_get_info)(std::size_t* free, std::size_t* total) = nullptr;
  Result (*mem_alloc)(DevicePointer*, std::size_t bytes) = nullptr;
  Result (*mem_free)(DevicePointer) = nullptr;
  Result (*mem_alloc_async)(DevicePointer*, std::size_t bytes, StreamHandle) = nullptr;
  Result (*mem_free_async)(DevicePointer, StreamHandle) = nullptr;
  Result (*mem_host_alloc)(void**, std::size_t bytes, unsigned flags) = nullptr;
  Result (*mem_free_host)(void*) = nullptr;
  Result (*mem_host_register)(void*, std::size_t bytes, unsigned flags) = nullptr;
  Result (*mem_host_unregister)(void*) = nullptr;
  Result (*memcpy_htod)(DevicePointer to, const void* from, std::size_t bytes) = nullptr;
  Result (*memcpy_dtoh)(void* to, DevicePointer from, std::size_t bytes) = nullptr;
  Result (*memcpy_dtod)(DevicePointer to, DevicePointer from, std::size_t bytes) = nullptr;
  Result (*memcpy_htod_async)(DevicePointer to, const void* from, std::size_t bytes, StreamHandle) = nullptr;
  Result (*memcpy_dtoh_async)(void* to, DevicePointer from, std::size_t bytes, StreamHandle) = nullptr;
  Result (*memcpy_dtod_async)(DevicePointer to, DevicePointer from, std::size_t bytes, StreamHandle) = nullptr;
  Result (*ctx_reset_persisting_l2_cache)() = nullptr;
  Result (*memset_d8_async)(DevicePointer, unsigned char value, std::size_t count, StreamHandle) = nullptr;
  Result (*memset_d32_async)(DevicePointer, unsigned value, std::size_t count, StreamHandle) = nullptr;
  Result (*pointer_get_attribute)(void* value, PointerAttribute, DevicePointer) = nullptr;

  Result (*module_load_data_ex)(ModuleHandle*, const void* image, unsigned option_count, int* options,
                                void** option_values) = nullptr;
  Result (*module_unload)(ModuleHandle) = nullptr;
  Result (*module_get_function)(FunctionHandle*, ModuleHandle, const char* name) = nullptr;
  Result (*func_get_attribute)(int* value, FunctionAttribute, FunctionHandle) = nullptr;
  Result (*func_set_attribute)(FunctionHandle, FunctionAttribute, int value) = nullptr;
  Result (*occupancy_max_active_blocks_per_multiprocessor)(int* blocks, FunctionHandle, int block_size,
                                                           std::size_t dynamic_shared_bytes) = nullptr;
  Result (*occupancy_max_active_clusters)(int* clusters, FunctionHandle, const LaunchParameters*) = nullptr;

  Result (*launch_kernel)(FunctionHandle, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                          unsigned block_y, unsigned block_z, unsigned shared_bytes, StreamHandle, void** arguments,
                          void** extra) = nullptr;
  Result (*launch_kernel_ex)(const LaunchParameters*, FunctionHandle, void** arguments, void** extra) = nullptr;

  Result (*stream_begin_capture)(StreamHandle, CaptureMode) = nullptr;
  Result (*stream_end_capture)(StreamHandle, GraphHandle*) = nullptr;
  Result (*graph_get_nodes)(GraphHandle, GraphNodeHandle* nodes, std::size_t* count) = nullptr;
  Result (*graph_node_get_type)(GraphNodeHandle, int* type) = nullptr;
  Result (*graph_kernel_node_get_params)(GraphNodeHandle, KernelNodeParameters*) = nullptr;
  Result (*graph_instantiate_with_flags)(GraphExecHandle*, GraphHandle, unsigned long long flags) = nullptr;
  Result (*graph_exec_update)(GraphExecHandle, GraphHandle, GraphUpdateInfo*) = nullptr;
  Result (*graph_exec_kernel_node_set_params)(GraphExecHandle, GraphNodeHandle, const KernelNodeParameters*) = nullptr;
  Result (*graph_launch)(GraphExecHandle, StreamHandle) = nullptr;
  Result (*graph_exec_destroy)(GraphExecHandle) = nullptr;
  Result (*graph_destroy)(GraphHandle) = nullptr;

  Result (*tensor_map_encode_tiled)(TensorMap*, TensorMapType, std::uint32_t rank, void* address,
                                    const std::uint64_t* extents, const std::uint64_t* strides_bytes,
                                    const std::uint32_t* box, const std::uint32_t* element_strides, TensorMapInterleave,
                                    TensorMapSwizzle, TensorMapL2Promotion, TensorMapFill) = nullptr;
  Result (*tensor_map_replace_address)(TensorMap*, void* address) = nullptr;
};

/// Opens the driver and initialises it. Throws Error(no_device) where there is none, where it serves no GPU, or where
/// only the toolkit's stub answers; Error(unsupported) where it is older than CUDA 12.0 (release 525).
/// The library stays open until the process ends. `library` is for tests.
std::shared_ptr<const Driver> open_driver(const std::string& library = "libcuda.so.1");

/// Which kind of Tenon's errors a driver code is. After `device_lost` every call on the context fails.
ErrorKind kind_of(Result result);

/// The Error for a failed call: "<what>: CUDA_ERROR_NAME (code): the driver's text", with a remedy. `driver` may lack
/// the functions that name errors.
Error driver_error(const Driver& driver, Result result, std::string_view what);

/// Throws driver_error unless `result` is success. `what` says what was being done: "allocating 4096 bytes".
inline void check(const Driver& driver, Result result, std::string_view what) {
  if (result != Result::success) throw driver_error(driver, result, what);
}

}  // namespace tenon::runtime::cuda

// Turns the driver's error codes into Errors: the kind, the driver's own words, and what to do.
// Relies on NVIDIA's documentation of each code for which of them leave the context unusable ("sticky" errors).
#include <fmt/format.h>

#include "ir/graph/check.h"
#include "runtime/cuda/driver.h"

namespace tenon::runtime::cuda {
namespace {

const char* remedy_for(Result result) {
  switch (result) {
    case Result::out_of_memory:
      return "free device memory, use smaller inputs, or look with nvidia-smi for other programs on this GPU";
    case Result::stub_library:
      return "take the toolkit's lib64/stubs folder off the library path, and install the NVIDIA driver";
    case Result::no_device:
    case Result::not_initialized:
    case Result::device_not_licensed:
      return "check nvidia-smi and CUDA_VISIBLE_DEVICES (in a container, start it with GPU access), or use the CPU "
             "target";
    case Result::invalid_device: return "choose a device that nvidia-smi lists and CUDA_VISIBLE_DEVICES admits";
    case Result::device_unavailable: return "another process holds the GPU exclusively: end it or choose another GPU";
    case Result::system_not_ready:
    case Result::system_driver_mismatch:
    case Result::compat_not_supported_on_device:
      return "the driver's kernel module and library differ, or a service that it needs is not up: reload it or reboot";
    case Result::call_requires_newer_driver:
    case Result::unsupported_ptx_version:
      return "update the NVIDIA driver: CUDA 13 needs release 580, CUDA 12 needs 525";
    case Result::invalid_image:
    case Result::no_binary_for_gpu:
    case Result::invalid_ptx:
    case Result::jit_compiler_not_found:
    case Result::jit_compilation_disabled:
      return "the kernel was compiled for another architecture: compile for this GPU's (see tenon doctor), or clear "
             "the "
             "cache";
    case Result::not_supported:
    case Result::unsupported_limit: return "this GPU or driver lacks the feature: update the driver or turn it off";
    case Result::illegal_address:
    case Result::device_assert:
    case Result::hardware_stack_error:
    case Result::illegal_instruction:
    case Result::misaligned_address:
    case Result::invalid_address_space:
    case Result::invalid_pc:
    case Result::launch_failed:
    case Result::tensor_memory_leak:
    case Result::contained:
    case Result::unknown:
      return "the CUDA context is lost: restart the process; check that buffers are as large as their shapes say, run "
             "under compute-sanitizer, and report the graph if they are";
    case Result::launch_timeout: return "the kernel ran longer than the display's watchdog allows: restart the process";
    case Result::ecc_uncorrectable:
    case Result::nvlink_uncorrectable:
    case Result::external_device: return "the hardware reported an error: see nvidia-smi -q and the system log";
    case Result::deinitialized:
    case Result::context_is_destroyed:
    case Result::invalid_context:
      return "the CUDA context was destroyed by other code of this process: keep it while Tenon's objects live";
    case Result::launch_out_of_resources:
    case Result::cooperative_launch_too_large:
    case Result::invalid_cluster_size:
      return "the launch needs more registers, shared memory or blocks than the GPU has; please report the graph";
    case Result::stream_capture_unsupported:
    case Result::stream_capture_invalidated:
      return "do not synchronise or use the default stream while this stream is being captured";
    case Result::success:
    case Result::invalid_value:
    case Result::invalid_handle:
    case Result::not_found:
    case Result::not_ready:
    case Result::not_permitted:
    case Result::graph_exec_update_failure: return "";
  }
  return "";
}

std::string text_or(Result (*describe)(Result, const char**), Result result, const char* otherwise) {
  const char* text = nullptr;
  if (describe == nullptr || describe(result, &text) != Result::success || text == nullptr) return otherwise;
  return text;
}

}  // namespace

ErrorKind kind_of(Result result) {
  switch (result) {
    case Result::out_of_memory: return ErrorKind::out_of_memory;
    case Result::not_initialized:
    case Result::stub_library:
    case Result::device_unavailable:
    case Result::no_device:
    case Result::invalid_device:
    case Result::device_not_licensed:
    case Result::system_not_ready:
    case Result::system_driver_mismatch: return ErrorKind::no_device;
    case Result::call_requires_newer_driver:
    case Result::invalid_image:
    case Result::no_binary_for_gpu:
    case Result::unsupported_limit:
    case Result::invalid_ptx:
    case Result::jit_compiler_not_found:
    case Result::unsupported_ptx_version:
    case Result::jit_compilation_disabled:
    case Result::not_supported:
    case Result::compat_not_supported_on_device: return ErrorKind::unsupported;
    case Result::deinitialized:
    case Result::ecc_uncorrectable:
    case Result::nvlink_uncorrectable:
    case Result::contained:
    case Result::illegal_address:
    case Result::launch_timeout:
    case Result::context_is_destroyed:
    case Result::device_assert:
    case Result::hardware_stack_error:
    case Result::illegal_instruction:
    case Result::misaligned_address:
    case Result::invalid_address_space:
    case Result::invalid_pc:
    case Result::launch_failed:
    case Result::tensor_memory_leak:
    case Result::external_device:
    case Result::unknown: return ErrorKind::device_lost;
    case Result::launch_out_of_resources:
    case Result::cooperative_launch_too_large:
    case Result::invalid_cluster_size: return ErrorKind::resource;
    case Result::success:
    case Result::invalid_value:
    case Result::invalid_context:
    case Result::invalid_handle:
    case Result::not_found:
    case Result::not_ready:
    case Result::not_permitted:
    case Result::stream_capture_unsupported:
    case Result::stream_capture_invalidated:
    case Result::graph_exec_update_failure: return ErrorKind::launch;
  }
  return ErrorKind::launch;
}

Error driver_error(const Driver& driver, Result result, std::string_view what) {
  TENON_CHECK(result != Result::success, "an error was made of a success");
  return Error(kind_of(result),
               fmt::format("{}: {} ({}): {}", what, text_or(driver.get_error_name, result, "CUDA error"),
                           static_cast<int>(result), text_or(driver.get_error_string, result, "no description")),
               {}, remedy_for(result));
}

}  // namespace tenon::runtime::cuda

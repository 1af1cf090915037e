// One CUDA device and what lives on it: modules, streams, events, memory. Every object owns its handle, keeps the
// device alive, and may be used and destroyed on any thread. Relies on the device's primary context, which the CUDA
// runtime and other libraries of the process share, so that their pointers and streams are valid here.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "codegen/target/target.h"
#include "runtime/cuda/driver.h"

namespace tenon::runtime::cuda {

/// What Tenon asks of a device, read once.
struct DeviceInfo {
  int ordinal = 0;
  std::string name;
  std::array<std::uint8_t, 16> uuid{};
  int major = 0;  ///< compute capability
  int minor = 0;
  int sm_count = 0;
  int max_threads_per_block = 0;
  int max_threads_per_sm = 0;
  int max_blocks_per_sm = 0;
  int registers_per_sm = 0;
  std::int64_t shared_bytes_per_block = 0;  ///< the most that one block may ask for (opt-in)
  std::int64_t shared_bytes_per_sm = 0;
  std::int64_t reserved_shared_bytes_per_block = 0;
  std::int64_t l2_bytes = 0;
  std::int64_t memory_bytes = 0;
  int clock_khz = 0;
  int memory_clock_khz = 0;
  int memory_bus_bits = 0;
  bool memory_pools = false;  ///< cuMemAllocAsync works
};

/// GB/s of its memory, by the clock and the width of its bus; 0 where the driver does not tell them.
double bandwidth_gb_s(const DeviceInfo& info);

/// The device as a target for `arch`: what the driver does not tell is that of a device of the same name or
/// architecture.
codegen::Target target_of(const DeviceInfo& info, const std::string& arch);

/// "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx", as nvidia-smi prints it.
std::string uuid_text(const std::array<std::uint8_t, 16>& uuid);

/// How many devices the driver shows (CUDA_VISIBLE_DEVICES applies). Never throws for "none": that is 0.
int device_count(const Driver& driver);

/// A device with its primary context, which stays for the rest of the process.
class Device {
 public:
  /// Throws Error(no_device) when `ordinal` is out of range, device_lost and others as the driver reports them.
  static std::shared_ptr<const Device> open(std::shared_ptr<const Driver> driver, int ordinal);

  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  ~Device() = default;

  const Driver& driver() const { return *driver_; }
  const DeviceInfo& info() const { return info_; }
  ContextHandle context() const { return context_; }

  struct MemoryInfo {
    std::size_t free = 0;
    std::size_t total = 0;
  };
  MemoryInfo memory_info() const;

  /// Waits for all work on the device's context.
  void synchronize() const;

 private:
  Device(std::shared_ptr<const Driver> driver, DeviceHandle handle, DeviceInfo info);

  std::shared_ptr<const Driver> driver_;
  DeviceHandle handle_;
  DeviceInfo info_;
  ContextHandle context_ = nullptr;
};

using DevicePtr = std::shared_ptr<const Device>;

/// Makes the device's context current on this thread for its lifetime; does nothing where it is current already.
class CurrentContext {
 public:
  explicit CurrentContext(const Device& device);
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;
  ~CurrentContext();

 private:
  const Driver& driver_;
  bool pushed_ = false;
};

/// A stream of its own, which does not wait for the default stream.
class Stream {
 public:
  explicit Stream(DevicePtr device);
  Stream(Stream&& other) noexcept;
  Stream& operator=(Stream&& other) noexcept;
  ~Stream();
  StreamHandle get() const { return handle_; }
  void synchronize() const;

 private:
  DevicePtr device_;
  StreamHandle handle_ = nullptr;
};

/// A point in a stream's work.
class Event {
 public:
  enum class Timing { off, on };
  Event(DevicePtr device, Timing timing);
  Event(Event&& other) noexcept;
  Event& operator=(Event&& other) noexcept;
  ~Event();
  EventHandle get() const { return handle_; }
  void record(StreamHandle stream) const;
  void synchronize() const;
  bool reached() const;  ///< so does one that was not recorded
  /// Makes later work of `stream` wait for the recorded point.
  void hold_back(StreamHandle stream) const;
  /// Milliseconds from `begin` to this event; both with timing and both reached.
  float milliseconds_since(const Event& begin) const;

 private:
  DevicePtr device_;
  EventHandle handle_ = nullptr;
};

/// Device memory. No bytes means no allocation and a null address.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  /// Allocates at once (cuMemAlloc): at least 256-byte aligned. Throws Error(out_of_memory) that names the size.
  DeviceBuffer(DevicePtr device, std::size_t bytes);
  /// Allocates in stream order where the device has memory pools, and is freed in the order of the same stream, which
  /// must then live longer.
  DeviceBuffer(DevicePtr device, std::size_t bytes, StreamHandle stream);
  DeviceBuffer(DeviceBuffer&& other) noexcept;
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept;
  ~DeviceBuffer();

  DevicePointer address() const { return address_; }
  std::size_t bytes() const { return bytes_; }

  /// Copies the whole span to or from byte `offset`, waiting for the copy; the range must lie inside the buffer.
  void upload(std::span<const std::byte> from, std::size_t offset = 0) const;
  void download(std::span<std::byte> to, std::size_t offset = 0) const;

 private:
  void check_range(std::size_t offset, std::size_t count) const;

  DevicePtr device_;
  DevicePointer address_ = 0;
  std::size_t bytes_ = 0;
  StreamHandle stream_ = nullptr;
  bool in_stream_order_ = false;
};

/// What a loaded kernel takes, as the driver knows it.
struct FunctionInfo {
  int registers = 0;
  int max_threads_per_block = 0;
  std::int64_t static_shared_bytes = 0;
  std::int64_t local_bytes = 0;
};

/// A loaded cubin. Functions stay valid as long as the module.
class Module {
 public:
  /// Loads machine code for this device. Throws Error(unsupported) when it was compiled for another architecture.
  Module(DevicePtr device, std::span<const std::byte> cubin);
  Module(Module&& other) noexcept;
  Module& operator=(Module&& other) noexcept;
  ~Module();

  /// The kernel of that extern "C" name; where its own shared memory and `dynamic_shared_bytes` are more than 48 KiB
  /// together it is told so here, once.
  /// Throws Error(launch) when there is no such kernel, Error(resource) when the device has less shared memory.
  FunctionHandle function(const std::string& name, std::size_t dynamic_shared_bytes = 0) const;

  FunctionInfo info(FunctionHandle function) const;

  /// How many blocks of that size run on one SM at a time.
  int blocks_per_sm(FunctionHandle function, int threads, std::size_t dynamic_shared_bytes) const;

 private:
  DevicePtr device_;
  ModuleHandle handle_ = nullptr;
};

struct Dim3 {
  unsigned x = 1;
  unsigned y = 1;
  unsigned z = 1;
  bool operator==(const Dim3&) const = default;
};

/// How a kernel is launched, in blocks and threads.
struct LaunchConfig {
  Dim3 grid = {};
  Dim3 block = {};
  unsigned dynamic_shared_bytes = 0;
  Dim3 cluster = {};                    ///< blocks that share a cluster (sm_90 and later); {1, 1, 1} for none
  bool programmatic_dependent = false;  ///< may begin before the stream's previous kernel ends (griddepcontrol.wait)
  bool cooperative = false;             ///< no block starts before all can: they may wait for each other
};

/// How many blocks of `config` the device runs at once, in whole clusters. The device's context must be current.
std::int64_t resident_blocks(const Device& device, FunctionHandle function, const LaunchConfig& config);

/// Puts the kernel on `stream` and returns. `arguments` points at each argument in order. A grid without blocks
/// launches nothing. The device's context must be current on this thread. `name` is for the message of Error(launch).
void launch(const Driver& driver, FunctionHandle function, const LaunchConfig& config, StreamHandle stream,
            void** arguments, std::string_view name);

}  // namespace tenon::runtime::cuda
